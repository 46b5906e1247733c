package abi

import (
	"encoding/binary"
	"slices"
	"unsafe"
)

// expect is the text of a member's name as it stood in an earlier object: from the opening quote to the colon.
type expect struct {
	words  [3]uint64 // the text, zeros behind it
	masks  [3]uint64 // ff for each byte of the text
	length int
	node   *node
}

const (
	expectLen = 24 // the longest text an expect holds
	lookahead = 6  // how many names an object may leave out before the scan loses track of the order
	maxExpect = 64 // how many names are remembered of one object
)

// newExpect remembers text, of at most expectLen bytes, for node n.
func newExpect(text []byte, n *node) expect {
	e := expect{length: len(text), node: n}
	for i, c := range text {
		e.words[i/8] |= uint64(c) << (i % 8 * 8)
		e.masks[i/8] |= 0xff << (i % 8 * 8)
	}
	return e
}

// at says whether the text stands at pos of v, where at least expectLen bytes are left.
func (e *expect) at(v []byte, pos int) bool {
	p := (*[expectLen]byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(v)), pos))
	return (binary.LittleEndian.Uint64(p[0:])^e.words[0])&e.masks[0]|
		(binary.LittleEndian.Uint64(p[8:])^e.words[1])&e.masks[1]|
		(binary.LittleEndian.Uint64(p[16:])^e.words[2])&e.masks[2] == 0
}

// Locate fills out, which has at least Len entries, with where each pointer's value lies in value, in the order given to
// NewLocator. It reports false, and all of them absent, when value is not one JSON text in UTF-8 as ValidJSON says. Of
// members with the same name the last one wins.
func (l *Locator) Locate(value []byte, out []Field) bool {
	out = out[:len(l.paths)]
	clear(out)
	end := -1
	if start := skipSpace(value, 0); start < len(value) {
		end = l.value(value, start, l.root, 0, out)
	}
	if end < 0 || skipSpace(value, end) != len(value) || !validUTF8(value) {
		clear(out)
		return false
	}
	return true
}

// value scans the value at pos for node n with depth containers open around it and returns the position after it, or -1.
func (l *Locator) value(v []byte, pos int, n *node, depth int, out []Field) int {
	kind, end := l.containerOrScalar(v, pos, n, depth, out)
	if end < 0 || n.all == 0 {
		return end
	}
	f := Field{Start: uint32(pos), Len: uint32(end - pos), Kind: kind}
	if kind == FieldString || kind == FieldEscaped {
		f.Start, f.Len = f.Start+1, f.Len-2
	}
	l.set(n, f, out)
	return end
}

func (l *Locator) containerOrScalar(v []byte, pos int, n *node, depth int, out []Field) (FieldKind, int) {
	switch v[pos] {
	case '{':
		return FieldObject, l.object(v, pos, n, depth, out)
	case '[':
		return FieldArray, l.array(v, pos, n, depth, out)
	}
	return skipScalar(v, pos)
}

// set notes where the value of node n lies. A scalar has nothing below it, whatever an earlier member of the same name had.
func (l *Locator) set(n *node, f Field, out []Field) {
	if n.all != n.own && f.Kind < FieldObject {
		l.reset(n, out)
	}
	for _, slot := range l.slots[n.slot : n.slot+n.own] {
		out[slot] = f
	}
}

// reset forgets what an earlier member of the same name had below it.
func (l *Locator) reset(n *node, out []Field) {
	for _, slot := range l.slots[n.slot : n.slot+n.all] {
		out[slot] = Field{}
	}
}

// object scans the object at pos.
func (l *Locator) object(v []byte, pos int, n *node, depth int, out []Field) int {
	if len(n.children) == 0 {
		return skipContainer(v, pos, depth)
	}
	if depth == MaxDepth {
		return -1
	}
	l.reset(n, out)
	if pos = skipSpace(v, pos+1); pos < len(v) && v[pos] == '}' {
		return pos + 1
	}
	return l.members(v, pos, n, depth+1, out)
}

// members scans the members of an object from the first name at pos to the closing bracket. Most objects of a stream have
// the same names in the same order: a name that stands where the last object had it is recognised by three comparisons
// and neither scanned nor looked up. Strings and numbers are scanned here, not in value: a call for each is a tenth of
// the time of the whole scan.
func (l *Locator) members(v []byte, pos int, n *node, depth int, out []Field) int {
	for i := 0; ; i++ {
		var member *node
		if i < len(n.expected) && pos+expectLen <= len(v) && n.expected[i].at(v, pos) {
			member = n.expected[i].node
			pos += n.expected[i].length
		} else if pos, i, member = l.name(v, pos, n, i); pos < 0 {
			return -1
		}
		if pos = skipSpace(v, pos); pos >= len(v) {
			return -1
		}
		var f Field
		end := -1
		switch c := v[pos]; {
		case c == '"':
			end = skipPlain(v, pos+1)
			f = Field{Start: uint32(pos + 1), Len: uint32(end - pos - 1), Kind: FieldString}
			if end < len(v) && v[end] == '"' {
				end++
				break
			}
			end, _ = skipString(v, end)
			f.Len, f.Kind = uint32(end-pos-2), FieldEscaped
		case c-'0' <= 9 || c == '-':
			end = skipNumber(v, pos)
			f = Field{Start: uint32(pos), Len: uint32(end - pos), Kind: FieldNumber}
		default:
			f.Kind, end = l.containerOrScalar(v, pos, member, depth, out)
			f.Start, f.Len = uint32(pos), uint32(end-pos)
		}
		if end < 0 {
			return -1
		}
		if member.all != 0 {
			l.set(member, f, out)
		}
		if pos = skipSpace(v, end); pos >= len(v) || v[pos] != ',' {
			return skipByte(v, pos, '}')
		}
		pos = skipSpace(v, pos+1)
	}
}

// skipByte returns the position after c, or -1 when it does not stand at pos.
func skipByte(v []byte, pos int, c byte) int {
	if pos >= len(v) || v[pos] != c {
		return -1
	}
	return pos + 1
}

// name scans the i-th name of an object, which is not the expected one, and its colon. It returns the position after the
// colon, or -1, the name's place in n.expected, and the node that it names. A name too long to be expected has the place
// of the one before it.
func (l *Locator) name(v []byte, pos int, n *node, i int) (next, place int, member *node) {
	if pos+expectLen <= len(v) {
		for j := i + 1; j < min(len(n.expected), i+lookahead); j++ {
			if e := &n.expected[j]; e.at(v, pos) {
				return pos + e.length, j, e.node
			}
		}
	}
	if pos >= len(v) || v[pos] != '"' {
		return -1, i, nil
	}
	end, escaped := skipString(v, pos+1)
	if end < 0 {
		return -1, i, nil
	}
	colon := skipSpace(v, end)
	if colon >= len(v) || v[colon] != ':' {
		return -1, i, nil
	}
	member = l.lookup(n, v[pos+1:end-1], escaped)
	text := v[pos : colon+1]
	if len(text) > expectLen {
		return colon + 1, i - 1, member
	}
	if i == len(n.expected) && i < maxExpect {
		n.expected = append(n.expected, newExpect(text, member))
	} else if i < len(n.expected) && pos+expectLen <= len(v) {
		n.expected[i] = newExpect(text, member)
	}
	return colon + 1, i, member
}

// lookup is the node below n with that name, or the one that stands for all that no pointer names.
func (l *Locator) lookup(n *node, name []byte, escaped bool) *node {
	if escaped {
		l.unescaped, _ = UnescapeString(name, l.unescaped[:0])
		name = l.unescaped
	}
	i := slices.IndexFunc(n.children, func(c child) bool { return c.name == string(name) })
	if i < 0 {
		return &l.ignored
	}
	return n.children[i].node
}

// array scans the array at pos. The elements that pointers name come in n.elements in the order of their indexes.
func (l *Locator) array(v []byte, pos int, n *node, depth int, out []Field) int {
	l.reset(n, out)
	if len(n.elements) == 0 {
		return skipContainer(v, pos, depth)
	}
	if depth == MaxDepth {
		return -1
	}
	if pos = skipSpace(v, pos+1); pos < len(v) && v[pos] == ']' {
		return pos + 1
	}
	wanted := n.elements
	for i := 0; ; i++ {
		if pos >= len(v) {
			return -1
		}
		if len(wanted) > 0 && wanted[0].index == i {
			pos = l.value(v, pos, wanted[0].node, depth+1, out)
			wanted = wanted[1:]
		} else {
			pos = skipValue(v, pos, depth+1)
		}
		if pos < 0 {
			return -1
		}
		pos = skipSpace(v, pos)
		if pos >= len(v) || v[pos] != ',' {
			return skipByte(v, pos, ']')
		}
		pos = skipSpace(v, pos+1)
	}
}
