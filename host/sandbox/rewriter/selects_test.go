package rewriter

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wasmill/wasmill/host/sandbox/binary"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

var valueTypes = []binary.ValueType{binary.I32, binary.I64, binary.F32, binary.F64, binary.V128, binary.FuncRef, binary.ExternRef}

// TestResultTypes asks an engine which type each instruction leaves: behind unreachable its operands may be anything, so
// that a function of an instruction alone is valid just when its result is the instruction's.
func TestResultTypes(t *testing.T) {
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	t.Cleanup(func() {
		if err := rt.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	known := 0
	for op := range binary.Op(len(results)) {
		if pops, pushes := op.Stack(); pops < 0 || pushes != 1 || results[op] == unknown {
			continue
		}
		known++
		for _, kind := range valueTypes {
			var code writer
			code.op(binary.OpUnreachable)
			code.instruction(&binary.Instruction{Op: op}, func(index uint32) uint32 { return index })
			m := &w.Module{Funcs: []w.Func{{Result: string(rune(kind)), Code: string(code.b)}}, Pages: 1, Table: 1}
			compiled, err := rt.CompileModule(ctx, m.Bytes())
			if (err == nil) != (kind == results[op]) {
				t.Errorf("%s leaves %s by the table, as %s it is %v", op, results[op], kind, err)
			}
			if err == nil {
				if err := compiled.Close(ctx); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if known < 380 {
		t.Errorf("only %d instructions have a type", known)
	}
}

// found are the selects of the last function of a module that must be written otherwise.
func found(t *testing.T, m *w.Module) []chosen {
	t.Helper()
	form, err := binary.Parse(m.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	var s selects
	last := len(form.Funcs) - 1
	s.find(form, &form.Types[form.Funcs[last]], &form.Bodies[last])
	return s.list
}

func TestSelectsAreFound(t *testing.T) {
	const sel = "\x1b"
	f32, f64 := "\x43\x00\x00\x80\x3f", "\x44\x00\x00\x00\x00\x00\x00\xf0\x3f"
	vector := "\xfd\x0c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	drop := sel + w.Drop
	tests := []struct {
		name, code string
		want       []chosen
	}{
		{"integers", w.Const(1) + w.Const(2) + w.Const(0) + drop, nil},
		{"constants", f32 + f32 + w.Const(0) + drop + f64 + f64 + w.Const(0) + drop + vector + vector + w.Const(0) + drop, []chosen{{3, binary.F32}, {8, binary.F64}, {13, binary.V128}}},
		{"parameters", w.Get(0) + w.Get(0) + w.Const(0) + drop + w.Get(1) + w.Get(1) + w.Const(0) + drop, []chosen{{3, binary.F32}}},
		{"locals", w.Get(2) + w.Get(2) + w.Const(0) + drop + w.Get(3) + w.Get(3) + w.Const(0) + drop, []chosen{{3, binary.F64}, {8, binary.V128}}},
		{"a global", "\x23\x00" + "\x23\x00" + w.Const(0) + drop, []chosen{{3, binary.F64}}},
		{"results of a call", w.Call(0) + w.Call(0) + w.Const(0) + drop, []chosen{{3, binary.F32}}},
		{"results of a call by table", w.Const(0) + "\x11\x00\x00" + w.Const(0) + "\x11\x00\x00" + w.Const(0) + drop, []chosen{{5, binary.F32}}},
		{"one of the other", f32 + f32 + w.Const(0) + sel + f32 + w.Const(0) + drop, []chosen{{3, binary.F32}, {6, binary.F32}}},
		{"by type", f32 + f32 + w.Const(0) + "\x1c\x01\x7d" + w.Drop, []chosen{{3, binary.F32}}},
		{"integers by type", w.Const(1) + w.Const(1) + w.Const(0) + "\x1c\x01\x7f" + w.Drop, nil},
		{"out of blocks", "\x02\x7d" + f32 + w.End + "\x03\x7d" + f32 + w.End + w.Const(0) + drop, []chosen{{7, binary.F32}}},
		{"out of if", w.Const(1) + "\x04\x7c" + f64 + "\x05" + f64 + w.End + f64 + w.Const(0) + drop, []chosen{{8, binary.F64}}},
		{"through a block with parameters", f32 + "\x02\x02" + w.End + f32 + w.Const(0) + drop, []chosen{{5, binary.F32}}},
		{"below a block", f32 + "\x02\x40" + w.Const(1) + w.Drop + w.End + f32 + w.Const(0) + drop, []chosen{{7, binary.F32}}},
		{"behind a branch", "\x02\x40" + f32 + w.Br0 + w.End + w.Const(1) + w.Const(1) + w.Const(0) + drop, nil},
		{"never reached", w.Unreachable + sel + w.Drop, nil},
		{"never reached, of floats", w.Unreachable + f32 + w.Const(0) + sel + w.Drop, []chosen{{3, binary.F32}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := &w.Module{Pages: 1, Table: 1, Elements: 1, Globals: []string{"\x7c\x01" + f64 + w.End}}
			m.Funcs = []w.Func{
				{Result: "\x7d", Code: f32},
				{Result: "\x7f", Code: w.Const(1)},
				{Params: "\x7d", Result: "\x7d", Code: w.Get(0)},
				{Params: "\x7d\x7e", Locals: "\x7c\x7b", Code: tt.code},
			}
			got := found(t, m)
			if len(got) != len(tt.want) {
				t.Fatalf("got %v, want %v", got, tt.want)
			}
			for i := range got {
				if got[i] != tt.want[i] {
					t.Errorf("got %v, want %v", got, tt.want)
				}
			}
		})
	}
}
