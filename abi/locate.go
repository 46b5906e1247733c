package abi

import (
	"fmt"
	"slices"
)

// Locator finds the values that a fixed list of JSON pointers names, in one scan that also checks that the text is JSON.
// It remembers the order of names from one text to the next, so it serves one goroutine at a time; Clone makes another.
type Locator struct {
	pointers []string
	root     *node
	slots    []int  // out positions in the order of the tree, so that a subtree is a range of it
	name     []byte // scratch for unescaped names
}

// node is one step of the pointers' tree.
type node struct {
	slot     int // first position in Locator.slots of this subtree; the node's own slots come first
	own      int // how many slots name this node itself
	all      int // how many slots lie in the subtree
	children []child
	elements []child // the children that can be array elements, by index
}

type child struct {
	name  string
	index int // as an array index, -1 when it is none
	node  *node
}

// NewLocator prepares a scan for pointers (RFC 6901). The same pointer may come twice.
func NewLocator(pointers []string) (*Locator, error) {
	l := &Locator{pointers: slices.Clone(pointers)}
	b := builder{owners: map[*node][]int{}, root: &node{}}
	for i, pointer := range pointers {
		tokens, err := ParsePointer(pointer)
		if err != nil {
			return nil, fmt.Errorf("locate fields: %w", err)
		}
		at := b.root
		for _, token := range tokens {
			at = at.step(token)
		}
		b.owners[at] = append(b.owners[at], i)
	}
	l.root = b.root
	l.slots = b.number(b.root, nil)
	return l, nil
}

// Clone returns a Locator for the same pointers that may be used by another goroutine.
func (l *Locator) Clone() *Locator {
	other, err := NewLocator(l.pointers)
	if err != nil {
		return l // unreachable: the pointers were accepted before
	}
	return other
}

// Len is the number of pointers, and so the length that Locate needs of out.
func (l *Locator) Len() int { return len(l.pointers) }

type builder struct {
	owners map[*node][]int
	root   *node
}

func (n *node) step(token string) *node {
	for _, c := range n.children {
		if c.name == token {
			return c.node
		}
	}
	c := child{name: token, index: arrayIndex(token), node: &node{}}
	n.children = append(n.children, c)
	if c.index >= 0 {
		n.elements = append(n.elements, c)
		slices.SortFunc(n.elements, func(a, b child) int { return a.index - b.index })
	}
	return c.node
}

func (b *builder) number(n *node, slots []int) []int {
	n.slot = len(slots)
	slots = append(slots, b.owners[n]...)
	n.own = len(slots) - n.slot
	for _, c := range n.children {
		slots = b.number(c.node, slots)
	}
	n.all = len(slots) - n.slot
	return slots
}

// Locate fills out, which has at least Len entries, with where each pointer's value lies in value, in the order given to
// NewLocator. It reports false, and all of them absent, when value is not one JSON text in UTF-8 as ValidJSON says. Of
// members with the same name the last one wins.
func (l *Locator) Locate(value []byte, out []Field) bool {
	out = out[:len(l.pointers)]
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
	var kind FieldKind
	var end int
	start, trim := pos, 0
	switch v[pos] {
	case '{':
		kind, end = FieldObject, l.object(v, pos, n, depth, out)
	case '[':
		kind, end = FieldArray, l.array(v, pos, n, depth, out)
	default:
		if n.all != n.own {
			l.reset(n, out)
		}
		if kind, end = skipScalar(v, pos); kind == FieldString || kind == FieldEscaped {
			start, trim = pos+1, 1
		}
	}
	if end < 0 {
		return -1
	}
	for _, slot := range l.slots[n.slot : n.slot+n.own] {
		out[slot] = Field{Start: uint32(start), Len: uint32(end - trim - start), Kind: kind}
	}
	return end
}

// reset forgets what an earlier member of the same name had below it.
func (l *Locator) reset(n *node, out []Field) {
	for _, slot := range l.slots[n.slot : n.slot+n.all] {
		out[slot] = Field{}
	}
}

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
	for {
		var found *node
		if pos, found = l.key(v, pos, n); pos < 0 || pos >= len(v) {
			return -1
		}
		if found != nil {
			pos = l.value(v, pos, found, depth+1, out)
		} else {
			pos = skipValue(v, pos, depth+1)
		}
		if pos < 0 {
			return -1
		}
		if pos = skipSpace(v, pos); pos >= len(v) {
			return -1
		}
		if v[pos] == '}' {
			return pos + 1
		}
		if v[pos] != ',' {
			return -1
		}
		pos = skipSpace(v, pos+1)
	}
}

// key scans the name at pos and returns the position of its value, or -1, and the node it names, if any.
func (l *Locator) key(v []byte, pos int, n *node) (int, *node) {
	if pos >= len(v) || v[pos] != '"' {
		return -1, nil
	}
	end, escaped := skipString(v, pos+1)
	if end < 0 {
		return -1, nil
	}
	name := v[pos+1 : end-1]
	if escaped {
		l.name, _ = UnescapeString(name, l.name[:0])
		name = l.name
	}
	pos = skipColon(v, end)
	for i := range n.children {
		if string(name) == n.children[i].name {
			return pos, n.children[i].node
		}
	}
	return pos, nil
}

func (l *Locator) array(v []byte, pos int, n *node, depth int, out []Field) int {
	if len(n.elements) == 0 {
		if n.all != n.own {
			l.reset(n, out)
		}
		return skipContainer(v, pos, depth)
	}
	if depth == MaxDepth {
		return -1
	}
	l.reset(n, out)
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
		if pos = skipSpace(v, pos); pos >= len(v) {
			return -1
		}
		if v[pos] == ']' {
			return pos + 1
		}
		if v[pos] != ',' {
			return -1
		}
		pos = skipSpace(v, pos+1)
	}
}
