package transforms

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/wasmill/wasmill/abi"
)

// guest is a module on plain wazero: the smallest host that can run it, without fuel, limits or images.
type guest struct {
	ctx     context.Context
	mod     api.Module
	alloc   api.Function
	batch   api.Function
	locator *abi.Locator
	rules   abi.OutputRules
	visit   func(*abi.Record)
	log     []string
	fields  []abi.Field
	lane    uint32 // records handed over so far
	inCall  bool
	deaf    bool // emit does nothing, to time the guest alone
	stack   [2]uint64
}

func (g *guest) memory() []byte {
	b, _ := g.mod.Memory().Read(0, g.mod.Memory().Size())
	return b
}

// start loads transforms/<name>/<module> with the manifest of that folder.
func start(tb testing.TB, name, module, config string) *guest {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(name, "go", "manifest.json"))
	if err != nil {
		tb.Fatal(err)
	}
	m, err := abi.ParseManifest(text)
	if err != nil {
		tb.Fatal(err)
	}
	wasm, err := os.ReadFile(filepath.Join(name, module))
	if err != nil {
		tb.Fatal(err)
	}
	return load(tb, wasm, m, config)
}

func load(tb testing.TB, wasm []byte, m *abi.Manifest, config string) *guest {
	tb.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
	tb.Cleanup(func() { _ = rt.Close(ctx) })
	g := &guest{ctx: ctx, rules: abi.OutputRules{Ports: len(m.Outputs), MaxBytes: 1 << 40}}
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	_, err := rt.NewHostModuleBuilder("wasmill_1").
		NewFunctionBuilder().WithFunc(g.emit).Export("emit").
		NewFunctionBuilder().WithFunc(g.say).Export("log").Instantiate(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	cm, err := rt.CompileModule(ctx, wasm)
	if err != nil {
		tb.Fatal(err)
	}
	g.mod, err = rt.InstantiateModule(ctx, cm, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize").WithStderr(os.Stderr))
	if err != nil {
		tb.Fatal(err)
	}
	if g.locator, err = abi.NewLocator(m.Inputs[0].Fields); err != nil {
		tb.Fatal(err)
	}
	g.alloc, g.batch = g.mod.ExportedFunction("wasmill_alloc"), g.mod.ExportedFunction("wasmill_batch")
	if config == "" {
		config = "{}"
	}
	at := g.room(tb, len(config))
	copy(g.memory()[at:], config)
	res, err := g.mod.ExportedFunction("wasmill_init").Call(ctx, uint64(at), uint64(len(config)), abi.MaxFrame)
	if err != nil {
		tb.Fatal(err)
	}
	if int32(res[0]) != 0 {
		tb.Fatalf("wasmill_init: %d, log %q", int32(res[0]), g.log)
	}
	return g
}

// room asks the guest for n bytes and the overrun.
func (g *guest) room(tb testing.TB, n int) uint32 {
	tb.Helper()
	res, err := g.alloc.Call(g.ctx, uint64(n+abi.Overrun))
	if err != nil {
		tb.Fatal(err)
	}
	at := uint32(res[0])
	if at == 0 || at%abi.Alignment != 0 || uint64(at)+uint64(n+abi.Overrun) > uint64(g.mod.Memory().Size()) {
		tb.Fatalf("wasmill_alloc(%d) = %d, memory has %d bytes", n+abi.Overrun, at, g.mod.Memory().Size())
	}
	return at
}

func (g *guest) emit(_ context.Context, _ api.Module, ptr, count, stride uint32) {
	if !g.inCall {
		panic("emit outside wasmill_batch")
	}
	if g.deaf {
		return
	}
	err := abi.ReadOutput(g.memory(), ptr, count, stride, &g.rules, func(r *abi.Record) error {
		if r.Index != abi.NoIndex && r.Index >= g.lane {
			return abi.BadIndex(r.Index)
		}
		if g.visit != nil {
			g.visit(r)
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
}

func (g *guest) say(_ context.Context, _ api.Module, level, ptr, n uint32) {
	b, _ := g.mod.Memory().Read(ptr, n)
	g.log = append(g.log, fmt.Sprintf("%d %s", level, b))
}

// locate fills in what the host finds in a value: fields, or that it is not JSON.
func (g *guest) locate(recs []abi.Record) {
	n := g.locator.Len()
	if len(g.fields) < n*len(recs) {
		g.fields = make([]abi.Field, n*len(recs))
	}
	for i := range recs {
		r := &recs[i]
		r.Fields, r.Flags = g.fields[i*n:(i+1)*n:(i+1)*n], r.Flags&^abi.FlagNotJSON
		if r.Value == nil || !g.locator.Locate(r.Value, r.Fields) {
			r.Flags |= abi.FlagNotJSON
		}
	}
}

// place writes a frame into the guest and returns its address and length.
func (g *guest) place(tb testing.TB, h abi.FrameHeader, recs []abi.Record, nfields int) (uint32, int) {
	tb.Helper()
	n := abi.FrameSize(recs, nfields)
	at := g.room(tb, n)
	mem := g.memory()
	if err := abi.PutFrame(mem[at:], at, h, recs, nfields); err != nil {
		tb.Fatal(err)
	}
	clear(mem[int(at)+n : int(at)+n+abi.Overrun])
	return at, n
}

// call runs one frame and returns the status; a trap is an error.
func (g *guest) call(at uint32, n int) (int32, error) {
	g.stack = [2]uint64{uint64(at), uint64(n)}
	g.inCall = true
	err := g.batch.CallWithStack(g.ctx, g.stack[:])
	g.inCall = false
	return int32(g.stack[0]), err
}

// run hands values over in chunks, then the last frame, and collects what comes out.
func (g *guest) run(tb testing.TB, values []string) []out {
	tb.Helper()
	var got []out
	g.visit = func(r *abi.Record) { got = append(got, keep(r)) }
	for len(values) > 0 {
		var recs []abi.Record
		size := 0
		for _, v := range values {
			r := abi.Record{Value: []byte(v), Index: g.lane + uint32(len(recs)), Offset: int64(len(recs))}
			if size += r.Size(g.locator.Len()); len(recs) == abi.MaxChunkRecords || len(recs) > 0 && size > abi.MaxChunkBytes {
				break
			}
			recs = append(recs, r)
		}
		values = values[len(recs):]
		g.locate(recs)
		g.lane += uint32(len(recs))
		g.mustCall(tb, abi.FrameHeader{}, recs, g.locator.Len())
	}
	g.mustCall(tb, abi.FrameHeader{Flags: abi.FlagLast}, nil, 0)
	return got
}

func (g *guest) mustCall(tb testing.TB, h abi.FrameHeader, recs []abi.Record, nfields int) {
	tb.Helper()
	at, n := g.place(tb, h, recs, nfields)
	status, err := g.call(at, n)
	if err != nil || status != 0 {
		tb.Fatalf("status %d, %v, text %q, progress %d", status, err, abi.FrameErrorText(g.memory(), at), abi.FrameProgress(g.memory(), at))
	}
}

// out is one output record, copied.
type out struct {
	Kind  abi.Kind
	Port  uint16
	Code  int32
	Index uint32
	Value string
}

func keep(r *abi.Record) out {
	return out{Kind: r.Kind, Port: r.Port, Code: r.Partition, Index: r.Index, Value: string(r.Value)}
}

func fromJSON(tb testing.TB, text string, to any) {
	tb.Helper()
	if err := json.Unmarshal([]byte(text), to); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
}
