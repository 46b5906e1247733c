package abi

import (
	"fmt"
	"slices"
)

// Locator finds the values that a fixed list of JSON pointers names, in one scan that also checks that the text is JSON.
// It remembers the order of names from one text to the next, so it serves one goroutine at a time; Clone makes another.
type Locator struct {
	paths     [][]string // the pointers' tokens
	root      *node
	slots     []int  // out positions in the order of the tree, so that a subtree is a range of it
	unescaped []byte // scratch for unescaped names
	ignored   node   // stands for all that no pointer names
}

// node is one step of the pointers' tree.
type node struct {
	slot     int // first position in Locator.slots of this subtree; the node's own slots come first
	own      int // how many slots name this node itself
	all      int // how many slots lie in the subtree
	children []child
	elements []child  // the children that can be array elements, by index
	expected []expect // the names of the last object at this place, in its order
}

type child struct {
	name  string
	index int // as an array index, -1 when it is none
	node  *node
}

// NewLocator prepares a scan for pointers (RFC 6901). The same pointer may come twice.
func NewLocator(pointers []string) (*Locator, error) {
	paths := make([][]string, len(pointers))
	for i, pointer := range pointers {
		tokens, err := ParsePointer(pointer)
		if err != nil {
			return nil, fmt.Errorf("locate fields: %w", err)
		}
		paths[i] = tokens
	}
	return locate(paths), nil
}

// locate builds the tree of paths.
func locate(paths [][]string) *Locator {
	l := &Locator{paths: paths, root: &node{}}
	owners := map[*node][]int{}
	for i, path := range paths {
		at := l.root
		for _, token := range path {
			at = at.step(token)
		}
		owners[at] = append(owners[at], i)
	}
	l.slots = l.root.number(owners, nil)
	return l
}

// Clone returns a Locator for the same pointers that may be used by another goroutine.
func (l *Locator) Clone() *Locator { return locate(l.paths) }

// Len is the number of pointers, and so the length that Locate needs of out.
func (l *Locator) Len() int { return len(l.paths) }

// step is the child of n for token, made if there is none.
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

// number gives the nodes below and with n their ranges of slots and returns slots with theirs appended.
func (n *node) number(owners map[*node][]int, slots []int) []int {
	n.slot = len(slots)
	slots = append(slots, owners[n]...)
	n.own = len(slots) - n.slot
	for _, c := range n.children {
		slots = c.node.number(owners, slots)
	}
	n.all = len(slots) - n.slot
	return slots
}
