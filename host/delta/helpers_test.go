package delta_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/fault"
)

var ctx = context.Background()

// epoch is what the clock of tests says, unless they say otherwise.
var epoch = time.UnixMilli(1_800_000_000_000)

func clock() time.Time { return epoch }

// golden returns a copy of a real table's log, and its directory.
func golden(t testing.TB, name string) (*delta.Log, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "spark", name))); err != nil {
		t.Fatal(err)
	}
	return delta.OpenLog(durable.OS(), dir, clock), dir
}

func entryFile(version int64) string { return fmt.Sprintf("_delta_log/%020d.json", version) }

func checkpointFile(version int64) string {
	return fmt.Sprintf("_delta_log/%020d.checkpoint.parquet", version)
}

// memory returns a log on a disk in memory.
func memory(t testing.TB) (*delta.Log, *faulty.FS) {
	t.Helper()
	disk := faulty.New()
	return delta.OpenLog(disk.Process(), "/table", clock), disk
}

func write(t testing.TB, files durable.Files, name, content string) {
	t.Helper()
	if err := durable.MakeDir(files, path.Dir(name)); err != nil {
		t.Fatal(err)
	}
	if err := durable.WriteFile(files, name, []byte(content)); err != nil {
		t.Fatal(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func snapshot(t testing.TB, l *delta.Log) *delta.Snapshot {
	t.Helper()
	s, err := l.Snapshot(ctx)
	must(t, err)
	return s
}

// wantFault checks the code of an error and that it speaks of all these.
func wantFault(t testing.TB, err error, code string, speaksOf ...string) {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.ErrCode != code {
		t.Fatalf("got error %v, want code %s", err, code)
	}
	if f.WayOut == "" || f.Place == "" {
		t.Errorf("%v: no place or no way out", err)
	}
	for _, s := range speaksOf {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not speak of %q", err, s)
		}
	}
}

const oneColumn = `{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}`

func metadata(properties ...string) *delta.Metadata {
	m := &delta.Metadata{
		ID: "table-1", Format: delta.Format{Provider: "parquet", Options: map[string]string{}}, SchemaString: oneColumn,
		PartitionColumns: []string{}, Configuration: map[string]string{},
	}
	for i := 0; i < len(properties); i += 2 {
		m.Configuration[properties[i]] = properties[i+1]
	}
	return m
}

func protocol() *delta.Protocol { return &delta.Protocol{MinReader: 1, MinWriter: 2} }

func info(txnID string) delta.Action {
	return delta.Action{CommitInfo: &delta.CommitInfo{Timestamp: 1000, Operation: "WRITE", OperationParameters: map[string]string{}, TxnID: txnID}}
}

func add(path string) delta.Action {
	return delta.Action{Add: &delta.Add{Path: path, PartitionValues: map[string]*string{}, Size: 10, DataChange: true}}
}

func remove(path string) delta.Action {
	at := epoch.UnixMilli()
	return delta.Action{Remove: &delta.Remove{Path: path, DataChange: true, DeletionTimestamp: &at}}
}

func txn(app string, version int64) delta.Action {
	at := epoch.UnixMilli()
	return delta.Action{Txn: &delta.Txn{AppID: app, Version: version, LastUpdated: &at}}
}

// create makes a table.
func create(t testing.TB, l *delta.Log, properties ...string) *delta.Snapshot {
	t.Helper()
	_, err := l.Commit(ctx, nil, []delta.Action{info("create"), {Protocol: protocol()}, {Metadata: metadata(properties...)}})
	must(t, err)
	return snapshot(t, l)
}

func paths(s *delta.Snapshot) []string {
	out := []string{}
	for a := range s.Files() {
		out = append(out, a.Path)
	}
	return out
}

func read(t testing.TB, files durable.Files, name string) string {
	t.Helper()
	content, err := durable.ReadFile(files, "/table/"+name, 1<<20)
	must(t, err)
	return string(content)
}
