package delta_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	target "github.com/wasmill/wasmill/host/sink/delta"
)

// TestUpsertKeepsSparkCalendars: an upsert takes the rows that it does not change from files by Spark's old calendar as Spark
// reads them, and touches no file of which it cannot tell them.
func TestUpsertKeepsSparkCalendars(t *testing.T) {
	tables := filepath.Join("..", "..", "source", "delta", "testdata", "calendar")
	text, err := os.ReadFile(filepath.Join(tables, "rows.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for name, refused := range map[string]bool{"utc": false, "int96": false, "zone": true} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "t")
			if err := os.CopyFS(dir, os.DirFS(filepath.Join(tables, name))); err != nil {
				t.Fatal(err)
			}
			tt := opened(t, target.Config{
				Dir: dir, Schema: rowstest.SchemaOf(t, "id", "int32", "d", "date", "t", "timestamp"), Key: []string{"id"}, Clock: later.now,
			})
			changed := `{"id":3,"d":"1500-02-28","t":"1500-02-28T00:00:00.000000Z"}`
			err := batch(tt, 0, valuesOf([]string{changed}))
			if refused {
				wantFault(t, err, target.CodeTable)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := append(slices.Clone(lines[:3]), changed)
			if diff := cmp.Diff(want, slices.Sorted(slices.Values(rowsOf(t, osFiles, dir)))); diff != "" {
				t.Errorf("after the upsert (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUpsertRefusesUnreadCompression: the way out is not that of a broken file.
func TestUpsertRefusesUnreadCompression(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "source", "delta", "testdata", "lz4"))); err != nil {
		t.Fatal(err)
	}
	tt := opened(t, target.Config{Dir: dir, Schema: rowstest.SchemaOf(t, "id", "int32", "v", "string"), Key: []string{"id"}, Clock: later.now})
	err := batch(tt, 0, valuesOf([]string{`{"id":1,"v":"x"}`}))
	wantFault(t, err, target.CodeTable)
	if f, _ := errors.AsType[*fault.Error](err); f == nil || !strings.Contains(f.Hint(), "spark.sql.parquet.compression.codec") || !strings.Contains(err.Error(), "lz4hadoop.parquet is whole") {
		t.Errorf("%v", err)
	}
}
