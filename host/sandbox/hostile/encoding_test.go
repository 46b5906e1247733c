package hostile

import (
	"fmt"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// Constants of vectors: 16 lanes of -3, and the sum of a vector's lanes' first 32 bits as the answer.
var (
	minusThrees = "\xfd\x0c" + repeat("\xfd", 16)
	firstLane   = "\xfd\x1b\x00" // i32x4.extract_lane 0
)

// encodingAttacks are instructions written as wazero and the specification read them differently, and other code that is
// no code. What the specification allows gives its answer on both engines; the rest is refused.
var encodingAttacks = []attack{
	{id: "E1", name: "a vector instruction without its second byte", cpu: 0.5, rss: 60, each: some(func() []variant {
		return []variant{
			inCode("fd 80 and an end", answering("", minusThrees+"\xfd\x80"+firstLane)),
			inCode("fd 80 as the last byte", answering("", minusThrees+"\xfd\x80")),
			inCode("fd 80 before an endless loop", answering("", minusThrees+"\xfd\x80"+w.Drop+forever("")+w.Const(0))),
		}
	})},
	{id: "E2", name: "a vector instruction with two bytes", cpu: 0.5, rss: 60, onEach: true, each: some(func() []variant {
		// i16x8.abs of fdfd is 0203.
		return []variant{
			{name: "fd 80 01", wasm: answering("", minusThrees+"\xfd\x80\x01"+firstLane).bytes(), want: answered(0x02030203)},
			{name: "fd 80 81 00", wasm: answering("", minusThrees+"\xfd\x80\x81\x00"+firstLane).bytes(), want: answered(0x02030203)},
			{name: "fd 80 81 80 80 00", wasm: answering("", minusThrees+"\xfd\x80\x81\x80\x80\x00"+firstLane).bytes(), want: answered(0x02030203)},
			inCode("fd 80 81 80 80 80 00", answering("", minusThrees+"\xfd\x80\x81\x80\x80\x80\x00"+firstLane)),
		}
	})},
	{id: "E3", name: "an over-long v128.const", cpu: 0.5, rss: 60, onEach: true, each: some(func() []variant {
		return []variant{
			{name: "fd 8c 00", wasm: answering("", "\xfd\x8c\x00"+repeat("\x01", 16)+firstLane).bytes(), want: answered(0x01010101)},
			{name: "fd 8c 80 80 80 00", wasm: answering("", "\xfd\x8c\x80\x80\x80\x00"+repeat("\x01", 16)+firstLane).bytes(), want: answered(0x01010101)},
			{name: "fd 8c 00 that hides a loop", wasm: answering("", "\xfd\x8c\x00"+"\x03\x40\x0c\x00\x0b"+repeat("\x01", 11)+firstLane).bytes(), want: answered(0x000c4003)},
		}
	})},
	{id: "E4", name: "relaxed vectors", cpu: 0.5, rss: 60, each: func(yield func(variant) bool) {
		for sub := range uint32(0x20) {
			if !yield(inCode(fmt.Sprintf("fd %#x", 0x100+sub), answering("", minusThrees+minusThrees+"\xfd"+w.U32(0x100+sub)+firstLane))) {
				return
			}
		}
	}},
	{id: "E5", name: "over-long bulk and conversion instructions", cpu: 0.5, rss: 60, onEach: true, each: some(func() []variant {
		three := "\x43\x00\x00\x40\x40"
		return []variant{
			{name: "fc 80 00", wasm: answering("", three+"\xfc\x80\x00").bytes(), want: answered(3)},
			{name: "fc 81 80 80 80 00", wasm: answering("", three+"\xfc\x81\x80\x80\x80\x00").bytes(), want: answered(3)},
			{name: "fc 8b 00", wasm: answering("", w.Const(16)+w.Const(5)+w.Const(4)+"\xfc\x8b\x00\x00"+w.Const(16)+w.Load(0)).bytes(), want: answered(0x05050505)},
			{name: "fc 8a 80 00", wasm: answering("", w.Const(16)+w.Const(200_000)+w.Const(4)+"\xfc\x8a\x80\x00\x00\x00"+w.Const(16)+w.Load(0)).bytes(), want: want{}},
		}
	})},
	{id: "E6", name: "over-long numbers in immediates", cpu: 0.5, rss: 60, onEach: true, each: some(overLong)},
	{id: "E7", name: "numbers that are too long or too large", cpu: 0.5, rss: 60, each: some(func() []variant {
		return []variant{
			inCode("i32.const of six bytes", answering("", "\x41\x80\x80\x80\x80\x80\x00")),
			inCode("i32.const with bits too many", answering("", "\x41\x80\x80\x80\x80\x10")),
			inCode("i32.const with a wrong sign", answering("", "\x41\xff\xff\xff\xff\x4f")),
			inCode("i64.const of eleven bytes", batching("", "\x42"+repeat("\x80", 10)+"\x00"+w.Drop)),
			inCode("i64.const with bits too many", batching("", "\x42"+repeat("\x80", 9)+"\x02"+w.Drop)),
			inCode("a local of six bytes", answering("", "\x20\x80\x80\x80\x80\x80\x00")),
			inCode("a local with bits too many", answering("", "\x20\x80\x80\x80\x80\x10")),
			inCode("a local that is not there", answering("", "\x20\xff\xff\xff\xff\x0f")),
			inCode("a block of a negative type", batching("", "\x02\x41"+w.End)),
			inCode("an empty block type of two bytes", batching("", "\x02\xc0\x7f"+w.End)),
			inCode("a value type of two bytes", batching("", "\x02\xff\x7f"+w.Const(0)+w.End+w.Drop)),
			inCode("a block of a type that is not there", batching("", "\x02\x3f"+w.End)),
			inCode("a zero byte of two bytes", batching("", w.Const(0)+"\x40\x80\x00"+w.Drop)),
			inCode("a lane of two bytes", batching("", minusThrees+"\xfd\x1b\x80\x00"+w.Drop)),
		}
	})},
	{id: "E8", name: "every byte that is no instruction", cpu: 1, rss: 60, each: noInstructions},
	{id: "E9", name: "select with types", cpu: 0.5, rss: 60, onEach: true, each: some(func() []variant {
		sel := func(types string) *module { return answering("", w.Const(1)+w.Const(2)+w.Const(0)+"\x1c"+types) }
		return []variant{
			{name: "one", wasm: sel("\x01\x7f").bytes(), want: answered(2)},
			{name: "one, over-long", wasm: sel("\x81\x80\x00\x7f").bytes(), want: answered(2)},
			inCode("none", sel("\x00")), inCode("two", sel("\x02\x7f\x7f")),
			{name: "another, which no engine looks at", wasm: sel("\x01\x7e").bytes(), want: answered(2)},
			inCode("2^32-1", sel("\xff\xff\xff\xff\x0f\x7f")),
		}
	})},
	{id: "E10", name: "alignments, lanes and shuffles out of range", cpu: 0.5, rss: 60, each: some(func() []variant {
		return []variant{
			inCode("an alignment above the natural one", answering("", w.Const(0)+"\x28\x03\x00")),
			inCode("an alignment of 2^31", answering("", w.Const(0)+"\x28\x1f\x00")),
			inCode("an alignment of 2^(2^32-1)", answering("", w.Const(0)+"\x28\xff\xff\xff\xff\x0f\x00")),
			inCode("lane 4 of 4", answering("", minusThrees+"\xfd\x1b\x04")),
			inCode("lane 255", answering("", minusThrees+"\xfd\x1b\xff")),
			inCode("lane 16 of a load", answering("", w.Const(0)+minusThrees+"\xfd\x54\x00\x00\x10"+firstLane)),
			inCode("a shuffle of lane 32", answering("", minusThrees+minusThrees+"\xfd\x0d"+repeat("\x20", 16)+firstLane)),
		}
	})},
	{id: "E11", name: "ends that are missing, too many, or elsewhere", cpu: 0.5, rss: 60, each: some(func() []variant {
		raw := func(code string) *module {
			m := transform()
			m.batch.raw = code
			return m
		}
		good := "\x00" + w.Const(0) + w.End
		return []variant{
			inCode("no end", raw("\x00"+w.Const(0))),
			inCode("an open block", raw("\x00"+block+w.Const(0)+w.End)),
			inCode("code behind the end", raw(good+w.Const(0)+w.End)),
			inCode("an end behind the end", raw(good+w.End)),
			inCode("a loop behind the end", raw(good+forever("")+w.End)),
			inCode("an else without an if", raw("\x00"+block+elseArm+w.End+w.Const(0)+w.End)),
			inCode("an else of the function", raw("\x00"+w.Const(0)+elseArm+w.Const(0)+w.End)),
			inCode("two elses", raw("\x00"+w.Const(0)+ifThen+elseArm+elseArm+w.End+w.Const(0)+w.End)),
			inCode("an end inside of a number", raw("\x00"+"\x41\x8b")),
			inCode("no code", raw("\x00")),
			{name: "locals that are cut off", wasm: raw("\x02\x01\x7f").bytes(), want: refused(sandbox.CodeMalformed, "at byte")},
			{name: "a body of another size", wasm: otherSize(), want: refused(sandbox.CodeMalformed, "at byte")},
		}
	})},
	{id: "E12", name: "code that is never reached", cpu: 0.5, rss: 60, onEach: true, each: some(func() []variant {
		dead := func(name, code string, w want) variant {
			return variant{name: name, wasm: answering("", code).bytes(), limits: little, want: w}
		}
		unreachable := trapped(abi.TrapUnreachable)
		return []variant{
			dead("anything at all", w.Unreachable+w.Drop+w.Drop+w.Add+w.Drop+"\x92"+w.Drop+"\xfd\xae\x01"+w.Drop, unreachable),
			dead("loops", w.Unreachable+forever(""), unreachable),
			dead("remainders of nothing", w.Unreachable+"\x6f\x70"+w.Drop, unreachable),
			dead("sums of floats of nothing", w.Unreachable+"\x92\x93"+w.Drop+"\xa0\xa3"+w.Drop+"\xfd\xe4\x01\xfd\xf3\x01"+w.Drop, unreachable),
			dead("behind a return", w.Const(5)+ret+"\x6f\x6f"+w.Drop+"\x92"+w.Drop, answered(5)),
			dead("behind a branch", w.Const(5)+"\x0c\x00"+fillMemory+copyMemory+w.Grow, answered(5)),
			dead("behind a br_table", w.Const(5)+w.Const(0)+brTable(3)+"\x40\x00\xfc\x0a\x00\x00", answered(5)),
			dead("blocks of every sort", w.Unreachable+repeat(block+w.Loop+w.Const(0)+ifThen+elseArm+w.End+w.End+w.End, 50), unreachable),
			dead("a select of nothing", w.Unreachable+"\x1b"+w.Drop, unreachable),
			dead("a call with nothing", w.Unreachable+w.Call(2), unreachable),
			dead("an if of nothing", w.Unreachable+ifThen+elseArm+w.End, unreachable),
		}
	})},
	{id: "E13", name: "sizes of sections and bodies that are over-long", cpu: 0.5, rss: 60, onEach: true, each: some(func() []variant {
		long := func(n int) string {
			return string([]byte{byte(n&0x7f) | 0x80, byte(n>>7&0x7f) | 0x80, byte(n>>14&0x7f) | 0x80, 0x80, 0})
		}
		m := transform()
		typed := string([]byte{w.Type}) + long(len(joined(m.types))) + joined(m.types)
		m.before, m.types = typed, nil
		return []variant{{name: "a section", wasm: m.bytes(), want: want{}}}
	})},
}

// inCode is a module that is refused for its batch function.
func inCode(name string, m *module) variant {
	return variant{name: name, wasm: m.bytes(), want: refused(sandbox.CodeMalformed+"|"+sandbox.CodeFeature+"|"+sandbox.CodeInvalid+"|"+sandbox.CodeTooLarge, "function 4", "at byte")}
}

// otherSize has a body that begins the next one.
func otherSize() []byte {
	m := transform()
	m.batch.raw = "\x00" + w.Const(0) + w.End
	m.def("", "", "", "")
	b := m.bytes()
	b[len(b)-3-5]++ // the size of the batch's body
	return b
}

func overLong() []variant {
	pad := func(n byte) string { return string([]byte{n | 0x80, 0x80, 0x80, 0x80, 0}) }
	indirect := func(call string) []byte {
		m := transform()
		m.tables = []string{funcref + "\x00\x08"}
		m.elements = []string{"\x00" + w.Const(0) + w.End + w.Vec(w.U32(2))}
		m.batch.code = w.Const(0) + w.Const(0) + call
		return m.bytes()
	}
	kind := byte(transform().typ(i32, i32))
	globals := transform()
	globals.global(9)
	globals.batch.code = w.Const(4) + "\x24" + pad(0) + "\x23" + pad(0)
	ok := func(name, code string, status int32) variant {
		return variant{name: name, wasm: answering(groups(run(3, i32)), code).bytes(), want: answered(status)}
	}
	return []variant{
		ok("locals", w.Const(7)+"\x21"+pad(2)+"\x20"+pad(2), 7),
		ok("a constant", "\x41\x87\x80\x80\x80\x00", 7),
		ok("a negative constant", "\x41\xf9\xff\xff\xff\x7f", -7),
		ok("labels", "\x02\x7f"+w.Const(7)+"\x0c"+pad(0)+w.End, 7),
		ok("br_table", "\x02\x7f"+w.Const(7)+w.Const(0)+"\x0e"+pad(1)+pad(0)+pad(0)+w.End, 7),
		ok("a call", w.Const(0)+"\x10"+pad(2), 65536),
		ok("memory", w.Const(16)+w.Const(7)+"\x36"+pad(2)+pad(0)+w.Const(16)+"\x28"+pad(0)+pad(0), 7),
		ok("a block type", w.Const(7)+"\x02"+pad(kind)+w.End, 7),
		{name: "an indirect call", wasm: indirect("\x11" + pad(kind) + pad(0)), want: answered(65536)},
		{name: "globals", wasm: globals.bytes(), want: answered(4)},
	}
}

// noInstructions are all opcodes that WebAssembly 2.0 does not have, each in front of bytes that any immediate can be.
func noInstructions(yield func(variant) bool) {
	give := func(name, code string) bool {
		return yield(inCode(name, batching("", w.Unreachable+code+repeat(nop, 20))))
	}
	single := func(op byte) bool {
		switch {
		case op >= 0x06 && op <= 0x0a, op >= 0x12 && op <= 0x19, op >= 0x1d && op <= 0x1f, op == 0x27, op >= 0xc5 && op <= 0xcf, op >= 0xd3 && op <= 0xfb, op >= 0xfe:
			return true
		}
		return false
	}
	for op := range 256 {
		if single(byte(op)) && !give(fmt.Sprintf("%02x", op), string([]byte{byte(op)})) {
			return
		}
	}
	for sub := uint32(0x12); sub < 0x200; sub++ {
		if !give(fmt.Sprintf("fc %#x", sub), "\xfc"+w.U32(sub)) {
			return
		}
	}
	for _, sub := range []uint32{0x9a, 0xa2, 0xa5, 0xa6, 0xaf, 0xb0, 0xb2, 0xb3, 0xb4, 0xbb, 0xc2, 0xc5, 0xc6, 0xcf, 0xd0, 0xd2, 0xd3, 0xd4, 0xe2, 0xee} {
		if !give(fmt.Sprintf("fd %#x", sub), "\xfd"+w.U32(sub)) {
			return
		}
	}
	for sub := uint32(0x100); sub < 0x300; sub++ {
		if !give(fmt.Sprintf("fd %#x", sub), "\xfd"+w.U32(sub)) {
			return
		}
	}
	give("fd 2^32-1", "\xfd\xff\xff\xff\xff\x0f")
	give("fc 2^32-1", "\xfc\xff\xff\xff\xff\x0f")
}
