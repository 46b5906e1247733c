package rewriter

import (
	"context"
	"fmt"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmill/wasmill/host/sandbox/binary"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// TestReferences calls functions by references that code makes: own ones and imported ones, several times over, in modules
// with and without tables of their own.
func TestReferences(t *testing.T) {
	ctx := context.Background()
	// put sets an element of the table to a reference, call calls it.
	put := func(at int32, function string) string { return w.Const(at) + "\xd2" + function + "\x26\x00" }
	call := func(at int32) string { return w.Const(at) + "\x11\x01\x00" }
	sum := put(0, "\x01") + put(1, "\x00") + put(2, "\x02") + put(3, "\x01") + call(0) + call(1) + w.Add + call(2) + w.Add + call(3) + w.Add
	test := func(name string, tables uint32, code string, want int32) {
		t.Run(name, func(t *testing.T) {
			m := &w.Module{
				Imports: []w.ImportFunc{{Module: "env", Name: "seven", Result: "\x7f"}},
				Funcs: []w.Func{
					{Result: "\x7f", Code: w.Const(10), Export: "ten"},
					{Result: "\x7f", Code: w.Const(200), Export: "hundreds"},
					{Result: "\x7f", Code: code, Export: "run"},
				},
				Pages: 1, Table: tables, Exports: []string{w.Name("again") + "\x00\x00"},
			}
			form, err := binary.Parse(m.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			out, err := Rewrite(form, Options{MaxPages: 1, MaxTable: 8, KeepData: true})
			if err != nil {
				t.Fatal(err)
			}
			for kind, config := range map[string]wazero.RuntimeConfig{"compiler": wazero.NewRuntimeConfig(), "interpreter": wazero.NewRuntimeConfigInterpreter()} {
				rt := wazero.NewRuntimeWithConfig(ctx, config)
				t.Cleanup(func() {
					if err := rt.Close(ctx); err != nil {
						t.Error(err)
					}
				})
				env := rt.NewHostModuleBuilder("env").NewFunctionBuilder().WithFunc(func() int32 { return 7 }).Export("seven")
				yield := rt.NewHostModuleBuilder(Module).NewFunctionBuilder().WithFunc(func(fuel, _ int64) int64 { return fuel + 1_000_000 }).Export(Yield)
				for _, b := range []wazero.HostModuleBuilder{env, yield} {
					if _, err := b.Instantiate(ctx); err != nil {
						t.Fatal(err)
					}
				}
				mod, err := rt.Instantiate(ctx, out.Wasm)
				if err != nil {
					t.Fatal(kind, err)
				}
				mod.ExportedGlobal(Depth).(api.MutableGlobal).Set(100)
				for range 2 {
					got, err := mod.ExportedFunction("run").Call(ctx)
					if err != nil || int32(got[0]) != want {
						t.Errorf("%s: %v, %v, not %d", kind, got, err, want)
					}
				}
			}
		})
	}
	test("with a table", 4, sum, 10+7+200+10)
	null := "\xd1" // ref.is_null
	test("without a table", 0, "\xd2\x00"+null+"\xd2\x02"+null+w.Add+w.Const(5)+w.Add, 5)
}

// TestReferencesAreMadeOnce: what is written for a ref.func makes nothing new each time it runs, and no function has two
// places in the table.
func TestReferencesAreMadeOnce(t *testing.T) {
	m := &w.Module{
		Funcs: []w.Func{{Export: "f"}, {Export: "g", Code: "\xd2\x00" + w.Drop + "\xd2\x01" + w.Drop + "\xd2\x00" + w.Drop}},
		Pages: 1,
	}
	form, err := binary.Parse(m.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	out, err := Rewrite(form, Options{MaxPages: 1, MaxTable: 8})
	if err != nil {
		t.Fatal(err)
	}
	again, err := binary.Parse(out.Wasm)
	if err != nil {
		t.Fatal(err)
	}
	for i := range again.Bodies {
		for c := again.Bodies[i].Read(); c.Next(); {
			if c.In.Op == binary.OpRefFunc {
				t.Errorf("function %d has a ref.func", i)
			}
		}
	}
	if got, want := fmt.Sprint(again.Tables, again.Elements[0].Funcs), "[{{2 2 true} funcref}] [1 2]"; got != want {
		t.Errorf("tables and elements %s, not %s", got, want)
	}
}
