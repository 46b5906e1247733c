package sandbox

import (
	"slices"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/sandbox/binary"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

func TestShape(t *testing.T) {
	m := w.Transform(w.Const(0), w.Loop+"\x02\x40"+w.Loop+w.Get(0)+"\x0e\x02\x00\x01\x02"+w.End+w.End+w.End+w.Echo())
	m.Imports = append(m.Imports,
		w.ImportFunc{Module: "wasi_snapshot_preview1", Name: "path_open", Params: "\x7f", Result: "\x7f"},
		w.ImportFunc{Module: "wasi_snapshot_preview1", Name: "fd_write", Params: "\x7f\x7f\x7f\x7f", Result: "\x7f"},
		w.ImportFunc{Module: "wasi_snapshot_preview1", Name: "fd_write", Params: "\x7f\x7f\x7f\x7f", Result: "\x7f"})
	m.Funcs = append(m.Funcs, w.Func{Locals: strings.Repeat("\x7f", 7)})
	m.Table, m.Elements, m.Data = 9, 3, "four"
	mod, err := engines(t)["interpreter"].Compile(t.Context(), Binary{Name: "test.wasm", Wasm: m.Bytes()})
	if err != nil {
		t.Fatal(err)
	}
	defer mod.Close(t.Context())
	s := ShapeOf(mod)
	if s.Data != 4 || s.Code < 30 || s.Rewritten <= s.Code || s.NotCaptured != "" {
		t.Errorf("%+v", s)
	}
	if want := []WASIFunction{{"fd_write", true}, {"path_open", false}}; !slices.Equal(s.WASI, want) {
		t.Errorf("WASI %v", s.WASI)
	}
	want := map[string]int64{
		"bytes": int64(len(m.Bytes())), "imports": 5, "functions": 9, "tables": 1, "elements of a table": 9, "elements in segments": 3, "data segments": 1,
		"locals of a function": 7, "blocks in blocks": 3, "loops in loops by locals": 2, "locals of all loops": 2, "labels of a br_table": 2, "labels of a function": 3, "labels of all functions": 3, "locals of all functions": 7,
	}
	for _, m := range s.Measures {
		if have, known := want[m.Name]; known && have != m.Have || m.Most < 1 || m.Have > m.Most {
			t.Errorf("%+v, want %d", m, want[m.Name])
		}
		delete(want, m.Name)
	}
	if len(want) > 0 {
		t.Errorf("not measured: %v", want)
	}
	if ShapeOf(nil) != nil {
		t.Error("a shape of nothing")
	}
}

// TestShapeSaysWhyNotCaptured names what an instance can change that cannot be copied.
func TestShapeSaysWhyNotCaptured(t *testing.T) {
	m := w.Transform(w.Const(0), w.Echo())
	m.Table = 2
	m.Funcs = append(m.Funcs, w.Func{Code: w.Const(0) + "\xd0\x70" + "\x26\x00"})
	mod, err := engines(t)["interpreter"].Compile(t.Context(), Binary{Name: "test.wasm", Wasm: m.Bytes()})
	if err != nil {
		t.Fatal(err)
	}
	defer mod.Close(t.Context())
	if s := ShapeOf(mod); !strings.Contains(s.NotCaptured, "table") {
		t.Errorf("%+v", s)
	}
}

// TestMeasuresAreToldApart keeps each measure to a name of its own, and their number to that of the limits.
func TestMeasuresAreToldApart(t *testing.T) {
	form, err := binary.Parse(w.Transform(w.Const(0), w.Echo()).Bytes())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range measure(form, 100) {
		if seen[m.Name] {
			t.Errorf("%s twice", m.Name)
		}
		seen[m.Name] = true
	}
	if len(seen) != 27 {
		t.Errorf("%d measures", len(seen))
	}
}
