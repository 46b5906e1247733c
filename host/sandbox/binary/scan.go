package binary

// Effects says what the code of a module can change besides its memory and its numeric globals.
type Effects struct {
	Tables   bool // table.set, grow, fill, copy, init
	Elements bool // elem.drop
	Data     bool // memory.init, data.drop
	// Unsure is set when the code holds an instruction or an encoding that this package does not read with certainty:
	// anything may then be changed.
	Unsure bool
}

// Effects reads all instructions. It judges no types: the engine validates the code.
func (m *Module) Effects() Effects {
	e := Effects{}
	if len(m.code) == 0 {
		return e
	}
	r := &reader{b: m.code}
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		size := r.u32()
		body := &reader{b: r.bytes(size)}
		for groups := body.u32(); groups > 0 && body.err == nil; groups-- {
			body.u32()
			body.valueType()
		}
		for !body.done() {
			body.instruction(&e)
		}
		if body.err != nil {
			r.err = body.err
		}
	}
	e.Unsure = e.Unsure || r.err != nil
	return e
}

// instruction reads one instruction with its immediates. What is no instruction of the format, or is written longer than
// it needs to be where engines were seen to differ, is an error.
func (r *reader) instruction(e *Effects) {
	switch op := r.byte(); op {
	case 0x00, 0x01, 0x05, 0x0b, 0x0f, 0x1a, 0x1b, 0xd1:
	case 0x02, 0x03, 0x04: // block, loop, if
		r.signed(33)
	case 0x0c, 0x0d, 0x10, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0xd2: // one index
		r.u32()
	case 0x0e: // br_table
		for n := uint64(r.u32()) + 1; n > 0 && r.err == nil; n-- {
			r.u32()
		}
	case 0x11: // call_indirect
		r.u32()
		r.u32()
	case 0x1c: // select with types
		for n := r.u32(); n > 0 && r.err == nil; n-- {
			r.valueType()
		}
	case 0x26: // table.set
		r.u32()
		e.Tables = true
	case 0x3f, 0x40: // memory.size, memory.grow
		r.zero()
	case 0x41:
		r.signed(32)
	case 0x42:
		r.signed(64)
	case 0x43:
		r.bytes(4)
	case 0x44:
		r.bytes(8)
	case 0xd0: // ref.null
		r.refType()
	case 0xfc:
		r.bulk(e)
	case 0xfd:
		r.vector()
	default:
		switch {
		case op >= 0x28 && op <= 0x3e: // loads and stores
			r.memarg()
		case op >= 0x45 && op <= 0xc4: // arithmetic
		default:
			r.fail(Feature, "0x%02x is no instruction", op)
		}
	}
}

// memarg reads an alignment and an offset.
func (r *reader) memarg() {
	if align := r.u32(); r.err == nil && align > 4 {
		r.fail(Feature, "an alignment of 2^%d", align)
	}
	r.u32()
}

func (r *reader) zero() {
	if c := r.byte(); r.err == nil && c != 0 {
		r.fail(Feature, "a memory other than the first")
	}
}

// bulk reads what follows 0xfc.
func (r *reader) bulk(e *Effects) {
	switch sub := r.byte(); {
	case sub <= 7: // saturating conversions
	case sub == 8: // memory.init
		r.u32()
		r.zero()
		e.Data = true
	case sub == 9: // data.drop
		r.u32()
		e.Data = true
	case sub == 10: // memory.copy
		r.zero()
		r.zero()
	case sub == 11: // memory.fill
		r.zero()
	case sub == 13: // elem.drop
		r.u32()
		e.Elements = true
	case sub == 12 || sub == 14: // table.init, table.copy
		r.u32()
		r.u32()
		e.Tables = true
	case sub == 15 || sub == 17: // table.grow, table.fill
		r.u32()
		e.Tables = true
	case sub == 16: // table.size
		r.u32()
	default:
		r.fail(Feature, "0xfc 0x%02x is no instruction", sub)
	}
}

// vector reads what follows 0xfd. Numbers from 128 on are written as two bytes, the second of which is 1.
func (r *reader) vector() {
	sub := r.byte()
	if sub >= 0x80 {
		if second := r.byte(); r.err == nil && second != 1 {
			r.fail(Feature, "0xfd 0x%02x 0x%02x is no instruction", sub, second)
		}
		return
	}
	switch {
	case sub <= 11 || sub == 92 || sub == 93: // loads and stores
		r.memarg()
	case sub == 12 || sub == 13: // v128.const, shuffle
		r.bytes(16)
	case sub >= 21 && sub <= 34: // lanes
		r.byte()
	case sub >= 84 && sub <= 91: // loads and stores of a lane
		r.memarg()
		r.byte()
	}
}
