package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// form is how a value is bound.
type form uint8

const (
	asInteger form = iota + 1 // integers, booleans, days, microseconds
	asFloat
	asText // texts, and all else as its text
	asISO  // a timestamp as text
	asJSON
	asBlob
)

// field is a column of a sink and where it goes.
type field struct {
	at   int // column of the rows
	name string
	form form
}

// binding implements sql.Binding.
type binding struct {
	table  *relation // nil with a statement of a user
	fields []field
	keys   []field
	remove driver.Stmt
	one    driver.Stmt // for one row
	many   driver.Stmt // for as many rows as chunk; nil where a statement of a user takes one
	chunk  int
}

// Rules implements sql.Binding: a table refuses values only when it is written to.
func (b *binding) Rules() []sql.Rule { return nil }

// maxParams is how many parameters a statement may have.
const (
	maxParams = 32_766
	maxChunk  = 200
)

// Bind implements sql.Conn.
func (c *Conn) Bind(ctx context.Context, s *sql.Sink, t *sql.Table) (sql.Binding, error) {
	b := &binding{}
	var err error
	if s.Statement != "" {
		err = c.bindStatement(ctx, b, s)
	} else {
		err = c.bindTable(ctx, b, s, t)
	}
	if err != nil || len(s.Key) == 0 {
		return b, err
	}
	var on []string
	for i, k := range s.Key {
		f, err := fieldOf(s, t, k)
		if err != nil {
			return nil, err
		}
		f.at = i
		b.keys = append(b.keys, f)
		on = append(on, fmt.Sprintf("%s = $%d", f.name, i+1))
	}
	own, ok := t.Private.(*relation)
	if !ok {
		return nil, fmt.Errorf("a table of another driver: %T", t.Private)
	}
	b.remove, err = c.prepare(ctx, "DELETE FROM "+own.name.Quoted()+" WHERE "+strings.Join(on, " AND "))
	return b, err
}

func (c *Conn) prepare(ctx context.Context, text string) (driver.Stmt, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	s, err := c.raw.PrepareContext(ctx, text)
	if err == nil {
		c.bound = append(c.bound, s)
	}
	return s, err
}

func fieldOf(s *sql.Sink, t *sql.Table, name string) (field, error) {
	at := s.Schema.Index(name)
	typ := s.Schema.Column(at).Type
	col := &t.Columns[t.Index(name)]
	own, ok := col.Private.(*column)
	if !ok {
		return field{}, fmt.Errorf("a table of another driver: %T", col.Private)
	}
	form, why := formOf(own, typ)
	if form == 0 {
		return field{}, sql.TypeMismatch(col, typ, why)
	}
	return field{at: at, name: sql.Quote(name), form: form}, nil
}

func (c *Conn) bindTable(ctx context.Context, b *binding, s *sql.Sink, t *sql.Table) error {
	var names []string
	for _, col := range s.Schema.Columns() {
		f, err := fieldOf(s, t, col.Name)
		if err != nil {
			return err
		}
		b.fields, names = append(b.fields, f), append(names, f.name)
	}
	own, ok := t.Private.(*relation)
	if !ok {
		return fmt.Errorf("a table of another driver: %T", t.Private)
	}
	b.table = own
	head := "INSERT INTO " + own.name.Quoted() + " (" + strings.Join(names, ", ") + ") VALUES "
	one := "(?" + strings.Repeat(", ?", len(names)-1) + ")"
	after := conflictText(s, names)
	b.chunk = max(1, min(maxChunk, maxParams/len(names)))
	var err error
	if b.one, err = c.prepare(ctx, head+one+after); err != nil {
		return err
	}
	b.many, err = c.prepare(ctx, head+one+strings.Repeat(", "+one, b.chunk-1)+after)
	return err
}

func conflictText(s *sql.Sink, names []string) string {
	if len(s.Key) == 0 {
		return ""
	}
	var keys, sets []string
	for _, k := range s.Key {
		keys = append(keys, sql.Quote(k))
	}
	for _, n := range names {
		if !slices.Contains(keys, n) {
			sets = append(sets, n+" = excluded."+n)
		}
	}
	text := " ON CONFLICT (" + strings.Join(keys, ", ") + ") DO "
	if len(sets) == 0 {
		return text + "NOTHING"
	}
	return text + "UPDATE SET " + strings.Join(sets, ", ")
}

func (c *Conn) bindStatement(ctx context.Context, b *binding, s *sql.Sink) error {
	st, err := sql.ParseStatement("sqlite", s.Statement, s.Schema)
	if err != nil {
		return &sql.Mismatch{Code: sql.CodeStatement, Err: err, WayOut: "correct the sink's statement"}
	}
	for _, at := range st.Columns {
		f := field{at: at, form: paramForm(s.Schema.Column(at).Type)}
		b.fields = append(b.fields, f)
	}
	b.one, err = c.prepare(ctx, st.SQL)
	return err
}

// paramForm is the form of a value in a statement of a user: as a column of a made table has it.
func paramForm(t rows.Type) form {
	f, _ := formOf(&column{affinity: affinityOf(typeName(t), false)}, t)
	return f
}

// formOf returns how values of a type go into a column, or 0 and why they do not.
func formOf(c *column, t rows.Type) (form, string) {
	f, stored := convert(c.affinity, t)
	if f == 0 {
		return 0, lossy(c.affinity, t)
	}
	if c.only != "" && c.only != stored && !(stored == "INTEGER" && (c.only == "INT" || c.only == "REAL")) {
		return 0, "the table is strict"
	}
	return f, ""
}

func lossy(a affinity, t rows.Type) string {
	if t.Kind == rows.Decimal && (a == toNumeric || a == toReal) {
		return fmt.Sprintf("SQLite keeps %d digits of a number there; a TEXT column keeps all", realDigits)
	}
	if t.Kind == rows.String && a == toNumeric {
		return "SQLite goes by the name of the type, has none of that name for texts, and makes numbers of them where it can; TEXT keeps them"
	}
	return ""
}

// convert returns the form, and as what it is stored.
func convert(a affinity, t rows.Type) (f form, stored string) {
	switch t.Kind {
	case rows.Boolean, rows.Int8, rows.Int16, rows.Int32, rows.Int64:
		small := t.Kind == rows.Int8 || t.Kind == rows.Int16 || t.Kind == rows.Int32
		if a == toText || a == toReal && !small {
			return 0, ""
		}
		return asInteger, "INTEGER"
	case rows.Float, rows.Double:
		if a == toText {
			return 0, ""
		}
		return asFloat, "REAL"
	case rows.Decimal:
		return convertDecimal(a, t)
	case rows.String:
		if a == toText || a == asIs {
			return asText, "TEXT"
		}
		return 0, ""
	case rows.Binary:
		return asBlob, "BLOB"
	case rows.Date, rows.Timestamp, rows.TimestampNTZ:
		switch {
		case a == toReal:
			return 0, ""
		case a == toInteger:
			return asInteger, "INTEGER"
		case t.Kind == rows.Timestamp:
			return asISO, "TEXT"
		}
		return asText, "TEXT"
	}
	if a == toReal || a == toInteger {
		return 0, ""
	}
	return asJSON, "TEXT"
}

func convertDecimal(a affinity, t rows.Type) (form, string) {
	switch a {
	case toText, asIs:
		return asText, "TEXT"
	case toNumeric, toReal:
		if t.Precision <= realDigits {
			return asText, "REAL"
		}
	case toInteger:
		if t.Scale == 0 && t.Precision <= 18 {
			return asText, "INTEGER"
		}
	}
	return 0, ""
}

// Rules implements sql.Database: a text has no zero byte, a number is one.
func (d *Database) Rules(schema *rows.Schema) []sql.Rule {
	var out []sql.Rule
	for i, c := range schema.Columns() {
		switch c.Type.Kind {
		case rows.String:
			out = append(out, sql.Rule{Column: i, Check: checkText})
		case rows.Float, rows.Double:
			out = append(out, sql.Rule{Column: i, Check: checkFloat})
		}
	}
	return out
}

func checkText(v *rows.Vector, row int) *sink.Misfit {
	if bytes.IndexByte(v.Bytes(row), 0) >= 0 {
		return &sink.Misfit{Code: "range", Reason: "the text has a zero byte, at which SQLite's functions end it"}
	}
	return nil
}

func checkFloat(v *rows.Vector, row int) *sink.Misfit {
	if math.IsNaN(float(v, row)) {
		return &sink.Misfit{Code: "range", Reason: "SQLite has no NaN; it would be null"}
	}
	return nil
}

func float(v *rows.Vector, row int) float64 {
	if v.Type.Kind == rows.Float {
		return float64(v.F32[row])
	}
	return v.F64[row]
}
