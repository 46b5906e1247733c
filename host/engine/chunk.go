package engine

import (
	"sort"

	"github.com/wasmill/wasmill/abi"
)

// chunk collects the records of one frame: one input, at most 1,024 records and 262,144 bytes of sizes; a larger record
// travels alone. Where a chunk has used up its fuel they are smaller, see stageLane.narrow. The rule is part of the
// semantics.
type chunk struct {
	records int  // at most
	closed  bool // nothing more may join
	recs    buffer
	splits  []string // by record
	entry   int
	size    int
	fields  []abi.Field // room for every record's fields
	most    int         // fields a record has room for
}

func (c *chunk) reset() {
	c.recs.reset()
	c.splits = c.splits[:0]
	c.size, c.closed = 0, false
}

// fits reports whether a record of that size may join.
func (c *chunk) fits(entry, size int) bool {
	n := len(c.recs.recs)
	return n == 0 || (!c.closed && entry == c.entry && n < c.records && c.size+size <= abi.MaxChunkBytes)
}

func (c *chunk) add(entry int, split string, size int, r *abi.Record) *abi.Record {
	c.entry = entry
	c.size += size
	c.splits = append(c.splits, split)
	return c.recs.add(r)
}

// slot is the field room of the record added last.
func (c *chunk) slot() []abi.Field {
	i := len(c.recs.recs) - 1
	return c.fields[i*c.most : (i+1)*c.most : (i+1)*c.most]
}

// find returns the record with that number in the lane, and where it was read, or nil when it is not in this chunk.
func (c *chunk) find(index uint32) (*abi.Record, string) {
	recs := c.recs.recs
	i := sort.Search(len(recs), func(i int) bool { return recs[i].Index >= index })
	if i < len(recs) && recs[i].Index == index {
		return &recs[i], c.splits[i]
	}
	return nil, ""
}
