package rows_test

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink"
)

// number is a type that is written as a whole number of so many bytes, and what it takes.
type number struct {
	typ         string
	size        int
	least, most *big.Int
	json        func(n *big.Int) string // nil where JSON has no such number
}

func power(base, exponent int64) *big.Int {
	return new(big.Int).Exp(big.NewInt(base), big.NewInt(exponent), nil)
}

// numbers are all types of whole numbers: integers, dates and times, decimals of all precisions.
func numbers() []number {
	var out []number
	for size, typ := range map[int]string{1: "int8", 2: "int16", 4: "int32", 8: "int64"} {
		end := power(2, int64(8*size-1))
		out = append(out, number{typ, size, new(big.Int).Neg(end), new(big.Int).Sub(end, big.NewInt(1)), (*big.Int).String})
	}
	for _, typ := range []string{"timestamp", "timestamp_ntz"} {
		out = append(out, number{typ, 8, big.NewInt(-62_135_596_800_000_000), big.NewInt(253_402_300_799_999_999), nil})
	}
	out = append(out, number{"date", 4, big.NewInt(-719_162), big.NewInt(2_932_896), nil})
	for precision := int64(1); precision <= rows.MaxPrecision; precision++ {
		size := 16
		if precision <= 9 {
			size = 4
		} else if precision <= 18 {
			size = 8
		}
		most := new(big.Int).Sub(power(10, precision), big.NewInt(1))
		for _, scale := range []int64{0, 1, precision} {
			out = append(out, number{fmt.Sprintf("decimal(%d,%d)", precision, scale), size, new(big.Int).Neg(most), most, func(n *big.Int) string {
				return fmt.Sprintf("%se-%d", n, scale)
			}})
		}
	}
	return out
}

// put writes a number in so many bytes as the SDKs do: marked if it does not fit them.
func put(w *abi.RowWriter, n *big.Int, size int) {
	end := power(2, int64(8*size-1))
	if n.Cmp(end) >= 0 || n.Cmp(new(big.Int).Neg(end)) < 0 {
		w.Unfit()
		return
	}
	two := new(big.Int).And(n, new(big.Int).Sub(power(2, 128), big.NewInt(1)))
	low, high := new(big.Int).And(two, new(big.Int).SetUint64(1<<64-1)).Uint64(), new(big.Int).Rsh(two, 64).Uint64()
	switch size {
	case 1:
		w.Int8(int8(low))
	case 2:
		w.Int16(int16(low))
	case 4:
		w.Bits32(uint32(low))
	case 8:
		w.Bits64(low)
	default:
		w.Bits128(low, high)
	}
}

// TestNoNumberIsCut: at the edges of each type and of each width, a number in a binary row is that number or a misfit of code
// range, as its JSON is; alone, in a list, and as the key and the value of a map.
func TestNoNumberIsCut(t *testing.T) {
	for _, c := range numbers() {
		s := rowstest.SchemaOf(t, "a", c.typ, "l", "list<"+c.typ+">", "m", "map<"+c.typ+", "+c.typ+">")
		w := abi.NewRowWriter(s.ColumnsText())
		var edges []*big.Int
		for _, at := range []*big.Int{c.least, c.most, big.NewInt(0), power(2, 7), power(2, 15), power(2, 31), power(2, 32), power(2, 63), power(2, 64), power(10, 38)} {
			for d := int64(-1); d <= 1; d++ {
				n := new(big.Int).Add(at, big.NewInt(d))
				edges = append(edges, n, new(big.Int).Neg(n))
			}
		}
		tab := rows.NewTable(s)
		for _, n := range edges {
			fits := n.Cmp(c.least) >= 0 && n.Cmp(c.most) <= 0
			for place, path := range []string{"a", "l[0]", `m{`, "m[0]"} {
				w.Begin()
				if place == 0 {
					put(w, n, c.size)
				} else {
					w.Null()
				}
				if place == 1 {
					w.Length(1)
					put(w, n, c.size)
				} else {
					w.Null()
				}
				if place > 1 {
					key, value := n, big.NewInt(0)
					if place == 2 {
						key, value = value, key
					}
					w.Length(1)
					w.Key(func(w *abi.RowWriter) { put(w, key, c.size) })
					put(w, value, c.size)
				} else {
					w.Null()
				}
				err := tab.Append(w.Row())
				if !fits {
					if m, ok := errors.AsType[*sink.Misfit](err); !ok || m.Code != "range" || !strings.HasPrefix(m.Column, path) {
						t.Errorf("%s %s in %s: %v", c.typ, n, path, err)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s %s in %s: %v", c.typ, n, path, err)
				}
				if place > 0 || c.json == nil {
					continue
				}
				got := string(tab.Column(0).AppendJSON(nil, tab.Len()-1))
				if err := tab.Append([]byte(`{"a":` + c.json(n) + `}`)); err != nil {
					t.Errorf("%s %s as JSON: %v", c.typ, n, err)
				} else if want := string(tab.Column(0).AppendJSON(nil, tab.Len()-1)); got != want {
					t.Errorf("%s %s became %s, want %s", c.typ, n, got, want)
				}
			}
			if c.json != nil && !fits {
				if m, ok := errors.AsType[*sink.Misfit](tab.Append([]byte(`{"a":` + c.json(n) + `}`))); !ok || !slices.Contains([]string{"range", "precision"}, m.Code) {
					t.Errorf("%s %s as JSON: %+v", c.typ, n, m)
				}
			}
		}
	}
}
