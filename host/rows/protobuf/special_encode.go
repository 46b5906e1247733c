package protobuf

import (
	"math/big"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/wasmill/wasmill/host/rows/jsonvalue"
	"github.com/wasmill/wasmill/host/sink"
)

func (e *encoder) special(m *message, v jsonvalue.Value, depth int) error {
	switch m.special {
	case timestamp:
		sec, nanos, err := jsonvalue.Time(v, true, "google.protobuf.Timestamp")
		if err == nil {
			e.time(sec, nanos)
		}
		return err
	case duration:
		sec, nanos, err := durationOf(v)
		if err == nil {
			e.time(sec, nanos)
		}
		return err
	case wrapper:
		if v.IsNull() {
			return jsonvalue.Wrong(v, string(m.name))
		}
		return e.member(m.fields[0], v, depth)
	case anyValue:
		return e.anyValue(m, v, depth)
	case structure:
		return e.table(m.fields[0], v, depth)
	}
	return e.list(m.fields[0], v, depth)
}

func (e *encoder) time(sec, nanos int64) {
	if sec != 0 {
		e.dst = protowire.AppendVarint(protowire.AppendTag(e.dst, 1, protowire.VarintType), uint64(sec))
	}
	if nanos != 0 {
		e.dst = protowire.AppendVarint(protowire.AppendTag(e.dst, 2, protowire.VarintType), uint64(nanos))
	}
}

func durationOf(v jsonvalue.Value) (sec, nanos int64, err error) {
	if v.Kind() != jsonvalue.String {
		return 0, 0, jsonvalue.Wrong(v, "google.protobuf.Duration")
	}
	text, ok := strings.CutSuffix(string(v.Text()), "s")
	neg := strings.HasPrefix(text, "-")
	whole, digits, _ := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	s, serr := strconv.ParseUint(whole, 10, 63)
	n, nerr := uint64(0), error(nil)
	if digits != "" {
		n, nerr = strconv.ParseUint(digits+strings.Repeat("0", max(0, 9-len(digits))), 10, 63)
	}
	if !ok || serr != nil || nerr != nil || strings.HasSuffix(text, ".") || len(digits) > 9 {
		return 0, 0, badDuration(v)
	}
	if s > maxDuration {
		return 0, 0, jsonvalue.OutOfRange(v, "google.protobuf.Duration")
	}
	if neg {
		return -int64(s), -int64(n), nil
	}
	return int64(s), int64(n), nil
}

// maxDigits is how many a double may have before the point.
const maxDigits = 309

func isDouble(n *big.Int) bool {
	_, acc := new(big.Float).SetInt(n).Float64()
	return acc == big.Exact
}

// anyValue writes any JSON value as a google.protobuf.Value. Its numbers are doubles: an integer that is none does not fit.
func (e *encoder) anyValue(m *message, v jsonvalue.Value, depth int) error {
	name := map[jsonvalue.Kind]string{
		jsonvalue.Null: "null_value", jsonvalue.Bool: "bool_value", jsonvalue.Number: "number_value",
		jsonvalue.String: "string_value", jsonvalue.Array: "list_value", jsonvalue.Object: "struct_value",
	}[v.Kind()]
	if v.Kind() == jsonvalue.Number {
		if _, err := jsonvalue.Float(v, 64, "google.protobuf.Value"); err != nil {
			return err
		}
		if n, err := jsonvalue.Decimal(v, 0, maxDigits, "google.protobuf.Value"); err == nil && !isDouble(n) {
			return &sink.Misfit{Code: "precision", Reason: "a google.protobuf.Value holds doubles, which do not hold " + string(v.Text())}
		}
	}
	if v.Kind() == 0 {
		return jsonvalue.Wrong(v, "google.protobuf.Value")
	}
	return e.member(m.byName[name], v, depth)
}
