package wasmgen

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wasmill/wasmill/host/sandbox/binary"
)

// FuzzAgree is TestAgree with modules out of any bytes.
func FuzzAgree(f *testing.F) {
	for seed := range uint64(24) {
		f.Add(Bytes(seed, 60+int(seed)*40), byte(seed))
	}
	ms := newMachines(f)
	f.Fuzz(func(t *testing.T, src []byte, kind byte) {
		if len(src) > 4096 {
			return
		}
		o := optionsOf(uint64(kind))
		if _, err := ms.check(Generate(src, o), uint64(kind), o); err != nil {
			t.Error(err)
		}
	})
}

// FuzzBytes rewrites what need not be a module.
func FuzzBytes(f *testing.F) {
	for seed := range uint64(16) {
		f.Add(Generate(Bytes(seed, 100+int(seed)*30), optionsOf(seed)))
	}
	for _, wasm := range smithFiles(f) {
		f.Add(wasm)
	}
	m := newMachine(f, "interpreter", wazero.NewRuntimeConfigInterpreter())
	f.Fuzz(func(t *testing.T, wasm []byte) {
		if len(wasm) <= 1<<16 {
			m.judge(t, bytes.Clone(wasm))
		}
	})
}

// FuzzBroken rewrites modules of which some bytes of code were changed: many are still read, and no longer valid. Those that
// are valid need not end; with little fuel, both engines must stop them at the same place.
func FuzzBroken(f *testing.F) {
	for seed := range uint64(24) {
		f.Add(Bytes(seed, 60+int(seed)*20), Bytes(seed, 6))
	}
	ms := newMachines(f)
	f.Fuzz(func(t *testing.T, src, edits []byte) {
		if len(src) <= 4096 {
			ms.spoil(t, src, edits)
		}
	})
}

// TestBroken does the same with bytes out of seeds.
func TestBroken(t *testing.T) {
	ms := newMachines(t)
	counts := map[verdict]int{}
	for seed := range 5 * seeds() {
		counts[ms.spoil(t, Bytes(seed, 50+int(seed%7)*40), Bytes(seed+1, 3+int(seed%3)*3))]++
	}
	t.Log(counts)
	if len(counts) < 4 {
		t.Error("the changes are all of one kind")
	}
}

// littleFuel is what a module gets that need not end.
const littleFuel = 20_000

// spoil makes one broken module, judges it, and runs it if it is valid.
func (ms *machines) spoil(t *testing.T, src, edits []byte) verdict {
	t.Helper()
	wasm := broken(t, src, edits)
	v := ms.interpreter.judge(t, wasm)
	if v != valid {
		return v
	}
	m, err := binary.Parse(wasm)
	if err != nil {
		t.Fatal(err)
	}
	_, rewritten, err := rewrite(m)
	if err != nil {
		t.Fatal(err)
	}
	ms.compiler.most, ms.interpreter.most = littleFuel, littleFuel
	out, err := ms.both(context.Background(), rewritten, uint64(len(src)))
	if err != nil {
		t.Errorf("%x: %v", wasm, err)
		return v
	}
	for _, line := range out.lines {
		if strings.Contains(line, errFuel.Error()) {
			return stopped
		}
	}
	return v
}

// broken makes a module and changes bytes of its code: each three of edits say where, and to what.
func broken(t *testing.T, src, edits []byte) []byte {
	t.Helper()
	wasm := Generate(src, Options{Short: true})
	m, err := binary.Parse(bytes.Clone(wasm))
	if err != nil {
		t.Fatal(err)
	}
	for ; len(edits) >= 3; edits = edits[3:] {
		at := int(edits[0])<<8 | int(edits[1])
		body := m.Bodies[at%len(m.Bodies)]
		wasm[body.Offset+at/len(m.Bodies)%len(body.Code)] = edits[2]
	}
	return wasm
}

// verdict is what became of bytes.
type verdict string

const (
	unreadable verdict = "unreadable" // the decoder refused them
	invalid    verdict = "invalid"    // the engine did
	valid      verdict = "valid"
	stopped    verdict = "out of fuel"
)

// growth bounds how many times longer a module gets.
const growth = 40

// judge rewrites bytes. What the engine takes before, it must take after, and the other way round: what is added must be out
// of reach of what was there. What is written is in proportion to what was read.
func (m *machine) judge(t *testing.T, wasm []byte) verdict {
	t.Helper()
	parsed, err := binary.Parse(wasm)
	if err != nil {
		return unreadable
	}
	plain, rewritten, err := rewrite(parsed)
	if err != nil {
		return unreadable
	}
	if most := growth*len(wasm) + 4096; len(rewritten.wasm) > most {
		t.Errorf("%d bytes became %d", len(wasm), len(rewritten.wasm))
	}
	before, after := m.takes(plain.wasm), m.takes(rewritten.wasm)
	if (before == nil) != (after == nil) {
		t.Errorf("%x: the engine says before: %v\nafter: %v", wasm, before, after)
	}
	if before != nil {
		return invalid
	}
	return valid
}

// takes says what the engine thinks of a module.
func (m *machine) takes(wasm []byte) error {
	compiled, err := m.runtime.CompileModule(context.Background(), wasm)
	if err != nil {
		return err
	}
	return compiled.Close(context.Background())
}
