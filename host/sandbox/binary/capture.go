package binary

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Names of the exports that Open adds. A module that has such a name itself cannot be captured.
const (
	reservedPrefix = "__wasmill_"
	// StartExport is the start function, which Open takes out of the start section.
	StartExport = reservedPrefix + "start"
)

// GlobalExport is the name under which Open exports a global.
func GlobalExport(index int) string { return fmt.Sprintf("%sg%d", reservedPrefix, index) }

// Capturable says whether memory and mutable globals are all that an instance of the module can change, so that a copy of
// them is a copy of the instance.
func (m *Module) Capturable() bool {
	for _, g := range m.Globals {
		if g.Mutable && !g.Type.Numeric() {
			return false
		}
	}
	for _, e := range m.Exports {
		if strings.HasPrefix(e.Name, reservedPrefix) {
			return false
		}
	}
	return m.Effects() == Effects{}
}

// Numeric says whether a value of the type is a number of at most 64 bits.
func (t ValueType) Numeric() bool { return t == I32 || t == I64 || t == F32 || t == F64 }

// Open returns the module with all mutable globals exported, without custom sections, and with nothing that happens by
// itself when it is instantiated: no start section, and no data, which EachSegment gives. Only for a module that is
// Capturable: its code does not refer to data segments.
func (m *Module) Open() []byte {
	out := append(make([]byte, 0, len(m.raw)), m.raw[:headerSize]...)
	for _, s := range m.sections {
		switch s.id {
		case idCustom, idStart, idData, idDataCount:
		case idExport:
			out = m.appendExports(out, m.raw[s.start:s.end])
		default:
			out = append(out, m.raw[s.start:s.end]...)
		}
	}
	return out
}

// appendExports writes an export section with further exports behind those it has.
func (m *Module) appendExports(out, section []byte) []byte {
	r := &reader{b: section, pos: 1}
	r.u32() // size
	r.u32() // count
	body, count := section[r.pos:], len(m.Exports)
	var more []byte
	add := func(name string, kind Kind, index uint32) {
		more = append(binary.AppendUvarint(more, uint64(len(name))), name...)
		more = binary.AppendUvarint(append(more, byte(kind)), uint64(index))
		count++
	}
	for i, g := range m.Globals {
		if g.Mutable {
			add(GlobalExport(i), KindGlobal, uint32(i))
		}
	}
	if m.HasStart {
		add(StartExport, KindFunc, m.Start)
	}
	number := binary.AppendUvarint(nil, uint64(count))
	out = binary.AppendUvarint(append(out, idExport), uint64(len(number)+len(body)+len(more)))
	return append(append(append(out, number...), body...), more...)
}

// EachSegment calls visit for each active data segment, in order; each lies inside the memory as it begins.
func (m *Module) EachSegment(visit func(offset uint32, data []byte)) {
	m.walkData(&reader{b: m.data}, visit)
}
