package delta

import (
	"errors"
	"fmt"
	"strings"

	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows"
)

// layout is how rows of a schema go into a table.
type layout struct {
	table     *rows.Schema // all columns of the table, with those that are added
	from      []int        // for each of them, the column of the rows, or -1: it is null in what is written
	partition []string     // in the table's order
	by        []int        // the columns of the rows that are partition columns, in the same order
	skip      []int        // the columns of the table that are partition columns, in the same order
	texts     []textLimit  // of the rows' columns
	evolved   string       // the table's new schema; "" when nothing is added
	// protocol is the table's new one, nil when it stays: columns that are added may need more than it has.
	protocol *delta.Protocol
}

// want is what a batch asks of a table.
type want struct {
	schema     *rows.Schema
	partition  []string // nil: any
	addColumns bool
}

// newLayout is that of a table that is made for the rows.
func newLayout(w want) (*layout, error) {
	if err := delta.CheckPartition(w.schema, w.partition); err != nil {
		return nil, err
	}
	l := &layout{table: w.schema, partition: w.partition}
	for c := range w.schema.Len() {
		l.from = append(l.from, c)
	}
	l.place(w.schema)
	return l, nil
}

// place finds the partition columns.
func (l *layout) place(ours *rows.Schema) {
	l.by, l.skip = nil, nil
	for _, name := range l.partition {
		if c := ours.Index(name); c >= 0 {
			l.by = append(l.by, c)
		}
		l.skip = append(l.skip, l.table.Index(name))
	}
}

// fit holds a schema against a table's. The error names the column and both types.
func fit(w want, base *delta.Snapshot) (*layout, error) {
	table, partition, err := base.Schema()
	if err != nil {
		return nil, err
	}
	l := &layout{table: table, partition: partition}
	var added []rows.Column
	for _, c := range w.schema.Columns() {
		at := table.Index(c.Name)
		if at < 0 {
			added = append(added, c)
			continue
		}
		if err := fits(c, table.Column(at)); err != nil {
			return nil, err
		}
	}
	if len(added) > 0 {
		if err := l.add(w, base.Metadata.SchemaString, added); err != nil {
			return nil, err
		}
		if p, raised := base.Protocol.For(added); raised {
			l.protocol = &p
		}
	}
	for _, c := range l.table.Columns() {
		at := w.schema.Index(c.Name)
		if at < 0 && c.Type.Required {
			return nil, fmt.Errorf("column %q may not be null in the table (%s), and the sink's schema has no such column", c.Name, c.Type)
		}
		l.from = append(l.from, at)
	}
	l.place(w.schema)
	if l.texts, err = textLimits(w.schema, base.Metadata.SchemaString); err != nil {
		return nil, err
	}
	if len(l.by) == w.schema.Len() {
		return nil, fmt.Errorf("the table is partitioned by all columns of the sink, which leaves none for the files")
	}
	return l, nil
}

func listed(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// fits compares a column of the rows with the table's.
func fits(ours, table rows.Column) error {
	if !ours.Type.SameData(table.Type) {
		return fmt.Errorf("column %q is %s in the sink's schema and %s in the table", ours.Name, ours.Type, table.Type)
	}
	if path, ok := nullable(ours.Name, ours.Type, table.Type); ok {
		return fmt.Errorf("column %q may be null in the sink's schema (%s) and may not in the table (%s): write \"not null\" after its type",
			path, ours.Type, table.Type)
	}
	return nil
}

// nullable finds where ours may be null and the table's may not. Both have the same data.
func nullable(path string, ours, table rows.Type) (string, bool) {
	if table.Required && !ours.Required {
		return path, true
	}
	for i := range table.Fields {
		if p, bad := nullable(path+"."+table.Fields[i].Name, ours.Fields[i].Type, table.Fields[i].Type); bad {
			return p, true
		}
	}
	if table.Elem != nil {
		return nullable(path+"[]", *ours.Elem, *table.Elem)
	}
	return "", false
}

// add gives the table the columns that it lacks, at the end. They may be null there, as the rows that are there already have
// nothing in them.
func (l *layout) add(w want, schemaString string, added []rows.Column) error {
	if !w.addColumns {
		return lacks(l.table, added)
	}
	for i := range added {
		if s := similar(l.table, added[i].Name); s != "" {
			return fmt.Errorf("column %q cannot be added%s", added[i].Name, s)
		}
		added[i].Type.Required = false
	}
	var err error
	if l.table, err = rows.NewSchema(append(l.table.Columns(), added...)); err != nil {
		return err
	}
	l.evolved, err = delta.AddColumns(schemaString, added)
	return err
}

// lackingError names columns that a table does not have and could get.
type lackingError struct{ columns []string }

func (e *lackingError) Error() string {
	word := "columns"
	if len(e.columns) == 1 {
		word = "column"
	}
	return "the table has no " + word + " " + strings.Join(e.columns, ", ")
}

// lacks says which columns a table does not have. It can get none that differs from one that it has in case only.
func lacks(table *rows.Schema, missing []rows.Column) error {
	e := &lackingError{}
	alike := ""
	for _, c := range missing {
		s := similar(table, c.Name)
		e.columns = append(e.columns, fmt.Sprintf("%q (%s in the sink's schema)%s", c.Name, c.Type, s))
		alike += s
	}
	if alike != "" {
		return errors.New(e.Error())
	}
	return e
}

// similar names a column that differs at most in case.
func similar(s *rows.Schema, name string) string {
	for _, c := range s.Columns() {
		if strings.EqualFold(c.Name, name) {
			return fmt.Sprintf("; it has %q, which readers take for the same", c.Name)
		}
	}
	return ""
}
