package sandbox

import (
	"slices"
	"strings"

	"github.com/wasmill/wasmill/host/sandbox/binary"
	"github.com/wasmill/wasmill/host/sandbox/wasi"
)

// Shape is what a module consists of, beyond its Info.
type Shape struct {
	// Code and Data are bytes of all functions and of all data segments; Rewritten is the size of what the engine compiles.
	Code, Data, Rewritten int
	// Measures hold the module to the limits of its form.
	Measures []Measure
	// NotCaptured says why the start-up of the module runs again for each instance, "" where it runs once.
	NotCaptured string
	// WASI are the functions of WASI preview 1 that it imports, sorted.
	WASI []WASIFunction
}

// Measure is how near a module comes to one limit of the form.
type Measure struct {
	Name       string
	Have, Most int64
}

// WASIFunction is an imported function of WASI preview 1. One that is not implemented answers ENOSYS.
type WASIFunction struct {
	Name        string
	Implemented bool
}

// ShapeOf measures a module of this package, nil for one of another.
func ShapeOf(mod Module) *Shape {
	m, ok := mod.(*module)
	if !ok {
		return nil
	}
	s := &Shape{Rewritten: len(m.rewritten.Wasm), NotCaptured: m.form.WhyNotCapturable()}
	for _, im := range m.form.Imports {
		if im.Module == wasi.Module {
			_, implemented := wasi.Lookup(im.Name)
			s.WASI = append(s.WASI, WASIFunction{im.Name, implemented})
		}
	}
	slices.SortFunc(s.WASI, func(a, b WASIFunction) int { return strings.Compare(a.Name, b.Name) })
	s.WASI = slices.CompactFunc(s.WASI, func(a, b WASIFunction) bool { return a.Name == b.Name })
	for i := range m.form.Data {
		s.Data += len(m.form.Data[i].Bytes)
	}
	for i := range m.form.Bodies {
		s.Code += len(m.form.Bodies[i].Code)
	}
	s.Measures = measure(m.form, m.info.Size)
	return s
}

// measure counts what the reader of the format has limits for.
func measure(form *binary.Module, size int) []Measure {
	var table, elements int64
	for i := range form.Tables {
		table = max(table, int64(form.Tables[i].Min))
	}
	for i := range form.Elements {
		elements += int64(len(form.Elements[i].Funcs) + len(form.Elements[i].Exprs))
	}
	most := mostOf(form)
	return []Measure{
		{"bytes", int64(size), binary.MaxModule},
		{"types", int64(len(form.Types)), binary.MaxTypes},
		{"imports", int64(len(form.Imports)), binary.MaxImports},
		{"functions", int64(form.Count(binary.KindFunc)), binary.MaxFuncs},
		{"tables", int64(len(form.Tables)), binary.MaxTables},
		{"elements of a table", table, binary.MaxTable},
		{"elements in segments", elements, binary.MaxElements},
		{"globals", int64(len(form.Globals)), binary.MaxGlobals},
		{"exports", int64(len(form.Exports)), binary.MaxExports},
		{"data segments", int64(len(form.Data)), binary.MaxSegments},
		{"element segments", int64(len(form.Elements)), binary.MaxSegments},
		{"custom sections", int64(len(form.Customs)), binary.MaxCustom},
		{"bytes of a function", most.bytes, binary.MaxBody},
		{"locals of a function", most.locals, binary.MaxLocals},
		{"blocks in blocks", most.nesting, binary.MaxNesting},
		{"loops in loops by locals", most.loopLocals, binary.MaxLoopLocals},
		{"labels of a br_table", most.targets, binary.MaxTargets},
		{"labels of a function", most.allTargets, binary.MaxAllTargets},
	}
}

// largest is what the largest function has, each by itself.
type largest struct {
	bytes, locals, nesting, loopLocals, targets, allTargets int64
}

func mostOf(form *binary.Module) largest {
	var most largest
	for i := range form.Bodies {
		b := &form.Bodies[i]
		own := int64(0)
		for _, l := range b.Locals {
			own += int64(l.Count)
		}
		most.bytes = max(most.bytes, int64(len(b.Code)))
		most.locals = max(most.locals, own)
		t, _ := form.FuncType(uint32(len(form.Imports) + i))
		most.walk(b, own+int64(len(t.Params)))
	}
	return most
}

// walk measures the code of one function with so many locals, parameters included.
func (m *largest) walk(b *binary.Body, locals int64) {
	var open []binary.Op
	var loops, all int64
	for code := b.Read(); code.Next(); {
		switch code.In.Op {
		case binary.OpBlock, binary.OpLoop, binary.OpIf:
			open = append(open, code.In.Op)
			m.nesting = max(m.nesting, int64(len(open)))
			if code.In.Op == binary.OpLoop {
				loops++
				m.loopLocals = max(m.loopLocals, loops*locals)
			}
		case binary.OpEnd:
			if len(open) == 0 {
				return
			}
			if open[len(open)-1] == binary.OpLoop {
				loops--
			}
			open = open[:len(open)-1]
		case binary.OpBrTable:
			n := int64(len(code.In.Targets))
			all += n
			m.targets, m.allTargets = max(m.targets, n-1), max(m.allTargets, all)
		}
	}
}
