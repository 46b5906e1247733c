package determinism

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/sandbox/rewriter"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// Locals of a random function: floats of each type, of which the first ones are parameters, and counters of loops.
const (
	floatParams = 2
	floatLocals = 6 // besides parameters
	counters    = 8
	maxNesting  = 4
	showAt      = 512 // where a function leaves its locals
)

// writer writes a random function on floats.
type writer struct {
	r       *rand.Rand
	b       strings.Builder
	left    int // how many instructions may still follow
	nesting int
	labels  int // blocks without a result that can be left
}

func (x *writer) put(parts ...string) {
	x.left--
	for _, p := range parts {
		x.b.WriteString(p)
	}
}

// local is a random float local.
func (x *writer) local(f *floatType) uint32 {
	if n := uint32(x.r.IntN(floatParams + floatLocals)); n < floatParams {
		return n + floatParams*f.number()
	} else {
		return 2*floatParams + floatLocals*f.number() + n - floatParams
	}
}

func firstCounter() uint32 { return 2 * (floatParams + floatLocals) }

func (x *writer) address() uint32 { return uint32(8 * x.r.IntN(32)) }

func (x *writer) float(f *floatType) *floatType {
	if x.r.IntN(4) > 0 {
		return f
	}
	return map[*floatType]*floatType{single: double, double: single}[f]
}

var unary = []string{"ceil", "floor", "trunc", "nearest", "sqrt", "abs", "neg"}

var binaries = []string{"add", "sub", "mul", "div", "min", "max", "add", "mul", "copysign"}

// expression leaves a float.
func (x *writer) expression(f *floatType, depth int) {
	if depth == 0 || x.left <= 0 {
		x.leaf(f)
		return
	}
	switch x.r.IntN(12) {
	case 0, 1, 2, 3:
		x.expression(f, depth-1)
		x.expression(f, depth-1)
		x.put(f.op(binaries[x.r.IntN(len(binaries))]))
	case 4:
		x.expression(f, depth-1)
		x.put(f.op(unary[x.r.IntN(len(unary))]))
	case 5:
		x.expression(f, depth-1)
		x.expression(f, depth-1)
		x.condition(f, depth-1)
		x.put("\x1b")
	case 6:
		x.expression(f, depth-1)
		x.put(tee(x.local(f)))
	case 7:
		other := map[*floatType]*floatType{single: double, double: single}[f]
		x.expression(other, depth-1)
		x.put(map[*floatType]string{single: "\xb6", double: "\xbb"}[f])
	case 8:
		x.block(f, depth)
	case 9:
		x.condition(f, depth-1)
		x.put("\x04", string(rune(f.value)))
		x.inside(func() { x.expression(f, depth-1) })
		x.put("\x05")
		x.inside(func() { x.expression(f, depth-1) })
		x.put(w.End)
	case 10:
		x.expression(f, depth-1)
		x.put(w.Call(fnSame + f.number()))
	default:
		x.leaf(f)
	}
}

// inside writes what stands in a block with a result: it cannot leave blocks around it.
func (x *writer) inside(body func()) {
	labels := x.labels
	x.labels = 0
	body()
	x.labels = labels
}

// block is one with a result that may be left in its middle.
func (x *writer) block(f *floatType, depth int) {
	x.put("\x02", string(rune(f.value)))
	x.inside(func() {
		x.expression(f, depth-1)
		x.condition(f, depth-1)
		x.put("\x0d\x00")
		if x.r.IntN(2) == 0 {
			x.put("\x1a")
			x.expression(f, depth-1)
		}
	})
	x.put(w.End)
}

func (x *writer) leaf(f *floatType) {
	switch x.r.IntN(8) {
	case 0:
		x.put(f.constant, f.literal(f.operand(x.r.IntN(len(operands32)))))
	case 1:
		x.put(w.Const(0), f.load, w.U32(x.address()))
	case 2:
		x.put("\x23", w.U32(f.number()))
	default:
		x.put(w.Get(x.local(f)))
	}
}

// condition leaves an i32: of a comparison, or of the bits of a float.
func (x *writer) condition(f *floatType, depth int) {
	if x.r.IntN(3) == 0 {
		x.expression(f, max(depth-1, 0))
		x.put(f.toBits, f.narrow(), w.Const(1<<x.r.IntN(23)), "\x71")
		return
	}
	x.expression(f, max(depth-1, 0))
	x.expression(f, max(depth-1, 0))
	first := map[*floatType]byte{single: 0x5b, double: 0x61}[f]
	x.put(string([]byte{first + byte(x.r.IntN(6))}))
}

// statements change locals, globals and memory.
func (x *writer) statements(n int) {
	for ; n > 0 && x.left > 0; n-- {
		f := x.float(single)
		switch x.r.IntN(10) {
		case 0, 1, 2, 3:
			x.expression(f, 3)
			x.put(set(x.local(f)))
		case 4:
			x.put(w.Const(0))
			x.expression(f, 2)
			x.put(f.store, w.U32(x.address()))
		case 5:
			x.expression(f, 2)
			x.put("\x24", w.U32(f.number()))
		case 6:
			if x.nesting == maxNesting {
				continue
			}
			x.condition(f, 2)
			x.nest("\x04\x40", func() {
				x.statements(3)
				if x.r.IntN(2) == 0 {
					x.put("\x05")
					x.statements(3)
				}
			})
		case 7:
			x.nest("\x02\x40", func() { x.statements(4) })
		case 8:
			x.loop()
		case 9:
			if x.labels > 0 {
				x.condition(f, 1)
				x.put("\x0d", w.U32(uint32(x.r.IntN(x.labels))))
			}
		}
	}
}

func (x *writer) nest(begin string, body func()) {
	if x.nesting == maxNesting {
		return
	}
	x.nesting++
	x.labels++
	x.put(begin)
	body()
	x.put(w.End)
	x.labels--
	x.nesting--
}

// loop runs its body three times; around the loop stands a block, so that a branch never goes back to its start.
func (x *writer) loop() {
	counter := firstCounter() + uint32(x.nesting)
	x.nest("\x02\x40", func() {
		x.put(w.Const(0), set(counter), w.Loop)
		labels := x.labels
		x.labels = 0
		x.statements(4)
		x.labels = labels
		x.put(w.Get(counter), w.Const(1), w.Add, tee(counter), w.Const(3), "\x48\x0d\x00", w.End)
	})
}

// randomModule has n functions, named by their number, each of which leaves its locals in memory.
func randomModule(seed uint64, n int) []byte {
	m := seenModule()
	m.Funcs = m.Funcs[:fnBits]
	m.Table, m.Elements = 0, 0
	for i := range n {
		x := &writer{r: rand.New(rand.NewPCG(seed, uint64(i))), left: 400}
		x.statements(12)
		for _, f := range []*floatType{single, double} {
			for l := range uint32(floatParams + floatLocals) {
				at := showAt + 8*(l+f.number()*(floatParams+floatLocals))
				if l < floatParams {
					l += floatParams * f.number()
				} else {
					l += floatParams + floatLocals*f.number()
				}
				x.put(w.Const(0), w.Get(l), f.store, w.U32(at))
			}
		}
		m.Funcs = append(m.Funcs, w.Func{
			Export: fmt.Sprint(i), Params: "\x7d\x7d\x7c\x7c", Code: x.b.String(),
			Locals: strings.Repeat("\x7d", floatLocals) + strings.Repeat("\x7c", floatLocals) + strings.Repeat("\x7f", counters),
		})
	}
	return m.Bytes()
}

// TestRandomFloatCode runs random functions on floats, in which bits of NaNs decide about branches and reach memory. In the
// last seeds the compiler for amd64 lost the second operand of a select, or a sign, before both were written otherwise.
func TestRandomFloatCode(t *testing.T) {
	seeds, functions := []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1029, 1037, 1077, 1104}, 45
	if testing.Short() {
		seeds = seeds[:2]
	}
	g := golden{name: "random.txt"}
	runs, differed := 0, 0
	for _, seed := range seeds {
		wasm := randomModule(seed, functions)
		compiler, interpreter := onBoth(t, wasm, rewriter.Options{})
		plain, other := onBoth(t, wasm, rewriter.Options{Plain: true})
		h := newDigest()
		for i := range functions {
			for round := range 4 {
				runs++
				run := func(g *guest) string { return runRandom(t, g, i, round) }
				got, want := run(compiler), run(interpreter)
				if got != want {
					t.Errorf("seed %d, function %d, round %d: the engines differ at bytes %v of memory", seed, i, round, differences(got, want))
				}
				if run(plain) != run(other) {
					differed++
				}
				h.Write([]byte(got))
			}
		}
		g.add("seed %d: %s", seed, digest(h))
	}
	t.Logf("%d runs; without the rewriter compiler and interpreter differ in %d, with it in none", runs, differed)
	if differed < runs/20 {
		t.Errorf("only %d differences without the rewriter", differed)
	}
	g.check(t)
}

// runRandom runs one function on new operands in memory and returns what the memory then holds. Globals keep what the
// function before left in them.
func runRandom(t *testing.T, g *guest, function, round int) string {
	r := rand.New(rand.NewPCG(uint64(function), uint64(round)))
	for addr := uint32(0); addr < 256; addr += 8 {
		f := single
		if addr >= 128 {
			f = double
		}
		g.put(addr, f.operand(r.IntN(len(operands32))))
	}
	bits := func(f *floatType) uint64 { return f.operand(r.IntN(len(operands32))) }
	g.call(t, fmt.Sprint(function), bits(single), bits(single), bits(double), bits(double))
	memory, _ := g.mod.Memory().Read(0, 1024)
	return string(memory)
}

func differences(a, b string) []int {
	var at []int
	for i := range a {
		if a[i] != b[i] {
			at = append(at, i)
		}
	}
	return at
}
