package delta_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
)

// TestRealReaders makes tables by hand and lets Spark, delta-rs and DuckDB read them: from entries, from a checkpoint alone and
// from both. It needs WASMILL_DELTA_CHECKER, a command that takes the directory, a file of the expected rows and the txns.
func TestRealReaders(t *testing.T) {
	checker := os.Getenv("WASMILL_DELTA_CHECKER")
	if checker == "" {
		t.Skip("WASMILL_DELTA_CHECKER is not set")
	}
	for _, c := range []struct {
		name       string
		checkpoint int64 // version, or none when negative
		properties []string
	}{
		{"entries", -1, nil},
		{"checkpoint", 4, nil},
		{"checkpoint and entries", 2, []string{"delta.enableInCommitTimestamps", "true"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out +%ü")
			want := filepath.Join(t.TempDir(), "expected.jsonl")
			must(t, os.WriteFile(want, writeTable(t, dir, c.checkpoint, c.properties), 0o600))
			out, err := exec.Command("sh", "-c", checker+` "$0" "$1" --txn query/sink=3`, dir, want).CombinedOutput()
			t.Logf("%s", out)
			must(t, err)
		})
	}
}

const realSchema = `{"type":"struct","fields":[` +
	`{"name":"place","type":"string","nullable":true,"metadata":{}},` +
	`{"name":"day","type":"date","nullable":true,"metadata":{}},` +
	`{"name":"at","type":"timestamp","nullable":true,"metadata":{}},` +
	`{"name":"id","type":"long","nullable":false,"metadata":{}},` +
	`{"name":"note","type":"string","nullable":true,"metadata":{}},` +
	`{"name":"wide","type":"decimal(38,12)","nullable":true,"metadata":{}},` +
	`{"name":"f","type":"float","nullable":true,"metadata":{}},` +
	`{"name":"seen","type":"timestamp","nullable":true,"metadata":{}},` +
	`{"name":"s","type":{"type":"struct","fields":[{"name":"a","type":"byte","nullable":true,"metadata":{}}]},"nullable":true,"metadata":{}}]}`

// writeTable commits four batches with one file each, each replacing a file of the one before, and returns the rows.
func writeTable(t *testing.T, dir string, checkpoint int64, properties []string) []byte {
	schema, err := delta.ParseSchema(realSchema)
	must(t, err)
	data, err := rows.NewSchema(schema.Columns()[3:])
	must(t, err)
	m := metadata(properties...)
	m.SchemaString, m.PartitionColumns = delta.SchemaString(schema), []string{"place", "day", "at"}
	p := protocol()
	if m.InCommitTimestamps() {
		p = &delta.Protocol{MinReader: 1, MinWriter: 7, WriterFeatures: []string{"appendOnly", "inCommitTimestamp", "invariants"}}
	}
	l := delta.OpenLog(durable.OS(), dir, clock)
	_, err = l.Commit(ctx, nil, []delta.Action{info("create"), {Protocol: p}, {Metadata: m}})
	must(t, err)
	var want bytes.Buffer
	var before *delta.Add
	for batch := range int64(4) {
		s := snapshot(t, l)
		at := epoch.UnixMilli()
		actions := []delta.Action{info(fmt.Sprint(batch)), txn("query/sink", batch)}
		if before != nil {
			actions = append(actions, delta.Action{Remove: before.Remove(at, true)})
		}
		for i, place := range []string{"k=v", "a b/%20+ü漢", ""} {
			a := writeData(t, dir, m, data, batch, int64(i), place)
			actions = append(actions, delta.Action{Add: a})
			if i == 1 {
				before = a
			}
			if i != 1 || batch == 3 {
				want.WriteString(realRow(batch, int64(i), place, true) + "\n")
			}
		}
		_, err := l.Commit(ctx, s, actions)
		must(t, err)
		if s := snapshot(t, l); s.Version == checkpoint {
			must(t, l.WriteCheckpoint(ctx, s))
			for v := range s.Version {
				must(t, os.Remove(filepath.Join(dir, entryFile(v))))
			}
		}
	}
	return want.Bytes()
}

func realRow(batch, i int64, place string, full bool) string {
	id := batch*10 + i
	place = fmt.Sprintf("%q", place)
	if place == `""` {
		place = "null"
	}
	wide, partition, seen := fmt.Sprintf("-12345678901234567890123456.78901234567%d", i), "", "2026-02-03T04:05:06.678901Z"
	if full {
		wide = `"` + wide + `"`
		partition = fmt.Sprintf(`"place":%s,"day":"2026-01-02","at":"2026-01-02T03:04:05.678901Z",`, place)
	}
	return fmt.Sprintf(`{%s"id":%d,"note":"ü漢😀 \"q\" %d","wide":%s,"f":1.5,"seen":"%s","s":{"a":-1}}`, partition, id, id, wide, seen)
}

// writeData writes a file of one row below the table.
func writeData(t *testing.T, dir string, m *delta.Metadata, data *rows.Schema, batch, i int64, place string) *delta.Add {
	table := rows.NewTable(data)
	must(t, table.Append([]byte(realRow(batch, i, place, false))))
	day, at := "2026-01-02", "2026-01-02T03:04:05.678901Z"
	values := []*string{&place, &day, &at}
	logged := map[string]*string{"place": &place, "day": &day, "at": &at}
	if place == "" {
		values[0], logged["place"] = nil, nil
	}
	rel := delta.PartitionDir(m.PartitionColumns, values) + fmt.Sprintf("/part-0000%d-%d.parquet", i, batch)
	full := filepath.Join(dir, filepath.FromSlash(rel))
	must(t, os.MkdirAll(filepath.Dir(full), 0o700))
	f, err := os.Create(full)
	must(t, err)
	w, err := parquetfile.New(data, parquetfile.Options{Codec: parquetfile.Snappy, CreatedBy: "wasmill version 0"})
	must(t, err)
	must(t, w.Reset(f))
	must(t, w.WriteRowGroup([]parquetfile.Rows{{Table: table}}))
	must(t, w.Close())
	must(t, f.Close())
	size, err := os.Stat(full)
	must(t, err)
	return &delta.Add{
		Path: delta.LogPath(rel), PartitionValues: logged, Size: size.Size(), ModificationTime: epoch.UnixMilli(), DataChange: true,
		Stats: delta.Stats(w.Stats(), m),
	}
}
