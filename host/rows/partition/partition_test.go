package partition_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/partition"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink"
)

func tableOf(tb testing.TB, s *rows.Schema, objects ...string) *rows.Table {
	tb.Helper()
	t := rows.NewTable(s)
	for _, o := range objects {
		if err := t.Append([]byte(o)); err != nil {
			tb.Fatal(err)
		}
	}
	return t
}

func TestColumns(t *testing.T) {
	s := rowstest.SchemaOf(t, "a", "string", "b", "int32", "f", "double", "x", "binary", strings.Repeat("n", 250), "string")
	for _, c := range []struct {
		names []string
		want  []int
		fails string
	}{
		{nil, nil, ""},
		{[]string{"b", "a"}, []int{1, 0}, ""},
		{[]string{"c"}, nil, `no column "c"`},
		{[]string{"f"}, nil, "is a double"},
		{[]string{"x"}, nil, "is a binary"},
		{[]string{"a", "a"}, nil, "twice"},
		{[]string{strings.Repeat("n", 250)}, nil, "250 bytes"},
	} {
		got, err := partition.Columns(s, c.names)
		if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%v: %v, want %q", c.names, err, c.fails)
		}
		if !slices.Equal(got, c.want) && err == nil {
			t.Errorf("%v: %v, want %v", c.names, got, c.want)
		}
	}
	if _, err := partition.Columns(rowstest.SchemaOf(t, "a", "string"), []string{"a"}); err == nil {
		t.Error("no column is left for the files")
	}
}

func TestFolders(t *testing.T) {
	s := rowstest.SchemaOf(t, "p", "string", "at", "timestamp", "day", "date", "n", "int64", "d", "decimal(5,2)", "ok", "boolean", "c", "timestamp_ntz", "v", "string")
	table := tableOf(t, s,
		`{"p":"a/b=c:d%e f+ü\u0001","at":"2026-01-02T03:04:05.600Z","day":"2026-01-02","n":-7,"d":"1.50","ok":true,"c":"0001-01-02 03:04:05"}`,
		`{}`,
	)
	for row, want := range []string{
		"p=a%2Fb%3Dc%3Ad%25e f+ü%01/at=2026-01-02 03%3A04%3A05.6/day=2026-01-02/n=-7/d=1.50/ok=true/c=0001-01-02 03%3A04%3A05",
		"p=" + partition.Null + "/at=" + partition.Null + "/day=" + partition.Null + "/n=" + partition.Null + "/d=" + partition.Null + "/ok=" + partition.Null + "/c=" + partition.Null,
	} {
		if got := string(partition.AppendDir(nil, table, []int{0, 1, 2, 3, 4, 5, 6}, row)); got != want {
			t.Errorf("row %d: %s, want %s", row, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	s := rowstest.SchemaOf(t, "p", "string", "q", "string", "v", "string")
	for _, c := range []struct {
		object string
		room   int
		code   string
	}{
		{`{"p":"a","q":"b"}`, 4000, ""},
		{`{"p":null}`, 4000, ""},
		{`{"p":""}`, 4000, "range"},
		{`{"p":"` + partition.Null + `"}`, 4000, "range"},
		{`{"p":"` + strings.Repeat("x", 254) + `"}`, 4000, "length"},
		{`{"p":"` + strings.Repeat("/", 90) + `"}`, 4000, "length"},
		{`{"p":"` + strings.Repeat("x", 100) + `","q":"y"}`, 107, ""},
		{`{"p":"` + strings.Repeat("x", 100) + `","q":"y"}`, 106, "length"},
	} {
		check := partition.Checker{Columns: []int{0, 1}, Room: c.room}
		err := check.Check(tableOf(t, s, c.object), 0)
		var m *sink.Misfit
		if c.code == "" && err == nil {
			continue
		}
		if err == nil || !errors.As(err, &m) || m.Code != c.code || m.Reason == "" {
			t.Errorf("%.40s with room for %d: %v, want %q", c.object, c.room, err, c.code)
		}
	}
}

// TestGroupsHoldEveryRowOnce: any rows come back once, in their order, each in the folder of its own values; and cutting
// keeps both bounds.
func TestGroupsHoldEveryRowOnce(t *testing.T) {
	s := rowstest.SchemaOf(t, "p", "string", "i", "int32", "text", "string")
	rapid.Check(t, func(t *rapid.T) {
		var tables []*rows.Table
		want := map[string][]int32{}
		n := int32(0)
		for range rapid.IntRange(0, 3).Draw(t, "tables") {
			table := rows.NewTable(s)
			for range rapid.IntRange(0, 9).Draw(t, "rows") {
				p := rapid.SampledFrom([]string{"a", "b", "c/d", "é"}).Draw(t, "p")
				text := strings.Repeat("x", rapid.IntRange(0, 30).Draw(t, "length"))
				if err := table.Append(fmt.Appendf(nil, `{"p":%q,"i":%d,"text":%q}`, p, n, text)); err != nil {
					t.Fatal(err)
				}
				dir := string(partition.AppendDir(nil, table, []int{0}, table.Len()-1))
				want[dir] = append(want[dir], n)
				n++
			}
			tables = append(tables, table)
		}
		maxRows, maxBytes := int64(rapid.IntRange(1, 5).Draw(t, "max rows")), int64(rapid.IntRange(1, 200).Draw(t, "max bytes"))
		got := map[string][]int32{}
		last := ""
		for _, g := range partition.GroupRows(tables, []int{0}) {
			if g.Dir <= last {
				t.Fatalf("%s comes after %s", g.Dir, last)
			}
			last = g.Dir
			if table, row := g.First(); string(partition.AppendDir(nil, table, []int{0}, row)) != g.Dir {
				t.Fatalf("the first row is not of %s", g.Dir)
			}
			for _, piece := range partition.Cut(g.Rows, maxRows, maxBytes) {
				got[g.Dir] = append(got[g.Dir], numbers(t, piece, maxRows, maxBytes)...)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func numbers(t *rapid.T, piece []parquetfile.Rows, maxRows, maxBytes int64) []int32 {
	var out []int32
	size := int64(0)
	for _, r := range piece {
		for k := range r.Len() {
			row := k
			if r.Index != nil {
				row = int(r.Index[k])
			}
			out = append(out, r.Table.Column(1).I32[row])
			size += r.Table.RowBytes(row)
		}
	}
	if len(out) == 0 || int64(len(out)) > maxRows || size > maxBytes && len(out) > 1 {
		t.Fatalf("a piece of %d rows and %d bytes; %d and %d are the most", len(out), size, maxRows, maxBytes)
	}
	return out
}

func TestWithoutColumns(t *testing.T) {
	s := rowstest.SchemaOf(t, "i", "int32")
	if groups := partition.GroupRows([]*rows.Table{rows.NewTable(s)}, nil); len(groups) != 0 {
		t.Errorf("%d groups of no rows", len(groups))
	}
	groups := partition.GroupRows([]*rows.Table{rows.NewTable(s), tableOf(t, s, `{"i":1}`, `{"i":2}`)}, nil)
	if len(groups) != 1 || groups[0].Dir != "" || len(groups[0].Rows) != 1 || groups[0].Rows[0].Len() != 2 {
		t.Errorf("groups are %+v", groups)
	}
}
