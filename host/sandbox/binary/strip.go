package binary

// Strip returns the module without its custom sections: engines read some of them, and one of them refuses a module for
// a broken name section that the format tells it to ignore.
func (m *Module) Strip() []byte {
	out := append(make([]byte, 0, len(m.raw)), m.raw[:headerSize]...)
	for _, s := range m.sections {
		if s.id != idCustom {
			out = append(out, m.raw[s.start:s.end]...)
		}
	}
	return out
}

// FuncNames reads the function names of the custom section "name", which is only ever used for messages: what is broken
// in it is left out.
func (m *Module) FuncNames() map[uint32]string {
	names := map[uint32]string{}
	for _, c := range m.Customs {
		if c.Name == "name" {
			readNames(c.Data, names, uint32(m.Count(KindFunc)))
		}
	}
	return names
}

// readNames reads the subsection of function names, id 1, into names: those of functions that are there.
func readNames(data []byte, names map[uint32]string, functions uint32) {
	r := &reader{b: data}
	for !r.done() {
		id := r.byte()
		sub := r.section()
		if r.err != nil || id != 1 {
			continue
		}
		for n := sub.count(MaxFuncs, "names"); n > 0 && sub.err == nil; n-- {
			index := sub.u32()
			name := sub.name()
			if sub.err == nil && index < functions {
				names[index] = name
			}
		}
	}
}
