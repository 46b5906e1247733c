package delta_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink"
	target "github.com/wasmill/wasmill/host/sink/delta"
)

// TestUpsertsAgainstAMap: any updates and deletions, in any batches, files and partitions, leave what a map leaves.
func TestUpsertsAgainstAMap(t *testing.T) {
	schema := rowstest.SchemaOf(t, "id", "int64 not null", "name", "string", "place", "string", "n", "int32 not null", "tags", "list<string>")
	keys := [][]string{{"name"}, {"id", "name"}, {"place", "id"}, {"id"}}
	rapid.Check(t, func(rt *rapid.T) {
		disk, c := faulty.New(), &clock{start}
		disk.SetClock(c.now)
		cfg := target.Config{
			Dir: "/data/out", Schema: schema, Key: rapid.SampledFrom(keys).Draw(rt, "key"), Files: disk.Process(), Clock: c.now,
			MaxPartRows: int64(rapid.IntRange(1, 6).Draw(rt, "rows in a file")), CheckpointInterval: 3,
		}
		if rapid.Bool().Draw(rt, "partitioned") {
			cfg.PartitionBy = []string{"place"}
		}
		tt := opened(t, cfg)
		oracle := map[string]string{}
		for n := range checkpoint.BatchID(rapid.IntRange(1, 6).Draw(rt, "batches")) {
			var records []record
			for range rapid.IntRange(0, 8).Draw(rt, "records") {
				r, key := anyChange(rt, cfg.Key)
				records = append(records, r)
				if oracle[key] = r.value; r.value == "" {
					delete(oracle, key)
				}
			}
			if err := batch(tt, n, records); err != nil {
				rt.Fatal(err)
			}
			want := slices.Sorted(maps.Values(oracle))
			if diff := cmp.Diff(want, slices.Sorted(slices.Values(rowsOf(t, disk.Process(), "/data/out"))), cmpEmpty); diff != "" {
				rt.Fatalf("after batch %d of %v (-want +got):\n%s", n, records, diff)
			}
		}
	})
}

var cmpEmpty = cmp.Transformer("nil", func(s []string) []string { return append([]string{}, s...) })

// anyChange draws an update or a deletion, and its key.
func anyChange(t *rapid.T, key []string) (r record, k string) {
	values := map[string]string{
		"id":    strconv.Itoa(rapid.IntRange(-2, 3).Draw(t, "id")),
		"name":  strconv.Quote(rapid.SampledFrom([]string{"", "a", "b\"c", "ü", "long enough to be cut in the statistics of a file, somewhere"}).Draw(t, "name")),
		"place": strconv.Quote(rapid.SampledFrom([]string{"x", "y/z", "é =%"}).Draw(t, "place")),
	}
	for i, name := range key {
		if i > 0 {
			k += ","
		}
		k += values[name]
	}
	if rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
		if len(key) > 1 {
			return record{key: "[" + k + "]"}, k
		}
		text, err := strconv.Unquote(k)
		if err != nil {
			text = k
		}
		return record{key: text, value: ""}, k
	}
	return record{value: fmt.Sprintf(`{"id":%s,"name":%s,"place":%s,"n":%d,"tags":["t"]}`, values["id"], values["name"], values["place"],
		rapid.IntRange(0, 1000).Draw(t, "n"))}, k
}

// TestUpsertReadsAndWritesLittle: only files that hold a changed key are written anew, and none is opened whose partition or
// statistics leave no doubt.
func TestUpsertReadsAndWritesLittle(t *testing.T) {
	disk := faulty.New()
	cfg := target.Config{
		Dir: "/data/out", Schema: rowstest.SchemaOf(t, "place", "string", "id", "int64", "v", "string"), Key: []string{"place", "id"},
		PartitionBy: []string{"place"}, Files: disk.Process(),
	}
	tt := opened(t, cfg)
	put := func(n checkpoint.BatchID, place string, from, to int) {
		var values []string
		for i := from; i < to; i++ {
			values = append(values, fmt.Sprintf(`{"place":%q,"id":%d,"v":"%d"}`, place, i, n))
		}
		mustBatch(t, tt, n, values...)
	}
	put(0, "a", 0, 10)
	put(1, "a", 10, 20)
	put(2, "b", 0, 20)
	before := snapshot(t, disk.Process(), "/data/out").NumFiles()
	opens := 0
	disk.SetFaults(func(o faulty.Op) faulty.Fault {
		if o.Kind == "open" && strings.HasSuffix(o.Path, ".parquet") {
			opens++
		}
		return faulty.Fault{}
	})
	put(3, "a", 12, 14)
	disk.SetFaults(nil)
	if opens != 2 { // for the keys, and for the rows that stay
		t.Errorf("%d data files were opened, want one, twice", opens)
	}
	s := snapshot(t, disk.Process(), "/data/out")
	if before != 3 || s.NumFiles() != 3 || len(rowsOf(t, disk.Process(), "/data/out")) != 40 {
		t.Errorf("%d files, then %d with %d rows; want 3, 3 and 40", before, s.NumFiles(), len(rowsOf(t, disk.Process(), "/data/out")))
	}
}

// TestDeletionKeys reads keys as keyBy makes them.
func TestDeletionKeys(t *testing.T) {
	schema := rowstest.SchemaOf(t, "id", "int64", "day", "date", "name", "string", "amount", "decimal(9,2)", "ok", "boolean", "v", "string")
	for _, c := range []struct {
		columns []string
		key     string
		code    string
	}{
		{[]string{"id"}, "7", ""},
		{[]string{"id"}, "seven", "type"},
		{[]string{"id"}, "99999999999999999999", "range"},
		{[]string{"name"}, "", ""},
		{[]string{"name"}, `a "quoted" one`, ""},
		{[]string{"name"}, "\xff", "type"},
		{[]string{"day"}, "2026-05-06", ""},
		{[]string{"id", "day", "name", "amount", "ok"}, `[7,"2026-05-06","x",1.50,true]`, ""},
		{[]string{"id", "day"}, `["7","2026-05-06"]`, ""},
		{[]string{"id", "name"}, `[7]`, "type"},
		{[]string{"id", "name"}, `[7,null]`, "type"},
		{[]string{"id", "name"}, `[7,["x"]]`, "type"},
		{[]string{"id", "name"}, `7`, "type"},
		{[]string{"id", "name"}, "[7,\"\xff\"]", "type"},
	} {
		tt := newTarget(t, target.Config{Dir: "/data/out", Schema: schema, Key: c.columns, Files: faulty.New().Process()})
		lane, err := tt.NewLane("lake")
		if err != nil {
			t.Fatal(err)
		}
		err = lane.Append(record{key: c.key}.abi())
		m, _ := err.(*sink.Misfit)
		switch {
		case c.code == "" && err != nil, c.code != "" && (m == nil || m.Code != c.code):
			t.Errorf("%v of %v: %v, want %q", c.key, c.columns, err, c.code)
		case c.code != "" && (lane.Rows() != 0 || lane.Bytes() != 0):
			t.Errorf("%v left %d rows of %d bytes", c.key, lane.Rows(), lane.Bytes())
		}
	}
}

// TestKeysMustBeThere sets aside rows and deletions without a key.
func TestKeysMustBeThere(t *testing.T) {
	tt := newTarget(t, target.Config{Dir: "/data/out", Schema: rowstest.SchemaOf(t, "id", "int64", "v", "string"), Key: []string{"id"}, Files: faulty.New().Process()})
	lane, err := tt.NewLane("lake")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []record{{value: `{"v":"x"}`}, {value: `{"id":null}`}, {bare: true}} {
		m, _ := lane.Append(r.abi()).(*sink.Misfit)
		if m == nil || m.Code != "missing" || m.Column == "" {
			t.Errorf("%v: %+v, want a misfit", r, m)
		}
	}
	if lane.Rows() != 0 {
		t.Errorf("%d rows", lane.Rows())
	}
}

func TestBadKeys(t *testing.T) {
	schema := rowstest.SchemaOf(t, "id", "int64", "f", "double", "tags", "list<string>")
	for _, key := range [][]string{{"x"}, {"f"}, {"tags"}, {"id", "id"}} {
		_, err := target.New(target.Config{Sink: "lake", Dir: "/data/out", Schema: schema, Key: key, Files: faulty.New().Process(), Clock: (&clock{start}).now})
		wantFault(t, err, target.CodeConfig)
	}
}
