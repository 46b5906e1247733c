package delta_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	target "github.com/wasmill/wasmill/host/sink/delta"
)

var ntzProtocol = delta.Protocol{
	MinReader: 3, MinWriter: 7, ReaderFeatures: []string{"timestampNtz"}, WriterFeatures: []string{"appendOnly", "invariants", "timestampNtz"},
}

// TestClockTimesInANewTable: the table says what its readers must know, and its partitions are those of Spark.
func TestClockTimesInANewTable(t *testing.T) {
	files := faulty.New().Process()
	tt := opened(t, target.Config{Dir: "/t", Files: files, PartitionBy: []string{"p"}, Schema: rowstest.SchemaOf(t, "id", "int64", "p", "timestamp_ntz", "at", "timestamp_ntz")})
	want := []string{
		`{"id":1,"p":"2026-03-29T02:30:00.500000","at":"2026-01-02T03:04:05.678901"}`, `{"id":2,"p":"2026-03-29T02:30:00.000000","at":null}`, `{"id":3,"p":null,"at":null}`,
	}
	mustBatch(t, tt, 0, want...)
	s := snapshot(t, files, "/t")
	if diff := cmp.Diff(ntzProtocol, s.Protocol); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, rowsOf(t, files, "/t"), sortLines); diff != "" {
		t.Error(diff)
	}
	var values []string
	for a := range s.Files() {
		if p := a.PartitionValues["p"]; p == nil {
			values = append(values, "null")
		} else {
			values = append(values, *p)
		}
		if strings.Contains(a.Path, "02:30") {
			t.Errorf("a folder with a colon: %s", a.Path)
		}
		if bound := `"minValues":{"id":1,"at":"2026-01-02T03:04:05.678"},"maxValues":{"id":1,"at":"2026-01-02T03:04:05.679"}`; strings.Contains(a.Stats, `"id":1`) && !strings.Contains(a.Stats, bound) {
			t.Errorf("statistics %s", a.Stats)
		}
	}
	if diff := cmp.Diff([]string{"2026-03-29 02:30:00", "2026-03-29 02:30:00.5", "null"}, values, sortLines); diff != "" {
		t.Error(diff)
	}
}

// TestFirstClockColumn: the entry that brings the first such column into a table raises its protocol, once.
func TestFirstClockColumn(t *testing.T) {
	for name, typ := range map[string]string{"plain": "timestamp_ntz", "nested": "list<struct<t: timestamp_ntz>>"} {
		t.Run(name, func(t *testing.T) {
			disk := faulty.New()
			files := disk.Process()
			log := makeTable(t, files, "/t", rowstest.SchemaOf(t, "id", "int64"), nil, nil)
			tt := opened(t, target.Config{Dir: "/t", Files: files, AddColumns: true, Schema: rowstest.SchemaOf(t, "id", "int64", "at", typ)})
			mustBatch(t, tt, 0, `{"id":1}`)
			mustBatch(t, tt, 1, `{"id":2}`)
			for v, want := range map[int64]*delta.Protocol{1: &ntzProtocol, 2: nil} {
				e, err := log.Entry(context.Background(), v)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, e.Protocol()); diff != "" || (e.Metadata() != nil) != (want != nil) {
					t.Errorf("version %d: %s", v, diff)
				}
			}
			if s := snapshot(t, files, "/t"); s.NumFiles() != 2 || cmp.Diff(ntzProtocol, s.Protocol) != "" {
				t.Errorf("%d files, protocol %+v", s.NumFiles(), s.Protocol)
			}
		})
	}
}

// TestFirstClockColumnBesideOthers: another program changes the protocol between staging and publishing; what it says is kept.
func TestFirstClockColumnBesideOthers(t *testing.T) {
	for name, c := range map[string]struct {
		theirs delta.Protocol
		want   delta.Protocol
	}{
		"another feature": {
			delta.Protocol{MinReader: 3, MinWriter: 7, ReaderFeatures: []string{"vacuumProtocolCheck"}, WriterFeatures: []string{"vacuumProtocolCheck"}},
			delta.Protocol{MinReader: 3, MinWriter: 7, ReaderFeatures: []string{"vacuumProtocolCheck", "timestampNtz"}, WriterFeatures: []string{"vacuumProtocolCheck", "timestampNtz"}},
		},
		"the same": {ntzProtocol, ntzProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			disk := faulty.New()
			files := disk.Process()
			makeTable(t, files, "/t", rowstest.SchemaOf(t, "id", "int64"), nil, nil)
			tt := opened(t, target.Config{Dir: "/t", Files: files, AddColumns: true, Schema: rowstest.SchemaOf(t, "id", "int64", "at", "timestamp_ntz")})
			staged, err := stageRecords(tt, 0, "0a0b0c0d", valuesOf([]string{`{"id":1,"at":"2026-01-02T03:04:05"}`}))
			if err != nil {
				t.Fatal(err)
			}
			alterProtocol(t, disk, &c.theirs)
			if err := publishStaged(tt, 0, staged); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, snapshot(t, files, "/t").Protocol); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{`{"id":1,"at":"2026-01-02T03:04:05.000000"}`}, rowsOf(t, files, "/t")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestClockColumnWithoutItsFeature: a table whose protocol hides what it holds is not written to.
func TestClockColumnWithoutItsFeature(t *testing.T) {
	disk := faulty.New()
	schema := rowstest.SchemaOf(t, "id", "int64", "at", "timestamp_ntz")
	makeTable(t, disk.Process(), "/t", schema, nil, nil)
	alterProtocol(t, disk, &delta.Protocol{MinReader: 1, MinWriter: 2})
	_, err := newTarget(t, target.Config{Dir: "/t", Schema: schema, Files: disk.Process()}).Open(context.Background(), owner(0))
	wantFault(t, err, delta.CodeFeature)
	if !strings.Contains(err.Error(), "delta.feature.timestampNtz") {
		t.Errorf("%v does not say the way out", err)
	}
}

// TestUpsertByClockTimes finds the rows of keys by other engines' bounds too, which are cut to milliseconds.
func TestUpsertByClockTimes(t *testing.T) {
	files := faulty.New().Process()
	tt := opened(t, target.Config{Dir: "/t", Files: files, Key: []string{"at"}, Schema: rowstest.SchemaOf(t, "at", "timestamp_ntz", "n", "int64")})
	mustBatch(t, tt, 0, `{"at":"2026-01-02T03:04:05.678901","n":1}`, `{"at":"2026-01-02T03:04:05.678902","n":2}`)
	mustBatch(t, tt, 1, `{"at":"2030-01-01 00:00:00","n":3}`)
	log := delta.OpenLog(files, "/t", (&clock{start}).now)
	base := snapshot(t, files, "/t")
	var actions []delta.Action
	for a := range base.Files() { // as delta-rs says the bounds
		cut := *a
		cut.Stats = strings.NewReplacer("05.679", "05.678", "2026-01-02T", "2026-01-02 ").Replace(a.Stats)
		cut.DataChange = false
		actions = append(actions, delta.Action{Add: &cut})
	}
	commitAs(t, log, base, actions...)
	if err := batch(tt, 2, []record{{value: `{"at":"2026-01-02T03:04:05.678902","n":4}`}, {key: "2026-01-02T03:04:05.678901"}}); err != nil {
		t.Fatal(err)
	}
	want := []string{`{"at":"2026-01-02T03:04:05.678902","n":4}`, `{"at":"2030-01-01T00:00:00.000000","n":3}`}
	if diff := cmp.Diff(want, rowsOf(t, files, "/t"), sortLines); diff != "" {
		t.Error(diff)
	}
}
