package wasmgen

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wasmill/wasmill/host/sandbox/binary"
	"github.com/wasmill/wasmill/host/sandbox/rewriter"
)

// machines are both engines.
type machines struct {
	compiler, interpreter *machine
}

func newMachines(t testing.TB) *machines {
	t.Helper()
	return &machines{
		compiler:    newMachine(t, "compiler", wazero.NewRuntimeConfigCompiler()),
		interpreter: newMachine(t, "interpreter", wazero.NewRuntimeConfigInterpreter()),
	}
}

// rewrite returns a module only encoded anew, and rewritten as modules are that are run.
func rewrite(m *binary.Module) (plain, rewritten form, err error) {
	o := rewriter.Options{MaxPages: maxPages, MaxTable: binary.MaxTable, KeepData: true, Plain: true}
	outPlain, err := rewriter.Rewrite(m, o)
	if err != nil {
		return form{}, form{}, err
	}
	o.Plain, o.KeepData = false, !m.Capturable()
	out, err := rewriter.Rewrite(m, o)
	if err != nil {
		return form{}, form{}, err
	}
	memory := len(m.Memories) > 0
	plain, rewritten = form{exports: m.Exports, memory: memory, wasm: outPlain.Wasm}, form{exports: m.Exports, memory: memory, wasm: out.Wasm}
	if !o.KeepData {
		rewritten.data = m.Data
	}
	return plain, rewritten, nil
}

// same compares two runs by a form of their lines.
func same(what string, a, b *outcome, line func(string) string) error {
	for i := range min(len(a.lines), len(b.lines)) {
		if a, b := line(a.lines[i]), line(b.lines[i]); a != b {
			return fmt.Errorf("%s differ in step %d:\n%.400s\n%.400s", what, i, a, b)
		}
	}
	if len(a.lines) != len(b.lines) {
		return fmt.Errorf("%s differ: %d and %d steps", what, len(a.lines), len(b.lines))
	}
	return nil
}

func exact(line string) string { return line }

var floats = regexp.MustCompile(`f(32|64)\(([0-9a-f]+)\)`)

// quiet takes the bits of NaNs out of a line.
func quiet(line string) string {
	return floats.ReplaceAllStringFunc(line, func(s string) string {
		parts := floats.FindStringSubmatch(s)
		n, err := strconv.ParseUint(parts[2], 16, 64)
		switch {
		case err != nil:
			return err.Error()
		case parts[1] == "32" && n&0x7fffffff > 0x7f800000, parts[1] == "64" && n&^(1<<63) > 0x7ff0000000000000:
			return "nan"
		}
		return s
	})
}

// check runs a module that is valid in every way it can be run. Where it is quiet, it must also do what it did before it was rewritten; and as it came, and on the compiler,
// where the engine takes it rightly.
func (ms *machines) check(wasm []byte, seed uint64, o Options) (*outcome, error) {
	ctx := context.Background()
	m, err := binary.Parse(wasm)
	if err != nil {
		return nil, fmt.Errorf("decoder: %w", err)
	}
	plain, rewritten, err := rewrite(m)
	if err != nil {
		return nil, err
	}
	first, err := ms.both(ctx, rewritten, seed)
	if err != nil {
		return nil, err
	}
	if !o.Quiet || usesActive(m) {
		return first, nil
	}
	forms, on := []form{plain}, []*machine{ms.interpreter}
	if o.Short {
		forms = append(forms, form{exports: m.Exports, memory: plain.memory, wasm: wasm})
	}
	if o.Plain {
		on = append(on, ms.compiler)
	}
	for _, f := range forms {
		for _, machine := range on {
			before, err := machine.run(ctx, f, seed)
			if err != nil {
				return nil, fmt.Errorf("not rewritten: %w", err)
			}
			if err := same("before and after", before, first, quiet); err != nil {
				return nil, fmt.Errorf("%s: %w", machine.name, err)
			}
		}
	}
	return first, nil
}

// both runs a rewritten module on both engines, which must do the same to the bit, and use the same fuel.
func (ms *machines) both(ctx context.Context, rewritten form, seed uint64) (*outcome, error) {
	first, err := ms.compiler.run(ctx, rewritten, seed)
	if err != nil {
		return nil, fmt.Errorf("rewritten: %w", err)
	}
	second, err := ms.interpreter.run(ctx, rewritten, seed)
	if err != nil {
		return nil, fmt.Errorf("rewritten: %w", err)
	}
	if err := same("compiler and interpreter", first, second, exact); err != nil {
		return nil, err
	}
	if first.fuel != second.fuel {
		return nil, fmt.Errorf("the compiler used %d of fuel, the interpreter %d", first.fuel, second.fuel)
	}
	return first, nil
}

// usesActive says whether code refers to an active data segment, which the engine alone treats otherwise than the
// specification says.
func usesActive(m *binary.Module) bool {
	for i := range m.Bodies {
		for c := m.Bodies[i].Read(); c.Next(); {
			if in := &c.In; in.Op == binary.OpMemoryInit && m.Data[in.X].Mode == binary.Active {
				return true
			}
		}
	}
	return false
}

// optionsOf spreads seeds over all options.
func optionsOf(seed uint64) Options {
	return Options{Quiet: seed%4 != 0, Plain: seed%4 == 1, Short: seed%3 == 0}
}

// sizeOf spreads seeds over sizes.
func sizeOf(seed uint64) int { return 100 + int(seed%11)*200 }

// seeds is how many modules are tried.
func seeds() uint64 {
	if testing.Short() {
		return 300
	}
	return 3_000
}

// TestAgree runs random modules before and after they are rewritten, on both engines.
func TestAgree(t *testing.T) {
	ms := newMachines(t)
	trap := regexp.MustCompile(`wasm error: .*`)
	traps, fuel, returned := map[string]int{}, int64(0), 0
	for seed := range seeds() {
		o := optionsOf(seed)
		out, err := ms.check(Generate(Bytes(seed, sizeOf(seed)), o), seed, o)
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		fuel += out.fuel
		for _, line := range out.lines {
			if found := trap.FindString(line); found != "" {
				traps[found]++
			} else {
				returned++
			}
		}
	}
	t.Logf("%d steps without a trap, %d of fuel, traps: %v", returned, fuel, traps)
	if returned == 0 || fuel == 0 || len(traps) < 5 {
		t.Error("the modules do nothing")
	}
}

// TestSame shows that the same bytes give the same module, and no bytes a small one.
func TestSame(t *testing.T) {
	src := Bytes(7, 500)
	a, b := Generate(src, Options{}), Generate(src, Options{})
	if string(a) != string(b) {
		t.Error("two modules of the same bytes differ")
	}
	if n := len(Generate(nil, Options{})); n > 1_000 {
		t.Errorf("the module of no bytes has %d", n)
	}
}

// smithFiles are modules that another generator made: wasm-smith 0.240 of the bytecodealliance, with canonical NaNs.
func smithFiles(t testing.TB) map[string][]byte {
	t.Helper()
	dir := "testdata/smith"
	if other := os.Getenv("WASMGEN_SMITH"); other != "" {
		dir = other
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.wasm"))
	if err != nil || len(files) == 0 {
		t.Fatal(errors.Join(err, errors.New("there are no modules of wasm-smith")))
	}
	modules := map[string][]byte{}
	for _, file := range files {
		if modules[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return modules
}

// TestSmith does the same with modules of another generator. WASMGEN_SMITH names a folder with more of them. Some are refused:
// their active segments lie outside, which is valid and only traps.
func TestSmith(t *testing.T) {
	ms := newMachines(t)
	refused, ran := 0, 0
	for file, wasm := range smithFiles(t) {
		m, err := binary.Parse(wasm)
		if err != nil {
			refused++
			continue
		}
		if _, err := ms.check(wasm, uint64(len(wasm)), Options{Quiet: bounded(m), Short: true}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		ran++
	}
	t.Logf("%d modules ran, %d were refused", ran, refused)
	if refused > ran {
		t.Error("most modules are refused")
	}
}

// bounded says whether the tables of a module cannot grow far when it is run without being rewritten.
func bounded(m *binary.Module) bool {
	for _, table := range m.Tables {
		if !table.HasMax || table.Max > binary.MaxTable {
			return false
		}
	}
	return true
}
