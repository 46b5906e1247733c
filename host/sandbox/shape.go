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
	c := &form.Counts
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
		{"bytes of a function", c.Bytes, binary.MaxBody},
		{"calls of a function", c.Calls, binary.MaxCalls},
		{"locals of a function", c.Locals, binary.MaxLocals},
		{"locals of all functions", c.ModuleLocals, binary.MaxModuleLocals},
		{"blocks in blocks", c.Nesting, binary.MaxNesting},
		{"labels of a br_table", c.Targets, binary.MaxTargets},
		{"labels of a function", c.AllTargets, binary.MaxAllTargets},
		{"labels of all functions", c.ModuleTargets, binary.MaxModuleTargets},
		{"loops in loops by locals", c.LoopLocals, binary.MaxLoopLocals},
		{"locals of all loops", c.ModuleLoops, binary.MaxModuleLoops},
		{"spans of locals", c.Spans, binary.MaxSpans},
		{"locals that meet", c.Merged, binary.MaxMerged},
		{"locals passed on", c.Passed, binary.MaxPassed},
		{"locals by ways back", c.WaysBack, binary.MaxWaysBack},
		{"values held over blocks", c.Held, binary.MaxHeld},
	}
}
