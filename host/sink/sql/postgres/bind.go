package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// field is a column of a sink and where it goes.
type field struct {
	at   int // column of the rows
	name string
	form form
	oid  uint32
	typ  string // of the column, as SQL
}

// binding implements sql.Binding.
type binding struct {
	rules  []sql.Rule
	fields []field   // of rows
	keys   []field   // of deletions
	params []field   // of the statement, in place of fields
	copy   string    // COPY statement; "" when rows go by insert
	insert string    // INSERT from arrays
	table  *relation // nil where there is a statement alone
	remove string    // DELETE by arrays
	whole  bool      // all rows of a batch go into one statement
	named  string    // the prepared statement of the user
	text   string    // what it is prepared from
	oids   []uint32  // the types of its parameters as they are given, and as the server has them
	types  []uint32
}

// Rules implements sql.Binding.
func (b *binding) Rules() []sql.Rule { return slices.Clone(b.rules) }

// Bind implements sql.Conn.
func (c *Conn) Bind(ctx context.Context, s *sql.Sink, t *sql.Table) (sql.Binding, error) {
	b := &binding{}
	if s.Statement != "" {
		if err := c.bindStatement(ctx, b, s); err != nil {
			return nil, err
		}
	} else if err := b.bindTable(s, t); err != nil {
		return nil, err
	}
	if len(s.Key) == 0 {
		return b, nil
	}
	for i, k := range s.Key {
		f, _, err := fieldOf(s, t, k)
		if err != nil {
			return nil, err
		}
		if ownOf(t, k).looseKey() {
			return nil, sql.TypeMismatch(&t.Columns[t.Index(k)], s.Schema.Column(f.at).Type, "texts that differ may be equal there, so it is no key")
		}
		if f.form == asUUID {
			b.rules = append(b.rules, sql.Rule{Column: f.at, Check: checkCanonicalUUID})
		}
		f.at = i
		b.keys = append(b.keys, f)
	}
	b.remove = deleteText(t, b.keys)
	b.table, _ = t.Private.(*relation)
	return b, nil
}

// looseKey reports whether values that differ may be equal there.
func (c *column) looseKey() bool {
	return c.loose || slices.Contains([]string{"bpchar", "citext", "json", "jsonb"}, c.typ)
}

func ownOf(t *sql.Table, name string) *column {
	own, _ := t.Columns[t.Index(name)].Private.(*column)
	return own
}

// fieldOf finds out how a column of the sink goes into that of the table, and by which rules.
func fieldOf(s *sql.Sink, t *sql.Table, name string) (field, []sql.Rule, error) {
	at := s.Schema.Index(name)
	typ := s.Schema.Column(at).Type
	col := &t.Columns[t.Index(name)]
	own := ownOf(t, name)
	form, why := formOf(own, typ)
	if form == 0 {
		return field{}, nil, sql.TypeMismatch(col, typ, why)
	}
	f := field{at: at, name: sql.Quote(name), form: form, oid: own.oid, typ: own.name}
	return f, rulesOf(own, form, at), nil
}

func (b *binding) bindTable(s *sql.Sink, t *sql.Table) error {
	r, ok := t.Private.(*relation)
	if !ok {
		return fmt.Errorf("a table of another driver: %T", t.Private)
	}
	if !r.may.insert || len(s.Key) > 0 && (!r.may.update || !r.may.pick) {
		need := "INSERT"
		if len(s.Key) > 0 {
			need = "SELECT, INSERT, UPDATE and, for deletions, DELETE"
		}
		return &sql.Mismatch{Code: sql.CodePrivilege, Err: errors.New("the role may not write to it"), WayOut: "grant the role " + need + " on the table"}
	}
	for _, col := range s.Schema.Columns() {
		f, rules, err := fieldOf(s, t, col.Name)
		if err != nil {
			return err
		}
		b.fields, b.rules = append(b.fields, f), append(b.rules, rules...)
	}
	b.table, b.whole = r, r.whole
	list := names(b.fields)
	if r.bulk && len(s.Key) == 0 {
		b.copy = "COPY " + r.name.Quoted() + " (" + list + ") FROM STDIN (FORMAT binary)"
	}
	b.insert = "INSERT INTO " + r.name.Quoted() + " (" + list + ") SELECT * FROM unnest(" + arrays(b.fields) + ")" + conflictText(s, b.fields)
	return nil
}

func names(fields []field) string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = f.name
	}
	return strings.Join(list, ", ")
}

func arrays(fields []field) string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = fmt.Sprintf("$%d::%s[]", i+1, f.typ)
	}
	return strings.Join(list, ", ")
}

func conflictText(s *sql.Sink, fields []field) string {
	if len(s.Key) == 0 {
		return ""
	}
	var keys, sets []string
	for _, k := range s.Key {
		keys = append(keys, sql.Quote(k))
	}
	for _, f := range fields {
		if !slices.Contains(keys, f.name) {
			sets = append(sets, f.name+" = EXCLUDED."+f.name)
		}
	}
	text := " ON CONFLICT (" + strings.Join(keys, ", ") + ") DO "
	if len(sets) == 0 {
		return text + "NOTHING"
	}
	return text + "UPDATE SET " + strings.Join(sets, ", ")
}

func deleteText(t *sql.Table, keys []field) string {
	r, ok := t.Private.(*relation)
	if !ok {
		return ""
	}
	var as, on []string
	for i, k := range keys {
		as = append(as, fmt.Sprintf("k%d", i))
		on = append(on, fmt.Sprintf("wasmill_t.%s = wasmill_k.k%d", k.name, i))
	}
	return "DELETE FROM " + r.name.Quoted() + " AS wasmill_t USING unnest(" + arrays(keys) + ") AS wasmill_k(" + strings.Join(as, ", ") + ") WHERE " + strings.Join(on, " AND ")
}

// bindStatement prepares a user's statement. Texts and nested values stand where a literal in quotes would; all else has
// its type.
func (c *Conn) bindStatement(ctx context.Context, b *binding, s *sql.Sink) error {
	st, err := sql.ParseStatement("postgres", s.Statement, s.Schema)
	if err != nil {
		return &sql.Mismatch{Code: sql.CodeStatement, Err: err, WayOut: "correct the sink's statement"}
	}
	oids := make([]uint32, len(st.Columns))
	for i, col := range st.Columns {
		t := s.Schema.Column(col).Type
		oids[i] = paramTypes[t.Kind]
		f := field{at: col, form: paramForms[t.Kind], oid: oids[i]}
		b.params = append(b.params, f)
	}
	c.bound++
	b.named = fmt.Sprintf("wasmill_%d", c.bound)
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	made, err := c.pg.Prepare(ctx, b.named, st.SQL, oids)
	if err != nil {
		return placed(&st, err)
	}
	b.text, b.oids, b.types = st.SQL, oids, made.ParamOIDs
	return nil
}

// formOf returns how values of a type go into a column, or 0 and why they do not.
func formOf(c *column, t rows.Type) (form, string) {
	switch t.Kind {
	case rows.Boolean:
		return pick(c.typ == "bool", asBool), ""
	case rows.Int8, rows.Int16, rows.Int32, rows.Int64:
		return intForm(c, t.Kind), ""
	case rows.Float:
		return pick(c.typ == "float4", asFloat4) + pick(c.typ == "float8", asFloat8), ""
	case rows.Double:
		return pick(c.typ == "float8", asFloat8), ""
	case rows.Decimal:
		p, s, limited := c.decimal()
		if limited && (s < t.Scale || p-s < t.Precision-t.Scale) {
			return 0, "it has fewer digits"
		}
		return pick(c.typ == "numeric", asNumeric), ""
	case rows.Date:
		return pick(c.typ == "date", asDate), ""
	case rows.Timestamp, rows.TimestampNTZ:
		return timeForm(c, t.Kind)
	case rows.Binary:
		return pick(c.typ == "bytea", asBytes), ""
	case rows.List, rows.Map, rows.Struct:
		return pick(c.typ == "jsonb", asJSONB) + pick(c.typ == "json" || c.typ == "text" || c.typ == "varchar" && c.length() == 0, asJSON), ""
	case rows.String:
		return textForm(c), ""
	}
	return 0, ""
}

func pick(ok bool, f form) form {
	if ok {
		return f
	}
	return 0
}

// timeForm takes instants for times of UTC where a column has no zone. Times without a zone are no instants.
func timeForm(c *column, k rows.Kind) (form, string) {
	switch {
	case c.typ != "timestamptz" && c.typ != "timestamp":
		return 0, ""
	case c.typ == "timestamptz" && k == rows.TimestampNTZ:
		return 0, "it holds instants, and times without a zone are none"
	case c.mod >= 0 && c.mod < 6:
		return 0, "it rounds to fewer digits than microseconds have"
	}
	return asTimestamp, ""
}

func textForm(c *column) form {
	switch c.typ {
	case "text", "varchar", "bpchar", "citext", "json":
		return asText
	case "jsonb":
		return asTextJSONB
	case "uuid":
		return asUUID
	}
	return pick(c.kind == "e", asText)
}

// intDigits are the digits of the largest integers, by kind.
var intDigits = map[rows.Kind]int{rows.Int8: 3, rows.Int16: 5, rows.Int32: 10, rows.Int64: 19}

func intForm(c *column, k rows.Kind) form {
	switch c.typ {
	case "int2":
		return pick(k == rows.Int8 || k == rows.Int16, asInt2)
	case "int4":
		return pick(k != rows.Int64, asInt4)
	case "int8":
		return asInt8
	case "numeric":
		p, s, limited := c.decimal()
		return pick(!limited || p-s >= intDigits[k], asNumeric)
	}
	return 0
}
