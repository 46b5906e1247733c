package mem

import (
	"bytes"
	"hash/maphash"

	"github.com/wasmill/wasmill/statestore"
)

// node is one of a treap whose nodes never change: with and without return a new root that shares what is the same. The
// priority of a key is its hash, so that the shape depends on the keys alone.
type node struct {
	key, value  []byte
	priority    uint64
	left, right *node
	count       int64
	bytes       int64
}

var seed = maphash.MakeSeed()

func (n *node) join(left, right *node) *node {
	m := &node{key: n.key, value: n.value, priority: n.priority, left: left, right: right, count: 1, bytes: int64(len(n.key) + len(n.value))}
	for _, c := range []*node{left, right} {
		if c != nil {
			m.count += c.count
			m.bytes += c.bytes
		}
	}
	return m
}

func (n *node) with(key, value []byte) *node {
	one := &node{key: key, value: value, priority: maphash.Bytes(seed, key)}
	return n.insert(one)
}

func (n *node) insert(one *node) *node {
	if n == nil {
		return one.join(nil, nil)
	}
	c := bytes.Compare(one.key, n.key)
	if c == 0 {
		return one.join(n.left, n.right)
	}
	if one.priority > n.priority {
		left, right := n.split(one.key)
		return one.join(left, right)
	}
	if c < 0 {
		return n.join(n.left.insert(one), n.right)
	}
	return n.join(n.left, n.right.insert(one))
}

// split parts a tree that has not the key.
func (n *node) split(key []byte) (below, above *node) {
	if n == nil {
		return nil, nil
	}
	if bytes.Compare(n.key, key) < 0 {
		below, above = n.right.split(key)
		return n.join(n.left, below), above
	}
	below, above = n.left.split(key)
	return below, n.join(above, n.right)
}

func (n *node) without(key []byte) *node {
	if n == nil {
		return nil
	}
	switch c := bytes.Compare(key, n.key); {
	case c == 0:
		return merge(n.left, n.right)
	case c < 0:
		return n.join(n.left.without(key), n.right)
	default:
		return n.join(n.left, n.right.without(key))
	}
}

func merge(a, b *node) *node {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.priority > b.priority:
		return a.join(a.left, merge(a.right, b))
	default:
		return b.join(merge(a, b.left), b.right)
	}
}

// cursor walks a tree: the path are the nodes that come after those below them.
type cursor struct {
	root       *node
	bounds     statestore.Range
	descending bool
	path       []*node
}

func (b *backend) Cursor(asOf int64, r statestore.Range, descending bool) (statestore.Cursor, error) {
	return &cursor{
		root:       b.at(asOf).root,
		bounds:     statestore.Range{Lower: bytes.Clone(r.Lower), Upper: bytes.Clone(r.Upper)},
		descending: descending,
	}, nil
}

func (c *cursor) Seek(key []byte) {
	c.path = c.path[:0]
	if c.descending {
		if len(key) == 0 || (len(c.bounds.Upper) > 0 && bytes.Compare(key, c.bounds.Upper) > 0) {
			key = c.bounds.Upper
		}
	} else if bytes.Compare(key, c.bounds.Lower) < 0 {
		key = c.bounds.Lower
	}
	for n := c.root; n != nil; {
		n = c.step(n, c.descending && len(key) == 0 || (bytes.Compare(n.key, key) < 0) == c.descending)
	}
}

// step notes a node that is to come and goes to those before it, or passes it.
func (c *cursor) step(n *node, comes bool) *node {
	if comes {
		c.path = append(c.path, n)
	}
	if comes == c.descending {
		return n.right
	}
	return n.left
}

func (c *cursor) Next() {
	n := c.path[len(c.path)-1]
	c.path = c.path[:len(c.path)-1]
	if c.descending {
		for n = n.left; n != nil; n = n.right {
			c.path = append(c.path, n)
		}
		return
	}
	for n = n.right; n != nil; n = n.left {
		c.path = append(c.path, n)
	}
}

func (c *cursor) Valid() bool {
	if len(c.path) == 0 {
		return false
	}
	k := c.Key()
	if c.descending {
		return bytes.Compare(k, c.bounds.Lower) >= 0
	}
	return len(c.bounds.Upper) == 0 || bytes.Compare(k, c.bounds.Upper) < 0
}

func (c *cursor) Key() []byte            { return c.path[len(c.path)-1].key }
func (c *cursor) Value() ([]byte, error) { return c.path[len(c.path)-1].value, nil }
func (c *cursor) Err() error             { return nil }
func (c *cursor) Close() error           { return nil }
