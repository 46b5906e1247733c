package engine

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/rows"
)

// columned is a lane with columns.
type columned struct {
	table *rows.Table
	noNUL bool // as a database whose texts have none
}

func (c *columned) Append(r *abi.Record) error {
	if c.noNUL && bytes.Contains(r.Value, []byte(`\u0000`)) {
		return rows.NoKey() // any misfit
	}
	return c.table.Append(r.Value)
}
func (c *columned) Reset()                     { c.table.Reset() }
func (c *columned) Rows() int64                { return int64(c.table.Len()) }
func (c *columned) Bytes() int64               { return c.table.Bytes() }
func (c *columned) Binary(path ...string) bool { return c.table.Schema().Binary(path...) }

// into writes a letter about a record into a lane, and returns the table.
func into(t testing.TB, c *columned, r *abi.Record, reason string) *rows.Table {
	t.Helper()
	l := &lane{r: &runner{g: &Graph{}}, sinks: []*sinkLane{{node: &SinkNode{Name: "dead"}, lane: c}}}
	l.r.policy.Sink = 0
	b := &batchRun{input: input{plan: &checkpoint.Plan{Batch: 3, TimeMS: 1_700_000_000_000}, query: "q"}}
	lt := &letter{code: 7, word: "guest", reason: reason, rec: r, origin: origin{edge: Edge{Source: -1, Stage: -1}, offset: 5}}
	if err := l.fillLetter(b, lt); err != nil {
		t.Fatal(err)
	}
	return c.table
}

func tableOf(t testing.TB, columns string) *rows.Table {
	t.Helper()
	list, err := rows.ParseColumns(columns)
	if err != nil {
		t.Fatal(err)
	}
	s, err := rows.NewSchema(list)
	if err != nil {
		t.Fatal(err)
	}
	return rows.NewTable(s)
}

// documented are the columns that the reference of the job file has for letters.
func documented(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("../job/data.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```yaml\nschema:\n")
	block, _, found := strings.Cut(block, "```")
	if !found {
		t.Fatal("the reference has no schema for letters")
	}
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(block, `"`, "")), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, ", ")
}

// TestLettersInColumnsOfBytes arrive to the byte, whatever the record was made of, in the columns of the reference.
func TestLettersInColumnsOfBytes(t *testing.T) {
	columns := documented(t)
	rapid.Check(t, func(r *rapid.T) {
		some := rapid.OneOf(rapid.SliceOfN(rapid.Byte(), 0, 12), rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) }),
			rapid.SampledFrom([][]byte{nil, {}, []byte("AAAA"), []byte(`{"base64":"AA=="}`), {0xff}, {0}}))
		rec := &abi.Record{Key: some.Draw(r, "key"), Value: some.Draw(r, "value")}
		rec.Headers = []abi.Header{{Name: []byte("h"), Value: some.Draw(r, "header")}}
		tab := into(t, &columned{table: tableOf(t, columns), noNUL: true}, rec, "why")
		for name, want := range map[string][]byte{"key": rec.Key, "value": rec.Value} {
			v := tab.Column(tab.Schema().Index(name))
			if (v.Valid[0] == 0) != (want == nil) || !bytes.Equal(v.Bytes(0), want) {
				r.Fatalf("%s: %q became %q", name, want, v.Bytes(0))
			}
		}
		header := tab.Column(tab.Schema().Index("headers")).Children[0].Children[1]
		if want := rec.Headers[0].Value; (header.Valid[0] == 0) != (want == nil) || !bytes.Equal(header.Bytes(0), want) {
			r.Fatalf("header: %q became %q", want, header.Bytes(0))
		}
	})
}

// TestDocumentedColumnsOfLetters are all members that a letter has.
func TestDocumentedColumnsOfLetters(t *testing.T) {
	lt := &letter{rec: &abi.Record{}, origin: origin{edge: Edge{Source: -1, Stage: -1}}}
	r, err := lt.record(&Graph{}, &batchRun{input: input{plan: &checkpoint.Plan{}}}, letterCuts[0], letterForm{})
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(r.Value, &members); err != nil {
		t.Fatal(err)
	}
	s := tableOf(t, documented(t)).Schema()
	for _, c := range s.Columns() {
		if _, ok := members[c.Name]; !ok {
			t.Errorf("a letter has no %s", c.Name)
		}
	}
	if s.Len() != len(members) {
		t.Errorf("%d columns for %d members", s.Len(), len(members))
	}
}

// TestLettersInColumnsOfTexts: what is no text, or no text of the database, is marked, and nothing arrives empty.
func TestLettersInColumnsOfTexts(t *testing.T) {
	const columns = "key: string, value: string, headers: list<struct<name: string, value: string>>, reason: string, truncated: boolean"
	for _, c := range []struct {
		noNUL             bool
		value, want, name string
	}{
		{false, "text", "text", "n\x00me"},
		{false, "\x00", "\x00", "n\x00me"},
		{false, "\xff\x00", `{"base64":"/wA="}`, "n\ufffdme"},
		{true, "nul\x00", `{"base64":"bnVsAA=="}`, "n\ufffdme"},
		{true, "AAAA", "AAAA", "n\ufffdme"},
	} {
		rec := &abi.Record{Key: []byte(c.value), Value: []byte(c.value), Headers: []abi.Header{{Name: []byte("n\x00me"), Value: []byte(c.value)}}}
		tab := into(t, &columned{table: tableOf(t, columns), noNUL: c.noNUL}, rec, "n\x00me")
		var got struct {
			Key, Value, Reason string
			Headers            []struct{ Name, Value string }
			Truncated          bool
		}
		text := []byte("{")
		for i := range tab.Schema().Len() {
			text = tab.Column(i).AppendJSON(append(rows.AppendQuoted(text, []byte(tab.Schema().Column(i).Name)), ':'), 0)
			text = append(text, ',')
		}
		text[len(text)-1] = '}'
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if got.Truncated || got.Key != c.want || got.Value != c.want || got.Reason != c.name || len(got.Headers) != 1 || got.Headers[0].Name != c.name || got.Headers[0].Value != c.want {
			t.Errorf("%q: %+v", c.value, got)
		}
	}
}

// TestCutLettersStayTexts: a character is not cut in two.
func TestCutLettersStayTexts(t *testing.T) {
	lt := &letter{rec: &abi.Record{Value: []byte("aé😀")}, origin: origin{edge: Edge{Source: -1, Stage: -1}}}
	for most, want := range []string{"", "a", "a", "aé", "aé", "aé", "aé", "aé😀"} {
		r, err := lt.record(&Graph{}, &batchRun{input: input{plan: &checkpoint.Plan{}}}, letterCut{value: most}, letterForm{})
		if err != nil || !strings.Contains(string(r.Value), `"value":"`+want+`",`) {
			t.Errorf("%d: %s, %v", most, r.Value, err)
		}
	}
}
