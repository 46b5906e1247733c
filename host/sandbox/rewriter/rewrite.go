package rewriter

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmill/wasmill/host/sandbox/binary"
)

// plan is what is fixed of a module's rewriting before its code is written.
type plan struct {
	m       *binary.Module
	o       Options
	types   []binary.FuncType // that are added
	kinds   map[string]uint32 // their indexes, by parameters and results
	imports uint32
	yield   uint32 // index of the function
	fuel    uint32 // index of the global
	depth   uint32
	parked  uint32   // how many globals are added to park locals in
	helpers []helper // that are added, in the order of their first use
	made    uint8    // what may come to all functions from outside, for selects
	spent   bool     // an empty data segment is added
	// refs are the functions that code refers to, in the order of a table that is added for them; slots are their places in
	// it. An engine makes something for each ref.func that runs, and keeps it until the instance ends: outside of all
	// limits of memory. What a table holds is made once.
	refs  []uint32
	slots map[uint32]int32
}

// maxCode is how many bytes of code are written at most. Code of toolchains becomes 1.2 to 1.7 times as long, that of a small
// function up to 3 times, code that was made for it 14 times.
const maxCode = 4 * binary.MaxModule

// ErrTooLarge is that of a module whose code becomes too large.
var ErrTooLarge = errors.New("its code becomes too large with the charges and checks that are written into it")

// Rewrite writes a module anew. It fails for one that exports a name with Prefix, and with ErrTooLarge.
func Rewrite(m *binary.Module, o Options) (*Output, error) {
	for _, e := range m.Exports {
		if strings.HasPrefix(e.Name, Prefix) {
			return nil, fmt.Errorf("it exports %.80q: names that begin with %s are reserved", e.Name, Prefix)
		}
	}
	p := &plan{m: m, o: o, kinds: map[string]uint32{}, slots: map[uint32]int32{}, imports: uint32(len(m.Imports)), made: madeOutside(m)}
	p.yield = p.imports
	p.fuel = uint32(m.Count(binary.KindGlobal))
	p.depth = p.fuel + 1
	out := &Output{Imports: p.imports, Functions: uint32(m.Count(binary.KindFunc))}
	code, err := p.code(out)
	if err != nil {
		return nil, err
	}
	w := &writer{b: make([]byte, 0, len(code)+len(code)/4)}
	w.b = append(w.b, "\x00asm\x01\x00\x00\x00"...)
	p.head(w)
	w.section(9, p.elements)
	if o.KeepData && m.HasDataCount {
		w.section(12, func(w *writer) { w.u32(p.segments()) })
	}
	if len(code) > 0 {
		w.byte(10)
		w.u32(uint32(len(code)))
		w.b = append(w.b, code...)
	}
	if o.KeepData {
		w.section(11, p.data)
	}
	out.Wasm = w.b
	return out, nil
}

// function is a function's index in the rewritten module.
func (p *plan) function(index uint32) uint32 {
	if index < p.imports || p.o.Plain {
		return index
	}
	return index + 1
}

// kindOf is the index of a type, which is added if it is not there.
func (p *plan) kindOf(t binary.FuncType) uint32 {
	key := make([]byte, 0, 16)
	for _, v := range t.Params {
		key = append(key, byte(v))
	}
	key = append(key, 0)
	for _, v := range t.Results {
		key = append(key, byte(v))
	}
	if index, ok := p.kinds[string(key)]; ok {
		return index
	}
	index := uint32(len(p.m.Types) + len(p.types))
	p.types, p.kinds[string(key)] = append(p.types, t), index
	return index
}

// help is the index of a helper, which is added if it is not there.
func (p *plan) help(h helper) uint32 {
	at := slices.Index(p.helpers, h)
	if at < 0 {
		at = len(p.helpers)
		p.helpers = append(p.helpers, h)
		p.kindOf(h.kind())
	}
	return p.yield + 1 + uint32(len(p.m.Funcs)+at)
}

// slot is the place of a function in the table that is added.
func (p *plan) slot(function uint32) int32 {
	at, ok := p.slots[function]
	if !ok {
		at = int32(len(p.refs))
		p.refs, p.slots[function] = append(p.refs, function), at
	}
	return at
}

var yieldType = binary.FuncType{Params: []binary.ValueType{binary.I64, binary.I64}, Results: []binary.ValueType{binary.I64}}

// head writes the sections before the elements.
func (p *plan) head(w *writer) {
	yield := uint32(0)
	if !p.o.Plain {
		yield = p.kindOf(yieldType)
	}
	w.section(1, func(w *writer) {
		if len(p.m.Types)+len(p.types) == 0 {
			return
		}
		w.u32(uint32(len(p.m.Types) + len(p.types)))
		for _, ts := range [][]binary.FuncType{p.m.Types, p.types} {
			for _, t := range ts {
				w.byte(0x60)
				w.types(t.Params)
				w.types(t.Results)
			}
		}
	})
	w.section(2, func(w *writer) { p.importSection(w, yield) })
	w.section(3, p.functions)
	w.section(4, p.tables)
	w.section(5, p.memories)
	w.section(6, p.globals)
	w.section(7, p.exports)
	if p.o.Plain && p.m.HasStart {
		w.section(8, func(w *writer) { w.u32(p.m.Start) })
	}
}

// importSection writes the functions first: that changes no index, for each kind counts by itself.
func (p *plan) importSection(w *writer, yield uint32) {
	n := len(p.m.Imports) + len(p.m.Foreign)
	if !p.o.Plain {
		n++
	}
	if n == 0 {
		return
	}
	w.u32(uint32(n))
	function := func(module, name string, t uint32) {
		w.name(module)
		w.name(name)
		w.byte(byte(binary.KindFunc))
		w.u32(t)
	}
	for _, im := range p.m.Imports {
		function(im.Module, im.Name, im.Type)
	}
	if !p.o.Plain {
		function(Module, Yield, yield)
	}
	for i := range p.m.Foreign {
		im := &p.m.Foreign[i]
		w.name(im.Module)
		w.name(im.Name)
		w.byte(byte(im.Kind))
		switch im.Kind {
		case binary.KindTable:
			w.byte(byte(im.Table.Type))
			w.limits(im.Table.Limits)
		case binary.KindMemory:
			w.limits(im.Memory)
		default:
			w.global(im.Global)
		}
	}
}

func (w *writer) global(g binary.Global) {
	w.byte(byte(g.Type))
	if g.Mutable {
		w.byte(1)
		return
	}
	w.byte(0)
}

func (p *plan) functions(w *writer) {
	n := len(p.m.Funcs) + len(p.helpers)
	if n == 0 {
		return
	}
	w.u32(uint32(n))
	for _, t := range p.m.Funcs {
		w.u32(t)
	}
	for _, h := range p.helpers {
		w.u32(p.kindOf(h.kind()))
	}
}

// clamp holds a maximum to a limit.
func clamp(l binary.Limits, most uint32) binary.Limits {
	if !l.HasMax || l.Max > most {
		l.HasMax, l.Max = true, max(most, l.Min)
	}
	return l
}

func (p *plan) tables(w *writer) {
	n := len(p.m.Tables)
	if len(p.refs) > 0 {
		n++
	}
	if n == 0 {
		return
	}
	w.u32(uint32(n))
	for _, t := range p.m.Tables {
		w.byte(byte(t.Type))
		if !p.o.Plain {
			t.Limits = clamp(t.Limits, p.o.MaxTable)
		}
		w.limits(t.Limits)
	}
	if most := uint32(len(p.refs)); most > 0 {
		w.byte(byte(binary.FuncRef))
		w.limits(binary.Limits{Min: most, Max: most, HasMax: true})
	}
}

func (p *plan) memories(w *writer) {
	if len(p.m.Memories) == 0 {
		return
	}
	w.u32(uint32(len(p.m.Memories)))
	for _, l := range p.m.Memories {
		if !p.o.Plain {
			l = clamp(l, p.o.MaxPages)
		}
		w.limits(l)
	}
}

func (p *plan) globals(w *writer) {
	n := len(p.m.Globals)
	if !p.o.Plain {
		n += 2 + int(p.parked)
	}
	if n == 0 {
		return
	}
	w.u32(uint32(n))
	for i, g := range p.m.Globals {
		w.global(g)
		w.constant(&p.m.Inits[i], p.function)
	}
	if p.o.Plain {
		return
	}
	for range 2 + p.parked {
		w.global(binary.Global{Type: binary.I64, Mutable: true})
		w.i64(0)
		w.op(binary.OpEnd)
	}
}

func (p *plan) exports(w *writer) {
	var list writer
	n := uint32(0)
	add := func(name string, kind binary.Kind, index uint32) {
		list.name(name)
		list.byte(byte(kind))
		list.u32(index)
		n++
	}
	for _, e := range p.m.Exports {
		index := e.Index
		if e.Kind == binary.KindFunc {
			index = p.function(index)
		}
		add(e.Name, e.Kind, index)
	}
	if !p.o.Plain {
		first := p.m.Count(binary.KindGlobal) - len(p.m.Globals)
		for i, g := range p.m.Globals {
			if g.Mutable {
				add(Global(i), binary.KindGlobal, uint32(first+i))
			}
		}
		if p.m.HasStart {
			add(Start, binary.KindFunc, p.function(p.m.Start))
		}
		add(Fuel, binary.KindGlobal, p.fuel)
		add(Depth, binary.KindGlobal, p.depth)
	}
	if n > 0 {
		w.u32(n)
		w.b = append(w.b, list.b...)
	}
}

func (p *plan) elements(w *writer) {
	n := len(p.m.Elements)
	if len(p.refs) > 0 {
		n++
	}
	if n == 0 {
		return
	}
	w.u32(uint32(n))
	for i := range p.m.Elements {
		p.element(w, &p.m.Elements[i])
	}
	if len(p.refs) > 0 {
		zero := binary.Const{Op: binary.OpI32Const}
		p.element(w, &binary.Element{Table: uint32(p.m.Count(binary.KindTable)), Offset: zero, Type: binary.FuncRef, Funcs: p.refs})
	}
}

// element writes a segment in one of the forms of the format: 4 says expressions, 1 not active, 2 an explicit table or
// declarative.
func (p *plan) element(w *writer, e *binary.Element) {
	flag := uint32(0)
	if e.Exprs != nil {
		flag = 4
	}
	switch {
	case e.Mode == binary.Passive:
		flag |= 1
	case e.Mode == binary.Declarative:
		flag |= 3
	case e.Table != 0 || e.Type != binary.FuncRef:
		flag |= 2
	}
	w.u32(flag)
	if e.Mode == binary.Active {
		if flag&2 != 0 {
			w.u32(e.Table)
		}
		w.constant(&e.Offset, p.function)
	}
	if flag&3 != 0 {
		if flag&4 != 0 {
			w.byte(byte(e.Type))
		} else {
			w.byte(0)
		}
	}
	w.u32(uint32(len(e.Funcs) + len(e.Exprs)))
	for _, f := range e.Funcs {
		w.u32(p.function(f))
	}
	for i := range e.Exprs {
		w.constant(&e.Exprs[i], p.function)
	}
}

// spentData is an empty segment that stands for the active ones in code: they count as dropped once the module is there
// (core specification 4.5.4), and engines keep them.
func (p *plan) spentData() uint32 {
	p.spent = true
	return uint32(len(p.m.Data))
}

// segments is how many segments of data are written.
func (p *plan) segments() uint32 {
	n := uint32(len(p.m.Data))
	if p.spent {
		n++
	}
	return n
}

func (p *plan) data(w *writer) {
	if len(p.m.Data) == 0 {
		return
	}
	w.u32(p.segments())
	for i := range p.m.Data {
		d := &p.m.Data[i]
		w.u32(uint32(d.Mode))
		if d.Mode == binary.Active {
			w.constant(&d.Offset, p.function)
		}
		w.u32(uint32(len(d.Bytes)))
		w.b = append(w.b, d.Bytes...)
	}
	if p.spent {
		w.byte(byte(binary.Passive), 0)
	}
}
