package wasmgen

import (
	"bytes"
	"context"
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

// FuzzBytes rewrites what need not be a module. What the engine takes before, it must take after, and the other way round:
// what is added must be out of reach. What is written is in proportion to what was read.
func FuzzBytes(f *testing.F) {
	for seed := range uint64(16) {
		f.Add(Generate(Bytes(seed, 100+int(seed)*30), optionsOf(seed)))
	}
	for _, wasm := range smithFiles(f) {
		f.Add(wasm)
	}
	m := newMachine(f, "interpreter", wazero.NewRuntimeConfigInterpreter())
	f.Fuzz(func(t *testing.T, wasm []byte) {
		if len(wasm) > 1<<16 {
			return
		}
		parsed, err := binary.Parse(bytes.Clone(wasm))
		if err != nil {
			return
		}
		plain, rewritten, err := rewrite(parsed)
		if err != nil {
			return
		}
		if most := growth*len(wasm) + 4096; len(rewritten.wasm) > most {
			t.Errorf("%d bytes became %d", len(wasm), len(rewritten.wasm))
		}
		before, after := m.takes(plain.wasm), m.takes(rewritten.wasm)
		if (before == nil) != (after == nil) {
			t.Errorf("the engine says before: %v\nafter: %v", before, after)
		}
	})
}

// growth bounds how many times longer a module gets.
const growth = 40

// takes says what the engine thinks of a module.
func (m *machine) takes(wasm []byte) error {
	compiled, err := m.runtime.CompileModule(context.Background(), wasm)
	if err != nil {
		return err
	}
	return compiled.Close(context.Background())
}
