package wasmill

import "github.com/wasmill/wasmill/abi/sdk/go/internal/mem"

// page is where a scan's entries go: nested loops have one each.
type page struct {
	after   mem.Arena // the sub-key to go on from
	entries mem.Arena
}

// A scan's page: its room in bytes, and how many entries are asked for, at first and at most. Who looks for the first one
// need not pay for more.
const (
	pageSize  = 64 << 10
	firstPage = 16
	mostPage  = 1024
)

// scan gives the entries of the key at hand whose sub-key begins with prefix. What is dirty of this key is written first,
// so the host's answer is all there is.
func (s *store) scan(table Table, prefix, after []byte, down bool, yield func(sub, value []byte) bool) {
	key := s.hand()
	if uint64(max(len(prefix), len(after)))+s.keys[key].word>>32 > maxStateKey {
		panic("wasmill: a key and a prefix together have at most 4 KiB")
	}
	p := s.page()
	defer func() { s.depth-- }()
	begin, from := s.copied(prefix), uint64(nullWord)
	if after != nil {
		copy(mem.Bytes(p.after.Base, uint64(len(after))), after)
		from = p.after.Base | uint64(len(after))<<32
	}
	for limit := uint64(firstPage); ; limit = min(4*limit, mostPage) {
		s.writeKey(table, key)
		op := s.op(0, opScan|limit<<32, table, key, begin, from, 0)
		if down {
			mem.PutU32(op+opFlags, flagDown)
		}
		s.fill(p)
		count, at := mem.U32(op+opCount), mem.U32(op+opAnswer)
		more := mem.U32(op+opFlags)&flagMore != 0 || count == limit
		for range count {
			sub, value := mem.U64(at), mem.U64(at+8)
			if !yield(wordBytes(sub), wordBytes(value)) {
				return
			}
			at += headerSize
			from = sub
		}
		if !more {
			return
		}
		mem.Copy(p.after.Base, from&0xffffffff, from>>32)
		from = p.after.Base | from>>32<<32
	}
}

// page takes a page for a loop. Its address is good until the loop is done, as pages are only added behind it.
func (s *store) page() *page {
	if s.depth == len(s.pages) {
		s.pages = append(s.pages, new(page))
	}
	p := s.pages[s.depth]
	if !p.after.Hold(maxStateKey) || !p.entries.Hold(pageSize) {
		panic("wasmill: not enough memory for a scan")
	}
	s.depth++
	return p
}

// fill has operation 0 answered into a page, which grows for a first entry that is larger.
func (s *store) fill(p *page) {
	need := s.ops.Base + maxOps*opSize
	for mem.StateRead(s.ops.Base, 1, p.entries.Base, p.entries.Len, need) != 0 {
		if !p.entries.Hold(mem.U32(need)) {
			panic("wasmill: not enough memory for a scan")
		}
	}
}

// writeKey writes what is dirty of one key in one table, and the clears.
func (s *store) writeKey(table Table, key uint32) {
	n := s.writeClears(0)
	for i := s.keys[key].last; i != 0; i = s.entries[i-1].next {
		if s.entries[i-1].table == uint16(table) {
			n = s.writeEntry(n, i-1)
		}
	}
	s.send(n)
}
