package binary

import "fmt"

// constant reads a constant expression: one instruction and its end. It returns the value of an i32.const; isI32 says
// whether it was one. Reading another global is refused, for only an imported one may be read and none can be imported.
func (r *reader) constant() (value uint32, isI32 bool) {
	switch op := r.byte(); op {
	case 0x41:
		value, isI32 = uint32(r.signed(32)), true
	case 0x42:
		r.signed(64)
	case 0x43:
		r.bytes(4)
	case 0x44:
		r.bytes(8)
	case 0xd0:
		r.refType()
	case 0xd2:
		r.u32()
	case 0xfd:
		if sub := r.u32(); r.err == nil && sub != 0x0c {
			r.fail(Malformed, "a constant expression holds the vector instruction %d", sub)
		}
		r.bytes(16)
	case 0x23:
		r.fail(Feature, "a constant expression reads a global")
	default:
		r.fail(Malformed, "a constant expression holds the instruction 0x%02x", op)
	}
	if end := r.byte(); r.err == nil && end != 0x0b {
		r.fail(Feature, "a constant expression has more than one instruction")
	}
	return value, isI32
}

// offset reads where an active segment goes.
func (r *reader) offset() uint32 {
	v, isI32 := r.constant()
	if r.err == nil && !isI32 {
		r.fail(Malformed, "the offset of a segment is no i32")
	}
	return v
}

// readElements reads the element section. Bits of a segment's flag: 1 not active, 2 explicit table (or declarative),
// 4 expressions instead of indexes.
func (m *Module) readElements(r *reader) {
	for n := r.count(MaxSegments, "element segments"); n > 0 && r.err == nil; n-- {
		flag := r.u32()
		if r.err == nil && flag > 7 {
			r.fail(Malformed, "an element segment of kind %d", flag)
		}
		active := flag&1 == 0
		var table, offset uint32
		if active {
			if flag&2 != 0 {
				table = r.u32()
			}
			offset = r.offset()
		}
		if flag&3 != 0 {
			if flag&4 != 0 {
				r.refType()
			} else if kind := r.byte(); r.err == nil && kind != 0 {
				r.fail(Malformed, "0x%02x is no kind of element", kind)
			}
		}
		count := m.readElementItems(r, flag&4 != 0)
		if !active || r.err != nil {
			continue
		}
		if int64(table) >= int64(len(m.Tables)) {
			r.fail(Malformed, "an element segment for table %d of %d", table, len(m.Tables))
		} else if uint64(offset)+uint64(count) > uint64(m.Tables[table].Min) {
			r.fail(Malformed, "an element segment of %d at %d lies outside its table of %d", count, offset, m.Tables[table].Min)
		}
	}
}

func (m *Module) readElementItems(r *reader, expressions bool) int {
	count := r.count(MaxTable, "elements")
	for i := 0; i < count && r.err == nil; i++ {
		if expressions {
			r.constant()
			continue
		}
		if f := r.u32(); r.err == nil && int64(f) >= int64(len(m.Imports)+len(m.Funcs)) {
			r.fail(Malformed, "an element refers to function %d of %d", f, len(m.Imports)+len(m.Funcs))
		}
	}
	return count
}

// walkData reads the data section. Kinds: 0 active, 1 passive, 2 active with an explicit memory.
func (m *Module) walkData(r *reader, visit func(offset uint32, data []byte)) {
	n := r.count(MaxSegments, "data segments")
	if r.err == nil && m.hasDataCount && uint32(n) != m.dataCount {
		r.fail(Malformed, "%d segments, the data count section says %d", n, m.dataCount)
	}
	for ; n > 0 && r.err == nil; n-- {
		kind := r.u32()
		if r.err == nil && kind > 2 {
			r.fail(Malformed, "a data segment of kind %d", kind)
		}
		var memory, offset uint32
		if kind == 2 {
			memory = r.u32()
		}
		if kind != 1 {
			offset = r.offset()
		}
		size := r.u32()
		data := r.bytes(size)
		if kind == 1 || r.err != nil {
			continue
		}
		if int64(memory) >= int64(len(m.Memories)) {
			r.fail(Malformed, "a data segment for memory %d of %d", memory, len(m.Memories))
		} else if uint64(offset)+uint64(size) > uint64(m.Memories[memory].Min)*PageSize {
			r.fail(Malformed, "a data segment of %d bytes at %d lies outside its memory of %d pages", size, offset, m.Memories[memory].Min)
		} else {
			visit(offset, data)
		}
	}
}

// readCode walks over the bodies and sums their locals; instructions are not looked at.
func (m *Module) readCode(r *reader) {
	n := r.count(MaxFuncs, "function bodies")
	m.bodies = n
	for i := 0; i < n && r.err == nil; i++ {
		size := r.u32()
		if r.err == nil && size > MaxBody {
			r.fail(TooLarge, "function %d has %d bytes, at most %d are taken", len(m.Imports)+i, size, MaxBody)
		}
		body := &reader{base: r.base + r.pos}
		body.b = r.bytes(size)
		if r.err != nil {
			return
		}
		m.readLocals(body, i)
		if body.err != nil {
			r.err = body.err
		}
	}
}

func (m *Module) readLocals(r *reader, own int) {
	total := uint64(0)
	for n := r.count(MaxLocals, "groups of locals"); n > 0 && r.err == nil; n-- {
		total += uint64(r.u32())
		r.valueType()
		if total > MaxLocals {
			r.fail(TooLarge, "function %d has more than %d locals", len(m.Imports)+own, MaxLocals)
		}
	}
	if r.err == nil && (r.left() == 0 || r.b[len(r.b)-1] != 0x0b) {
		r.fail(Malformed, "function %d does not end with an end", len(m.Imports)+own)
	}
}

// checkIndexes checks what refers from one section to another.
func (m *Module) checkIndexes() error {
	bad := func(format string, args ...any) error {
		return &Error{Reason: Malformed, Offset: len(m.raw), Text: fmt.Sprintf(format, args...)}
	}
	if m.bodies != len(m.Funcs) {
		return bad("%d functions are declared, %d have a body", len(m.Funcs), m.bodies)
	}
	for _, im := range m.Imports {
		if int64(im.Type) >= int64(len(m.Types)) {
			return bad("the import %.80q has type %d of %d", im.Name, im.Type, len(m.Types))
		}
	}
	for i, t := range m.Funcs {
		if int64(t) >= int64(len(m.Types)) {
			return bad("function %d has type %d of %d", len(m.Imports)+i, t, len(m.Types))
		}
	}
	have := [...]int{KindFunc: len(m.Imports) + len(m.Funcs), KindTable: len(m.Tables), KindMemory: len(m.Memories), KindGlobal: len(m.Globals)}
	for _, e := range m.Exports {
		if int64(e.Index) >= int64(have[e.Kind]) {
			return bad("the export %.80q refers to %s %d of %d", e.Name, e.Kind, e.Index, have[e.Kind])
		}
	}
	if !m.HasStart {
		return nil
	}
	t, ok := m.FuncType(m.Start)
	if !ok || len(t.Params) > 0 || len(t.Results) > 0 {
		return bad("the start section names no function () -> ()")
	}
	return nil
}
