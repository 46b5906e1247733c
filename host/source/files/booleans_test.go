package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestParquetBooleans reads what pyarrow writes (testdata/booleans.py): data pages of version 2 have booleans in runs, and
// the library takes a run of true for one true in eight values.
func TestParquetBooleans(t *testing.T) {
	want := testdata(t, "booleans.jsonl")
	lines := strings.Split(strings.TrimSuffix(want, "\n"), "\n")
	for i := range lines {
		lines[i] = fmt.Sprint(i, ":", lines[i])
	}
	for _, version := range []string{"1", "2"} {
		r := newRig(t, Parquet)
		r.put("a.parquet", testdata(t, "booleans-"+version+".parquet"))
		for _, records := range []int64{0, 1, 63, 250, 251, 599} {
			r.cfg.ReadOnly = true
			r.open()
			batches, _ := r.drain(records)
			var got []string
			for _, b := range batches {
				got = append(got, b...)
			}
			same(t, fmt.Sprint("pages of version ", version, " in batches of ", records), got, lines)
		}
	}
}

func testdata(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// FuzzParquetBooleans flips bytes of pages with booleans in runs.
func FuzzParquetBooleans(f *testing.F) {
	whole := []byte(testdata(f, "booleans-2.parquet"))
	for i := range 64 {
		f.Add(uint32(i*131), byte(1<<(i%8)))
	}
	f.Fuzz(func(t *testing.T, at uint32, flip byte) { readFlipped(t, whole, at, flip) })
}
