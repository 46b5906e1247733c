package delta_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink"
	target "github.com/wasmill/wasmill/host/sink/delta"
)

// makeTable makes an empty table, as another program would.
func makeTable(tb testing.TB, files durable.Files, dir string, schema *rows.Schema, partition []string, properties map[string]string) *delta.Log {
	tb.Helper()
	log := delta.OpenLog(files, dir, (&clock{start}).now)
	p := delta.NewProtocol(schema)
	if properties == nil {
		properties = map[string]string{}
	}
	if partition == nil {
		partition = []string{}
	}
	commitAs(tb, log, nil, delta.Action{Protocol: &p}, delta.Action{Metadata: &delta.Metadata{
		ID: "11111111-2222-4333-8444-555555555555", Format: delta.Format{Provider: "parquet", Options: map[string]string{}},
		SchemaString: delta.SchemaString(schema), PartitionColumns: partition, Configuration: properties,
	}})
	return log
}

// commitAs commits as another program.
func commitAs(tb testing.TB, log *delta.Log, base *delta.Snapshot, actions ...delta.Action) {
	tb.Helper()
	all := append([]delta.Action{{CommitInfo: &delta.CommitInfo{Operation: "WRITE", OperationParameters: map[string]string{}}}}, actions...)
	if _, err := log.Commit(context.Background(), base, all); err != nil {
		tb.Fatal(err)
	}
}

// alter changes the table's metadata, as another program would.
func alter(tb testing.TB, files durable.Files, dir string, change func(*delta.Metadata)) {
	tb.Helper()
	log := delta.OpenLog(files, dir, (&clock{start}).now)
	base, err := log.Snapshot(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	meta := base.Metadata
	change(&meta)
	commitAs(tb, log, base, delta.Action{Metadata: &meta})
}

func TestSchemaAgainstTable(t *testing.T) {
	table := rowstest.SchemaOf(t, "id", "int64 not null", "name", "string", "at", "timestamp", "tags", "list<string not null>", "p", "struct<x: int32, y: double not null>")
	for _, c := range []struct {
		name      string
		sink      []string
		partition []string
		add       bool
		fails     []string // parts of the message
	}{
		{"the same", []string{"id", "int64 not null", "name", "string", "at", "timestamp", "tags", "list<string not null>", "p", "struct<x: int32, y: double not null>"}, nil, false, nil},
		{"fewer, in another order", []string{"name", "string", "id", "int64 not null"}, nil, false, nil},
		{"times as integers", []string{"id", "int64 not null", "at", "timestamp(ms)"}, nil, false, nil},
		{"stricter", []string{"id", "int64 not null", "name", "string not null"}, nil, false, nil},
		{"another type", []string{"id", "int32 not null"}, nil, false, []string{`column "id"`, "int32 not null", "int64 not null"}},
		{"null where none may be", []string{"id", "int64", "name", "string"}, nil, false, []string{`column "id"`, "not null"}},
		{"null in a list", []string{"id", "int64 not null", "tags", "list<string>"}, nil, false, []string{`column "tags[]"`}},
		{"null in a struct", []string{"id", "int64 not null", "p", "struct<x: int32, y: double>"}, nil, false, []string{`column "p.y"`}},
		{"no required column", []string{"name", "string"}, nil, false, []string{`column "id"`, "no such column"}},
		{"a column more", []string{"id", "int64 not null", "extra", "date"}, nil, false, []string{`no column "extra"`, "date"}},
		{"a column more, added", []string{"id", "int64 not null", "extra", "date not null"}, nil, true, nil},
		{"another case", []string{"id", "int64 not null", "NAME", "string"}, nil, false, []string{`no column "NAME"`, `"name"`}},
		{"another case, added", []string{"id", "int64 not null", "NAME", "string"}, nil, true, []string{`"NAME" cannot be added`}},
		{"another partition", []string{"id", "int64 not null", "name", "string"}, []string{"name"}, false, []string{"partitioned by nothing", "by name"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk := faulty.New()
			makeTable(t, disk.Process(), "/t", table, nil, nil)
			tt := newTarget(t, target.Config{Dir: "/t", Schema: rowstest.SchemaOf(t, c.sink...), PartitionBy: c.partition, AddColumns: c.add, Files: disk.Process()})
			_, err := tt.Inspect(context.Background(), owner(0))
			_, err2 := tt.Open(context.Background(), owner(0))
			for _, err := range []error{err, err2} {
				if c.fails == nil {
					if err != nil {
						t.Error(err)
					}
					continue
				}
				wantFault(t, err, target.CodeSchema)
				for _, part := range c.fails {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%v does not say %q", err, part)
					}
				}
			}
		})
	}
}

// TestAddColumns adds columns in the entry that first has values for them, keeps what the table says of its own, and never
// changes the metadata again.
func TestAddColumns(t *testing.T) {
	disk := faulty.New()
	files := disk.Process()
	makeTable(t, files, "/t", rowstest.SchemaOf(t, "id", "int64", "name", "string"), nil, map[string]string{"delta.logRetentionDuration": "interval 60 days"})
	alter(t, files, "/t", func(m *delta.Metadata) {
		m.SchemaString = strings.Replace(m.SchemaString, `"metadata":{}`, `"metadata":{"comment":"a <key>"}`, 1)
	})
	cfg := target.Config{Dir: "/t", Schema: rowstest.SchemaOf(t, "name", "string", "extra", "date not null", "id", "int64"), AddColumns: true, Files: files}
	tt := opened(t, cfg)
	before := snapshot(t, files, "/t").Version
	mustBatch(t, tt, 0, `{"name":"a","extra":"2026-05-06","id":1}`)
	mustBatch(t, tt, 1, `{"name":"b","extra":"2026-05-07","id":2}`)
	s := snapshot(t, files, "/t")
	if !strings.Contains(s.Metadata.SchemaString, `"comment":"a <key>"`) || s.Metadata.Configuration["delta.logRetentionDuration"] == "" {
		t.Errorf("the table lost what it said of itself: %+v", s.Metadata)
	}
	log := delta.OpenLog(files, "/t", (&clock{start}).now)
	for v, want := range map[int64]bool{before + 1: true, before + 2: false} {
		e, err := log.Entry(context.Background(), v)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Metadata() != nil; got != want {
			t.Errorf("version %d has a metaData: %v", v, got)
		}
	}
	want := []string{`{"id":1,"name":"a","extra":"2026-05-06"}`, `{"id":2,"name":"b","extra":"2026-05-07"}`}
	if diff := cmp.Diff(want, rowsOf(t, files, "/t"), sortLines); diff != "" {
		t.Error(diff)
	}
}

// TestNewTable holds what is made against what the protocol wants.
func TestNewTable(t *testing.T) {
	files := faulty.New().Process()
	tt := opened(t, target.Config{
		Dir: "/a/b/t", Files: files, PartitionBy: []string{"day", "place"}, Engine: "Wasmill/1.2.3",
		Schema: rowstest.SchemaOf(t, "id", "int64 not null", "day", "date", "place", "string", "d", "decimal(9,2)"),
	})
	mustBatch(
		t, tt, 7,
		`{"id":1,"day":"2026-05-06","place":"a/b %é","d":"1.50"}`,
		`{"id":2,"place":null,"d":"-1.50"}`,
	)
	s := snapshot(t, files, "/a/b/t")
	if s.Version != 0 || s.Protocol.MinReader != 1 || s.Protocol.MinWriter != 2 || s.NumFiles() != 2 {
		t.Errorf("version %d of protocol %+v with %d files", s.Version, s.Protocol, s.NumFiles())
	}
	if txn, ok := s.Txn(query + "/lake"); !ok || txn.Version != 7 || txn.LastUpdated == nil || *txn.LastUpdated != start.UnixMilli() {
		t.Errorf("txn is %+v", txn)
	}
	e, err := delta.OpenLog(files, "/a/b/t", (&clock{start}).now).Entry(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	info := e.CommitInfo()
	if info.TxnID == "" || info.EngineInfo != "Wasmill/1.2.3" || info.Tags["wasmill.digest"] != digestOf(7) || info.IsBlindAppend == nil || !*info.IsBlindAppend {
		t.Errorf("commitInfo is %+v", info)
	}
	var stats []string
	for a := range e.Adds() {
		stats = append(stats, a.Stats)
	}
	want := []string{
		`{"numRecords":1,"minValues":{"id":1,"d":1.50},"maxValues":{"id":1,"d":1.50},"nullCount":{"id":0,"d":0}}`,
		`{"numRecords":1,"minValues":{"id":2,"d":-1.50},"maxValues":{"id":2,"d":-1.50},"nullCount":{"id":0,"d":0}}`,
	}
	if diff := cmp.Diff(want, stats, sortLines); diff != "" {
		t.Error(diff)
	}
	rows := []string{`{"id":1,"day":"2026-05-06","place":"a/b %é","d":1.50}`, `{"id":2,"day":null,"place":null,"d":-1.50}`}
	if diff := cmp.Diff(rows, rowsOf(t, files, "/a/b/t"), sortLines); diff != "" {
		t.Error(diff)
	}
}

// TestPartitionsOfTheTable takes a table's own partition columns, also one that the rows do not have.
func TestPartitionsOfTheTable(t *testing.T) {
	files := faulty.New().Process()
	makeTable(t, files, "/t", rowstest.SchemaOf(t, "id", "int64", "place", "string", "region", "string"), []string{"region", "place"}, nil)
	tt := opened(t, target.Config{Dir: "/t", Files: files, Schema: rowstest.SchemaOf(t, "id", "int64", "place", "string")})
	mustBatch(t, tt, 0, `{"id":1,"place":"x"}`)
	if diff := cmp.Diff([]string{`{"id":1,"place":"x","region":null}`}, rowsOf(t, files, "/t")); diff != "" {
		t.Error(diff)
	}
	_, err := stageRecords(tt, 1, "0a0b0c0d", valuesOf([]string{`{"id":1,"place":"y"}`, `{"id":2,"place":"y"}`, `{"id":3,"place":""}`}))
	var refused *sink.Refused
	if !errors.As(err, &refused) || len(refused.Rows) != 1 || refused.Rows[0].Lane != 1 || refused.Rows[0].Row != 1 || refused.Rows[0].Misfit.Column != "place" {
		t.Errorf("an empty partition value is refused as %+v, %v", refused, err)
	}
	schema, partition, err := target.TableSchema(context.Background(), files, "/t", (&clock{start}).now)
	if err != nil || schema.Len() != 3 || len(partition) != 2 {
		t.Errorf("the table's own schema is %v by %v, %v", schema, partition, err)
	}
}
