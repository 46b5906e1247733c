package sql

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmill/wasmill/host/rows"
)

// lasts refuses a table that a crash of the database empties, where what is published must stay.
func (t *Target) lasts(name string, table *Table) error {
	if !table.Unlogged || !t.exact() {
		return nil
	}
	return &Mismatch{
		Code: CodeUnlogged, Err: errors.New("the table, or a partition of it, is unlogged: a crash of the server empties it, and what is published is gone"),
		WayOut: fmt.Sprintf("make it a logged one: `ALTER TABLE %s SET LOGGED`, of a partitioned table each partition; or do without exactly once: `idempotence: none` in the sinks of the connection", name),
	}
}

// fits says why a table and a sink do not go together, but for types, which Bind looks at.
func (t *Target) fits(s *Sink, table *Table) error {
	if err := t.lasts(s.Table, table); err != nil {
		return err
	}
	return fits(s, table)
}

func fits(s *Sink, t *Table) error {
	if s.Statement == "" {
		if err := columnsFit(s, t); err != nil {
			return err
		}
	}
	if len(s.Key) == 0 {
		return nil
	}
	for _, k := range s.Key {
		if t.Index(k) < 0 {
			return noColumn(t, k)
		}
	}
	for _, u := range t.Unique {
		if sameNames(u, s.Key) {
			return nil
		}
	}
	return &Mismatch{
		Code: CodeKey, Err: fmt.Errorf("no primary key or unique constraint is on exactly (%s)", strings.Join(s.Key, ", ")),
		WayOut: "create a unique index on the columns of `key`, one that is neither partial nor deferrable",
	}
}

func columnsFit(s *Sink, t *Table) error {
	for _, c := range s.Schema.Columns() {
		at := t.Index(c.Name)
		if at < 0 {
			return noColumn(t, c.Name)
		}
		if t.Columns[at].Computed {
			return &Mismatch{
				Code: CodeColumn, Err: fmt.Errorf("column %q cannot be written: the database computes it", c.Name),
				WayOut: "leave it out of the sink's schema",
			}
		}
	}
	for _, c := range t.Columns {
		if c.NotNull && !c.Filled && s.Schema.Index(c.Name) < 0 {
			return &Mismatch{
				Code: CodeColumn, Err: fmt.Errorf("column %q takes no null and has no default, and the sink's schema does not have it", c.Name),
				WayOut: "add the column to the sink's schema, or give it a default in the table",
			}
		}
	}
	return nil
}

func noColumn(t *Table, name string) error {
	m := &Mismatch{Code: CodeColumn, Err: fmt.Errorf("the table has no column %q", name), WayOut: "add the column to the table, or take it out of the sink's schema"}
	for _, c := range t.Columns {
		if strings.EqualFold(c.Name, name) {
			m.WayOut = fmt.Sprintf("the table has one called %q: write the name as the database has it", c.Name)
		}
	}
	return m
}

func sameNames(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for _, name := range a {
		if !slices.Contains(b, name) {
			return false
		}
	}
	return true
}

// ownColumns are the columns of a sink whose schema is the table's own: those of its key, and others that the database does
// not fill by itself.
func (t *Table) ownColumns(key []string) ([]rows.Column, error) {
	var out []rows.Column
	for _, c := range t.Columns {
		if c.Computed || c.Filled && !slices.Contains(key, c.Name) {
			continue
		}
		if c.Row.Kind == 0 {
			return nil, &Mismatch{
				Code: CodeType, Err: fmt.Errorf("column %q is a %s, for which there is no type of a row", c.Name, c.Type),
				WayOut: "give the sink a schema that says what goes there, or leaves the column out",
			}
		}
		typ := c.Row
		typ.Required = c.NotNull
		out = append(out, rows.Column{Name: c.Name, Type: typ})
	}
	if len(out) == 0 {
		return nil, &Mismatch{Code: CodeColumn, Err: fmt.Errorf("the table has no column that needs a value"), WayOut: "give the sink a schema"}
	}
	return out, nil
}

// TypeMismatch says that a column of a table takes no values of a type.
func TypeMismatch(c *Column, t rows.Type, why string) error {
	t.Required = false
	err := fmt.Errorf("column %q is a %s, which cannot take every %s", c.Name, c.Type, t)
	if why != "" {
		err = fmt.Errorf("%w: %s", err, why)
	}
	return &Mismatch{Code: CodeType, Err: err, WayOut: "change the type in the sink's schema or in the table, or write with a `statement` that converts"}
}
