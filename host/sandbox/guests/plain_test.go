package guests_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/wasmill/wasmill/abi"
)

// plainGuest is a guest on wazero alone: the module as it is, the host functions that ABI 1 needs, and nothing that holds it
// to anything. It checks what is emitted, as every host must, so that both sides of a comparison do the same outside of the guest.
type plainGuest struct {
	runtime      wazero.Runtime
	compiled     wazero.CompiledModule
	mod          api.Module
	alloc, batch api.Function
	rules        abi.OutputRules
	visit        func(*abi.Record) error
	stack        [3]uint64
}

func newPlain(wasm []byte) (*plainGuest, error) {
	ctx := context.Background()
	p := &plainGuest{
		runtime: wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false)),
		visit:   func(*abi.Record) error { return nil },
	}
	p.rules = abi.OutputRules{Ports: 1, MaxBytes: math.MaxInt64}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, p.runtime); err != nil {
		return nil, err
	}
	i32 := []api.ValueType{api.ValueTypeI32, api.ValueTypeI32, api.ValueTypeI32}
	_, err := p.runtime.NewHostModuleBuilder("wasmill_1").
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(p.emit), i32, nil).Export("emit").
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(context.Context, api.Module, []uint64) {}), i32, nil).Export("log").
		Instantiate(ctx)
	if err != nil {
		return nil, err
	}
	if p.compiled, err = p.runtime.CompileModule(ctx, wasm); err != nil {
		return nil, err
	}
	return p, p.fresh(ctx)
}

// fresh makes a new instance and starts it.
func (p *plainGuest) fresh(ctx context.Context) error {
	var err error
	if p.mod, err = p.runtime.InstantiateModule(ctx, p.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions()); err != nil {
		return err
	}
	p.alloc, p.batch = p.mod.ExportedFunction("wasmill_alloc"), p.mod.ExportedFunction("wasmill_batch")
	if f := p.mod.ExportedFunction("_initialize"); f != nil {
		if _, err := f.Call(ctx); err != nil {
			return err
		}
	}
	at, err := p.room(ctx, 2)
	if err != nil {
		return err
	}
	copy(at, "{}")
	p.stack = [3]uint64{p.stack[0], 2, abi.MaxFrame}
	return p.mod.ExportedFunction("wasmill_init").CallWithStack(ctx, p.stack[:])
}

// room asks the guest for n bytes; their address stays on the stack.
func (p *plainGuest) room(ctx context.Context, n int) ([]byte, error) {
	p.stack[0] = uint64(n + abi.Overrun)
	if err := p.alloc.CallWithStack(ctx, p.stack[:]); err != nil {
		return nil, err
	}
	at, ok := p.mod.Memory().Read(uint32(p.stack[0]), uint32(n+abi.Overrun))
	if !ok || p.stack[0] == 0 {
		return nil, errors.New("no memory")
	}
	clear(at[n:])
	return at[:n], nil
}

func (p *plainGuest) emit(_ context.Context, m api.Module, stack []uint64) {
	memory, _ := m.Memory().Read(0, m.Memory().Size())
	if err := abi.ReadOutput(memory, uint32(stack[0]), uint32(stack[1]), uint32(stack[2]), &p.rules, p.visit); err != nil {
		panic(err)
	}
}

func (p *plainGuest) call(ctx context.Context, recs []abi.Record, nfields int) error {
	n := abi.FrameSize(recs, nfields)
	at, err := p.room(ctx, n)
	if err != nil {
		return err
	}
	ptr := uint32(p.stack[0])
	if err := abi.PutFrame(at, ptr, abi.FrameHeader{}, recs, nfields); err != nil {
		return err
	}
	p.stack = [3]uint64{uint64(ptr), uint64(n)}
	if err := p.batch.CallWithStack(ctx, p.stack[:]); err != nil {
		return err
	}
	if status := int32(uint32(p.stack[0])); status != 0 {
		return fmt.Errorf("status %d", status)
	}
	return nil
}

func plain(t testing.TB, wasm []byte) *plainGuest {
	t.Helper()
	p, err := newPlain(wasm)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.runtime.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}
