package job

import (
	"fmt"
	"slices"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/rows"
)

// TakeColumns gives each sink of a table or of files that has no schema in the job file the columns of the first binary rows
// that it takes. It goes before CheckModules.
func (j *Job) TakeColumns(modules map[string]ModuleFacts) {
	for i := range j.Sinks {
		s := &j.Sinks[i]
		if !s.mayTakeColumns() {
			continue
		}
		for _, in := range s.From {
			port := portOf(in, modules)
			if port == nil || port.Rows == 0 {
				continue
			}
			if schema, err := rows.RowSchema(port.Columns); err == nil {
				s.SetColumns(ColumnsOf(schema.Columns()))
				break
			}
		}
	}
}

// mayTakeRows reports whether a sink reads a transform whose module can give binary rows. Stock modules give none.
func (j *Job) mayTakeRows(s *Sink) bool {
	return slices.ContainsFunc(s.From, func(in Input) bool {
		return slices.ContainsFunc(j.Transforms, func(t Transform) bool { return t.Name == in.Name && t.Module.Stock == "" })
	})
}

// taken checks what a sink needs columns for: those that it took from its rows, or that it should have taken.
func (c *checker) taken(s *Sink, path string) {
	if s.found {
		switch {
		case s.Files != nil:
			c.partitionedBy(path+".files.partitionBy", s.Files.Schema, s.Files.PartitionBy)
		case s.Delta != nil:
			c.partitionedBy(path+".delta.partitionBy", s.Delta.Schema, s.Delta.PartitionBy)
			c.keyIn(path+".delta.key", s)
		case s.SQL != nil:
			c.keyIn(path+"."+s.SQL.Kind+".key", s)
		}
		return
	}
	if !s.needsColumns() {
		return
	}
	switch {
	case s.Files != nil:
		c.wrongAt(path+".files", CodeMissing, s.Files.Format+noColumns, "")
	case s.Delta != nil && s.Delta.AddColumns:
		c.wrongAt(path+".delta.schemaEvolution", CodeConflict, noEvolution, "")
	case s.SQL != nil && s.SQL.Statement != "":
		c.wrongAt(path+"."+s.SQL.Kind, CodeMissing, statementColumns, "")
	case s.SQL != nil && s.SQL.Create:
		c.wrongAt(path+"."+s.SQL.Kind+".createTable", CodeMissing, noSchema, "")
	}
}

// rows checks where binary rows go: to sinks with the same columns, as nothing else can read them.
func (c *checker) rows(j *Job, modules map[string]ModuleFacts) {
	for i := range j.Transforms {
		t := &j.Transforms[i]
		path := fmt.Sprintf("spec.transforms[%d]", i)
		if m := modules[t.Name].Manifest; m != nil {
			for _, p := range m.Outputs {
				if p.Rows == 0 {
					continue
				}
				if _, err := rows.RowSchema(p.Columns); err != nil {
					c.wrongAt(path+".module", CodeModule, fmt.Sprintf("the output %s of the module %s: %v", p.Name, t.Module.Ref, err), "")
				}
			}
		}
		for k, in := range t.From {
			if port := portOf(in, modules); port != nil && port.Rows > 0 {
				c.wrongAt(fmt.Sprintf("%s.from[%d]", path, k), CodeModule, in.Ref()+" gives binary rows, which sinks with columns take, and no transform", "")
			}
		}
	}
	for i := range j.Sinks {
		c.taken(&j.Sinks[i], fmt.Sprintf("spec.sinks[%d]", i))
		for k, in := range j.Sinks[i].From {
			if port := portOf(in, modules); port != nil && port.Rows > 0 {
				c.rowsInto(&j.Sinks[i], fmt.Sprintf("spec.sinks[%d].from[%d]", i, k), in, port)
			}
		}
	}
}

// rowsInto compares the columns of a port with those of a sink. Those of a table that is not known yet are compared row by
// row.
func (c *checker) rowsInto(s *Sink, path string, in Input, port *abi.OutputPort) {
	if s.TakesTableSchema() {
		return
	}
	given, err := rows.RowSchema(port.Columns)
	if err != nil {
		return // said already, where the module is named
	}
	columns := s.Columns()
	if len(columns) == 0 {
		c.wrongAt(path, CodeModule, in.Ref()+" gives binary rows, and the sink has no columns; files with a schema and tables take them", "")
		return
	}
	for k := range max(len(columns), given.Len()) {
		switch {
		case k >= len(columns):
			c.wrongAt(path, CodeModule, fmt.Sprintf("%s gives the column %q, which the sink does not have: the columns of binary rows are those of the sink, in order", in.Ref(), cut(given.Column(k).Name)), "")
			return
		case k >= given.Len():
			c.wrongAt(path, CodeModule, fmt.Sprintf("%s does not give the column %q: the columns of binary rows are those of the sink, in order", in.Ref(), cut(columns[k].Name)), "")
			return
		}
		a, b := given.Column(k), columns[k]
		want, err := rows.ParseType(b.Type.String())
		if a.Name != b.Name || err != nil || !a.Type.SameData(want) {
			c.wrongAt(path, CodeModule, fmt.Sprintf("%s gives %q %s as column %d, and the sink has %q %s there: the columns of binary rows are those of the sink, in order",
				in.Ref(), cut(a.Name), cut(a.Type.String()), k+1, cut(b.Name), cut(b.Type.String())), "")
			return
		}
	}
}

// portOf is the output that an input takes, nil when it is none of a transform with a manifest.
func portOf(in Input, modules map[string]ModuleFacts) *abi.OutputPort {
	m := modules[in.Name].Manifest
	if m == nil {
		return nil
	}
	for k := range m.Outputs {
		if m.Outputs[k].Name == in.Port || in.Port == "" && k == 0 {
			return &m.Outputs[k]
		}
	}
	return nil
}
