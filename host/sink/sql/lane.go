package sql

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink"
)

// route is what the target knows of a sink.
type route struct {
	sink *Sink
	key  []int // columns of the schema
	keys *rows.Schema
	// rules are those of the kind of database. What a lane takes hangs on the job alone, so that a batch that runs again gives
	// the same rows, whatever became of the table.
	rules   []Rule
	table   []Rule                        // those of the table as it is over the connection there is
	gone    struct{ rules, table []Rule } // the same for keys of deletions
	binding Binding                       // over that connection
	filled  bool                          // it is noted that the job has published rows in the table
	seen    bool                          // the table was there, over this connection or one before
}

func newRoute(s *Sink, db Database) (*route, error) {
	r := &route{sink: s, rules: db.Rules(s.Schema)}
	if len(s.Key) == 0 {
		return r, nil
	}
	var columns []rows.Column
	for _, name := range s.Key {
		at := s.Schema.Index(name)
		c := s.Schema.Column(at)
		c.Type.Required = true
		r.key, columns = append(r.key, at), append(columns, c)
		r.rules = append(r.rules, Rule{Column: at, Required: true})
	}
	var err error
	r.keys, err = rows.NewSchema(columns)
	r.gone.rules = r.ofKey(r.rules)
	return r, err
}

// ofKey are those of some rules that are about the key, for the columns of deletions: a key is held to the same whether a row
// is put or deleted by it.
func (r *route) ofKey(rules []Rule) []Rule {
	var out []Rule
	for _, rule := range rules {
		if at := slices.Index(r.key, rule.Column); at >= 0 {
			rule.Column = at
			out = append(out, rule)
		}
	}
	return out
}

// bound takes up how the rows are written now, and what the table asks of them.
func (r *route) bound(b Binding, t *Table) {
	r.binding, r.table, r.seen = b, b.Rules(), true
	defer func() { r.gone.table = r.ofKey(r.table) }()
	if t == nil || r.sink.Statement != "" {
		return
	}
	for i := range r.sink.Schema.Len() {
		c := r.sink.Schema.Column(i)
		if at := t.Index(c.Name); at >= 0 && t.Columns[at].NotNull && !c.Type.Required {
			r.table = append(r.table, Rule{Column: i, Required: true})
		}
	}
}

// lane keeps one lane's rows of a sink. In an upsert the order of rows and deletions counts.
type lane struct {
	route   *route
	put     *rows.Table
	gone    *rows.Table // keys of deletions; nil in a sink that adds
	order   []change    // nil in a sink that adds
	scratch []byte
	parts   []json.RawMessage
}

// change is a row of put or gone.
type change struct {
	row  uint32
	gone bool
}

const changeSize = 8

func newLane(r *route) *lane {
	l := &lane{route: r, put: rows.NewTable(r.sink.Schema)}
	if r.keys != nil {
		l.gone = rows.NewTable(r.keys)
	}
	return l
}

// Append implements sink.Lane.
func (l *lane) Append(r *abi.Record) error {
	if l.gone != nil && r.Value == nil {
		return l.delete(r.Key)
	}
	if err := l.put.Append(r.Value); err != nil {
		return err
	}
	row := l.put.Len() - 1
	if m := breaks(l.route.rules, l.put, row); m != nil {
		l.put.Truncate(row)
		return m
	}
	if l.gone != nil {
		l.order = append(l.order, change{row: uint32(row)})
	}
	return nil
}

// Binary implements sink.Columned.
func (l *lane) Binary(path ...string) bool { return l.route.sink.Schema.Binary(path...) }

// breaks says why a row breaks one of some rules, or nil.
func breaks(rules []Rule, t *rows.Table, row int) *sink.Misfit {
	for i := range rules {
		if m := rules[i].check(t, row); m != nil {
			return m
		}
	}
	return nil
}

// check says why a row breaks the rule, or nil.
func (r *Rule) check(t *rows.Table, row int) *sink.Misfit {
	v := t.Column(r.Column)
	if v.Valid[row] == 0 {
		if r.Required {
			return &sink.Misfit{Code: "missing", Column: t.Schema().Column(r.Column).Name, Reason: "null, and the column takes none"}
		}
		return nil
	}
	if r.Check == nil {
		return nil
	}
	m := r.Check(v, row)
	if m != nil {
		m.Column = t.Schema().Column(r.Column).Name
	}
	return m
}

// delete takes a record without a value: its key is the key of the row that goes.
func (l *lane) delete(key []byte) error {
	if key == nil {
		return rows.NoKey()
	}
	object, err := l.keyObject(key)
	if err != nil {
		return err
	}
	if err := l.gone.Append(object); err != nil {
		return err
	}
	row := l.gone.Len() - 1
	if m := breaks(l.route.gone.rules, l.gone, row); m != nil {
		l.gone.Truncate(row)
		return m
	}
	l.order = append(l.order, change{row: uint32(row), gone: true})
	return nil
}

// keyObject makes a JSON object of a key: the text of one column, or a JSON array of several.
func (l *lane) keyObject(key []byte) ([]byte, error) {
	columns := l.route.sink.Key
	b := l.scratch[:0]
	if len(columns) == 1 {
		b = append(rows.AppendQuoted(append(b, '{'), []byte(columns[0])), ':')
		b = append(l.appendKey(b, key), '}')
		l.scratch = b
		return b, nil
	}
	l.parts = l.parts[:0]
	if err := json.Unmarshal(key, &l.parts); err != nil || len(l.parts) != len(columns) {
		return nil, &sink.Misfit{
			Code: "type", Column: "key",
			Reason: fmt.Sprintf("a record without a value needs a key that is a JSON array of %d values, as the sink's key has columns: %.80q", len(columns), key),
		}
	}
	for i, name := range columns {
		b = append(b, "{,"[min(i, 1)])
		b = append(rows.AppendQuoted(b, []byte(name)), ':')
		b = append(b, l.parts[i]...)
	}
	b = append(b, '}')
	l.scratch = b
	return b, nil
}

// appendKey appends a key's text as the value of the one key column. A time in a unit is a number, all else may stand in
// quotes.
func (l *lane) appendKey(b, key []byte) []byte {
	if t := l.route.keys.Column(0).Type; t.Kind == rows.Timestamp && t.Unit != rows.NoUnit && isDigits(key) {
		return append(b, key...)
	}
	return rows.AppendQuoted(b, key)
}

func isDigits(b []byte) bool {
	if len(b) > 0 && b[0] == '-' {
		b = b[1:]
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}

// place is where a row of put or gone stands among all that the lane took.
func (l *lane) place(gone bool, row uint32) int64 {
	if l.gone == nil {
		return int64(row)
	}
	at := int(row)
	for l.order[at] != (change{row: row, gone: gone}) {
		at++
	}
	return int64(at)
}

// Reset implements sink.Lane.
func (l *lane) Reset() {
	l.put.Reset()
	l.order = l.order[:0]
	if l.gone != nil {
		l.gone.Reset()
	}
}

// Rows implements sink.Lane.
func (l *lane) Rows() int64 {
	if l.gone == nil {
		return int64(l.put.Len())
	}
	return int64(len(l.order))
}

// Bytes implements sink.Lane.
func (l *lane) Bytes() int64 {
	n := l.put.Bytes()
	if l.gone != nil {
		n += l.gone.Bytes() + changeSize*int64(len(l.order))
	}
	return n
}
