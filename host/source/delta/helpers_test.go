package delta_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	logs "github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/host/source/delta"
	"github.com/wasmill/wasmill/host/source/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

var epoch = time.UnixMilli(1_800_000_000_000)

// fataler is a test, or a case of a property test.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// table is a table that a test writes, on a disk in memory.
type table struct {
	t      fataler
	files  durable.Files
	dir    string
	log    *logs.Log
	schema *rows.Schema
	parts  []string
	ms     int64 // modification time of the next file
	names  int
	stats  bool
	group  int // rows of a row group
}

func parseSchema(t fataler, columns ...string) *rows.Schema {
	t.Helper()
	var out []rows.Column
	for _, c := range columns {
		name, text, _ := strings.Cut(c, " ")
		typ, err := rows.ParseType(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rows.Column{Name: name, Type: typ})
	}
	s, err := rows.NewSchema(out)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newTable makes a table of columns such as "id int64", partitioned by some of them.
func newTable(t fataler, schema *rows.Schema, parts ...string) *table {
	t.Helper()
	disk := faulty.New()
	tab := &table{t: t, files: disk.Process(), dir: "/table", schema: schema, parts: parts, stats: true, group: 16}
	tab.make("table-1")
	return tab
}

func numbers(t fataler) *table {
	t.Helper()
	return newTable(t, parseSchema(t, "id int64"))
}

func (b *table) clock() time.Time { return epoch }

func (b *table) make(id string) {
	b.t.Helper()
	b.log = logs.OpenLog(b.files, b.dir, b.clock)
	b.commit(logs.Action{Protocol: &logs.Protocol{MinReader: 1, MinWriter: 2}}, b.metadata(id))
}

func (b *table) metadata(id string) logs.Action {
	return logs.Action{Metadata: &logs.Metadata{
		ID: id, Format: logs.Format{Provider: "parquet", Options: map[string]string{}}, SchemaString: logs.SchemaString(b.schema),
		PartitionColumns: append([]string{}, b.parts...), Configuration: map[string]string{},
	}}
}

// commit adds an entry and returns its version.
func (b *table) commit(actions ...logs.Action) int64 {
	b.t.Helper()
	s, err := b.log.Snapshot(ctx)
	if errors.Is(err, logs.ErrNoTable) {
		s, err = nil, nil
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.names++
	info := &logs.CommitInfo{Timestamp: int64(b.names), Operation: "WRITE", OperationParameters: map[string]string{}, TxnID: fmt.Sprint(b.names)}
	e, err := b.log.Commit(ctx, s, append([]logs.Action{{CommitInfo: info}}, actions...))
	if err != nil {
		b.t.Fatal(err)
	}
	return e.Version
}

// file writes a data file of rows in JSON, all of one partition, and returns its add.
func (b *table) file(objects ...string) logs.Action {
	b.t.Helper()
	data := b.schema
	if len(b.parts) > 0 {
		var columns []rows.Column
		for _, c := range b.schema.Columns() {
			if !contains(b.parts, c.Name) {
				columns = append(columns, c)
			}
		}
		data = must(rows.NewSchema(columns))(b.t)
	}
	all, own := rows.NewTable(b.schema), rows.NewTable(data)
	places := make([]int, data.Len())
	for i := range places {
		places[i] = b.schema.Index(data.Column(i).Name)
	}
	values := map[string]*string{}
	for _, o := range objects {
		if err := all.Append([]byte(o)); err != nil {
			b.t.Fatal(err)
		}
		if err := own.AppendRow(all, all.Len()-1, places); err != nil {
			b.t.Fatal(err)
		}
	}
	for _, name := range b.parts {
		values[name] = nil
		v := all.Column(b.schema.Index(name))
		if text, err := logs.PartitionText(nil, v, 0); err == nil && v.Valid[0] != 0 {
			values[name] = new(string)
			*values[name] = string(text)
		}
	}
	w := must(parquetfile.New(data, parquetfile.Options{Codec: parquetfile.Snappy}))(b.t)
	var out bytes.Buffer
	err := w.Reset(&out)
	for from := 0; from < own.Len() && err == nil; from += b.group {
		var index []uint32
		for i := from; i < min(own.Len(), from+b.group); i++ {
			index = append(index, uint32(i))
		}
		err = w.WriteRowGroup([]parquetfile.Rows{{Table: own, Index: index}})
	}
	if err := errors.Join(err, w.Close()); err != nil {
		b.t.Fatal(err)
	}
	b.names++
	b.ms += 10
	rel := fmt.Sprintf("part a+%05d%%.parquet", b.names)
	if len(b.parts) > 0 {
		rel = "x=ü/" + rel
	}
	name := path.Join(b.dir, rel)
	if err := errors.Join(durable.MakeDir(b.files, path.Dir(name)), durable.WriteFile(b.files, name, out.Bytes())); err != nil {
		b.t.Fatal(err)
	}
	a := &logs.Add{Path: logs.LogPath(rel), PartitionValues: values, Size: int64(out.Len()), ModificationTime: b.ms, DataChange: true}
	if b.stats {
		a.Stats = fmt.Sprintf(`{"numRecords":%d}`, len(objects))
	}
	return logs.Action{Add: a}
}

// ids writes a file with rows of those ids.
func (b *table) ids(from, n int) logs.Action {
	b.t.Helper()
	var objects []string
	for i := from; i < from+n; i++ {
		objects = append(objects, fmt.Sprintf(`{"id":%d}`, i))
	}
	return b.file(objects...)
}

func (b *table) path(a logs.Action) string {
	rel, err := a.Add.File()
	if err != nil {
		b.t.Fatal(err)
	}
	return path.Join(b.dir, rel)
}

func (b *table) lose(version int64) {
	b.t.Helper()
	if err := b.files.Remove(fmt.Sprintf("%s/_delta_log/%020d.json", b.dir, version)); err != nil {
		b.t.Fatal(err)
	}
}

func removeOf(a logs.Action, dataChange bool) logs.Action {
	return logs.Action{Remove: a.Add.Remove(epoch.UnixMilli(), dataChange)}
}

func rearranged(a logs.Action) logs.Action {
	moved := *a.Add
	moved.DataChange = false
	return logs.Action{Add: &moved}
}

// source opens a source of the table.
func (b *table) source(opts ...func(*delta.Config)) *delta.Source {
	b.t.Helper()
	cfg := delta.Config{Name: "in", Dir: b.dir, Start: delta.Start{Snapshot: true}, Files: b.files, Clock: b.clock}
	for _, opt := range opts {
		opt(&cfg)
	}
	return must(delta.New(cfg))(b.t)
}

// count counts such operations of sources that are opened from now on.
func (b *table) count(ops ...string) *int {
	n := new(int)
	b.files = durable.Tap(b.files, func(op, _ string) error {
		if contains(ops, op) {
			*n++
		}
		return nil
	})
	return n
}

func from(version int64) func(*delta.Config) {
	return func(c *delta.Config) { c.Start = delta.Start{Version: version} }
}

func atLatest(c *delta.Config) { c.Start = delta.Start{Latest: true} }

func onChange(o delta.OnChange) func(*delta.Config) { return func(c *delta.Config) { c.OnChange = o } }

// skipping goes on where something is lost and counts the warnings.
func skipping(warnings *int) func(*delta.Config) {
	return func(c *delta.Config) {
		c.SkipLost = true
		c.Warn = func(error) { *warnings++ }
	}
}

// leaving keeps what is warned of, all of which is left out.
func leaving(left *[]*source.LeftOutError) func(*delta.Config) {
	return func(c *delta.Config) {
		c.Warn = func(err error) {
			l, ok := errors.AsType[*source.LeftOutError](err)
			if !ok {
				l = &source.LeftOutError{Detail: "no such error: " + err.Error()}
			}
			*left = append(*left, l)
		}
	}
}

func wantLeft(t *testing.T, left []*source.LeftOutError, want ...string) {
	t.Helper()
	var got []string
	for _, l := range left {
		got = append(got, l.Error())
	}
	if !slices.Equal(got, want) {
		t.Errorf("left out %q, want %q", got, want)
	}
}

func must[T any](v T, err error) func(fataler) T {
	return func(t fataler) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func latest(t fataler, s *delta.Source, at checkpoint.Position, limit int64) checkpoint.Position {
	t.Helper()
	return must(s.Latest(ctx, at, source.Limit{Records: limit}))(t)
}

// read returns the values in a range.
func read(t fataler, s *delta.Source, r source.Range) []string {
	t.Helper()
	var c sourcetest.Collector
	for _, sp := range must(s.Splits(ctx, r))(t) {
		if err := s.Read(ctx, sp, &c); err != nil {
			t.Fatal(err)
		}
	}
	var out []string
	for _, r := range c.Records {
		if r.Code != "" {
			t.Fatalf("rejected: %+v", r)
		}
		out = append(out, r.Value)
	}
	return out
}

// drain plans and reads to the end, and returns the values and the last position.
func drain(t fataler, s *delta.Source, at checkpoint.Position, limit int64) ([]string, checkpoint.Position) {
	t.Helper()
	var out []string
	for range 10_000 {
		to := latest(t, s, at, limit)
		if to == at {
			return out, at
		}
		out = append(out, read(t, s, source.Range{From: at, To: to})...)
		at = to
	}
	t.Fatal("no end")
	return nil, at
}

// wantIDs says that values are the rows of these ids: pairs of the first and the number.
func wantIDs(t *testing.T, got []string, pairs ...int) {
	t.Helper()
	var want []string
	for i := 0; i < len(pairs); i += 2 {
		for id := pairs[i]; id < pairs[i]+pairs[i+1]; id++ {
			want = append(want, fmt.Sprintf("%q", fmt.Sprintf(`{"id":%d}`, id)))
		}
	}
	if g, w := strings.Join(got, " "), strings.Join(want, " "); g != w {
		t.Fatalf("read\n%s\nwant\n%s", g, w)
	}
}

// wantFault checks the code of an error and that it speaks of all these.
func wantFault(t *testing.T, err error, code string, speaksOf ...string) {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.ErrCode != code {
		t.Fatalf("got error %v, want code %s", err, code)
	}
	if f.WayOut == "" {
		t.Errorf("%v: no way out", err)
	}
	for _, s := range speaksOf {
		if !strings.Contains(err.Error()+" "+f.WayOut, s) {
			t.Errorf("%q (%s) does not speak of %q", err, f.WayOut, s)
		}
	}
}

func unquote(t fataler, quoted string) string {
	t.Helper()
	return must(strconv.Unquote(quoted))(t)
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
