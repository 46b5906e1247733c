package rows_test

import (
	"math"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/rowstest"
)

// TestOneNaN: whatever a row says NaN with, columns hold the one that Java and Rust write, as DataFusion takes each NaN for a
// value of its own.
func TestOneNaN(t *testing.T) {
	s := rowstest.SchemaOf(t, "d", "double", "e", "list<double>", "f", "float", "g", "double")
	w := abi.NewRowWriter(s.ColumnsText())
	forms := map[string][]byte{
		"text":    []byte(`{"d":"NaN","e":["NaN"],"f":"NaN","g":"NaN"}`),
		"escaped": []byte(`{"d":"N\u0061N","e":["N\u0061N"],"f":"N\u0061N","g":"N\u0061N"}`),
	}
	for name, x := range map[string]struct {
		double uint64
		float  uint32
	}{"math.NaN": {math.Float64bits(math.NaN()), 0x7fc00001}, "negative": {0xfff8 << 48, 0xffc0 << 16}, "signalling": {0x7ff0<<48 | 1, 0x7f80<<16 | 1}} {
		w.Begin()
		w.Bits64(x.double)
		w.Length(1)
		w.Bits64(x.double)
		w.Bits32(x.float)
		w.Bits64(x.double)
		forms[name] = append([]byte(nil), w.Row()...)
	}
	for name, row := range forms {
		tab := rows.NewTable(s)
		if err := tab.Append(row); err != nil {
			t.Fatal(err)
		}
		for i, got := range []float64{tab.Column(0).F64[0], tab.Column(1).Children[0].F64[0], tab.Column(3).F64[0]} {
			if bits := math.Float64bits(got); bits != 0x7ff8<<48 {
				t.Errorf("%s: double %d is %x", name, i, bits)
			}
		}
		if bits := math.Float32bits(tab.Column(2).F32[0]); bits != 0x7fc0<<16 {
			t.Errorf("%s: the float is %x", name, bits)
		}
	}
}
