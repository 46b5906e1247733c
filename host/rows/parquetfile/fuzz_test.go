package parquetfile_test

import (
	"bytes"
	"testing"

	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/rowstest"
)

// FuzzReader: no file makes the reader panic or go on for ever, and rows that it gives fit their columns.
func FuzzReader(f *testing.F) {
	s := rowstest.SchemaOf(f, "a", "int32", "l", "list<struct<b: boolean, s: string>>", "m", "map<string, decimal(20,2)>", "t", "timestamp not null")
	tab := fill(f, s, `{"a":1,"l":[{"b":true,"s":"x"},null],"m":{"k":1.5},"t":"2024-01-01T00:00:00Z"}`, `{"l":[],"t":"1969-12-31T00:00:00Z"}`)
	for _, codec := range []parquetfile.Codec{parquetfile.None, parquetfile.Snappy} {
		var out bytes.Buffer
		encode(f, newWriter(f, s, codec), &out, []parquetfile.Rows{{Table: tab}})
		f.Add(out.Bytes())
		f.Add(out.Bytes()[:out.Len()/2])
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := tryRead(file, s)
		if err != nil {
			return
		}
		for i := range got.Len() {
			if got.Column(3).Valid[i] == 0 {
				t.Fatalf("row %d has null where none fits", i)
			}
			for c := range s.Len() {
				got.Column(c).AppendJSON(nil, i)
			}
		}
	})
}
