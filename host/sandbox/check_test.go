package sandbox

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/fault"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

const manifest = `{"abi": 1, "name": "t", "version": "1", "inputs": [{"name": "in"}], "outputs": [{"name": "out"}]}`

// good is a module that is taken.
func good() *w.Module { return w.Transform(w.Const(0), w.Echo()) }

// importing is a good module that imports one more function, behind the others so that their indexes stay.
func importing(module, name, params, result string) *w.Module {
	m := good()
	m.Imports = append(m.Imports, w.ImportFunc{Module: module, Name: name, Params: params, Result: result})
	return m
}

func TestCompileRefused(t *testing.T) {
	with := func(change func(m *w.Module)) []byte {
		m := good()
		change(m)
		return m.Bytes()
	}
	tests := []struct {
		name    string
		wasm    []byte
		sidecar string
		code    string
		text    []string
	}{
		{"empty file", []byte{}, "", CodeNotWasm, []string{"empty"}},
		{"text", []byte("# a readme\n"), "", CodeNotWasm, []string{"text file"}},
		{"component", []byte("\x00asm\x0d\x00\x01\x00"), "", CodeComponent, []string{"component"}},
		{"cut off", good().Bytes()[:150], "", CodeMalformed, []string{"cut off"}},
		{"too large", append([]byte(w.Header), make([]byte, 17<<20)...), "", CodeTooLarge, []string{"16777216"}},
		{"two memories", []byte(w.Header + w.Section(w.Memory, w.Vec("\x00\x01", "\x00\x01"))), "", CodeFeature, []string{"2 memories"}},
		{"imported memory", []byte(w.Header + w.Section(w.Import, w.Vec(w.Name("env")+w.Name("memory")+"\x02\x00\x01"))), "", CodeImport, []string{`"env"."memory"`}},
		{"unknown module", importing("wasi_unstable", "fd_write", "", "\x7f").Bytes(), "", CodeImport, []string{`"wasi_unstable"."fd_write"`}},
		{"unknown function", importing("wasmill_1", "fetch", "", "\x7f").Bytes(), "", CodeImport, []string{"fetch"}},
		{"emit of another type", importing("wasmill_1", "emit", "\x7f", "").Bytes(), "", CodeImport, []string{"(i32) -> ()", "(i32, i32, i32) -> ()"}},
		{"imported twice with two types", with(func(m *w.Module) {
			m.Imports = append(m.Imports, w.ImportFunc{Module: "wasi_snapshot_preview1", Name: "path_open", Params: "\x7f", Result: "\x7f"},
				w.ImportFunc{Module: "wasi_snapshot_preview1", Name: "path_open", Result: "\x7f"})
		}), "", CodeImport, []string{"twice"}},
		{"abort of another type", importing("env", "abort", "\x7f", "").Bytes(), "", CodeImport, []string{"env.abort"}},
		{"env of a browser", importing("env", "seed", "", "\x7c").Bytes(), "", CodeImport, []string{`"env"."seed"`}},
		{"wasi of another type", importing("wasi_snapshot_preview1", "fd_write", "\x7f", "\x7f").Bytes(), "", CodeImport, []string{"fd_write"}},
		{"unknown wasi without an errno", importing("wasi_snapshot_preview1", "yield_all", "", "").Bytes(), "", CodeImport, []string{"yield_all"}},
		{"state_read of another type", importing("wasmill_1", "state_read", "\x7f\x7f\x7f\x7f", "\x7f").Bytes(), "", CodeImport, []string{"(i32, i32, i32, i32, i32) -> (i32)"}},
		{"state_write of another type", importing("wasmill_1", "state_write", "\x7f\x7f", "\x7f").Bytes(), "", CodeImport, []string{"(i32, i32) -> ()"}},
		{"ABI 2", importing("wasmill_2", "emit", "\x7f\x7f\x7f", "").Bytes(), "", CodeABI, []string{"wasmill_2"}},
		{"no ABI", with(func(m *w.Module) {
			m.Imports, m.Funcs[2].Code = nil, w.Const(0)
		}), "", CodeABI, []string{"which version"}},
		{"no batch", with(func(m *w.Module) { m.Funcs[2].Export = "batch" }), "", CodeExport, []string{"wasmill_batch"}},
		{"init of another type", with(func(m *w.Module) { m.Funcs[1].Params = "\x7f\x7f" }), "", CodeExport, []string{"wasmill_init", "(i32, i32) -> (i32)"}},
		{"_initialize of another type", with(func(m *w.Module) {
			m.Funcs = append(m.Funcs, w.Func{Export: "_initialize", Result: "\x7f", Code: w.Const(0)})
		}), "", CodeExport, []string{"_initialize"}},
		{"memory of 4 GiB", with(func(m *w.Module) { m.Pages = 65536 }), "", CodeMemory, []string{"65536 pages"}},
		{"code of a wrong type", with(func(m *w.Module) { m.Funcs[2].Code = "\x42\x00" }), "", CodeInvalid, []string{"not valid"}},
		{"threads", with(func(m *w.Module) { m.Funcs[2].Code = "\xfe\x03\x00" + w.Const(0) }), "", CodeFeature, []string{"function 4", "0xfe", "at byte"}},
		{"two manifests", with(func(m *w.Module) { m.Customs = [][2]string{{"wasmill", manifest}, {"wasmill", manifest}} }), "", CodeManifest, []string{"two sections"}},
		{"manifest and sidecar", with(func(m *w.Module) { m.Customs = [][2]string{{"wasmill", manifest}} }), manifest, CodeManifest, []string{"beside it"}},
		{"broken manifest", with(func(m *w.Module) { m.Customs = [][2]string{{"wasmill", "{"}} }), "", CodeManifest, []string{"manifest"}},
		{"empty manifest", with(func(m *w.Module) { m.Customs = [][2]string{{"wasmill", ""}} }), "", CodeManifest, []string{"manifest"}},
		{"broken sidecar", good().Bytes(), "[]", CodeManifest, []string{"test.wasm.json"}},
		{"type of a table", good().Bytes(), strings.Replace(manifest, `"inputs"`, `"tables": [{"name": "counts", "type": "int"}], "inputs"`, 1), CodeManifest, []string{`"/tables/0/type"`, "bytes, json or i64"}},
	}
	e := engines(t)["interpreter"]
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := Binary{Name: "test.wasm", Wasm: tt.wasm}
			if tt.sidecar != "" {
				b.Sidecar = []byte(tt.sidecar)
			}
			m, err := e.Compile(t.Context(), b)
			if err == nil {
				t.Fatal("it was taken", m.Close(t.Context()))
			}
			checkFault(t, err, tt.code, tt.text...)
		})
	}
}

func TestCompileTakes(t *testing.T) {
	tests := map[string]*w.Module{
		"as it is":                good(),
		"an unknown wasi":         importing("wasi_snapshot_preview1", "sock_open", "\x7f\x7e\x7c", "\x7f"),
		"state_read":              importing("wasmill_1", "state_read", "\x7f\x7f\x7f\x7f\x7f", "\x7f"),
		"state_write":             importing("wasmill_1", "state_write", "\x7f\x7f", ""),
		"env.abort":               importing("env", "abort", "\x7f\x7f\x7f\x7f", ""),
		"the same import twice":   importing("wasmill_1", "emit", "\x7f\x7f\x7f", ""),
		"a maximum over the most": good(),
	}
	tests["a maximum over the most"].MaxPages = 65536
	onEach(t, func(t *testing.T, e Engine) {
		for name, m := range tests {
			t.Run(name, func(t *testing.T) {
				// What is imported last shifts the functions behind it, and nothing calls those.
				started(t, e, m.Bytes(), Options{})
			})
		}
	})
}

func TestKind(t *testing.T) {
	all := engines(t)
	if got := all["interpreter"].Kind(); got != "interpreter" {
		t.Errorf("asked for the interpreter, got %s", got)
	}
	if got := all["compiler"].Kind(); got != "compiler" && got != "interpreter" {
		t.Errorf("got %s", got)
	}
}

// FuzzCompile hands changed modules to the whole way in. Whatever they are, they are taken or refused with a fault.
func FuzzCompile(f *testing.F) {
	f.Add(good().Bytes(), []byte(nil))
	f.Add(importing("wasi_snapshot_preview1", "fd_write", "\x7f\x7f\x7f\x7f", "\x7f").Bytes(), []byte(manifest))
	e, err := New(Config{Interpreter: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, wasm, sidecar []byte) {
		m, err := e.Compile(t.Context(), Binary{Name: "test.wasm", Wasm: wasm, Sidecar: sidecar})
		if err == nil {
			if err := m.Close(t.Context()); err != nil {
				t.Error(err)
			}
			return
		}
		var refused *fault.Error
		if !errors.As(err, &refused) || refused.WayOut == "" {
			t.Errorf("no fault: %v", err)
		}
	})
}
