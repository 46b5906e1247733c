package engine

import "github.com/wasmill/wasmill/abi"

// blockSize is the least memory a buffer asks for at a time.
const blockSize = 256 << 10

// buffer keeps copies of records in order. Its memory is used again after reset. The bytes of what it holds stay valid
// until then.
type buffer struct {
	recs    []abi.Record
	headers []abi.Header
	blocks  [][]byte
	block   int // index of the block being filled
}

func (b *buffer) reset() {
	b.recs = b.recs[:0]
	b.headers = b.headers[:0]
	for i := range b.blocks {
		b.blocks[i] = b.blocks[i][:0]
	}
	b.block = 0
}

// add copies r and returns the copy, whose Fields are unset.
func (b *buffer) add(r *abi.Record) *abi.Record {
	b.recs = append(b.recs, *r)
	c := &b.recs[len(b.recs)-1]
	c.Fields = nil
	c.Key = b.bytes(r.Key)
	c.Value = b.bytes(r.Value)
	c.Headers = nil
	if len(r.Headers) > 0 {
		start := len(b.headers)
		for _, h := range r.Headers {
			b.headers = append(b.headers, abi.Header{Name: b.bytes(h.Name), Value: b.bytes(h.Value)})
		}
		c.Headers = b.headers[start:len(b.headers):len(b.headers)]
	}
	return c
}

// bytes copies p into the buffer's memory; nil stays nil and empty stays empty.
func (b *buffer) bytes(p []byte) []byte {
	if p == nil {
		return nil
	}
	for b.block < len(b.blocks) && cap(b.blocks[b.block])-len(b.blocks[b.block]) < len(p) {
		b.block++
	}
	if b.block == len(b.blocks) {
		b.blocks = append(b.blocks, make([]byte, 0, max(blockSize, len(p))))
	}
	blk := b.blocks[b.block]
	start := len(blk)
	blk = append(blk, p...)
	b.blocks[b.block] = blk
	return blk[start:len(blk):len(blk)]
}
