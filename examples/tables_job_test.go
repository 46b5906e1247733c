package examples

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The kinds of targets. Those of upsert get changes, the others every record.
const (
	toFiles, toKafka         = "files", "kafka"
	toDelta, toDeltaKeys     = "delta", "delta upsert"
	toSQLite, toSQLiteKeys   = "sqlite", "sqlite upsert"
	toPostgres, toServerKeys = "postgres", "postgres upsert"
)

func keeps(kind string) bool { return strings.HasSuffix(kind, "upsert") } // a row a key

// change is a record of the input.
type change struct {
	ID     int    `json:"id"`
	Key    string `json:"key"`
	Place  string `json:"place"`
	Amount string `json:"amount"` // two digits after the point, the last one not 0
	At     string `json:"at"`
	Gone   bool   `json:"gone"`
}

func (c *change) line(t *testing.T) string {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// row is the canonical text of the row.
func (c *change) row() string {
	return strings.Join([]string{fmt.Sprint(c.ID), c.Key, c.Place, c.Amount, strings.TrimSuffix(c.At, "Z")}, "|")
}

// The input: so many files, each of two batches.
const changeFiles, changeBatch = 6, 10

// someChanges are all records, in order.
func someChanges() []change { return changesFrom(0) }

// changesFrom are as many with other ids.
func changesFrom(first int) []change {
	out := make([]change, changeFiles*2*changeBatch)
	for i := range out {
		out[i] = change{
			ID: first + i, Key: fmt.Sprintf("k%d", i*7%13), Place: fmt.Sprintf("p%d", i%2), Amount: fmt.Sprintf("%d.%d%d", i, i%10, 1+i%9),
			At: fmt.Sprintf("2026-01-02T03:%02d:%02dZ", i/60, i%60), Gone: i%5 == 3,
		}
	}
	return out
}

// input are the job's records.
func (j *tablesJob) input() []change {
	if j.records != nil {
		return j.records
	}
	return someChanges()
}

// left are the rows that upserts and deletions leave.
func left(all []change) []change {
	last := map[string]int{}
	for i := range all {
		last[all[i].Key] = i
	}
	var out []change
	for i := range all {
		if last[all[i].Key] == i && !all[i].Gone {
			out = append(out, all[i])
		}
	}
	return out
}

// tablesJob is a job that publishes changes to targets.
type tablesJob struct {
	kinds    []string
	dir      string
	place    string    // where files, tables and databases are, if not in dir
	progress string    // where the checkpoint is, if not dir/checkpoint
	records  []change  // if not someChanges
	pg       *pgServer // nil without
	bus      *broker   // nil without
	brokers  string    // where it is, if not at its own address
	id       string    // in the names of what is made in servers
	topic    string
}

// path is where something is that the job publishes to.
func (j *tablesJob) path(name string) string { return filepath.Join(cmp.Or(j.place, j.dir), name) }

func (j *tablesJob) sink(i int) string { return fmt.Sprintf("s%d", i) }

// table is the name of a sink's table in a database.
func (j *tablesJob) table(i int) string {
	if strings.HasPrefix(j.kinds[i], toPostgres) {
		return strings.ReplaceAll(j.id, "-", "_") + "_" + j.sink(i)
	}
	return j.sink(i)
}

// target is the name that a sink's target has in the checkpoint.
func (j *tablesJob) target(i int) string {
	base, _, _ := strings.Cut(j.kinds[i], " ")
	if base == toFiles || base == toDelta {
		return j.sink(i)
	}
	return base
}

func (j *tablesJob) checkpoint() string {
	if filepath.IsAbs(j.progress) {
		return j.progress
	}
	return filepath.Join(j.dir, cmp.Or(j.progress, "checkpoint"))
}

const changeSchema = `{id: int64, key: string, place: string, amount: "decimal(9,2)", at: timestamp}`

// text is the job file.
func (j *tablesJob) text(t *testing.T) string {
	t.Helper()
	module, err := filepath.Abs("tables/changes.wasm")
	if err != nil {
		t.Fatal(err)
	}
	var s strings.Builder
	fmt.Fprintf(&s, "apiVersion: wasmill/v1\nkind: Job\nmetadata: {name: tables}\nspec:\n  checkpoint: %s\n  trigger: {availableNow: true}\n", j.checkpoint())
	fmt.Fprintf(&s, "  sources:\n    - {name: in, files: {path: ./in, format: jsonl}, batch: {maxRecords: %d}}\n", changeBatch)
	fmt.Fprintf(&s, "  transforms:\n    - {name: t, from: [in], module: %s}\n%s  sinks:\n", module, j.connections())
	for i := range j.kinds {
		fmt.Fprintf(&s, "    - {name: %s, %s}\n", j.sink(i), j.sinkText(i))
	}
	return s.String()
}

// connections are those that the kinds need.
func (j *tablesJob) connections() string {
	var s strings.Builder
	all := map[string]string{toSQLite: fmt.Sprintf("{sqlite: {path: %q}}", j.path("sqlite.db"))}
	if j.pg != nil {
		all[toPostgres] = fmt.Sprintf("{postgres: {url: %q}}", j.pg.behind)
	}
	if j.bus != nil {
		all[toKafka] = fmt.Sprintf("{kafka: {brokers: [%q], requestTimeout: 5s}}", cmp.Or(j.brokers, j.bus.addr))
	}
	for name, c := range all {
		if slices.ContainsFunc(j.kinds, func(kind string) bool { return strings.HasPrefix(kind, name) }) {
			fmt.Fprintf(&s, "    %s: %s\n", name, c)
		}
	}
	if s.Len() == 0 {
		return ""
	}
	return "  connections:\n" + s.String()
}

// sinkText is what a sink is.
func (j *tablesJob) sinkText(i int) string {
	port, mode, key, by := "all", "append", "", ", partitionBy: [place]"
	if keeps(j.kinds[i]) {
		port, mode, key, by = "changes", "upsert", ", key: [key]", ""
	}
	var to string
	base, _, _ := strings.Cut(j.kinds[i], " ")
	switch base {
	case toFiles:
		to = fmt.Sprintf("files: {path: %q, format: jsonl}", j.path(j.sink(i)))
	case toKafka:
		to = fmt.Sprintf("kafka: {connection: kafka, topic: %s}", j.topic)
	case toDelta:
		to = fmt.Sprintf("delta: {path: %q, checkpointInterval: 3, schema: %s%s%s}", j.path(j.sink(i)), changeSchema, key, by)
	default:
		to = fmt.Sprintf("%s: {connection: %s, table: %s, createTable: true, schema: %s%s}", base, base, j.table(i), changeSchema, key)
	}
	return fmt.Sprintf("from: [t.%s], mode: %s, %s", port, mode, to)
}

// write puts the job and its input into a new folder.
func (j *tablesJob) write(t *testing.T) (dir, file string) {
	t.Helper()
	j.dir, j.id = t.TempDir(), cmp.Or(j.id, unique("tables"))
	if j.bus != nil {
		j.topic = j.bus.topic(t, "tables", 2, nil)
	}
	if j.pg != nil {
		j.pg.texts(t, "DROP TABLE IF EXISTS wasmill_epoch") // making it is a part of what is tried
	}
	if err := os.Mkdir(filepath.Join(j.dir, "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"job.yaml": j.text(t)}
	for i, c := range j.input() {
		files[fmt.Sprintf("in/%d.jsonl", i/(2*changeBatch))] += c.line(t) + "\n"
	}
	// The order of the files is that of their times, and an upsert depends on it.
	when := time.Now().Add(-time.Hour)
	for i, name := range slices.Sorted(maps.Keys(files)) {
		at := filepath.Join(j.dir, name)
		if err := os.WriteFile(at, []byte(files[name]), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(at, time.Time{}, when.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	return j.dir, filepath.Join(j.dir, "job.yaml")
}
