package binary

// constant reads a constant expression: one instruction and its end. Another global can be read only if it is imported.
func (m *Module) constant(r *reader) Const {
	var in Instruction
	r.instruction(&in)
	switch in.Op {
	case OpI32Const, OpI64Const, OpF32Const, OpF64Const, OpV128Const, OpRefNull:
	case OpRefFunc:
		m.declare(r, in.X)
	case OpGlobalGet:
		if r.err == nil && int64(in.X) >= int64(m.foreign[KindGlobal]) {
			r.fail(Feature, "a constant expression reads a global that is not imported")
		}
		if r.err == nil && m.GlobalAt(in.X).Mutable {
			r.fail(Malformed, "a constant expression reads a mutable global")
		}
	default:
		r.fail(Malformed, "a constant expression holds the instruction %s", in.Op)
	}
	if end := r.byte(); r.err == nil && Op(end) != OpEnd {
		r.fail(Feature, "a constant expression has more than one instruction")
	}
	return Const{Op: in.Op, X: in.X, Value: in.Value, High: in.High}
}

// declare lets code refer to a function.
func (m *Module) declare(r *reader, f uint32) {
	have := m.Count(KindFunc)
	if r.err == nil && int64(f) >= int64(have) {
		r.fail(Malformed, "it refers to function %d of %d", f, have)
	}
	if r.err != nil {
		return
	}
	if m.declared == nil {
		m.declared = make([]bool, have)
	}
	m.declared[f] = true
}

// offset reads where an active segment goes: a number, or a global where those can be imported.
func (m *Module) offset(r *reader) Const {
	c := m.constant(r)
	if r.err == nil && c.Op != OpI32Const && c.Op != OpGlobalGet {
		r.fail(Malformed, "the offset of a segment is no i32")
	}
	return c
}

// readElements reads the element section. Bits of a segment's flag: 1 not active, 2 explicit table (or declarative),
// 4 expressions instead of indexes.
func (m *Module) readElements(r *reader) {
	for n := r.count(MaxSegments, "element segments"); n > 0 && r.err == nil; n-- {
		flag := r.u32()
		if r.err == nil && flag > 7 {
			r.fail(Malformed, "an element segment of kind %d", flag)
		}
		e := Element{Type: FuncRef}
		switch {
		case flag&3 == 1:
			e.Mode = Passive
		case flag&3 == 3:
			e.Mode = Declarative
		case flag&2 != 0:
			e.Table = r.u32()
		}
		if e.Mode == Active {
			e.Offset = m.offset(r)
		}
		if flag&3 != 0 {
			if flag&4 != 0 {
				e.Type = r.refType()
			} else if kind := r.byte(); r.err == nil && kind != 0 {
				r.fail(Malformed, "0x%02x is no kind of element", kind)
			}
		}
		m.readItems(r, &e, flag&4 != 0)
		m.checkElement(r, &e)
		m.Elements = append(m.Elements, e)
	}
}

func (m *Module) readItems(r *reader, e *Element, expressions bool) {
	count := r.count(MaxElements-m.elements, "elements")
	m.elements += count
	if expressions {
		e.Exprs = make([]Const, 0, min(count, r.left()/2)) // each has two bytes at least
	} else {
		e.Funcs = make([]uint32, 0, count)
	}
	for i := 0; i < count && r.err == nil; i++ {
		if expressions {
			e.Exprs = append(e.Exprs, m.constant(r))
			continue
		}
		f := r.u32()
		m.declare(r, f)
		e.Funcs = append(e.Funcs, f)
	}
}

// checkElement proves that an active segment lies inside its table: one engine leaves out those that do not, and all that
// follow, without a word.
func (m *Module) checkElement(r *reader, e *Element) {
	if e.Mode != Active || r.err != nil {
		return
	}
	if int64(e.Table) >= int64(m.Count(KindTable)) {
		r.fail(Malformed, "an element segment for table %d of %d", e.Table, m.Count(KindTable))
		return
	}
	own := int(e.Table) - m.foreign[KindTable]
	if own < 0 || e.Offset.Op != OpI32Const {
		return
	}
	count := uint64(len(e.Funcs) + len(e.Exprs))
	if have := m.Tables[own].Min; e.Offset.Value+count > uint64(have) {
		r.fail(Malformed, "an element segment of %d at %d lies outside its table of %d", count, e.Offset.Value, have)
	}
}

// readData reads the data section. Kinds: 0 active, 1 passive, 2 active with an explicit memory.
func (m *Module) readData(r *reader) {
	for n := r.count(MaxSegments, "data segments"); n > 0 && r.err == nil; n-- {
		kind := r.u32()
		if r.err == nil && kind > 2 {
			r.fail(Malformed, "a data segment of kind %d", kind)
		}
		var d Data
		var memory uint32
		if kind == 1 {
			d.Mode = Passive
		}
		if kind == 2 {
			memory = r.u32()
		}
		if d.Mode == Active {
			d.Offset = m.offset(r)
		}
		d.Bytes = r.bytes(r.u32())
		m.checkData(r, &d, memory)
		m.Data = append(m.Data, d)
	}
}

// checkData proves that an active segment lies inside its memory as it begins.
func (m *Module) checkData(r *reader, d *Data, memory uint32) {
	if d.Mode != Active || r.err != nil {
		return
	}
	if int64(memory) >= int64(m.Count(KindMemory)) {
		r.fail(Malformed, "a data segment for memory %d of %d", memory, m.Count(KindMemory))
		return
	}
	if m.foreign[KindMemory] > 0 || d.Offset.Op != OpI32Const {
		return
	}
	if have := m.Memories[memory].Min; d.Offset.Value+uint64(len(d.Bytes)) > uint64(have)*PageSize {
		r.fail(Malformed, "a data segment of %d bytes at %d lies outside its memory of %d pages", len(d.Bytes), d.Offset.Value, have)
	}
}

// readCode reads the locals of the functions and where their code lies.
func (m *Module) readCode(r *reader) {
	n := r.count(MaxFuncs, "function bodies")
	m.Bodies = make([]Body, 0, n)
	for i := 0; i < n && r.err == nil; i++ {
		size := r.u32()
		body := &reader{base: r.base + r.pos}
		body.b = r.bytes(size)
		if r.err != nil {
			return
		}
		m.readLocals(body, i)
		if body.err != nil {
			r.err = body.err
			return
		}
	}
}

func (m *Module) readLocals(r *reader, own int) {
	var b Body
	n := r.count(MaxModule, "groups of locals")
	if n > MaxLocals {
		r.fail(TooLarge, "function %d has %d groups of locals, at most %d are taken", len(m.Imports)+own, n, MaxLocals)
	}
	for ; n > 0 && r.err == nil; n-- {
		b.Locals = append(b.Locals, Locals{Count: r.u32(), Type: r.valueType()})
	}
	b.Code, b.Offset = r.b[r.pos:], r.base+r.pos
	if r.err == nil && (r.left() == 0 || r.b[len(r.b)-1] != byte(OpEnd)) {
		r.fail(Malformed, "function %d does not end with an end", len(m.Imports)+own)
	}
	m.Bodies = append(m.Bodies, b)
}

// checkIndexes checks what refers from one section to another.
func (m *Module) checkIndexes() error {
	c := &reader{base: len(m.raw)}
	if len(m.Bodies) != len(m.Funcs) {
		c.fail(Malformed, "%d functions are declared, %d have a body", len(m.Funcs), len(m.Bodies))
	}
	if m.HasDataCount && int64(m.DataCount) != int64(len(m.Data)) {
		c.fail(Malformed, "%d data segments, the data count section says %d", len(m.Data), m.DataCount)
	}
	for _, im := range m.Imports {
		if int64(im.Type) >= int64(len(m.Types)) {
			c.fail(Malformed, "the import %.80q has type %d of %d", im.Name, im.Type, len(m.Types))
		}
	}
	for i, t := range m.Funcs {
		if int64(t) >= int64(len(m.Types)) {
			c.fail(Malformed, "function %d has type %d of %d", len(m.Imports)+i, t, len(m.Types))
		}
	}
	for _, e := range m.Exports {
		if have := m.Count(e.Kind); int64(e.Index) >= int64(have) {
			c.fail(Malformed, "the export %.80q refers to %s %d of %d", e.Name, e.Kind, e.Index, have)
		}
	}
	if m.HasStart {
		t, ok := m.FuncType(m.Start)
		if !ok || len(t.Params) > 0 || len(t.Results) > 0 {
			c.fail(Malformed, "the start section names no function () -> ()")
		}
	}
	if c.err != nil {
		return c.err
	}
	return nil
}
