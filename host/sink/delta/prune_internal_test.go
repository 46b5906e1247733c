package delta

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows"
)

// TestBoundsAreTrustedWithCare reads bounds as engines write them, and leaves those alone that may lie.
func TestBoundsAreTrustedWithCare(t *testing.T) {
	for _, c := range []struct {
		typ, raw, want string
	}{
		{"int64", "7", "7"},
		{"int64", "", ""},
		{"int64", "null", ""},
		{"int32", "99999999999", ""},
		{"string", `"a\"b"`, `a"b`},
		{"string", "7", "7"},
		{"date", `"2026-05-06"`, "2026-05-06"},
		{"timestamp", `"2026-05-06T07:08:09.123Z"`, "2026-05-06T07:08:09.123000Z"},
		{"timestamp", `"yesterday"`, ""},
		{"decimal(9,2)", "1.5", "1.50"},
		{"decimal(9,2)", "1.0", "1.00"},
		{"decimal(9,0)", "1.0", "1"},
		{"decimal(9,2)", "1e2", ""},
		{"decimal(38,12)", "-12345678901234567890123456.5", ""}, // delta-rs rounds them, to above the minimum
		{"boolean", "true", ""},
	} {
		typ, err := rows.ParseType(c.typ)
		if err != nil {
			t.Fatal(err)
		}
		v, ok := bound(typ, []byte(c.raw))
		if got := string(v.AppendText(nil, typ)); ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%s of %s is %q, %v; want %q", c.raw, c.typ, got, ok, c.want)
		}
	}
}

// TestNoFileIsMissed: a file that holds a row of a changed key is always looked into, whatever part of its statistics is there.
func TestNoFileIsMissed(t *testing.T) {
	schema, err := rows.NewSchema([]rows.Column{
		{Name: "p", Type: rows.Type{Kind: rows.String}}, {Name: "id", Type: rows.Type{Kind: rows.Int64}}, {Name: "name", Type: rows.Type{Kind: rows.String}},
	})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		table := rows.NewTable(schema)
		c := &changes{last: map[string]int{}, columns: []int{0, 1, 2}}
		draw := func(what string) (string, int64, string) {
			return rapid.SampledFrom([]string{"a", "b"}).Draw(t, what+" p"), rapid.Int64Range(-5, 5).Draw(t, what+" id"), rapid.StringN(0, 3, -1).Draw(t, what+" name")
		}
		for i := range rapid.IntRange(1, 5).Draw(t, "keys") {
			p, id, name := draw("key")
			if err := table.Append(fmt.Appendf(nil, `{"p":%q,"id":%d,"name":%s}`, p, id, rows.AppendQuoted(nil, []byte(name)))); err != nil {
				t.Fatal(err)
			}
			c.order = append(c.order, change{table: table, row: i})
		}
		victim := c.order[rapid.IntRange(0, len(c.order)-1).Draw(t, "victim")]
		p, id, name := string(c.value(victim, 0).Bytes), c.value(victim, 1).Int, string(c.value(victim, 2).Bytes)
		_, otherID, otherName := draw("other row")
		q := func(s string) string { return string(rows.AppendQuoted(nil, []byte(s))) }
		stats := rapid.SampledFrom([]string{
			"", "{", `{"numRecords":2}`,
			fmt.Sprintf(`{"minValues":{"id":%d},"maxValues":{"id":%d}}`, min(id, otherID), max(id, otherID)),
			fmt.Sprintf(`{"minValues":{"name":%s,"id":%d}}`, q(min(name, otherName)), id),
			fmt.Sprintf(`{"minValues":{"name":%s},"maxValues":{"name":%s,"id":%d}}`, q(min(name, otherName)), q(max(name, otherName)), max(id, otherID)),
		}).Draw(t, "stats")
		a := &delta.Add{Path: "x", PartitionValues: map[string]*string{"p": &p}, Stats: stats}
		known := spans{}
		for range 2 { // the second time from what is kept
			if !newFinder(c, schema, []string{"p"}, known).may(a) {
				t.Fatalf("the file of %s with %s may not hold (%d, %q)", p, stats, id, name)
			}
		}
	})
}
