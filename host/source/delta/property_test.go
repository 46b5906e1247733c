package delta_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/checkpoint"
	logs "github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/host/source/delta"
)

// TestAnyTable: whatever the schema, the partitions, the versions and the limits, and whoever plans and reads, each row comes
// once, in order.
func TestAnyTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema := rowstest.Schema(t, 2)
		var parts []string
		for _, c := range schema.Columns() {
			nested := c.Type.Kind.Nested() || c.Type.Kind == rows.Binary
			if !nested && !c.Type.Required && len(parts)+1 < schema.Len() && rapid.IntRange(0, 3).Draw(t, "partition") == 0 {
				parts = append(parts, c.Name)
			}
		}
		b := newTable(t, schema, parts...)
		b.stats = rapid.Bool().Draw(t, "statistics")
		m := model{b: b}
		for range rapid.IntRange(0, 6).Draw(t, "versions before") {
			m.commit(t)
		}
		start := rapid.Int64Range(-2, b.version()).Draw(t, "start")
		s, want := m.begin(start)
		var got []string
		var at checkpoint.Position
		for range rapid.IntRange(0, 3).Draw(t, "rounds") {
			if rapid.Bool().Draw(t, "another process") {
				s, _ = m.begin(start)
			}
			for range 1000 {
				limit := source.Limit{Records: rapid.Int64Range(0, 7).Draw(t, "records"), Bytes: rapid.Int64Range(0, 1).Draw(t, "bytes") * 200}
				to := must(s.Latest(ctx, at, limit))(t)
				if to == at {
					break
				}
				r := source.Range{From: at, To: to}
				values := read(t, s, r)
				if limit.Records > 0 && int64(len(values)) > limit.Records {
					t.Fatalf("%d rows of at most %d", len(values), limit.Records)
				}
				other, _ := m.begin(start)
				if again := read(t, other, r); fmt.Sprint(again) != fmt.Sprint(values) {
					t.Fatalf("read again: %v, want %v", again, values)
				}
				if x, err := other.Measure(ctx, r); err != nil || x.Records != int64(len(values)) {
					t.Fatalf("measured %+v, %v, read %d", x, err, len(values))
				}
				got = append(got, values...)
				at = to
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("read\n%v\nwant\n%v", got, want)
			}
			if at.IsZero() {
				t.Fatal("nothing is pinned")
			}
			from := len(m.added)
			m.commit(t)
			want = append(want, m.since(from)...)
		}
	})
}

// model is what a table should give.
type model struct {
	b     *table
	live  []file // in the order of their modification times
	added [][]file
}

type file struct {
	action logs.Action
	rows   []string
}

func (b *table) version() int64 {
	return must(b.log.Snapshot(ctx))(b.t).Version
}

// begin opens a source that begins at a version, -1: at the newest, -2: with the snapshot; and says what it should give so
// far.
func (m *model) begin(start int64) (*delta.Source, []string) {
	var want []string
	switch start {
	case -1:
		return m.b.source(atLatest, onChange(delta.Skip)), nil
	case -2:
		for _, f := range m.live {
			want = append(want, f.rows...)
		}
		return m.b.source(onChange(delta.Skip)), want
	}
	return m.b.source(from(start), onChange(delta.Skip)), m.since(max(0, int(start)-1))
}

// since are the rows that versions add, from the first with that number of commits before it.
func (m *model) since(commits int) []string {
	var want []string
	for _, files := range m.added[commits:] {
		for _, f := range files {
			want = append(want, f.rows...)
		}
	}
	return want
}

// commit makes a version: rows are added, rearranged, or removed with others added.
func (m *model) commit(t *rapid.T) {
	var actions []logs.Action
	var files []file
	for range rapid.IntRange(0, 3).Draw(t, "files") {
		f := m.file(t)
		files = append(files, f)
		actions = append(actions, f.action)
	}
	shown := files
	if len(m.live) > 0 {
		i := rapid.IntRange(0, len(m.live)-1).Draw(t, "old file")
		switch old := m.live[i]; rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0: // rearranged: its rows go into another file
			again := m.fileOf(t, old.rows)
			actions = append(actions, removeOf(old.action, false), rearranged(again.action))
			m.live = append(m.live[:i:i], m.live[i+1:]...)
			files = append(files[:len(files):len(files)], again)
		case 1: // removed: the version is passed over
			actions = append(actions, removeOf(old.action, true))
			m.live = append(m.live[:i:i], m.live[i+1:]...)
			shown = nil
		}
	}
	if len(actions) == 0 {
		actions = append(actions, logs.Action{Txn: &logs.Txn{AppID: "other", Version: 1}})
	}
	m.live = append(m.live, files...)
	m.added = append(m.added, shown)
	m.b.commit(actions...)
}

func (m *model) file(t *rapid.T) file {
	n := rapid.IntRange(0, 40).Draw(t, "rows")
	if len(m.b.parts) > 0 {
		n = 1 // of one partition
	}
	tab, _ := rowstest.Table(t, m.b.schema, n)
	var objects []string
	for i := range tab.Len() {
		objects = append(objects, string(rowstest.JSON(tab, i)))
	}
	return m.write(objects)
}

// fileOf writes rows, as they were read, into another file.
func (m *model) fileOf(t *rapid.T, quoted []string) file {
	var objects []string
	for _, q := range quoted {
		objects = append(objects, unquote(t, q))
	}
	return m.write(objects)
}

func (m *model) write(objects []string) file {
	f := file{action: m.b.file(objects...)}
	back := rows.NewTable(m.b.schema)
	for i, o := range objects {
		if err := back.Append([]byte(o)); err != nil {
			m.b.t.Fatal(err)
		}
		for _, p := range m.b.parts { // an empty text is null in a partition
			if v := back.Column(m.b.schema.Index(p)); v.Type.Kind == rows.String && v.Valid[i] != 0 && len(v.Bytes(i)) == 0 {
				v.SetNull(i)
			}
		}
		f.rows = append(f.rows, fmt.Sprintf("%q", rowstest.JSON(back, i)))
	}
	return f
}
