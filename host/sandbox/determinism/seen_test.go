package determinism

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/sandbox/rewriter"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// Functions that ways of seeing use, by type: show(T) bits, same(T) T, nothing().
const (
	fnShow = 0 // and 1
	fnSame = 2 // and 3
	fnNop  = 4
	fnBits = 5 // and 6: only a type, bits to bits
)

// Locals of a function that shows a result: behind the two parameters.
const (
	locFloat = 2
	locOther = 3
	locBits  = 4
	locCount = 5
	locVec   = 6
)

// number is which of the two types it is.
func (f *floatType) number() uint32 {
	if f == single {
		return 0
	}
	return 1
}

func (f *floatType) op(name string) string {
	for _, o := range scalarOps() {
		if o.name == f.name+"."+name {
			return o.code
		}
	}
	return ""
}

func (f *floatType) one() string {
	if f == single {
		return f.constant + f.literal(0x3f800000)
	}
	return f.constant + f.literal(0x3ff0000000000000)
}

func (f *floatType) xor() string {
	if f == single {
		return "\x73"
	}
	return "\x85"
}

// widen makes an i32 the bits' type.
func (f *floatType) widen() string {
	if f == single {
		return ""
	}
	return "\xad"
}

// narrow makes bits an i32.
func (f *floatType) narrow() string {
	if f == single {
		return ""
	}
	return "\xa7"
}

// way turns code that leaves a float into code that leaves its bits, or bits that depend on them.
type way struct {
	name  string
	exact bool // it only moves bits
	code  func(f *floatType, x string) string
}

func set(l uint32) string { return "\x21" + w.U32(l) }
func tee(l uint32) string { return "\x22" + w.U32(l) }

func ways() []way {
	block := func(f *floatType, body string) string { return "\x02" + string(rune(f.value)) + body + w.End }
	if2 := func(f *floatType, cond, yes, no string) string {
		return cond + "\x04" + string(rune(f.value)) + yes + "\x05" + no + w.End
	}
	low := func(f *floatType) string { return w.Get(0) + f.narrow() + w.Const(1) + "\x71" }
	loaded := func(f *floatType) string { return w.Const(0) + f.load + w.U32(addrA) }
	loop := func(body string) string {
		return w.Const(0) + set(locCount) + w.Loop + body +
			w.Get(locCount) + w.Const(1) + w.Add + tee(locCount) + w.Const(3) + "\x48\x0d\x00" + w.End
	}
	inMem := func(f *floatType, v string) string {
		return w.Const(0) + v + vectorStore + w.U32(addrResult) + w.Const(0) + f.bitsLoad + w.U32(addrResult)
	}
	return []way{
		{"reinterpreted", true, func(f *floatType, x string) string { return x + f.toBits }},
		{"stored", true, func(f *floatType, x string) string {
			return w.Const(0) + x + f.store + "\x20" + w.Const(0) + f.bitsLoad + "\x20"
		}},
		{"stored and loaded", true, func(f *floatType, x string) string {
			return w.Const(0) + x + f.store + "\x20" + w.Const(0) + f.load + "\x20" + f.toBits
		}},
		{"negated", true, func(f *floatType, x string) string { return x + f.op("neg") + f.toBits }},
		{"absolute", true, func(f *floatType, x string) string { return x + f.op("abs") + f.toBits }},
		{"with another sign", true, func(f *floatType, x string) string { return x + f.one() + f.op("copysign") + f.toBits }},
		{"as a sign", true, func(f *floatType, x string) string { return f.one() + x + f.op("copysign") + f.toBits }},
		{"in a local", true, func(f *floatType, x string) string { return x + set(locFloat) + w.Get(locFloat) + f.toBits }},
		{"in a copied local", true, func(f *floatType, x string) string {
			return x + set(locFloat) + w.Get(locFloat) + set(locOther) + w.Get(locOther) + f.toBits
		}},
		{"left by tee", true, func(f *floatType, x string) string { return x + tee(locFloat) + f.toBits }},
		{"by tee and get", true, func(f *floatType, x string) string {
			return x + tee(locFloat) + f.toBits + set(locBits) + w.Get(locFloat) + f.op("neg") + f.toBits + w.Get(locBits) + f.xor()
		}},
		{"in a local that is added to", false, func(f *floatType, x string) string {
			return x + set(locFloat) + w.Get(locFloat) + w.Get(locFloat) + f.op("add") + tee(locOther) + "\x1a" + w.Get(locOther) + f.toBits
		}},
		{"in a global", true, func(f *floatType, x string) string {
			return x + "\x24" + w.U32(f.number()) + "\x23" + w.U32(f.number()) + f.toBits
		}},
		{"as a parameter", true, func(f *floatType, x string) string { return x + w.Call(fnShow+f.number()) }},
		{"as a result", true, func(f *floatType, x string) string { return x + w.Call(fnSame+f.number()) + f.toBits }},
		{"as a parameter by table", true, func(f *floatType, x string) string {
			return x + w.Const(int32(fnShow+f.number())) + "\x11" + w.U32(fnShow+f.number()) + "\x00"
		}},
		{"below a call", true, func(f *floatType, x string) string { return x + w.Call(fnNop) + f.toBits }},
		{"below a block", true, func(f *floatType, x string) string { return x + "\x02\x40" + w.Call(fnNop) + w.End + f.toBits }},
		{"below a loop", true, func(f *floatType, x string) string { return x + loop("") + f.toBits }},
		{"out of a block", true, func(f *floatType, x string) string { return block(f, x) + f.toBits }},
		{"by a branch", true, func(f *floatType, x string) string { return block(f, x+w.Br0) + f.toBits }},
		{"by a branch over values", true, func(f *floatType, x string) string { return block(f, f.one()+x+w.Br0) + f.toBits }},
		{"by a branch taken", true, func(f *floatType, x string) string { return block(f, x+w.Const(1)+"\x0d\x00") + f.toBits }},
		{"by a branch not taken", true, func(f *floatType, x string) string { return block(f, x+w.Const(0)+"\x0d\x00") + f.toBits }},
		{"by a branch to the second block", true, func(f *floatType, x string) string {
			return block(f, block(f, x+w.Const(1)+"\x0d\x01")+f.op("neg")) + f.toBits
		}},
		{"by a table of branches", true, func(f *floatType, x string) string {
			return block(f, block(f, x+w.Get(0)+f.narrow()+"\x0e\x01\x00\x01")+f.op("neg")) + f.toBits
		}},
		{"by if", true, func(f *floatType, x string) string { return if2(f, low(f), x, f.one()) + f.toBits }},
		{"by else", true, func(f *floatType, x string) string { return if2(f, low(f), loaded(f), x) + f.toBits }},
		{"into a block", true, func(f *floatType, x string) string {
			return x + "\x02" + w.U32(fnSame+f.number()) + f.op("neg") + w.End + f.toBits
		}},
		{"into a loop", true, func(f *floatType, x string) string { return x + "\x03" + w.U32(fnSame+f.number()) + w.End + f.toBits }},
		{"into a loop again", true, func(f *floatType, x string) string {
			return w.Const(0) + set(locCount) + x + "\x03" + w.U32(fnSame+f.number()) + f.op("neg") +
				w.Get(locCount) + w.Const(1) + w.Add + tee(locCount) + w.Const(3) + "\x48\x0d\x00" + w.End + f.toBits
		}},
		{"selected", true, func(f *floatType, x string) string { return x + f.one() + low(f) + "\x1b" + f.toBits }},
		{"selected by type", true, func(f *floatType, x string) string {
			return f.one() + x + low(f) + "\x1c\x01" + string(rune(f.value)) + f.toBits
		}},
		{"added up in a loop", false, func(f *floatType, x string) string {
			return x + set(locFloat) + loop(w.Get(locFloat)+w.Get(locFloat)+f.op("add")+set(locFloat)) + w.Get(locFloat) + f.toBits
		}},
		{"seen in a loop before it is set", true, func(f *floatType, x string) string {
			return loop(w.Get(locFloat)+f.toBits+w.Get(locBits)+f.xor()+set(locBits)+x+set(locFloat)) + w.Get(locBits)
		}},
		{"in a local that may be loaded", true, func(f *floatType, x string) string {
			return loaded(f) + set(locFloat) + low(f) + "\x04\x40" + x + set(locFloat) + w.End + w.Get(locFloat) + f.toBits
		}},
		{"in a copy of what may be loaded", true, func(f *floatType, x string) string {
			return x + set(locOther) + loaded(f) + set(locFloat) + low(f) + "\x04\x40" + w.Get(locOther) + set(locFloat) + w.End +
				w.Get(locFloat) + set(locOther) + w.Get(locOther) + f.toBits
		}},
		{"in swapped locals", true, func(f *floatType, x string) string {
			return x + set(locFloat) + loaded(f) + set(locOther) + w.Get(locFloat) + w.Get(locOther) + set(locFloat) + set(locOther) +
				w.Get(locFloat) + f.toBits + w.Get(locOther) + f.op("neg") + f.toBits + f.xor()
		}},
		{"in a local and a constant", true, func(f *floatType, x string) string {
			return f.one() + set(locFloat) + low(f) + "\x04\x40" + x + set(locFloat) + w.End + w.Get(locFloat) + f.toBits
		}},
		{"converted there and back", false, func(f *floatType, x string) string {
			if f == single {
				return x + "\xbb\xb6" + f.toBits
			}
			return x + "\xb6\xbb" + f.toBits
		}},
		{"compared", true, func(f *floatType, x string) string {
			return x + tee(locFloat) + w.Get(locFloat) + map[*floatType]string{single: "\x5b", double: "\x61"}[f] + f.widen()
		}},
		{"in all lanes", true, func(f *floatType, x string) string { return inMem(f, x+f.splat) }},
		{"in one lane", true, func(f *floatType, x string) string {
			return w.Get(locVec) + x + f.replaceLane + "\x01" + f.extract + "\x01" + f.toBits
		}},
		{"behind a dead end", true, func(f *floatType, x string) string {
			return block(f, x+w.Br0+x+f.op("add")) + f.toBits
		}},
	}
}

// maker makes a float of two operands' bits, parameters 0 and 1.
type maker struct {
	name string
	move bool // it is the first operand, untouched
	code func(f *floatType) string
}

func makers() []maker {
	operand := func(f *floatType, i uint32) string { return w.Get(i) + f.fromBits }
	binary := func(name string) maker {
		return maker{name, false, func(f *floatType) string { return operand(f, 0) + operand(f, 1) + f.op(name) }}
	}
	return []maker{
		{"a move", true, func(f *floatType) string { return operand(f, 0) }},
		binary("add"), binary("div"), binary("max"),
		{"sqrt", false, func(f *floatType) string { return operand(f, 0) + f.op("sqrt") }},
		{"a conversion", false, func(f *floatType) string {
			if f == single {
				return operand(f, 0) + "\xbb\xb6"
			}
			return operand(f, 0) + "\xb6\xbb"
		}},
		{"an addition of products", false, func(f *floatType) string {
			return operand(f, 0) + operand(f, 0) + f.op("mul") + operand(f, 1) + operand(f, 1) + f.op("mul") + f.op("add")
		}},
		{"a vector", false, func(f *floatType) string {
			add := "\xfd" + w.U32(map[*floatType]uint32{single: 0xe4, double: 0xf0}[f])
			return operand(f, 0) + f.splat + operand(f, 1) + f.splat + add + f.extract + "\x01"
		}},
		{"a vector in a local", false, func(f *floatType) string {
			mul := "\xfd" + w.U32(map[*floatType]uint32{single: 0xe6, double: 0xf2}[f])
			return operand(f, 0) + f.splat + operand(f, 1) + f.splat + mul + set(locVec) + w.Get(locVec) + f.extract + "\x00"
		}},
	}
}

func seenName(f *floatType, m maker, s way) string { return f.name + " " + m.name + " " + s.name }

// seenModule has a function for each way of seeing each maker's result.
func seenModule() *w.Module {
	m := &w.Module{Pages: 1, Table: 7, Elements: 7}
	for _, f := range []*floatType{single, double} {
		m.Funcs = append(m.Funcs, w.Func{Params: string(rune(f.value)), Result: string(rune(f.bits)), Code: w.Get(0) + f.toBits})
		m.Globals = append(m.Globals, string(rune(f.value))+"\x01"+f.one()+w.End)
	}
	for _, f := range []*floatType{single, double} {
		m.Funcs = append(m.Funcs, w.Func{Params: string(rune(f.value)), Result: string(rune(f.value)), Code: w.Get(0)})
	}
	m.Funcs = append(m.Funcs, w.Func{}, w.Func{}, w.Func{})
	for _, f := range []*floatType{single, double} {
		for _, mk := range makers() {
			for _, s := range ways() {
				m.Funcs = append(m.Funcs, w.Func{
					Export: seenName(f, mk, s), Params: strings.Repeat(string(rune(f.bits)), 2), Result: string(rune(f.bits)),
					Locals: string(rune(f.value)) + string(rune(f.value)) + string(rune(f.bits)) + "\x7f\x7b", Code: s.code(f, mk.code(f)),
				})
			}
		}
	}
	return m
}

// TestBitsThatAreSeen lets the bits of results be seen in every way that WebAssembly has. A float that is only moved must
// keep its bits, as it does without the rewriter; any other one must be the same on all engines.
func TestBitsThatAreSeen(t *testing.T) {
	wasm := seenModule().Bytes()
	compiler, interpreter := onBoth(t, wasm, rewriter.Options{})
	plain, other := onBoth(t, wasm, rewriter.Options{Plain: true})
	g := golden{name: "seen.txt"}
	cases, differed := 0, 0
	for _, f := range []*floatType{single, double} {
		for _, m := range makers() {
			for _, s := range ways() {
				name := seenName(f, m, s)
				h := newDigest()
				for _, a := range few {
					for _, b := range few {
						cases++
						run := func(g *guest) uint64 {
							g.put(addrA, f.operand(21)) // a signalling NaN
							return g.call(t, name, f.operand(a), f.operand(b))
						}
						got, want, raw := run(compiler), run(interpreter), run(plain)
						if raw != run(other) {
							differed++
						}
						where := fmt.Sprintf("%s, of %x and %x", name, f.operand(a), f.operand(b))
						if got != want {
							t.Errorf("%s: %x on the compiler, %x on the interpreter", where, got, want)
						}
						if m.move && s.exact && got != raw {
							t.Errorf("%s: %x, without the rewriter %x: it was not left alone", where, got, raw)
						}
						h.Write(binary.LittleEndian.AppendUint64(nil, got))
					}
				}
				g.add("%s: %s", name, digest(h))
			}
		}
	}
	t.Logf("%d cases; without the rewriter compiler and interpreter differ in %d, with it in none", cases, differed)
	if differed < 1000 {
		t.Errorf("only %d differences without the rewriter", differed)
	}
	g.check(t)
}
