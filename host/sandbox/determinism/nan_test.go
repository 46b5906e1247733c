package determinism

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/sandbox/rewriter"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// Addresses of operands and results in the guest's memory.
const (
	addrA      = 0
	addrB      = 16
	addrResult = 32
)

// form is a way to hand operands to an instruction: engines choose different machine instructions for them.
type form struct {
	name string
	// module has a function for the instruction under its name.
	function func(o op) w.Func
	ops      []op
	// apply runs the instruction on operands by their positions and appends the bits of the results.
	apply func(t *testing.T, g *guest, o op, pairs [][2]int, out []uint64) []uint64
}

func forms() []form {
	return []form{
		{"registers", inRegisters, scalarOps(), applyRegisters},
		{"memory", inMemory, scalarOps(), applyMemory},
		{"register and memory", inBoth, scalarOps(), applyBoth},
		{"vector", vectorInMemory, vectorOps(), applyVector},
		{"vector in registers", vectorInRegisters, vectorOps(), applyVector},
	}
}

// inRegisters takes the bits of the operands as parameters and returns the bits of the result.
func inRegisters(o op) w.Func {
	var code strings.Builder
	for i := range o.arity {
		code.WriteString(w.Get(uint32(i)) + o.from.fromBits)
	}
	return w.Func{
		Export: o.name, Params: strings.Repeat(string(rune(o.from.bits)), o.arity), Result: string(rune(o.to.bits)),
		Code: code.String() + o.code + o.to.toBits,
	}
}

func applyRegisters(t *testing.T, g *guest, o op, pairs [][2]int, out []uint64) []uint64 {
	for _, p := range pairs {
		out = append(out, g.call(t, o.name, o.from.operand(p[0]), o.from.operand(p[1])))
	}
	return out
}

// inMemory loads the operands and stores the result.
func inMemory(o op) w.Func {
	code := w.Const(0)
	for i := range o.arity {
		code += w.Const(0) + o.from.load + w.U32(uint32(addrB*i))
	}
	return w.Func{Export: o.name, Code: code + o.code + o.to.store + w.U32(addrResult)}
}

func applyMemory(t *testing.T, g *guest, o op, pairs [][2]int, out []uint64) []uint64 {
	for _, p := range pairs {
		g.put(addrA, o.from.operand(p[0]))
		g.put(addrB, o.from.operand(p[1]))
		g.call(t, o.name)
		out = append(out, g.result(o.to, 0))
	}
	return out
}

// inBoth takes the first operand in a register and loads the second one.
func inBoth(o op) w.Func {
	code := w.Const(0) + w.Get(0)
	if o.arity == 2 {
		code += w.Const(0) + o.from.load + w.U32(addrB)
	}
	return w.Func{Export: o.name, Params: string(rune(o.from.value)), Code: code + o.code + o.to.store + w.U32(addrResult)}
}

func applyBoth(t *testing.T, g *guest, o op, pairs [][2]int, out []uint64) []uint64 {
	for _, p := range pairs {
		g.put(addrB, o.from.operand(p[1]))
		g.call(t, o.name, o.from.operand(p[0]))
		out = append(out, g.result(o.to, 0))
	}
	return out
}

const (
	vectorLoad  = "\xfd\x00\x04"
	vectorStore = "\xfd\x0b\x04"
)

func vectorInMemory(o op) w.Func {
	code := w.Const(0)
	for i := range o.arity {
		code += w.Const(0) + vectorLoad + w.U32(uint32(addrB*i))
	}
	return w.Func{Export: o.name, Code: code + o.code + vectorStore + w.U32(addrResult)}
}

func vectorInRegisters(o op) w.Func {
	code := ""
	for i := range o.arity {
		code += w.Const(0) + vectorLoad + w.U32(uint32(addrB*i)) + "\x21" + w.U32(uint32(i))
	}
	code += w.Const(0)
	for i := range o.arity {
		code += w.Get(uint32(i))
	}
	return w.Func{Export: o.name, Locals: "\x7b\x7b", Code: code + o.code + vectorStore + w.U32(addrResult)}
}

// applyVector puts as many pairs into one vector as it has lanes. A widening instruction takes those of the lower half.
func applyVector(t *testing.T, g *guest, o op, pairs [][2]int, out []uint64) []uint64 {
	lanes := min(o.from.lanes, o.to.lanes)
	size := uint32(o.from.size())
	for at := 0; at < len(pairs); at += lanes {
		for l := range lanes {
			p := pairs[(at+l)%len(pairs)]
			g.put(addrA+size*uint32(l), o.from.operand(p[0]))
			g.put(addrB+size*uint32(l), o.from.operand(p[1]))
		}
		g.call(t, o.name)
		for l := range min(lanes, len(pairs)-at) {
			out = append(out, g.result(o.to, l))
		}
	}
	return out
}

// put writes bits, also into what lies behind a narrow operand.
func (g *guest) put(addr uint32, bits uint64) { g.mod.Memory().WriteUint64Le(addr, bits) }

func (g *guest) result(f *floatType, lane int) uint64 {
	if f == single {
		v, _ := g.mod.Memory().ReadUint32Le(uint32(addrResult + 4*lane))
		return uint64(v)
	}
	v, _ := g.mod.Memory().ReadUint64Le(uint32(addrResult + 8*lane))
	return v
}

// pairsOf are all operands of an instruction.
func pairsOf(arity int) [][2]int {
	var pairs [][2]int
	for a := range operands32 {
		if arity == 1 {
			pairs = append(pairs, [2]int{a, 0})
			continue
		}
		for b := range operands32 {
			pairs = append(pairs, [2]int{a, b})
		}
	}
	return pairs
}

// TestNaNTable runs every instruction on floats on operands of every kind. Without the rewriter the engines must differ,
// and in nothing but the bits of NaNs; with it no bit may differ, from the digests neither, and a result that is no NaN,
// or whose bits WebAssembly determines, is the same with it and without it.
func TestNaNTable(t *testing.T) {
	g := golden{name: "nan.txt"}
	cases, differed := 0, 0
	for _, f := range forms() {
		var funcs []w.Func
		for _, o := range f.ops {
			funcs = append(funcs, f.function(o))
		}
		wasm := (&w.Module{Funcs: funcs, Pages: 1}).Bytes()
		plain := func() (a, b *guest) { return onBoth(t, wasm, rewriter.Options{Plain: true}) }
		plainCompiler, plainInterpreter := plain()
		compiler, interpreter := onBoth(t, wasm, rewriter.Options{})
		for _, o := range f.ops {
			pairs := pairsOf(o.arity)
			raw := f.apply(t, plainCompiler, o, pairs, nil)
			other := f.apply(t, plainInterpreter, o, pairs, nil)
			got := f.apply(t, compiler, o, pairs, nil)
			want := f.apply(t, interpreter, o, pairs, nil)
			h := newDigest()
			for i, p := range pairs {
				where := fmt.Sprintf("%s (%s) of %x and %x", o.name, f.name, o.from.operand(p[0]), o.from.operand(p[1]))
				cases++
				if raw[i] != other[i] {
					differed++
					if !o.to.isNaN(raw[i]) || !o.to.isNaN(other[i]) || o.exact {
						t.Errorf("%s: %x on the compiler, %x on the interpreter, and not for a NaN", where, raw[i], other[i])
					}
				}
				switch {
				case got[i] != want[i]:
					t.Errorf("%s: %x on the compiler, %x on the interpreter", where, got[i], want[i])
				case got[i] != raw[i] && (o.exact || !o.to.isNaN(got[i]) || !o.to.isNaN(raw[i])):
					t.Errorf("%s: %x, without the rewriter %x", where, got[i], raw[i])
				}
				h.Write(binary.LittleEndian.AppendUint64(nil, got[i]))
			}
			g.add("%s, %s, %d cases: %s", o.name, f.name, len(pairs), digest(h))
		}
	}
	t.Logf("%d cases; without the rewriter compiler and interpreter differ in %d, with it in none", cases, differed)
	if cases < 13_575 || differed < 300 {
		t.Errorf("%d cases, %d differences without the rewriter: too few to show anything", cases, differed)
	}
	g.check(t)
}
