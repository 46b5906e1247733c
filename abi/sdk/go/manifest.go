package wasmill

import (
	"unsafe"

	"github.com/wasmill/wasmill/abi/sdk/go/internal/mem"
	"github.com/wasmill/wasmill/abi/sdk/go/internal/scan"
)

// Manifest is a module's manifest, the text of manifest.json. Its methods are for package variables: a wrong name stops
// the module before it has started.
type Manifest string

// Field is a declared field: where it lies behind a record, in bytes.
type Field uint64

// Port is a declared output: its position among the manifest's outputs.
type Port uint16

// Out0 is the output of a module without a manifest, which is called out.
const Out0 Port = 0

// Field is the field that the first input declares by this JSON pointer. It panics when there is none.
func (m Manifest) Field(pointer string) Field { return m.InputField(0, pointer) }

// InputField is the same for input number input, counted from 0.
func (m Manifest) InputField(input int, pointer string) Field {
	at := m.find("inputs", func(inputs scan.Span) int {
		w := scan.Begin(inputs, scan.Array)
		for range input {
			w.Element()
		}
		in, _ := w.Element()
		return position(member(in, "fields"), pointer, "")
	})
	if at < 0 {
		panic("wasmill: the manifest does not declare the field " + pointer)
	}
	f := Field(at * fieldSize)
	module.name(f, pointer)
	return f
}

// Port is the output of this name. It panics when there is none.
func (m Manifest) Port(name string) Port {
	at := m.find("outputs", func(outputs scan.Span) int { return position(outputs, name, "name") })
	if at < 0 {
		panic("wasmill: the manifest does not declare the output " + name)
	}
	return Port(at)
}

// mark stands in every module that knows its manifest, and in no other. A host that finds it there refuses the module when
// the manifest that it reads is not, byte for byte, the one inside.
const mark = "wasmill-manifest-beside-module-1"

// find looks into a member of the manifest, in a copy that has room behind it for wide loads.
func (m Manifest) find(name string, look func(scan.Span) int) int {
	module.mark = mark
	var copied mem.Arena
	if !copied.Hold(uint64(len(m))) {
		return -1
	}
	copy(mem.Bytes(copied.Base, copied.Len), unsafe.Slice(unsafe.StringData(string(m)), len(m)))
	all := scan.Whole(copied.Base, copied.Len)
	at := look(member(all, name))
	if at >= 0 {
		module.declared = counts(module.declared[:0], member(all, "inputs"))
	}
	copied.Release()
	return at
}

// counts appends how many fields each input declares.
func counts(to []uint64, inputs scan.Span) []uint64 {
	w := scan.Begin(inputs, scan.Array)
	for {
		in, ok := w.Element()
		if !ok {
			return to
		}
		n, fields := uint64(0), scan.Begin(member(in, "fields"), scan.Array)
		for _, more := fields.Element(); more; _, more = fields.Element() {
			n++
		}
		to = append(to, n)
	}
}

// member is the last member of that name.
func member(object scan.Span, name string) scan.Span {
	var found scan.Span
	w := scan.Begin(object, scan.Object)
	for {
		key, value, ok := w.Member()
		if !ok {
			return found
		}
		if scan.Is(key, name) {
			found = value
		}
	}
}

// position is where text stands in a list, as an element or as the member by of an element; -1 when it does not.
func position(list scan.Span, text, by string) int {
	w := scan.Begin(list, scan.Array)
	for i := 0; ; i++ {
		item, ok := w.Element()
		if !ok {
			return -1
		}
		if by != "" {
			item = member(item, by)
		}
		if scan.Is(item, text) {
			return i
		}
	}
}
