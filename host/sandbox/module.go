package sandbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sandbox/binary"
	"github.com/wasmill/wasmill/host/sandbox/debuginfo"
	"github.com/wasmill/wasmill/host/sandbox/rewriter"
	"github.com/wasmill/wasmill/host/sandbox/wasi"
)

// MaxDepth is the deepest that calls may nest: the interpreter ends at 2,000 frames.
const MaxDepth = 1900

// Defaults of Limits.
const (
	DefaultMemory = 64 << 20
	DefaultDepth  = 1000
	DefaultLog    = 64 << 10
)

// module is a Module: checked, compiled, and with the host functions it imports.
type module struct {
	name     string
	form     *binary.Module
	info     *Info
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	hosts    map[string]api.Module
	// capturable modules are compiled without their data, which their image holds.
	capturable bool
	rewritten  *rewriter.Output
	names      func() map[uint32]string // of functions, read when they are needed first
	lines      func() *debuginfo.Info   // of source code, likewise
}

func (m *module) Info() *Info { return m.info }

// buildHost makes one host module for each module name that is imported, with just the functions this module imports: so
// every unknown function of WASI has the type that the module gives it.
func (m *module) buildHost(ctx context.Context) error {
	builders := map[string]wazero.HostModuleBuilder{}
	for _, im := range m.form.Imports {
		b := builders[im.Module]
		if b == nil {
			b = m.runtime.NewHostModuleBuilder(im.Module)
			builders[im.Module] = b
		}
		kind := m.form.Types[im.Type]
		b.NewFunctionBuilder().WithGoModuleFunction(implementation(im), apiTypes(kind.Params), apiTypes(kind.Results)).Export(im.Name)
	}
	builders[rewriter.Module] = m.runtime.NewHostModuleBuilder(rewriter.Module)
	long := []api.ValueType{api.ValueTypeI64, api.ValueTypeI64}
	builders[rewriter.Module].NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(hostYield), long, long[:1]).Export(rewriter.Yield)
	m.hosts = map[string]api.Module{}
	for name, b := range builders {
		compiled, err := b.Compile(ctx)
		if err != nil {
			return fmt.Errorf("build host functions of %s: %w", name, err)
		}
		host, err := m.runtime.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
		if err != nil {
			return errors.Join(fmt.Errorf("build host functions of %s: %w", name, err), compiled.Close(ctx))
		}
		m.hosts[name] = host
	}
	return nil
}

// implementation is the host's side of an import that was checked.
func implementation(im binary.Import) api.GoModuleFunc {
	if im.Module != wasi.Module {
		f, _ := hostFunctions(im.Module, im.Name)
		return func(ctx context.Context, _ api.Module, stack []uint64) {
			in := guest(ctx)
			in.pay(costHostCall)
			f.call(in, stack)
		}
	}
	f, ok := wasi.Lookup(im.Name)
	if !ok {
		return func(ctx context.Context, _ api.Module, stack []uint64) {
			guest(ctx).pay(costHostCall)
			stack[0] = uint64(wasi.NoSys)
		}
	}
	if im.Name == wasi.Exit {
		return hostExit
	}
	return func(ctx context.Context, _ api.Module, stack []uint64) {
		in := guest(ctx)
		in.pay(costHostCall)
		stack[0] = uint64(f.Call(in.wasi, in.memory(), stack))
	}
}

func apiTypes(ts []binary.ValueType) []api.ValueType {
	out := make([]api.ValueType, len(ts))
	for i, t := range ts {
		out[i] = api.ValueType(t)
	}
	return out
}

// Start fills in the defaults and runs the module's start-up once. What the guest does wrong refuses the module: a fault
// with CodeStart that ends with the guest's last log line.
func (m *module) Start(ctx context.Context, o Options) (Program, error) {
	limits, err := m.limits(o.Limits)
	if err != nil {
		return nil, err
	}
	if len(o.Config) == 0 {
		o.Config = []byte("{}")
	}
	o.Limits = limits
	p := &program{module: m, options: o}
	p.resolve = func(name string) api.Module { return m.hosts[name] }
	if err := p.firstStart(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// limits fills in the defaults and checks what is left.
func (m *module) limits(l Limits) (Limits, error) {
	wrong := func(format string, args ...any) error {
		return fault.New(CodeLimits, m.name, fmt.Errorf(format, args...), "correct the limits of the transform in the job file")
	}
	if l.Memory == 0 {
		l.Memory = DefaultMemory
	}
	if l.Output == 0 {
		l.Output = abi.DefaultOutput
	}
	if l.Log == 0 {
		l.Log = DefaultLog
	}
	if l.FuelCall == 0 {
		l.FuelCall = abi.DefaultFuelCall
	}
	if l.FuelRecord == 0 {
		l.FuelRecord = abi.DefaultFuelChunk
	}
	if l.Depth == 0 {
		l.Depth = DefaultDepth
	}
	switch {
	case l.Memory < 0 || l.Memory%binary.PageSize != 0 || l.Memory > maxMemory*binary.PageSize:
		return l, wrong("a memory of %d bytes: it must be a multiple of 64 KiB, at most 2 GiB", l.Memory)
	case l.Output < 0:
		return l, wrong("an output of %d bytes", l.Output)
	case l.Depth < 0 || l.Depth > MaxDepth:
		return l, wrong("a depth of %d: it must be at most %d, which every engine has room for", l.Depth, MaxDepth)
	case l.Log < 0:
		return l, wrong("a log of %d bytes", l.Log)
	}
	if least := int64(m.info.MemoryMin) * binary.PageSize; least > l.Memory {
		return l, refuse(CodeMemory, m.name, raiseMemory+", or build the module with a smaller stack",
			"its memory begins with %d bytes, its limit is %d", least, l.Memory)
	}
	return l, nil
}

func (m *module) Close(ctx context.Context) error {
	var errs []error
	for name, h := range m.hosts {
		if err := h.Close(ctx); err != nil {
			errs = append(errs, fmt.Errorf("close host functions of %s: %w", name, err))
		}
	}
	if err := m.compiled.Close(ctx); err != nil {
		errs = append(errs, fmt.Errorf("close module %s: %w", m.name, err))
	}
	return errors.Join(errs...)
}

// importsOf puts a module's host functions and its memory in the context that wazero instantiates with.
func importsOf(ctx context.Context, resolve experimental.ImportResolver, memory experimental.MemoryAllocator) context.Context {
	return experimental.WithMemoryAllocator(experimental.WithImportResolver(ctx, resolve), memory)
}
