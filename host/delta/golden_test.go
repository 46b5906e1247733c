package delta_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/delta"
)

// goldens says what becomes of each real table. A refusal is the feature that it names; readRefused and schemaRefused say that
// it is not even read.
var goldens = []struct {
	name          string
	version       int64
	files         int
	write         string
	rewrite       string
	readRefused   bool
	schemaRefused bool
	vectors       int
	txn           string
	txnVersion    int64
}{
	{name: "d-delta", version: 12, files: 11, txn: "459cfefe-4590-40c0-aeab-f416082fe449", txnVersion: 11},
	{name: "d2-delta-sink-ahead", version: 2, files: 3, txn: "9d560821-a62f-4fb7-930c-56e7d6b3edc4", txnVersion: 2},
	{name: "d3-delta-partitioned", version: 0, files: 8},
	{name: "e-append-only", version: 1, files: 1, rewrite: "appendOnly"},
	{name: "e-change-data-feed", version: 1, files: 1, rewrite: "changeDataFeed"},
	{name: "e-check-constraint", version: 2, files: 1, write: "checkConstraints: the table has constraints (pos)"},
	{name: "e-clustering", version: 1, files: 1, write: "clustering"},
	{name: "e-column-mapping-id", version: 1, files: 1, write: "columnMapping: delta.columnMapping.mode=id", readRefused: true},
	{name: "e-column-mapping-name", version: 2, files: 1, write: "columnMapping: delta.columnMapping.mode=name", readRefused: true},
	{name: "e-default-column", version: 1, files: 1, write: `allowColumnDefaults: column "v" has CURRENT_DEFAULT`},
	{name: "e-deletion-vectors", version: 2, files: 1, vectors: 1},
	{name: "e-generated-column", version: 1, files: 1, write: `generatedColumns: column "twice" has delta.generationExpression`},
	{name: "e-iceberg-compat-v2", version: 1, files: 1, write: "icebergCompatV2", readRefused: true},
	{name: "e-identity-column", version: 1, files: 1, write: `identityColumns: column "id" has delta.identity.`},
	{name: "e-in-commit-timestamp", version: 1, files: 1},
	{name: "e-not-null-only", version: 1, files: 1},
	{name: "e-row-tracking", version: 1, files: 1, write: "rowTracking"},
	{name: "e-timestamp-ntz", version: 1, files: 1},
	{name: "e-txn-retention", version: 1, files: 1},
	{name: "e-type-widening", version: 3, files: 2, write: "typeWidening", readRefused: true},
	{name: "e-v2-checkpoint", version: 3, files: 3, write: "v2Checkpoint"},
	{name: "e-variant", version: 1, files: 1, write: "variantType", readRefused: true, schemaRefused: true},
	{name: "f-delta-rs", version: 3, files: 23, txn: "865d5196-0000-4000-8000-000000000001", txnVersion: 2},
	{name: "f-delta-rs-ntz", version: 0, files: 1},
}

func TestGoldenTables(t *testing.T) {
	there, err := os.ReadDir(filepath.Join("testdata", "spark"))
	must(t, err)
	if len(there) != len(goldens) {
		t.Errorf("%d tables, %d expectations", len(there), len(goldens))
	}
	for _, g := range goldens {
		t.Run(g.name, func(t *testing.T) {
			l, _ := golden(t, g.name)
			s := snapshot(t, l)
			if s.Version != g.version || s.NumFiles() != g.files || len(paths(s)) != g.files {
				t.Errorf("version %d with %d files", s.Version, s.NumFiles())
			}
			err := delta.CheckWrite(s.Protocol, s.Metadata)
			if g.write == "" {
				must(t, err)
			} else {
				wantFault(t, err, delta.CodeFeature, g.write, s.Metadata.ID)
			}
			if err := delta.CheckRead(s.Protocol, s.Metadata); (err != nil) != g.readRefused {
				t.Errorf("read: %v", err)
			}
			if err := delta.CheckRewrite(s.Protocol, s.Metadata); g.write == "" && g.rewrite == "" {
				must(t, err)
			} else {
				wantFault(t, err, delta.CodeFeature, g.write, g.rewrite)
			}
			if _, _, err := s.Schema(); (err != nil) != g.schemaRefused {
				t.Errorf("schema: %v", err)
			}
			vectors := 0
			for a := range s.Files() {
				if _, err := a.File(); err != nil {
					wantFault(t, err, delta.CodeFeature, "deletionVectors")
					vectors++
				}
			}
			if vectors != g.vectors {
				t.Errorf("%d files with deletion vectors", vectors)
			}
			if got, ok := s.Txn(g.txn); ok != (g.txn != "") || got.Version != g.txnVersion {
				t.Errorf("txn of %s: %v, %v", g.txn, got, ok)
			}
		})
	}
}

// A schema is written as it was read, when it has no metadata of other engines.
func TestGoldenSchemas(t *testing.T) {
	same := 0
	for _, g := range goldens {
		l, _ := golden(t, g.name)
		s := snapshot(t, l)
		schema, _, err := s.Schema()
		if g.schemaRefused || strings.Contains(s.Metadata.SchemaString, `"metadata":{"`) {
			continue
		}
		must(t, err)
		if got := delta.SchemaString(schema); got != s.Metadata.SchemaString {
			t.Errorf("%s: %s, want %s", g.name, got, s.Metadata.SchemaString)
		}
		same++
	}
	if same < 16 {
		t.Errorf("only %d schemas compared", same)
	}
}

// Every entry of a real table, written anew, says what it said.
func TestGoldenEntriesRoundTrip(t *testing.T) {
	entries := 0
	for _, g := range goldens {
		l, _ := golden(t, g.name)
		for v := range g.version + 1 {
			e, err := l.Entry(ctx, v)
			must(t, err)
			m, disk := memory(t)
			write(t, disk.Process(), "/table/"+entryFile(v), delta.EncodeEntry(t, e))
			back, err := m.Entry(ctx, v)
			must(t, err)
			if diff := cmp.Diff(e, back, cmpopts.SortSlices(infoFirst)); diff != "" {
				t.Errorf("%s version %d: %s", g.name, v, diff)
			}
			entries++
		}
	}
	if entries < 50 {
		t.Errorf("only %d entries", entries)
	}
}

func infoFirst(a, b delta.Action) bool { return a.CommitInfo != nil && b.CommitInfo == nil }

// A checkpoint of Spark or delta-rs makes the state that the entries make, at its own version and after it.
func TestGoldenCheckpoints(t *testing.T) {
	for _, c := range []struct {
		name    string
		version int64
	}{{"d-delta", 5}, {"d-delta", 10}, {"f-delta-rs", 2}} {
		_, dir := golden(t, c.name)
		entries := delta.OpenLog(durable.OS(), dir, clock)
		want := map[int64]*delta.Snapshot{}
		for _, v := range []int64{5, 10, 2} {
			must(t, os.RemoveAll(filepath.Join(dir, checkpointFile(v))))
		}
		last := snapshot(t, entries).Version
		for v := c.version; v <= last; v++ {
			s, err := entries.SnapshotAt(ctx, v)
			must(t, err)
			want[v] = s
		}
		l, dir := golden(t, c.name)
		for v := range c.version {
			must(t, os.Remove(filepath.Join(dir, entryFile(v))))
		}
		for v := c.version; v <= last; v++ {
			got, err := l.SnapshotAt(ctx, v)
			must(t, err)
			if diff := cmp.Diff(delta.CheckpointActions(want[v]), delta.CheckpointActions(got)); diff != "" {
				t.Errorf("%s: checkpoint %d, version %d: %s", c.name, c.version, v, diff)
			}
			if got.TimestampMS != want[v].TimestampMS {
				t.Errorf("%s: version %d has time %d, want %d", c.name, v, got.TimestampMS, want[v].TimestampMS)
			}
		}
	}
}

// What is written as a checkpoint of a real table makes the same state, with the entries before it gone.
func TestCheckpointsOfGoldenTables(t *testing.T) {
	for _, g := range goldens {
		t.Run(g.name, func(t *testing.T) {
			l, dir := golden(t, g.name)
			want := snapshot(t, l)
			must(t, l.WriteCheckpoint(ctx, want))
			for v := range want.Version {
				must(t, os.Remove(filepath.Join(dir, entryFile(v))))
			}
			got := snapshot(t, delta.OpenLog(durable.OS(), dir, clock))
			if diff := cmp.Diff(delta.CheckpointActions(want), delta.CheckpointActions(got)); diff != "" {
				t.Error(diff)
			}
			if got.TimestampMS != want.TimestampMS {
				t.Errorf("time %d, want %d", got.TimestampMS, want.TimestampMS)
			}
			text, err := os.ReadFile(filepath.Join(dir, "_delta_log", "_last_checkpoint"))
			must(t, err)
			var hint struct{ Version, Size, NumOfAddFiles int64 }
			must(t, json.Unmarshal(text, &hint))
			if hint.Version != g.version || hint.NumOfAddFiles != int64(g.files) || hint.Size != int64(len(delta.CheckpointActions(want))) {
				t.Errorf("hint %s", text)
			}
		})
	}
}
