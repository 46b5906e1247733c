package parquetfile_test

import (
	"encoding/base64"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/wasmill/wasmill/host/rows"
)

// reText writes a value read by parquet-go as rows.Vector.AppendText does, by other means.
func reText(v parquet.Value, t rows.Type) string {
	switch t.Kind {
	case rows.String:
		return string(v.ByteArray())
	case rows.Binary:
		return base64.StdEncoding.EncodeToString(v.ByteArray())
	case rows.Boolean:
		return strconv.FormatBool(v.Boolean())
	case rows.Int32:
		return strconv.Itoa(int(v.Int32()))
	case rows.Int64:
		return strconv.FormatInt(v.Int64(), 10)
	case rows.Float:
		return strconv.FormatFloat(float64(v.Float()), 'g', -1, 32)
	case rows.Double:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	case rows.Timestamp:
		return time.UnixMicro(v.Int64()).UTC().Format("2006-01-02T15:04:05.000000Z")
	case rows.TimestampNTZ:
		return time.UnixMicro(v.Int64()).UTC().Format("2006-01-02T15:04:05.000000")
	case rows.Date:
		return time.Unix(int64(v.Int32())*86400, 0).UTC().Format("2006-01-02")
	}
	return decimalText(unscaled(v), t.Scale)
}

func unscaled(v parquet.Value) *big.Int {
	switch v.Kind() {
	case parquet.Int32:
		return big.NewInt(int64(v.Int32()))
	case parquet.Int64:
		return big.NewInt(v.Int64())
	}
	b := v.ByteArray()
	x := new(big.Int).SetBytes(b)
	if b[0]&0x80 != 0 {
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return x
}

func decimalText(x *big.Int, scale int) string {
	digits := new(big.Int).Abs(x).String()
	if len(digits) <= scale {
		digits = strings.Repeat("0", scale-len(digits)+1) + digits
	}
	if scale > 0 {
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if x.Sign() < 0 {
		return "-" + digits
	}
	return digits
}
