package determinism

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/sandbox/rewriter"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// pressed is an instruction whose operands come out of memory and out of a call, while many vectors are kept.
type pressed struct {
	name  string
	code  string // of vectors on the stack to a vector
	arity int
}

// pressedOps are the instructions that compilers were found to get wrong, or may, by what is known of them.
func pressedOps() []pressed {
	simd := func(op uint32) string { return "\xfd" + w.U32(op) }
	scalar := func(f *floatType, code string, arity int) string {
		// of lane 0 of each vector; its result in all lanes
		if arity == 1 {
			return f.extract + "\x00" + code + f.splat
		}
		return set(1) + f.extract + "\x00" + w.Get(1) + f.extract + "\x00" + code + f.splat
	}
	return []pressed{
		{"v128.bitselect", simd(82), 3},
		{"i64x2.mul", simd(213), 2},
		{"f32x4.min", simd(232), 2},
		{"f32x4.max", simd(233), 2},
		{"f64x2.min", simd(244), 2},
		{"f64x2.max", simd(245), 2},
		{"i8x16.popcnt", simd(98), 1},
		{"f32x4.replace_lane", set(1) + w.Get(1) + single.extract + "\x01" + single.replaceLane + "\x02", 2},
		{"f64x2.replace_lane 0", set(1) + w.Get(1) + double.extract + "\x01" + double.replaceLane + "\x00", 2},
		{"f64x2.replace_lane 1", set(1) + w.Get(1) + double.extract + "\x00" + double.replaceLane + "\x01", 2},
		{"f32.copysign", scalar(single, "\x98", 2), 2},
		{"f64.copysign", scalar(double, "\xa6", 2), 2},
		{"f32.min", scalar(single, "\x96", 2), 2},
		{"f64.max", scalar(double, "\xa5", 2), 2},
		{"f64.convert_i64_u", "\xfd\x1d\x00" + "\xba" + double.splat, 1},
		{"f32.convert_i64_u", "\xfd\x1d\x01" + "\xb5" + single.splat, 1},
		{"i8x16.shr_s", w.Const(3) + simd(108), 1},
		{"i64x2.shr_s", w.Const(7) + simd(204), 1},
		{"i32x4.trunc_sat_f32x4_u", simd(249), 1},
		{"f32x4.convert_i32x4_u", simd(251), 1},
		{"i64x2.abs", simd(192), 1},
		{"i8x16.swizzle", simd(14), 2},
		{"i32x4.dot_i16x8_s", simd(186), 2},
		{"i16x8.q15mulr_sat_s", simd(130), 2},
	}
}

// pressure keeps live vectors while the instruction's operands are loaded, passed to a function, and used. order turns
// them around; again uses them once more behind it.
func (p pressed) pressure(live, order int, again bool) w.Func {
	const operand, kept = 2, 5
	get := func(i int) string { return w.Get(operand + uint32(i+order)%3) }
	code := ""
	for i := range live {
		code += w.Const(0) + vectorLoad + w.U32(uint32(16*(i+3))) + set(kept+uint32(i))
	}
	code += w.Const(0) + vectorLoad + w.U32(0) + set(operand) + w.Const(0) + vectorLoad + w.U32(16) + set(operand+1)
	code += w.Get(operand) + w.Call(0) + set(operand+2)
	code += w.Const(0)
	for i := range p.arity {
		code += get(i)
	}
	code += p.code + vectorStore + w.U32(1024)
	if again {
		code += w.Const(0) + w.Get(operand) + w.Get(operand+1) + "\xfd\x51" + w.Get(operand+2) + "\xfd\x51" + vectorStore + w.U32(1040)
	}
	for i := range live {
		code += w.Const(0) + w.Get(kept+uint32(i)) + vectorStore + w.U32(uint32(1056+16*i))
	}
	name := fmt.Sprintf("%s %d %d %t", p.name, live, order, again)
	return w.Func{Export: name, Params: "\x7f", Locals: strings.Repeat("\x7b", 4+live), Code: code}
}

// TestUnderPressure compares instructions under pressure on both engines and with the digests.
func TestUnderPressure(t *testing.T) {
	g := golden{name: "pressure.txt"}
	runs, differed := 0, 0
	for i, p := range pressedOps() {
		if !picked(i, 6) {
			continue
		}
		m := &w.Module{Pages: 1, Funcs: []w.Func{{Params: "\x7b", Result: "\x7b", Code: w.Get(0) + w.Get(0) + "\xfd\xae\x01"}}}
		for _, live := range []int{0, 7, 11, 12, 13, 14, 15, 16, 24} {
			for order := range 3 {
				m.Funcs = append(m.Funcs, p.pressure(live, order, false), p.pressure(live, order, true))
			}
		}
		compiler, interpreter := onBoth(t, m.Bytes(), rewriter.Options{})
		plain, other := onBoth(t, m.Bytes(), rewriter.Options{Plain: true})
		h := newDigest()
		for _, f := range m.Funcs[1:] {
			for round := range 3 {
				runs++
				run := func(g *guest) string { return runPressed(t, g, f.Export, round) }
				got, want := run(compiler), run(interpreter)
				if got != want {
					t.Errorf("%s, round %d: the engines differ at bytes %v", f.Export, round, differences(got, want))
				}
				if run(plain) != run(other) {
					differed++
				}
				h.Write([]byte(got))
			}
		}
		g.add("%s: %s", p.name, digest(h))
	}
	t.Logf("%d runs; without the rewriter compiler and interpreter differ in %d, with it in none", runs, differed)
	g.check(t)
}

// runPressed runs one function on a memory that the round decides, and returns what it wrote.
func runPressed(t *testing.T, g *guest, name string, round int) string {
	x := uint64(round) + 1
	for addr := uint32(0); addr < 2048; addr += 8 {
		x = x*6364136223846793005 + 1442695040888963407
		v := x
		if addr >= 1024 {
			v = 0
		} else if round == 1 {
			v = double.operand(int(x>>33) % len(operands64))
		}
		g.put(addr, v)
	}
	g.call(t, name, 0)
	memory, _ := g.mod.Memory().Read(1024, 1024)
	return string(memory)
}
