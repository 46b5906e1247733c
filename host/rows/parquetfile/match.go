package parquetfile

import (
	"errors"
	"fmt"
	"math"

	"github.com/parquet-go/parquet-go"

	"github.com/wasmill/wasmill/host/rows"
)

// source reads a column, or what a nested column holds, from the leaves of a file.
type source struct {
	typ      rows.Type
	name     string      // of a column of the table
	refuser  *refuser    // of a column of the table, of whose values some may be refused
	fixed    *rows.Value // the value of every row; the file has no such column
	optional bool        // in the file
	def, rep int         // the levels at which it is there
	entryDef int         // of a list or map: at which it has an entry
	leaf     *stream     // of a value that is not nested
	set      setter
	lead     *stream // any leaf below, which tells whether it is there
	filler   bool    // lead is read for that alone
	leaves   []*stream
	children []*source
}

// match finds what a type reads in a file's schema.
func (r *Reader) match(t rows.Type, e *element) (*source, error) {
	s := &source{typ: t, optional: e.optional, def: e.def, rep: e.rep}
	var err error
	switch t.Kind {
	case rows.Struct:
		err = r.matchStruct(s, e)
	case rows.List:
		inner := e.listElement()
		if e.repeated && e.isLeaf() || inner == nil {
			return nil, notA(t, e)
		}
		entries := e.entries()
		s.entryDef = entries.def
		child, childErr := r.match(*t.Elem, inner)
		if childErr != nil {
			return nil, fmt.Errorf("element: %w", childErr)
		}
		s.children = append(s.children, child)
	case rows.Map:
		entries := e.entries()
		if entries == nil || len(entries.children) != 2 {
			return nil, notA(t, e)
		}
		s.entryDef = entries.def
		for i, inner := range []rows.Type{required(*t.Key), *t.Elem} {
			child, childErr := r.match(inner, entries.children[i])
			if childErr != nil {
				return nil, fmt.Errorf("%s: %w", entries.children[i].Name, childErr)
			}
			s.children = append(s.children, child)
		}
	default:
		if !e.isLeaf() {
			return nil, notA(t, e)
		}
		s.leaf = r.stream(e)
		s.leaves = []*stream{s.leaf}
		if s.set, err = setterOf(t, e); err == nil {
			s.set = r.rebased(s.set, e)
		}
	}
	if err != nil {
		return nil, err
	}
	for _, c := range s.children {
		s.leaves = append(s.leaves, c.leaves...)
	}
	if len(s.leaves) == 0 {
		s.filler = true
		s.leaves = []*stream{r.stream(e)}
	}
	s.lead = s.leaves[0]
	return s, nil
}

func (r *Reader) matchStruct(s *source, e *element) error {
	if e.isLeaf() {
		return notA(s.typ, e)
	}
	for _, f := range s.typ.Fields {
		inner := find(e, f.Name)
		if inner == nil {
			if f.Type.Required {
				return fmt.Errorf("the file has no field %s, which takes no null", f.Name)
			}
			s.children = append(s.children, &source{typ: f.Type, fixed: &rows.Value{Null: true}})
			continue
		}
		child, err := r.match(f.Type, inner)
		if err != nil {
			return fmt.Errorf("field %s: %w", f.Name, err)
		}
		s.children = append(s.children, child)
	}
	return nil
}

func find(e *element, name string) *element {
	for _, c := range e.children {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func notA(t rows.Type, e *element) error {
	if e.isLeaf() {
		return fmt.Errorf("the file has %s where %s is expected", physical(e), t)
	}
	return fmt.Errorf("the file has a group where %s is expected", t)
}

var (
	errShort  = errors.New("a column has fewer values than the file has rows")
	errUneven = errors.New("its leaves do not begin a row together")
)

// stream is the values of a leaf in a row group.
type stream struct {
	element *element
	pages   parquet.Pages
	page    parquet.Page
	values  parquet.ValueReader
	bools   *boolReader // instead of pages
	buf     []parquet.Value
	at, n   int
}

// stream returns a new stream of an element, the first leaf of it when it is none itself.
func (r *Reader) stream(e *element) *stream {
	for !e.isLeaf() {
		e = e.children[0]
	}
	s := &stream{element: e, buf: make([]parquet.Value, valuesAtATime)}
	r.streams = append(r.streams, s)
	return s
}

// valuesAtATime is how many values a stream asks of the library at once.
const valuesAtATime = 256

// peek returns the next value, or nil at the end. It is valid until the next call.
func (s *stream) peek() (*parquet.Value, error) {
	if s.at < s.n {
		return &s.buf[s.at], nil
	}
	if err := s.more(); err != nil || s.n == 0 {
		return nil, err
	}
	return &s.buf[0], nil
}

// need is peek where there must be a value.
func (s *stream) need() (*parquet.Value, error) {
	v, err := s.peek()
	if err == nil && v == nil {
		err = errShort
	}
	return v, err
}

// set puts a value into a slot of a vector.
type setter func(v *rows.Vector, slot int, x *parquet.Value) error

// fill reads n rows into a column whose next slot is from.
func (s *source) fill(v *rows.Vector, from, n int) error {
	if s.fixed == nil && s.leaf != nil && s.rep == 0 && s.def <= 1 && s.refuser == nil {
		return s.fillFlat(v, from, n)
	}
	for slot := from; slot < from+n; slot++ {
		s.refuser.at(s.name, slot)
		for _, l := range s.leaves {
			if x, err := l.need(); err != nil || x.RepetitionLevel() != 0 {
				return errors.Join(err, errUneven)
			}
		}
		if err := s.read(v, slot); err != nil {
			return err
		}
	}
	return nil
}

func (s *source) fillFlat(v *rows.Vector, from, n int) error {
	in := s.leaf
	for slot := from; slot < from+n; slot++ {
		if in.at == in.n {
			if _, err := in.need(); err != nil {
				return err
			}
		}
		x := &in.buf[in.at]
		in.at++
		if x.DefinitionLevel() < s.def || x.IsNull() {
			if err := s.null(v, slot); err != nil {
				return err
			}
			continue
		}
		if err := s.set(v, slot, x); err != nil {
			return err
		}
	}
	return nil
}

func (s *source) null(v *rows.Vector, slot int) error {
	if s.typ.Required {
		return errors.New("null where none is taken")
	}
	v.SetNull(slot)
	return nil
}

// read reads what belongs into one slot.
func (s *source) read(v *rows.Vector, slot int) error {
	if s.fixed != nil {
		if s.fixed.Null {
			return s.null(v, slot)
		}
		return v.SetValue(slot, *s.fixed)
	}
	x, err := s.lead.need()
	if err != nil {
		return err
	}
	if x.DefinitionLevel() < s.def {
		if err := s.skip(); err != nil {
			return err
		}
		return s.null(v, slot)
	}
	switch s.typ.Kind {
	case rows.Struct:
		return s.readStruct(v, slot)
	case rows.List, rows.Map:
		return s.readEntries(v, slot, x.DefinitionLevel())
	}
	s.leaf.at++
	return s.set(v, slot, x)
}

// skip drops the one value that each leaf has for what is null or empty.
func (s *source) skip() error {
	for _, l := range s.leaves {
		if _, err := l.need(); err != nil {
			return err
		}
		l.at++
	}
	return nil
}

func (s *source) readStruct(v *rows.Vector, slot int) error {
	v.Valid[slot] = 1
	if s.filler {
		if err := s.drain(); err != nil {
			return err
		}
	}
	for i, c := range s.children {
		if err := c.read(v.Children[i], slot); err != nil {
			return fmt.Errorf("field %s: %w", s.typ.Fields[i].Name, err)
		}
	}
	return nil
}

// drain drops the values that a leaf has for one struct, when none of its fields is read.
func (s *source) drain() error {
	if _, err := s.lead.need(); err != nil {
		return err
	}
	for {
		s.lead.at++
		x, err := s.lead.peek()
		if err != nil || x == nil || x.RepetitionLevel() <= s.rep {
			return err
		}
	}
}

func (s *source) readEntries(v *rows.Vector, slot, def int) error {
	v.Valid[slot] = 1
	k := int(v.Ends[slot])
	if def < s.entryDef {
		v.Ends[slot+1] = uint32(k)
		return s.skip()
	}
	for {
		if k == math.MaxUint32 {
			return errors.New("more elements than one batch can hold")
		}
		for i, c := range s.children {
			v.Children[i].Reserve(k + 1)
			if err := c.read(v.Children[i], k); err != nil {
				return err
			}
		}
		k++
		x, err := s.lead.peek()
		if err != nil {
			return err
		}
		if x == nil || x.RepetitionLevel() <= s.rep {
			v.Ends[slot+1] = uint32(k)
			return nil
		}
	}
}
