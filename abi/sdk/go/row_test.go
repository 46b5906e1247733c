package wasmill_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	wasmill "github.com/wasmill/wasmill/abi/sdk/go"
)

// rowsOf writes rows to an output.
func rowsOf(t *testing.T, output string, write func(r *wasmill.Record, row wasmill.Row), values ...string) []string {
	t.Helper()
	c, port := m.Columns(output), m.Port(output)
	var got []string
	for _, o := range run(t, func(r *wasmill.Record, out *wasmill.Out) error {
		row := out.Row(r, c)
		write(r, row)
		return row.Emit(port)
	}, values...) {
		if o.Port != port {
			t.Errorf("output %d, want %d", o.Port, port)
		}
		got = append(got, hex.EncodeToString(o.Value))
	}
	return got
}

// TestRowVectors writes the rows of the golden vectors.
func TestRowVectors(t *testing.T) {
	text, err := os.ReadFile("../../vectors/rows.json")
	if err != nil {
		t.Skip("the SDK stands alone: ", err)
	}
	var vectors []struct{ Doc, Hex string }
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	n := wasmill.IntOf
	outputs := map[string]string{"every type": "every", "nulls": "nulls", "nested": "nested", "null where none is taken": "none"}
	writers := map[string]func(r wasmill.Row){
		"every type": func(r wasmill.Row) {
			r.Int64(n(-1))
			r.Int8(n(-128))
			r.Int16(n(300))
			r.Int32(n(-1 << 31))
			r.Bool(wasmill.BoolOf(true))
			r.Float(1.5)
			r.Double(-0.25)
			r.Int32(n(19000))
			r.Int64(n(1_700_000_000_123_456))
			r.String("é\n")
			r.Bytes([]byte{0, 255})
			r.Int32(n(12345))
			r.Int64(n(5))
			r.Int128(n(1))
		},
		"nulls": func(r wasmill.Row) { r.Int8(wasmill.Int{}); r.Null() },
		"nested": func(r wasmill.Row) {
			r.List(3)
			r.String("x")
			r.Null()
			r.String("")
			r.Map(2)
			r.Key(func(r wasmill.Row) { r.String("a") })
			r.Int32(n(1))
			r.Key(func(r wasmill.Row) { r.String("b") })
			r.Null()
			r.Struct()
			r.Double(52.5)
			r.List(2)
			r.Struct()
			r.String("de")
			r.String("Berlin")
			r.Null()
		},
		"null where none is taken": func(r wasmill.Row) { r.Bool(wasmill.Bool{}) },
	}
	tried := 0
	for _, v := range vectors {
		write := writers[v.Doc]
		if write == nil {
			continue
		}
		tried++
		if got := rowsOf(t, outputs[v.Doc], func(_ *wasmill.Record, r wasmill.Row) { write(r) }, `{}`); len(got) != 1 || got[0] != v.Hex {
			t.Errorf("%s: %v, want %s", v.Doc, got, v.Hex)
		}
	}
	if tried != len(writers) {
		t.Errorf("%d of %d vectors were found", tried, len(writers))
	}
}

// TestRowCells writes the numbers of the golden vectors, each as a value and as a key, and a key that is null: what does not
// fit is never cut.
func TestRowCells(t *testing.T) {
	text, err := os.ReadFile("../../vectors/cells.json")
	if err != nil {
		t.Skip("the SDK stands alone: ", err)
	}
	var vectors []struct{ Type, Text, Hex string }
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors) < 100 {
		t.Fatalf("%d vectors, %v", len(vectors), err)
	}
	writers := map[string]func(r wasmill.Row, n wasmill.Int){
		"int8": wasmill.Row.Int8, "int16": wasmill.Row.Int16, "int32": wasmill.Row.Int32, "int64": wasmill.Row.Int64, "int128": wasmill.Row.Int128,
		"count": func(r wasmill.Row, n wasmill.Int) { r.Map(int(n.N)) },
	}
	noKey := strings.Repeat("03", 17)
	for _, v := range vectors {
		write := func(r wasmill.Row) {
			if v.Type == "float" {
				f, err := strconv.ParseFloat(v.Text, 64)
				if err != nil {
					t.Fatal(err)
				}
				r.Float(f)
				return
			}
			n, err := strconv.ParseInt(v.Text, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			writers[v.Type](r, wasmill.IntOf(n))
		}
		key := noKey
		if v.Hex[:2] == "01" {
			key = v.Hex[2:]
		}
		want := v.Hex + key + noKey + noKey + "00"
		got := rowsOf(t, "none", func(_ *wasmill.Record, r wasmill.Row) {
			write(r)
			r.Key(write)
			r.Key(wasmill.Row.Null)
			r.Key(func(wasmill.Row) {})
			r.Int64(wasmill.Int{})
		}, `{}`)
		if len(got) != 1 || got[0][10:] != want {
			t.Errorf("%s %s: %v, want %s", v.Type, v.Text, got, want)
		}
	}
}

// TestRowText copies strings of the input, of any length, into rows that outgrow the arena.
func TestRowText(t *testing.T) {
	long := strings.Repeat("0123456789", 100_000)
	values := []string{`{"s":"x"}`, `{"s":"\u00e9"}`, `{"s":1}`, `{}`, `{"s":"` + long + `"}`, `{"s":"y"}`}
	got := rowsOf(t, "text", func(r *wasmill.Record, row wasmill.Row) {
		row.Text(r.Field(fs))
		row.Int64(wasmill.IntOf(7))
	}, values...)
	const tail = "010700000000000000"
	want := []string{"010100000078", "0102000000c3a9", "00", "00", "0140420f00" + hex.EncodeToString([]byte(long)), "010100000079"}
	if len(got) != len(want) {
		t.Fatalf("%d rows", len(got))
	}
	for i := range want {
		if len(got[i]) < 10 {
			t.Fatalf("row %d: %s", i, got[i])
		}
		if head := got[0][:10]; got[i] != head+want[i]+tail {
			t.Errorf("row %d: %.80s, want %.80s", i, got[i], head+want[i]+tail)
		}
	}
}

func TestColumnsOfAnOutputWithout(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an output without columns gave some")
		}
	}()
	m.Columns("other")
}
