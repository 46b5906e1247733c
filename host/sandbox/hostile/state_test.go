package hostile

import (
	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/abi/statemap"
	"github.com/wasmill/wasmill/host/sandbox"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// stateAttacks let a few bytes of operations stand for much: much to copy, to hash, to visit, to keep.
var stateAttacks = []attack{
	{id: "S1", name: "65,536 operations on one value of 512 KiB", cpu: 3, slow: 3, rss: 250, onEach: true, each: some(func() []variant {
		value := operation{op: abi.OpPut, key: 8, value: abi.MaxStateValue}
		get := operation{op: abi.OpGet, key: 8}
		return []variant{
			stormy("puts", "", callWrite(maxOps), value.times(maxOps), trapped(abi.TrapFuel), sandbox.Limits{}),
			stormy("gets", value.times(1), callRead(maxOps, 1<<20)+w.Drop, get.times(maxOps), trapped(abi.TrapFuel), sandbox.Limits{}),
			stormy("gets and no room, with all fuel", value.times(1), callRead(maxOps, 1<<20)+status(abi.StateTooSmall), get.times(maxOps), answered(1), plenty),
			stormy("gets of what fits", value.times(1), callRead(16, 8<<20)+status(abi.StateOK), get.times(16), answered(1), plenty),
		}
	})},
	{id: "S2", name: "65,536 keys of 4 KiB", cpu: 2, slow: 2, rss: 150, onEach: true, each: some(func() []variant {
		return []variant{
			stormy("gets", "", callRead(maxOps, 0)+w.Drop, operation{op: abi.OpGet, key: abi.MaxStateKey}.times(maxOps), trapped(abi.TrapFuel), sandbox.Limits{}),
			stormy("timers", "", callWrite(maxOps), operation{op: abi.OpTimerSet, key: 8, sub: 4000}.times(maxOps), trapped(abi.TrapFuel), sandbox.Limits{}),
		}
	})},
	{id: "S3", name: "65,536 scans", cpu: 6, slow: 6, rss: 250, onEach: true, each: some(func() []variant {
		scan := operation{op: abi.OpScan, key: 8, value: -1}
		entries := ""
		for i := range 10_000 {
			entries += operation{op: abi.OpPut, key: 8, sub: 4, at: i}.bytes()
		}
		return []variant{
			stormy("with little fuel", entries, callRead(maxOps, 4<<20)+w.Drop, scan.times(maxOps), trapped(abi.TrapFuel), sandbox.Limits{FuelCall: 3_000_000, FuelRecord: 1}),
			stormy("with all fuel, and room that they share", entries, callRead(maxOps, 4<<20)+status(abi.StateOK), scan.times(maxOps), answered(1), plenty),
			stormy("with all fuel and no room", entries, callRead(maxOps, 8)+status(abi.StateTooSmall), scan.times(maxOps), answered(1), plenty),
		}
	})},
	{id: "S4", name: "state that is written and removed without end", cpu: 5, slow: 6, rss: 250, onEach: true, long: true, each: some(func() []variant {
		ops := ""
		for i := range 1000 {
			ops += operation{op: abi.OpPut, key: 8, sub: 4, at: i}.bytes()
		}
		ops += operation{op: abi.OpDeletePrefix, key: 8, value: -1}.bytes()
		return []variant{
			stormy("puts and a delete-prefix", "", forever(callWrite(1001)), ops, trapped(abi.TrapFuel), sandbox.Limits{}),
			stormy("calls of nothing", "", forever(callWrite(0)), "", trapped(abi.TrapFuel), sandbox.Limits{}),
			stormy("one timer", "", forever(callWrite(1)), operation{op: abi.OpTimerSet, key: 8}.times(1), trapped(abi.TrapFuel), sandbox.Limits{}),
		}
	})},
}

const maxOps = abi.MaxStateOps

// Where these modules have their operations, the bytes that those point to, need, and the buffer.
const (
	setupAt = 1 << 20
	opsAt   = 2 << 20
	bytesAt = 8 << 20
	needAt  = 10 << 20
	bufAt   = 16 << 20
)

// operation is one on a key of so many bytes, with a sub and a value; the sub begins with the number at.
type operation struct {
	op       abi.OpCode
	key, sub int
	value    int // -1 for none
	at       int
}

func (o operation) bytes() string {
	sub := uint32(bytesAt + 4*o.at)
	return string([]byte{byte(o.op), 0, 0, 0}) + le32(0) + le32(bytesAt) + le32(uint32(o.key)) + le32(sub) + le32(uint32(o.sub)) +
		le32(bytesAt) + le32(uint32(o.value)) + repeat("\x00", 24)
}

func (o operation) times(n int) string { return repeat(o.bytes(), n) }

func callRead(n, room int32) string {
	return w.Const(opsAt) + w.Const(n) + w.Const(bufAt) + w.Const(room) + w.Const(needAt) + w.Call(2)
}

func callWrite(n int32) string { return w.Const(opsAt) + w.Const(n) + w.Call(3) }

// status answers 1 if the result on the stack is the one that it should be, and traps otherwise.
func status(want int32) string {
	return w.Const(want) + "\x47" + ifThen + w.Unreachable + w.End + w.Const(1) + ret
}

// stormy is a module of a keyed stage: its batch writes what setup says, up to 1 MiB of operations, and runs code with ops.
func stormy(name, setup, code, ops string, expected want, limits sandbox.Limits) variant {
	m := transform(imported{"wasmill_1", "state_read", i32 + i32 + i32 + i32 + i32, i32}, imported{"wasmill_1", "state_write", i32 + i32, ""})
	m.memories[0] = "\x00" + w.U32(1024)
	m.put(setupAt, setup)
	m.put(opsAt, ops)
	numbers := ""
	for i := range uint32(16_384) {
		numbers += le32(i)
	}
	m.put(bytesAt, numbers)
	m.batch.code = w.Const(setupAt) + w.Const(int32(len(setup)/abi.StateOpSize)) + w.Call(3) + code + w.Const(0)
	m.after = section(w.Custom, w.Name("wasmill")+`{"name":"s","version":"1","inputs":[{"name":"in"}],"outputs":[],"tables":[{"name":"t"}]}`)
	return variant{name: name, wasm: m.bytes(), limits: limits, want: expected, state: func() sandbox.State { return &statemap.Map{} }}
}
