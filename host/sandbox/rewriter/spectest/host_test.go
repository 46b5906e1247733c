package spectest

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmill/wasmill/host/sandbox/rewriter"
	"github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// hostModule is what the suite imports from a module "spectest": four globals, a table, a memory, and functions that print.
func hostModule() []byte {
	const f32 = 0x7d
	prints := []struct{ name, params string }{
		{"print", ""},
		{"print_i32", string(rune(wasmtest.I32))},
		{"print_i64", string(rune(wasmtest.I64))},
		{"print_f32", string(rune(f32))},
		{"print_f64", string(rune(wasmtest.F64))},
		{"print_i32_f32", string([]byte{wasmtest.I32, f32})},
		{"print_f64_f64", string([]byte{wasmtest.F64, wasmtest.F64})},
	}
	float := func(bits uint64, size int) string {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(bits >> (8 * i))
		}
		return string(b)
	}
	globals := []struct{ name, def string }{
		{"global_i32", "\x7f\x00\x41\x9a\x05\x0b"},
		{"global_i64", "\x7e\x00\x42\x9a\x05\x0b"},
		{"global_f32", "\x7d\x00\x43" + float(uint64(math.Float32bits(666.6)), 4) + "\x0b"},
		{"global_f64", "\x7c\x00\x44" + float(math.Float64bits(666.6), 8) + "\x0b"},
	}
	var types, funcs, code, exports, defs []string
	for i, p := range prints {
		types = append(types, wasmtest.FuncType(p.params, ""))
		funcs = append(funcs, wasmtest.U32(uint32(i)))
		code = append(code, wasmtest.Name("\x00\x0b"))
		exports = append(exports, wasmtest.Name(p.name)+"\x00"+wasmtest.U32(uint32(i)))
	}
	for i, g := range globals {
		defs = append(defs, g.def)
		exports = append(exports, wasmtest.Name(g.name)+"\x03"+wasmtest.U32(uint32(i)))
	}
	exports = append(exports, wasmtest.Name("table")+"\x01\x00", wasmtest.Name("memory")+"\x02\x00")
	return []byte(wasmtest.Header +
		wasmtest.Section(wasmtest.Type, wasmtest.Vec(types...)) +
		wasmtest.Section(wasmtest.Function, wasmtest.Vec(funcs...)) +
		wasmtest.Section(wasmtest.Table, wasmtest.Vec("\x70\x01\x0a\x14")) +
		wasmtest.Section(wasmtest.Memory, wasmtest.Vec("\x01\x01\x02")) +
		wasmtest.Section(wasmtest.Global, wasmtest.Vec(defs...)) +
		wasmtest.Section(wasmtest.Export, wasmtest.Vec(exports...)) +
		wasmtest.Section(wasmtest.Code, wasmtest.Vec(code...)))
}

// slice is the fuel that a guest gets at a time, depth how deep its calls may go.
const (
	slice = 1_000_000
	depth = 1_900
)

// errDepth ends a guest whose calls go too deep.
var errDepth = errors.New("too deep")

// meter is the host's side of fuel and depth: fuel without end.
type meter struct {
	given   int64
	stopped error
}

// yield gives the next slice of fuel.
func (m *meter) yield(_ context.Context, _ api.Module, stack []uint64) {
	fuel, left := int64(stack[0]), int64(stack[1])
	if left < 0 {
		m.stopped = errDepth
		panic(errDepth)
	}
	m.given += slice - fuel
	stack[0] = slice
}

// instantiateHost puts what the suite and the rewriter import into a runtime.
func instantiateHost(ctx context.Context, r wazero.Runtime, m *meter) error {
	i64 := api.ValueTypeI64
	_, err := r.NewHostModuleBuilder(rewriter.Module).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(m.yield), []api.ValueType{i64, i64}, []api.ValueType{i64}).
		Export(rewriter.Yield).Instantiate(ctx)
	if err != nil {
		return fmt.Errorf("instantiate the host's functions: %w", err)
	}
	if _, err = r.InstantiateWithConfig(ctx, hostModule(), wazero.NewModuleConfig().WithName("spectest")); err != nil {
		return fmt.Errorf("instantiate spectest: %w", err)
	}
	return nil
}

// reset gives all instances a full slice and their whole depth; a trap leaves both anywhere.
func (m *meter) reset(instances []api.Module) {
	m.given, m.stopped = 0, nil
	for _, in := range instances {
		if fuel, ok := in.ExportedGlobal(rewriter.Fuel).(api.MutableGlobal); ok {
			fuel.Set(slice)
			m.given += slice
		}
		if d, ok := in.ExportedGlobal(rewriter.Depth).(api.MutableGlobal); ok {
			d.Set(depth)
		}
	}
}

// used is the fuel that was used since the reset.
func (m *meter) used(instances []api.Module) int64 {
	left := int64(0)
	for _, in := range instances {
		if fuel := in.ExportedGlobal(rewriter.Fuel); fuel != nil {
			left += int64(fuel.Get())
		}
	}
	return m.given - left
}
