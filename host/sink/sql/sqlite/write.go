package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// Write implements sql.Conn. Deletions come first: a row may take up a value that another one's deletion sets free.
func (c *Conn) Write(ctx context.Context, bound sql.Binding, ch *sql.Changes) error {
	b, ok := bound.(*binding)
	if !ok {
		return errors.New("a binding of another driver")
	}
	ctx, cancel := c.bounded(ctx) // one limit for all: each costs more than a small statement
	defer cancel()
	w := &writer{rows: &ch.Gone}
	for i := range ch.Gone.Refs {
		if err := w.run(ctx, b.remove, b.keys, i, 1); err != nil {
			return &sql.RowError{Gone: true, Row: i, Err: err}
		}
	}
	w.rows = &ch.Put
	at := 0
	for ; b.many != nil && at+b.chunk <= ch.Put.Len(); at += b.chunk {
		if err := w.run(ctx, b.many, b.fields, at, b.chunk); err != nil {
			return err // it does not say which row
		}
	}
	for ; at < ch.Put.Len(); at++ {
		if err := w.run(ctx, b.one, b.fields, at, 1); err != nil {
			return &sql.RowError{Row: at, Err: err}
		}
	}
	return nil
}

// Hold implements sql.Conn: the transaction has the lock of writers, so nobody changes a table.
func (c *Conn) Hold(ctx context.Context, bound sql.Binding) (bool, error) {
	b, ok := bound.(*binding)
	if !ok {
		return false, errors.New("a binding of another driver")
	}
	if b.table == nil {
		return true, nil
	}
	mark, err := c.markOf(ctx, b.table.name)
	return mark == b.table.mark, err
}

// writer binds rows to the parameters of statements.
type writer struct {
	rows   *sql.Rows
	values []driver.NamedValue
	text   []byte
}

// run runs a statement with the values of n rows.
func (w *writer) run(ctx context.Context, s driver.Stmt, fields []field, from, n int) error {
	w.values = w.values[:0]
	for _, ref := range w.rows.Refs[from : from+n] {
		t := w.rows.Tables[ref.Table]
		for _, f := range fields {
			w.values = append(w.values, driver.NamedValue{Ordinal: len(w.values) + 1, Value: w.value(f.form, t.Column(f.at), int(ref.Row))})
		}
	}
	e, ok := s.(driver.StmtExecContext)
	if !ok {
		return fmt.Errorf("the driver of SQLite has a statement of type %T", s)
	}
	_, err := e.ExecContext(ctx, w.values)
	return err
}

func (w *writer) value(f form, v *rows.Vector, row int) driver.Value {
	if v.Valid[row] == 0 {
		return nil
	}
	switch f {
	case asInteger:
		switch v.Type.Kind {
		case rows.Boolean:
			return int64(v.Bools[row])
		case rows.Int64, rows.Timestamp, rows.TimestampNTZ:
			return v.I64[row]
		}
		return int64(v.I32[row])
	case asFloat:
		return float(v, row)
	case asBlob:
		return append([]byte{}, v.Bytes(row)...)
	case asJSON:
		w.text = v.AppendJSON(w.text[:0], row)
	case asISO:
		w.text = rows.AppendTimestamp(w.text[:0], v.I64[row], 'T', true)
	default:
		if v.Type.Kind == rows.String {
			return string(v.Bytes(row))
		}
		w.text = v.AppendText(w.text[:0], row)
	}
	return string(w.text)
}
