package rewriter

import (
	"encoding/binary"

	wasm "github.com/wasmill/wasmill/host/sandbox/binary"
)

// writer appends encodings in their shortest form.
type writer struct {
	b []byte
}

func (w *writer) byte(c ...byte) { w.b = append(w.b, c...) }

func (w *writer) u32(n uint32) {
	if n < 0x80 {
		w.b = append(w.b, byte(n))
		return
	}
	w.b = binary.AppendUvarint(w.b, uint64(n))
}

func (w *writer) signed(n int64) {
	for {
		c := byte(n & 0x7f)
		n >>= 7
		if n == 0 && c&0x40 == 0 || n == -1 && c&0x40 != 0 {
			w.b = append(w.b, c)
			return
		}
		w.b = append(w.b, c|0x80)
	}
}

func (w *writer) name(s string) {
	w.u32(uint32(len(s)))
	w.b = append(w.b, s...)
}

func (w *writer) op(op wasm.Op) {
	switch {
	case op < wasm.Bulk:
		w.b = append(w.b, byte(op))
	case op < wasm.Vector:
		w.b = append(w.b, 0xfc)
		w.u32(uint32(op - wasm.Bulk))
	default:
		w.b = append(w.b, 0xfd)
		w.u32(uint32(op - wasm.Vector))
	}
}

func (w *writer) ops(ops ...wasm.Op) {
	for _, op := range ops {
		w.op(op)
	}
}

// opX writes an instruction with one index.
func (w *writer) opX(op wasm.Op, x uint32) {
	w.op(op)
	w.u32(x)
}

func (w *writer) i64(n int64) {
	w.op(wasm.OpI64Const)
	w.signed(n)
}

func (w *writer) i32(n int32) {
	w.op(wasm.OpI32Const)
	w.signed(int64(n))
}

func (w *writer) limits(l wasm.Limits) {
	if !l.HasMax {
		w.byte(0)
		w.u32(l.Min)
		return
	}
	w.byte(1)
	w.u32(l.Min)
	w.u32(l.Max)
}

func (w *writer) types(ts []wasm.ValueType) {
	w.u32(uint32(len(ts)))
	for _, t := range ts {
		w.byte(byte(t))
	}
}

func (w *writer) u64(n uint64) { w.b = binary.LittleEndian.AppendUint64(w.b, n) }

// constant writes a constant expression; index maps functions.
func (w *writer) constant(c *wasm.Const, index func(uint32) uint32) {
	w.op(c.Op)
	switch c.Op {
	case wasm.OpI32Const:
		w.signed(int64(int32(c.Value)))
	case wasm.OpI64Const:
		w.signed(int64(c.Value))
	case wasm.OpF32Const:
		w.b = binary.LittleEndian.AppendUint32(w.b, uint32(c.Value))
	case wasm.OpF64Const:
		w.u64(c.Value)
	case wasm.OpV128Const:
		w.u64(c.Value)
		w.u64(c.High)
	case wasm.OpRefNull:
		w.byte(byte(c.X))
	case wasm.OpRefFunc:
		w.u32(index(c.X))
	default: // global.get
		w.u32(c.X)
	}
	w.op(wasm.OpEnd)
}

// section writes a section of what fill writes; nothing when it writes nothing.
func (w *writer) section(id byte, fill func(*writer)) {
	var body writer
	fill(&body)
	if len(body.b) == 0 {
		return
	}
	w.byte(id)
	w.u32(uint32(len(body.b)))
	w.b = append(w.b, body.b...)
}

// instruction writes an instruction with its immediates.
func (w *writer) instruction(in *wasm.Instruction, index func(uint32) uint32) {
	w.op(in.Op)
	switch in.Op {
	case wasm.OpCall, wasm.OpRefFunc:
		w.u32(index(in.X))
	case wasm.OpBr, wasm.OpBrIf, wasm.OpLocalGet, wasm.OpLocalSet, wasm.OpLocalTee, wasm.OpGlobalGet, wasm.OpGlobalSet, wasm.OpTableGet,
		wasm.OpTableSet, wasm.OpDataDrop, wasm.OpElemDrop, wasm.OpTableGrow, wasm.OpTableSize, wasm.OpTableFill:
		w.u32(in.X)
	case wasm.OpI32Const:
		w.signed(int64(int32(in.Value)))
	case wasm.OpI64Const:
		w.signed(int64(in.Value))
	case wasm.OpBlock, wasm.OpLoop, wasm.OpIf:
		w.signed(in.Block)
	case wasm.OpCallIndirect, wasm.OpTableInit, wasm.OpTableCopy:
		w.u32(in.X)
		w.u32(in.Y)
	case wasm.OpBrTable:
		w.u32(uint32(len(in.Targets) - 1))
		for _, label := range in.Targets {
			w.u32(label)
		}
	case wasm.OpSelectTyped:
		w.types(in.Types)
	case wasm.OpMemorySize, wasm.OpMemoryGrow, wasm.OpMemoryFill:
		w.byte(0)
	case wasm.OpMemoryCopy:
		w.byte(0, 0)
	case wasm.OpMemoryInit:
		w.u32(in.X)
		w.byte(0)
	case wasm.OpF32Const:
		w.b = binary.LittleEndian.AppendUint32(w.b, uint32(in.Value))
	case wasm.OpF64Const:
		w.u64(in.Value)
	case wasm.OpV128Const, wasm.OpI8x16Shuffl:
		w.u64(in.Value)
		w.u64(in.High)
	case wasm.OpRefNull:
		w.byte(byte(in.X))
	default:
		w.memory(in)
	}
}

// memory writes the immediates of what reads or writes memory or lanes; other instructions have none.
func (w *writer) memory(in *wasm.Instruction) {
	memory, lane := in.Op.Immediates()
	if memory {
		w.u32(in.X)
		w.u32(in.Y)
	}
	if lane {
		w.byte(in.Lane)
	}
}
