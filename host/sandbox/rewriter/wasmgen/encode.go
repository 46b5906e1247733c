package wasmgen

// writer appends the binary format. Now and then it writes a number longer than it needs to be.
type writer struct {
	b []byte
	// long decides that; nil writes every number as short as it goes.
	long *mixer
}

func (w *writer) byte(b ...byte) { w.b = append(w.b, b...) }

// pads is by how many bytes a number of n bytes, at most limit, is made longer.
func (w *writer) pads(n, limit int) int {
	if w.long == nil || n >= limit {
		return 0
	}
	r := w.long.next()
	if r%16 != 0 {
		return 0
	}
	return 1 + int(r>>32)%(limit-n)
}

// u32 writes an unsigned number of 32 bits.
func (w *writer) u32(v uint32) {
	start := len(w.b)
	for v >= 0x80 {
		w.b = append(w.b, byte(v)|0x80)
		v >>= 7
	}
	w.b = append(w.b, byte(v))
	w.extend(start, 5, 0)
}

// signed writes a signed number of at most limit bytes.
func (w *writer) signed(v int64, limit int) {
	start := len(w.b)
	fill := byte(v >> 63 & 0x7f)
	for v < -64 || v > 63 {
		w.b = append(w.b, byte(v)|0x80)
		v >>= 7
	}
	w.b = append(w.b, byte(v)&0x7f)
	w.extend(start, limit, fill)
}

// extend makes the number from start on longer by bytes that change nothing.
func (w *writer) extend(start, limit int, fill byte) {
	for n := w.pads(len(w.b)-start, limit); n > 0; n-- {
		w.b[len(w.b)-1] |= 0x80
		w.b = append(w.b, fill)
	}
}

func (w *writer) s32(v int32) { w.signed(int64(v), 5) }
func (w *writer) s64(v int64) { w.signed(v, 10) }

// fixed writes the lowest n bytes of v.
func (w *writer) fixed(v uint64, n int) {
	for range n {
		w.b = append(w.b, byte(v))
		v >>= 8
	}
}

// vec writes bytes behind their number.
func (w *writer) vec(b []byte) {
	w.u32(uint32(len(b)))
	w.b = append(w.b, b...)
}

// opcode writes an instruction's number: one byte, or a prefix and a number.
func (w *writer) opcode(op uint16) {
	prefix, sub := byte(op>>8), byte(op)
	if prefix == 0 {
		w.byte(sub)
		return
	}
	w.byte(prefix)
	w.u32(uint32(sub))
}
