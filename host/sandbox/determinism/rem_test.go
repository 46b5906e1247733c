package determinism

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/sandbox/rewriter"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// remainder is one of the four instructions, and what it must give.
type remainder struct {
	name, code string
	kind       byte
	of         func(a, b uint64) uint64
}

var remainders = []remainder{
	{"i32.rem_s", "\x6f", w.I32, func(a, b uint64) uint64 { return uint64(uint32(int32(int64(int32(a)) % int64(int32(b))))) }},
	{"i32.rem_u", "\x70", w.I32, func(a, b uint64) uint64 { return uint64(uint32(a) % uint32(b)) }},
	{"i64.rem_s", "\x81", w.I64, func(a, b uint64) uint64 {
		if int64(b) == -1 {
			return 0
		}
		return uint64(int64(a) % int64(b))
	}},
	{"i64.rem_u", "\x82", w.I64, func(a, b uint64) uint64 { return a % b }},
}

// word is the instructions on one of the two integer types.
type word struct{ add, mul, or, one, seven, xor string }

func (r *remainder) word() word {
	if r.kind == w.I32 {
		return word{"\x6a", "\x6c", "\x72", w.Const(1), w.Const(7), "\x73"}
	}
	return word{"\x7c", "\x7e", "\x84", "\x42\x01", "\x42\x07", "\x85"}
}

// pressure keeps live remainders at once and only then puts them together, so that a compiler runs out of registers in
// between. The last remainder is the last to be used, so its register is the first to be taken. wazero's compiler for
// arm64 holds the quotient in it, takes it for the test of a zero divisor, and reads it back from where it never was.
func (r *remainder) pressure(live int) w.Func {
	x := r.word()
	var code strings.Builder
	local := func(i int) uint32 { return uint32(2 + i) }
	for i := range live {
		// local i = (a + i) rem (b + i | 1)
		code.WriteString(w.Get(0) + r.number(i) + x.add + w.Get(1) + r.number(i) + x.add + x.one + x.or + r.code + set(local(i)))
	}
	code.WriteString(r.number(0))
	for i := range live {
		code.WriteString(x.seven + x.mul + w.Get(local(live-1-i)) + x.xor)
	}
	for i := range live {
		code.WriteString(x.seven + x.mul + w.Get(local(i)) + x.add)
	}
	kind := string(rune(r.kind))
	return w.Func{Export: fmt.Sprintf("%s %d", r.name, live), Params: kind + kind, Result: kind, Locals: strings.Repeat(kind, live), Code: code.String()}
}

func (r *remainder) number(i int) string {
	if r.kind == w.I32 {
		return w.Const(int32(i))
	}
	return "\x42" + w.S32(int32(i))
}

// expect is what pressure must give.
func (r *remainder) expect(live int, a, b uint64) uint64 {
	of := make([]uint64, live)
	for i := range of {
		of[i] = r.of(a+uint64(i), b+uint64(i)|1)
	}
	var sum uint64
	for i := range of {
		sum = sum*7 ^ of[live-1-i]
	}
	for i := range of {
		sum = sum*7 + of[i]
	}
	if r.kind == w.I32 {
		return uint64(uint32(sum))
	}
	return sum
}

// TestRemaindersUnderPressure computes remainders while registers are short. As it is, the compiler for arm64 gets them
// wrong; through the rewriter they must be right everywhere.
func TestRemaindersUnderPressure(t *testing.T) {
	const most = 48
	m := &w.Module{Pages: 1}
	for _, r := range remainders {
		for live := 1; live <= most; live++ {
			m.Funcs = append(m.Funcs, r.pressure(live))
		}
	}
	compiler, interpreter := onBoth(t, m.Bytes(), rewriter.Options{})
	plain, _ := onBoth(t, m.Bytes(), rewriter.Options{Plain: true})
	random := rand.New(rand.NewPCG(1, 2))
	operands := [][2]uint64{{100, 7}, {1 << 31, 1<<32 - 2}, {1 << 63, 1<<64 - 2}, {12345678901234567, 1000003}}
	for range 4 {
		operands = append(operands, [2]uint64{random.Uint64(), random.Uint64() >> random.IntN(60)})
	}
	cases, wrong := 0, 0
	for _, r := range remainders {
		for live := 1; live <= most; live++ {
			name := fmt.Sprintf("%s %d", r.name, live)
			for _, o := range operands {
				cases++
				want := r.expect(live, o[0], o[1])
				for _, g := range []*guest{compiler, interpreter} {
					if got := g.call(t, name, o[0], o[1]); got != want {
						t.Errorf("%s of %d and %d on the %s: %d, want %d", name, o[0], o[1], g.name, got, want)
					}
				}
				if plain.call(t, name, o[0], o[1]) != want {
					wrong++
				}
			}
		}
	}
	t.Logf("%d cases on %s; without the rewriter %d are wrong, with it none", cases, runtime.GOARCH, wrong)
	switch {
	case runtime.GOARCH == "amd64" && wrong > 0:
		t.Error("they are wrong on amd64")
	case runtime.GOARCH == "arm64" && wrong == 0:
		t.Error("none is wrong on arm64: the compiler is right now, or this shape does not show it any more")
	}
}
