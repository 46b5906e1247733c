package delta_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows"
	target "github.com/wasmill/wasmill/host/sink/delta"
)

// later is after all that the real tables hold.
var later = &clock{time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)}

// TestForeignTables appends to the tables that Spark and delta-rs made, where they can be written to at all, and is refused
// with a word where not.
func TestForeignTables(t *testing.T) {
	logs := filepath.Join("..", "..", "delta", "testdata", "spark")
	names, err := os.ReadDir(logs)
	if err != nil {
		t.Fatal(err)
	}
	appended, refused := 0, 0
	for _, n := range names {
		t.Run(n.Name(), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "t")
			if err := os.CopyFS(dir, os.DirFS(filepath.Join(logs, n.Name()))); err != nil {
				t.Fatal(err)
			}
			ctx := context.Background()
			schema, _, err := target.TableSchema(ctx, osFiles, dir, later.now)
			if err != nil {
				refused++
				if f := (*fault.Error)(nil); !errors.As(err, &f) || f.Hint() == "" || !strings.HasPrefix(f.Code(), "delta.") {
					t.Errorf("refused with %v", err)
				}
				return
			}
			before := snapshot(t, osFiles, dir)
			tt := opened(t, target.Config{Dir: dir, Schema: schema, Clock: later.now})
			mustBatch(t, tt, 0, zeroRow(schema))
			after := snapshot(t, osFiles, dir)
			if after.Version != before.Version+1 || after.NumFiles() != before.NumFiles()+1 {
				t.Errorf("version %d with %d files became %d with %d", before.Version, before.NumFiles(), after.Version, after.NumFiles())
			}
			e, err := delta.OpenLog(osFiles, dir, later.now).Entry(ctx, after.Version)
			if err != nil || e.Metadata() != nil || e.Protocol() != nil {
				t.Errorf("the entry changes the table: %+v, %v", e, err)
			}
			appended++
		})
	}
	if appended < 8 || refused < 8 {
		t.Errorf("%d tables were appended to, %d refused", appended, refused)
	}
}

// zeroRow has a value in the columns that take no null.
func zeroRow(s *rows.Schema) string {
	var parts []string
	for _, c := range s.Columns() {
		if !c.Type.Required {
			continue
		}
		v := "0"
		if c.Type.Kind == rows.String {
			v = `"x"`
		}
		parts = append(parts, string(rows.AppendQuoted(nil, []byte(c.Name)))+":"+v)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// TestForeignRows upserts into tables with rows of Spark's and delta-rs's making: what is not touched stays what it was. It
// needs WASMILL_DELTA_GOLDEN, the folder of the real tables.
func TestForeignRows(t *testing.T) {
	golden := os.Getenv("WASMILL_DELTA_GOLDEN")
	if golden == "" {
		t.Skip("WASMILL_DELTA_GOLDEN is not set")
	}
	for _, name := range []string{"d-delta/out", "d3-delta-partitioned/out", "f-delta-rs/table", "e-delta-features/in-commit-timestamp"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "t")
			if err := os.CopyFS(dir, os.DirFS(filepath.Join(golden, name))); err != nil {
				t.Fatal(err)
			}
			schema, _, err := target.TableSchema(context.Background(), osFiles, dir, later.now)
			if err != nil {
				t.Fatal(err)
			}
			key := ""
			for _, c := range schema.Columns() {
				if key == "" && (c.Type.Kind == rows.Int64 || c.Type.Kind == rows.Int32) {
					key = c.Name
				}
			}
			before := rowsOf(t, osFiles, dir)
			tt := opened(t, target.Config{Dir: dir, Schema: schema, Key: []string{key}, Clock: later.now})
			field := string(rows.AppendQuoted(nil, []byte(key))) + ":"
			for n := range checkpoint.BatchID(2) {
				victim := before[int(n)*len(before)/2]
				value := victim[strings.Index(victim, field)+len(field):]
				value = value[:strings.IndexAny(value, ",}")]
				if err := batch(tt, n, []record{{key: value}}); err != nil {
					t.Fatal(err)
				}
				var want []string
				for _, r := range before {
					if !strings.Contains(r, field+value+",") && !strings.HasSuffix(r, field+value+"}") {
						want = append(want, r)
					}
				}
				if len(want) == len(before) {
					t.Fatalf("no row has %s%s", field, value)
				}
				before = want
				if got := rowsOf(t, osFiles, dir); !sameLines(got, want) {
					t.Fatalf("after the row %s%s was deleted there are %d rows, want %d", field, value, len(got), len(want))
				}
			}
		})
	}
}

func sameLines(a, b []string) bool {
	count := map[string]int{}
	for _, x := range a {
		count[x]++
	}
	for _, x := range b {
		count[x]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}
