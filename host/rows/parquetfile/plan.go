package parquetfile

import "github.com/wasmill/wasmill/host/rows"

// leafColumn is a column of the file: a column of the tables, or what is found in one by going from struct to field, from
// list to element, from map to key or value.
type leafColumn struct {
	typ   rows.Type
	names []string // the column's and the fields'; nothing for elements, keys and values
	path  []int    // the column's place in the table, then those among the children
	flat  bool     // a column of the table itself
	// deepest is the definition level of a value that is there.
	deepest int
}

// statsColumn is what has statistics: a leaf or, where a list or map begins, the list or map.
type statsColumn struct {
	names []string
	path  []int
	typ   rows.Type
	leaf  int // among the leaves, or -1 for lists and maps
}

// plan is what a schema looks like in a file.
type plan struct {
	leaves []leafColumn
	stats  []statsColumn
}

// newPlan opens some columns of a schema, in their order.
func newPlan(schema *rows.Schema, columns []int) plan {
	var p plan
	for _, c := range columns {
		column := schema.Column(c)
		p.open(column.Type, leafColumn{names: []string{column.Name}, path: []int{c}}, true)
	}
	return p
}

// open adds the leaves of a type that is found by way of at. counted says that no list or map is on the way.
func (p *plan) open(t rows.Type, at leafColumn, counted bool) {
	at.typ = t
	if !t.Required {
		at.deepest++
	}
	if counted && t.Kind != rows.Struct {
		leaf := -1
		if !t.Kind.Nested() {
			leaf = len(p.leaves)
		}
		p.stats = append(p.stats, statsColumn{names: at.names, path: at.path, typ: t, leaf: leaf})
	}
	switch t.Kind {
	case rows.Struct:
		for i, f := range t.Fields {
			inner := at.child(i)
			inner.names = append(append([]string(nil), at.names...), f.Name)
			p.open(f.Type, inner, counted)
		}
	case rows.List:
		at.deepest++
		p.open(*t.Elem, at.child(0), false)
	case rows.Map:
		at.deepest++
		p.open(required(*t.Key), at.child(0), false)
		p.open(*t.Elem, at.child(1), false)
	default:
		at.flat = len(at.path) == 1
		p.leaves = append(p.leaves, at)
	}
}

// required is the type of a map's keys, which are never null.
func required(t rows.Type) rows.Type {
	t.Required = true
	return t
}

// child is at with one more step.
func (l leafColumn) child(i int) leafColumn {
	l.path = append(append([]int(nil), l.path...), i)
	return l
}

// names for messages.
func (l leafColumn) String() string {
	s := l.names[0]
	for _, n := range l.names[1:] {
		s += "." + n
	}
	return s
}

// walker visits the values of a leaf, row by row, as Dremel's levels count them.
type walker struct {
	path []int
	// visit gets a slot of the leaf's vector and its levels; slot is -1 for what is null or empty at some level.
	visit func(v *rows.Vector, slot, rep, def int)
}

func (w *walker) row(t *rows.Table, row int) { w.walk(t.Column(w.path[0]), 1, row, 0, 0, 0) }

// walk visits what lies in a slot of v, which is found by depth steps through repeated lists and maps.
func (w *walker) walk(v *rows.Vector, depth, slot, rep, def, repeated int) {
	if !v.Type.Required {
		if v.Valid[slot] == 0 {
			w.visit(nil, -1, rep, def)
			return
		}
		def++
	}
	switch v.Type.Kind {
	case rows.Struct:
		w.walk(v.Children[w.path[depth]], depth+1, slot, rep, def, repeated)
	case rows.List, rows.Map:
		from, to := v.Span(slot)
		if from == to {
			w.visit(nil, -1, rep, def)
			return
		}
		child := v.Children[w.path[depth]]
		for k := from; k < to; k++ {
			w.walk(child, depth+1, k, rep, def+1, repeated+1)
			rep = repeated + 1
		}
	default:
		w.visit(v, slot, rep, def)
	}
}
