package wasmgen

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmill/wasmill/host/sandbox/binary"
	"github.com/wasmill/wasmill/host/sandbox/rewriter"
)

// maxPages is how far a memory without a maximum of its own may grow: engine and rewriter are told the same.
const maxPages = 16

// slice is the fuel that a guest gets at a time, depth how deep its calls may go: deeper than a module of this package goes.
const (
	slice = 1_000
	depth = 1_900
)

var (
	errDepth = errors.New("too deep")
	errFuel  = errors.New("out of fuel")
)

// machine is an engine with the host's functions.
type machine struct {
	name    string
	runtime wazero.Runtime
	noted   []string // calls of the host's functions
	given   int64    // fuel
	most    int64    // fuel of one call, 0: no end
	stopped error
}

func newMachine(t testing.TB, name string, config wazero.RuntimeConfig) *machine {
	t.Helper()
	ctx := context.Background()
	m := &machine{name: name, runtime: wazero.NewRuntimeWithConfig(ctx, config.WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(maxPages))}
	t.Cleanup(func() {
		if err := m.runtime.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	host := m.runtime.NewHostModuleBuilder(Host)
	for _, f := range HostFuncs() {
		host.NewFunctionBuilder().WithGoModuleFunction(m.hostFunc(f), f.Params, f.Results).Export(f.Name)
	}
	if _, err := host.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	pair := []api.ValueType{api.ValueTypeI64, api.ValueTypeI64}
	_, err := m.runtime.NewHostModuleBuilder(rewriter.Module).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(m.yield), pair, pair[:1]).Export(rewriter.Yield).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// hostFunc notes its arguments and answers with something that depends on them.
func (m *machine) hostFunc(f HostFunc) api.GoModuleFunc {
	return func(_ context.Context, _ api.Module, stack []uint64) {
		line, sum := f.Name, uint64(len(m.noted))
		for i, t := range f.Params {
			v := cut(stack[i], t)
			line += fmt.Sprintf(" %x", v)
			sum = sum*31 + v
		}
		m.noted = append(m.noted, line)
		for i, t := range f.Results {
			stack[i] = cut(sum+uint64(i), t)
		}
	}
}

func (m *machine) yield(_ context.Context, _ api.Module, stack []uint64) {
	fuel, left := int64(stack[0]), int64(stack[1])
	if left < 0 {
		m.stopped = errDepth
		panic(errDepth)
	}
	if m.most > 0 && m.given > m.most {
		m.stopped = errFuel
		panic(errFuel)
	}
	m.given += slice - fuel
	stack[0] = slice
}

func cut(slot uint64, t api.ValueType) uint64 {
	if t == i32 || t == f32 {
		return uint64(uint32(slot))
	}
	return slot
}

// form is a module in one of the ways it is run.
type form struct {
	exports []binary.Export
	memory  bool // it has one
	wasm    []byte
	// data are the active segments that the host writes into memory, where the module is without them.
	data []binary.Data
}

// outcome is all that can be seen of a run.
type outcome struct {
	lines []string
	fuel  int64 // of all calls that did not trap
}

// run calls all functions of a module in the order of its exports, each with the same arguments on any machine. After a trap
// it begins with a new instance.
func (m *machine) run(ctx context.Context, f form, seed uint64) (*outcome, error) {
	compiled, err := m.runtime.CompileModule(ctx, f.wasm)
	if err != nil {
		return nil, fmt.Errorf("%s: compile: %w", m.name, err)
	}
	defer func() { _ = compiled.Close(ctx) }()
	out := &outcome{}
	var in api.Module
	for i, e := range f.exports {
		if e.Kind != binary.KindFunc {
			continue
		}
		if in == nil {
			if in, err = m.instantiate(ctx, compiled, f, out); err != nil || in == nil {
				return out, err
			}
		}
		if m.call(ctx, in, f, e.Name, seed+uint64(i), out) {
			continue
		}
		if err := in.Close(ctx); err != nil {
			return nil, err
		}
		in = nil
	}
	if in != nil {
		err = in.Close(ctx)
	}
	return out, err
}

// instantiate makes an instance and runs its start function; it returns nil when that traps.
func (m *machine) instantiate(ctx context.Context, compiled wazero.CompiledModule, f form, out *outcome) (api.Module, error) {
	m.noted, m.stopped = nil, nil
	in, err := m.runtime.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		if !strings.Contains(err.Error(), "wasm error: ") {
			return nil, fmt.Errorf("%s: instantiate: %w", m.name, err)
		}
		out.add("start", m.noted, m.trap(err))
		return nil, nil
	}
	for _, d := range f.data {
		if d.Mode == binary.Active && !in.Memory().Write(uint32(d.Offset.Value), d.Bytes) {
			return nil, fmt.Errorf("%s: data at %d lie outside of memory", m.name, d.Offset.Value)
		}
	}
	if start := in.ExportedFunction(rewriter.Start); start != nil {
		m.reset(in)
		if _, err := start.Call(ctx); err != nil {
			out.add("start", m.noted, m.trap(err))
			return nil, in.Close(ctx)
		}
		out.fuel += m.used(in)
	}
	out.add("start", m.noted, "")
	m.see(in, f, out)
	return in, nil
}

// call calls one function; false says that it trapped.
func (m *machine) call(ctx context.Context, in api.Module, f form, name string, seed uint64, out *outcome) bool {
	m.noted, m.stopped = nil, nil
	m.reset(in)
	for counter, n := range map[string]uint64{Loops: MaxLoops, Calls: MaxCalls} {
		if g, ok := in.ExportedGlobal(counter).(api.MutableGlobal); ok {
			g.Set(n)
		}
	}
	function := in.ExportedFunction(name)
	results, err := function.Call(ctx, arguments(function.Definition().ParamTypes(), seed)...)
	if err != nil {
		out.add(name, m.noted, m.trap(err))
		m.see(in, f, out)
		return false
	}
	out.fuel += m.used(in)
	line, at := "", 0
	for _, t := range function.Definition().ResultTypes() {
		line += " " + shown(results[at], t)
		at++
		if t == v128 {
			line += fmt.Sprintf(":%x", results[at])
			at++
		}
	}
	out.add(name, m.noted, line)
	m.see(in, f, out)
	return true
}

// arguments are values of the types; function references are null, for there is no other that every engine knows.
func arguments(types []api.ValueType, seed uint64) []uint64 {
	src := source{b: Bytes(seed, 1024)}
	var args []uint64
	for _, t := range types {
		switch t {
		case funcref:
			args = append(args, 0)
		case v128:
			args = append(args, src.number(), src.number())
		default:
			args = append(args, cut(src.number(), t))
		}
	}
	return args
}

// shown is a value as text; of a reference it tells only whether it is null.
func shown(slot uint64, t api.ValueType) string {
	if t == funcref {
		return fmt.Sprint("ref ", slot != 0)
	}
	return fmt.Sprintf("%s(%x)", api.ValueTypeName(t), cut(slot, t))
}

func (o *outcome) add(what string, noted []string, result string) {
	o.lines = append(o.lines, fmt.Sprintf("%s: %s %s", what, strings.Join(noted, ","), result))
}

// see adds what an instance keeps.
func (m *machine) see(in api.Module, f form, out *outcome) {
	line := "left:"
	if f.memory {
		memory, _ := in.Memory().Read(0, in.Memory().Size())
		line = fmt.Sprintf("left: memory %d %x", len(memory), sha256.Sum256(memory))
	}
	for _, e := range f.exports {
		if e.Kind == binary.KindGlobal {
			g := in.ExportedGlobal(e.Name)
			line += " " + shown(g.Get(), g.Type())
		}
	}
	out.lines = append(out.lines, line)
}

// trap is what ended a call.
func (m *machine) trap(err error) string {
	if m.stopped != nil {
		return m.stopped.Error()
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	if at := strings.LastIndex(text, "wasm error: "); at >= 0 {
		text = text[at:]
	}
	return text
}

func (m *machine) reset(in api.Module) {
	if fuel, ok := in.ExportedGlobal(rewriter.Fuel).(api.MutableGlobal); ok {
		fuel.Set(slice)
		m.given = slice
	}
	if left, ok := in.ExportedGlobal(rewriter.Depth).(api.MutableGlobal); ok {
		left.Set(depth)
	}
}

func (m *machine) used(in api.Module) int64 {
	fuel := in.ExportedGlobal(rewriter.Fuel)
	if fuel == nil {
		return 0
	}
	return m.given - int64(fuel.Get())
}
