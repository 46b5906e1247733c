package kit

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmill/wasmill/abi"
)

// reference is the smallest host that passes the kit: no image, no fuel, no limits on what a compiler does. It reads as a
// commentary on the specification; a real host does all of it with more care.
type reference struct {
	compiled bool // by the engine's compiler, for benchmarks
}

type refProgram struct {
	c        *Case
	manifest *abi.Manifest
	log      func(Log)
	started  bool // what start-up logs again for each instance is not passed on
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	// now is the instance that is being made or called: one at a time is enough here.
	now *refLane
}

type refLane struct {
	p       *refProgram
	mod     api.Module
	rules   abi.OutputRules
	visit   func(*abi.Record) error // nil outside wasmill_batch
	state   State                   // nil in a stage without keys
	keyed   abi.StateRules
	clock   uint64 // ns
	random  *rand.ChaCha8
	ticking uint64
}

var signatures = map[string]string{
	"wasmill_1.emit":                   "iii:",
	"wasmill_1.log":                    "iii:",
	"wasmill_1.state_read":             "iiiii:i",
	"wasmill_1.state_write":            "ii:",
	"env.abort":                        "iiii:",
	"wasi_snapshot_preview1.fd_write":  "iiii:i",
	"wasi_snapshot_preview1.proc_exit": "i:", "wasi_snapshot_preview1.random_get": "ii:i",
	"wasi_snapshot_preview1.clock_time_get": "iIi:i", "wasi_snapshot_preview1.args_sizes_get": "ii:i",
	"wasi_snapshot_preview1.fd_prestat_get": "ii:i", "wasi_snapshot_preview1.fd_close": "i:i",
	"wasi_snapshot_preview1.sched_yield": ":i",
}

func signature(d api.FunctionDefinition) string {
	var b strings.Builder
	name := map[api.ValueType]byte{api.ValueTypeI32: 'i', api.ValueTypeI64: 'I', api.ValueTypeF32: 'f', api.ValueTypeF64: 'F'}
	for _, t := range d.ParamTypes() {
		b.WriteByte(name[t])
	}
	b.WriteByte(':')
	for _, t := range d.ResultTypes() {
		b.WriteByte(name[t])
	}
	return b.String()
}

func refuse(word, format string, args ...any) error {
	return &Refusal{At: "compile", Word: word, Message: fmt.Sprintf(format, args...)}
}

func (h reference) Start(c *Case, log func(Log)) (Program, error) {
	if err := sniff(c.Wasm); err != nil {
		return nil, err
	}
	ctx := context.Background()
	limit := uint32(abiMemory)
	if c.Limits.Memory != 0 {
		limit = uint32(c.Limits.Memory >> 16)
	}
	config := wazero.NewRuntimeConfigInterpreter()
	if h.compiled {
		config = wazero.NewRuntimeConfigCompiler()
	}
	p := &refProgram{c: c, log: log}
	p.runtime = wazero.NewRuntimeWithConfig(ctx, config.WithMemoryLimitPages(limit).WithCustomSections(true))
	err := p.compile(ctx)
	if err == nil {
		if err = p.link(ctx); err == nil {
			_, err = p.fresh(ctx, [2]uint64{}, 0)
			p.started = true
		}
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

const abiMemory = 1024 // pages

func sniff(b []byte) error {
	if len(b) < 4 || string(b[:4]) != "\x00asm" {
		return refuse("not_wasm", "not a WebAssembly module")
	}
	if len(b) < 8 || b[6] == 1 {
		return refuse(map[bool]string{true: "malformed", false: "component"}[len(b) < 8], "cannot run this")
	}
	return nil
}

func (p *refProgram) compile(ctx context.Context) error {
	var err error
	if p.compiled, err = p.runtime.CompileModule(ctx, p.c.Wasm); err != nil {
		if strings.Contains(err.Error(), "over limit") {
			return refuse("memory", "%v", err)
		}
		if strings.Contains(err.Error(), "custom section name[wasmill]") {
			return refuse("manifest", "%v", err)
		}
		return refuse("malformed", "%v", err)
	}
	if err := p.imports(); err != nil {
		return err
	}
	if len(p.compiled.ExportedMemories()) != 1 || p.compiled.ExportedMemories()["memory"] == nil {
		return refuse("memory", "no exported memory")
	}
	for name, want := range map[string]string{
		"wasmill_alloc": "i:i", "wasmill_init": "iii:i", "wasmill_batch": "ii:i", "_initialize": ":",
	} {
		d := p.compiled.ExportedFunctions()[name]
		if d == nil && name != "_initialize" || d != nil && signature(d) != want {
			return refuse("export", "export %s is missing or of another type", name)
		}
	}
	return p.readManifest()
}

func (p *refProgram) imports() error {
	names, err := importNames(p.c.Wasm)
	if err != nil {
		return err
	}
	for _, n := range names {
		if n.kind != 0 {
			return refuse("import", "%s.%s is no function", n.module, n.name)
		}
	}
	for _, d := range p.compiled.ImportedFunctions() {
		module, name, _ := d.Import()
		sig, known := signatures[module+"."+name]
		switch {
		case strings.HasPrefix(module, "wasmill_") && module != "wasmill_1":
			return refuse("abi", "imports %s", module)
		case known && signature(d) == sig:
		case module == "wasi_snapshot_preview1" && !known && strings.HasSuffix(signature(d), ":i"):
		default:
			return refuse("import", "%s.%s %s", module, name, signature(d))
		}
	}
	return nil
}

func (p *refProgram) readManifest() error {
	texts := [][]byte{}
	for _, s := range p.compiled.CustomSections() {
		if s.Name() == "wasmill" {
			texts = append(texts, s.Data())
		}
	}
	if p.c.Sidecar != nil {
		texts = append(texts, p.c.Sidecar)
	}
	p.manifest = abi.DefaultManifest()
	if len(texts) > 1 {
		return refuse("manifest", "%d manifests", len(texts))
	}
	said := slices.ContainsFunc(p.compiled.ImportedFunctions(), func(d api.FunctionDefinition) bool {
		module, _, _ := d.Import()
		return module == "wasmill_1"
	})
	if len(texts) == 1 {
		m, err := abi.ParseManifest(texts[0])
		if err != nil {
			word := "manifest"
			if strings.Contains(string(texts[0]), `"abi": 2`) {
				word = "abi"
			}
			return refuse(word, "%v", err)
		}
		p.manifest, said = m, said || m.ABI == 1
	}
	if !said {
		return refuse("abi", "neither an import nor a manifest says which ABI")
	}
	return nil
}

// link makes the modules that the guest imports from, with what it imports and nothing else.
func (p *refProgram) link(ctx context.Context) error {
	builders := map[string]wazero.HostModuleBuilder{}
	for _, d := range p.compiled.ImportedFunctions() {
		module, name, _ := d.Import()
		if builders[module] == nil {
			builders[module] = p.runtime.NewHostModuleBuilder(module)
		}
		f := func(_ context.Context, m api.Module, stack []uint64) { p.now.host(module, name, m.Memory(), stack) }
		builders[module].NewFunctionBuilder().
			WithGoModuleFunction(api.GoModuleFunc(f), d.ParamTypes(), d.ResultTypes()).Export(name)
	}
	for _, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fresh makes an instance by running the whole start-up again.
func (p *refProgram) fresh(ctx context.Context, seed [2]uint64, us int64) (*refLane, error) {
	l := &refLane{p: p, clock: 946684800_000_000_000, random: rand.NewChaCha8([32]byte{})}
	l.rules = abi.OutputRules{Ports: len(p.manifest.Outputs), MaxBytes: abi.DefaultOutput}
	if p.c.Limits.Output != 0 {
		l.rules.MaxBytes = p.c.Limits.Output
	}
	p.now = l
	var last string
	tell := p.log
	p.log = func(g Log) {
		if last = string(g.Text); !p.started {
			tell(g)
		}
	}
	mod, err := p.runtime.InstantiateModule(ctx, p.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err == nil {
		l.mod = mod
		err = l.start(ctx)
	}
	p.log = tell
	if err != nil {
		return nil, startRefusal(err, last)
	}
	l.clock = uint64(us) * 1000
	var key [32]byte
	for i := range 4 {
		binary.LittleEndian.PutUint64(key[8*i:], seed[i%2])
	}
	l.random = rand.NewChaCha8(key)
	return l, nil
}

func startRefusal(err error, last string) error {
	r := &Refusal{At: "start", Word: "malformed", Message: fmt.Sprintf("%s (%v)", last, err)}
	var status *Outcome
	switch t := trapOf(err); {
	case t != "":
		r.Word, r.Trap = "trap", t
	case errors.Is(err, errAlloc):
		r.Word = "alloc"
	case errors.As(err, &status):
		r.Word = "init"
	}
	return r
}

var errAlloc = errors.New("wasmill_alloc answered a bad address")

func (l *refLane) start(ctx context.Context) error {
	if f := l.mod.ExportedFunction("_initialize"); f != nil {
		if _, err := f.Call(ctx); err != nil {
			return err
		}
	}
	ptr, err := l.put(ctx, l.p.c.Config)
	if err != nil {
		return err
	}
	res, err := l.mod.ExportedFunction("wasmill_init").Call(ctx, uint64(ptr), uint64(len(l.p.c.Config)), abi.MaxFrame)
	if err != nil {
		return err
	}
	if uint32(res[0]) != 0 {
		return &Outcome{Status: int32(res[0])}
	}
	return nil
}

// put allocates room for b and the bytes that may be read behind it.
func (l *refLane) put(ctx context.Context, b []byte) (uint32, error) {
	n := len(b) + abi.Overrun
	res, err := l.mod.ExportedFunction("wasmill_alloc").Call(ctx, uint64(n))
	if err != nil {
		return 0, err
	}
	ptr := uint32(res[0])
	if ptr == 0 || ptr%abi.Alignment != 0 || !l.mod.Memory().Write(ptr, append(slices.Clone(b), make([]byte, abi.Overrun)...)) {
		return 0, errAlloc
	}
	return ptr, nil
}

func (l *refLane) Call(h abi.FrameHeader, recs []abi.Record, nfields int, emit func(*abi.Record) error) error {
	ctx := context.Background()
	l.p.now = l
	n := abi.FrameSize(recs, nfields)
	ptr, err := l.put(ctx, make([]byte, n))
	if err != nil {
		if len(recs) == 1 && n > abi.MaxFrame {
			return &Outcome{Trap: abi.TrapTooLarge, Progress: abi.NoIndex}
		}
		return fmt.Errorf("allocate: %w", err)
	}
	frame := make([]byte, n)
	if err := abi.PutFrame(frame, ptr, h, recs, nfields); err != nil {
		return err
	}
	l.mod.Memory().Write(ptr, frame)
	l.visit = emit
	res, err := l.mod.ExportedFunction("wasmill_batch").Call(ctx, uint64(ptr), uint64(n))
	l.visit = nil
	if err == nil && uint32(res[0]) == 0 {
		return nil
	}
	mem, _ := l.mod.Memory().Read(0, l.mod.Memory().Size())
	o := &Outcome{Trap: trapOf(err), Progress: abi.FrameProgress(mem, ptr)}
	if !slices.ContainsFunc(recs, func(r abi.Record) bool { return r.Index == o.Progress }) {
		o.Progress = abi.NoIndex
	}
	if err == nil {
		o.Status, o.Text = int32(res[0]), abi.FrameErrorText(mem, ptr)
	} else if o.Trap == "" {
		return err
	}
	return o
}

func (l *refLane) Close() error               { return l.mod.Close(context.Background()) }
func (p *refProgram) Close() error            { return p.runtime.Close(context.Background()) }
func (p *refProgram) Manifest() *abi.Manifest { return p.manifest }
func (p *refProgram) Lane(o LaneOptions) (Lane, error) {
	l, err := p.fresh(context.Background(), o.Seed, o.BatchTime)
	if err == nil && o.State != nil {
		l.state = o.State
		l.keyed = abi.StateRules{Keyed: true, Tables: len(p.manifest.Tables), Lane: o.Index, Lanes: o.Lanes}
	}
	return l, err
}

// trapOf names the trap that err is, "" for none.
func trapOf(err error) abi.TrapName {
	var v *abi.Violation
	if errors.As(err, &v) {
		return v.Trap
	}
	for text, name := range map[string]abi.TrapName{
		"wasm error: unreachable": abi.TrapUnreachable, "wasm error: out of bounds memory access": abi.TrapMemory,
		"wasm error: invalid table access": abi.TrapTable, "wasm error: indirect call type mismatch": abi.TrapIndirect,
		"wasm error: integer overflow": abi.TrapIntegerOverflow, "wasm error: integer divide by zero": abi.TrapDivide,
		"wasm error: invalid conversion to integer": abi.TrapConversion, "wasm error: stack overflow": abi.TrapDepth,
	} {
		if err != nil && strings.Contains(err.Error(), text) {
			return name
		}
	}
	return ""
}
