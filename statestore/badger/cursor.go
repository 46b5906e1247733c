package badger

import (
	"bytes"
	"fmt"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/wasmill/wasmill/statestore"
)

// cursor walks one range over one of Badger's iterators, which is dear to make and cheap to seek again.
type cursor struct {
	b    *backend
	txn  *badgerdb.Txn
	it   *badgerdb.Iterator
	r    statestore.Range
	down bool

	key   []byte // nil: not on a pair
	value []byte
	err   error
}

// Cursor walks the keys of r as of a batch.
func (b *backend) Cursor(asOf int64, r statestore.Range, descending bool) (_ statestore.Cursor, err error) {
	defer b.guard(&err)
	if bytes.Compare(r.Lower, firstKey) < 0 {
		r.Lower = firstKey
	}
	r.Lower, r.Upper = bytes.Clone(r.Lower), bytes.Clone(r.Upper)
	opt := badgerdb.DefaultIteratorOptions
	opt.PrefetchValues = false // it starts a goroutine for every pair
	opt.Reverse = descending
	opt.Prefix = commonPrefix(r)
	txn := b.db.NewTransactionAt(version(asOf), false)
	return &cursor{b: b, txn: txn, it: txn.NewIterator(opt), r: r, down: descending}, nil
}

// commonPrefix is what all keys of a range begin with; it narrows the tables that are looked at.
func commonPrefix(r statestore.Range) []byte {
	n := 0
	for n < len(r.Lower) && n < len(r.Upper) && r.Lower[n] == r.Upper[n] {
		n++
	}
	return r.Lower[:n]
}

// Seek moves to the first pair at or above key, or to the last below it.
func (c *cursor) Seek(key []byte) {
	if c.err != nil {
		return
	}
	defer c.b.guard(&c.err)
	c.b.trim.tick(c.b)
	if c.down {
		c.seekDown(key)
	} else {
		if bytes.Compare(key, c.r.Lower) < 0 || len(key) == 0 {
			key = c.r.Lower
		}
		c.it.Seek(key)
	}
	c.settle()
}

func (c *cursor) seekDown(key []byte) {
	if len(key) == 0 || len(c.r.Upper) > 0 && bytes.Compare(key, c.r.Upper) > 0 {
		key = c.r.Upper
	}
	if len(key) == 0 {
		c.it.Rewind()
		return
	}
	c.it.Seek(key)
	if c.it.Valid() && bytes.Equal(c.it.Item().Key(), key) {
		c.it.Next()
	}
}

// Next moves on.
func (c *cursor) Next() {
	if c.key == nil || c.err != nil {
		return
	}
	defer c.b.guard(&c.err)
	c.it.Next()
	c.settle()
}

// settle looks whether the iterator stands on a pair of the range.
func (c *cursor) settle() {
	c.key, c.value = nil, nil
	if !c.it.Valid() {
		return
	}
	key := c.it.Item().Key()
	if bytes.Compare(key, c.r.Lower) < 0 || len(c.r.Upper) > 0 && bytes.Compare(key, c.r.Upper) >= 0 {
		return
	}
	c.key = key
}

// Valid reports whether the cursor stands on a pair.
func (c *cursor) Valid() bool { return c.key != nil && c.err == nil }

// Key is the key of the pair.
func (c *cursor) Key() []byte { return c.key }

// Value is the value of the pair, checked.
func (c *cursor) Value() (_ []byte, err error) {
	if c.value != nil {
		return c.value, nil
	}
	if !c.Valid() {
		return nil, c.err
	}
	defer c.b.guard(&err)
	item := c.it.Item()
	err = item.Value(func(sealed []byte) error {
		v, ok := unseal(c.key, item.Version(), sealed)
		if !ok {
			c.err = c.b.damage(fmt.Errorf("the value of key %x does not match its checksum", c.key))
			return c.err
		}
		c.value = v
		return nil
	})
	return c.value, err
}

// Err is what ended the walk, if not the end of the range.
func (c *cursor) Err() error { return c.err }

// Close gives the tables free.
func (c *cursor) Close() error {
	if c.it != nil {
		c.it.Close()
		c.txn.Discard()
		c.it, c.key = nil, nil
	}
	return nil
}
