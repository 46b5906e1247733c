package binary

// Capturable says whether memory and mutable globals are all that an instance of the module can change, so that a copy of
// them is a copy of the instance.
func (m *Module) Capturable() bool { return m.WhyNotCapturable() == "" }

// WhyNotCapturable says what an instance can change that cannot be copied, "" for nothing.
func (m *Module) WhyNotCapturable() string {
	for _, g := range m.Globals {
		if g.Mutable && !g.Type.Numeric() {
			return "a mutable global of type " + g.Type.String()
		}
	}
	e := m.Effects()
	switch {
	case e.Tables:
		return "code that writes to a table"
	case e.Elements:
		return "code that drops element segments"
	case e.Data:
		return "code that reads or drops data segments"
	}
	return ""
}

// Numeric says whether a value of the type is a number of at most 64 bits.
func (t ValueType) Numeric() bool { return t == I32 || t == I64 || t == F32 || t == F64 }

// EachSegment calls visit for each active data segment, in order; each lies inside the memory as it begins.
func (m *Module) EachSegment(visit func(offset uint32, data []byte)) {
	for i := range m.Data {
		if m.Data[i].Mode == Active {
			visit(uint32(m.Data[i].Offset.Value), m.Data[i].Bytes)
		}
	}
}
