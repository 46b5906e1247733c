package debuginfo

import "debug/dwarf"

// span is the code at [lo, hi).
type span struct{ lo, hi uint32 }

// Entries of a range list of DWARF 5 (7.25).
const (
	listEnd = iota
	listBaseIndex
	listStartEndIndex
	listStartLengthIndex
	listOffsets
	listBase
	listStartEnd
	listStartLength
)

// maxSpans is how many parts one entry's code may be in.
const maxSpans = 1 << 12

// ranges are the parts that the code of an entry is in, without what a linker left out. debug/dwarf reads them too, but
// without a bound on its work: any number of entries may share one long list.
func (w *walk) ranges(e *dwarf.Entry) []span {
	s := &spans{walk: w, base: w.base}
	if low, ok := e.Val(dwarf.AttrLowpc).(uint64); ok {
		switch high := e.Val(dwarf.AttrHighpc).(type) {
		case uint64:
			s.add(low, high)
		case int64:
			s.add(low, low+uint64(high))
		}
	}
	var offset uint64
	switch v := e.Val(dwarf.AttrRanges).(type) {
	case int64:
		offset = uint64(v)
	case uint64:
		offset = v
	default:
		return s.list
	}
	if w.version >= 5 {
		s.readLists(at(w.sections[".debug_rnglists"], offset))
	} else {
		s.readRanges(at(w.sections[".debug_ranges"], offset))
	}
	return s.list
}

// spans collects spans.
type spans struct {
	walk *walk
	base uint64
	list []span
}

func (s *spans) add(lo, hi uint64) {
	if isDead(lo) || lo >= hi || hi > 1<<32-1 {
		return
	}
	s.list = append(s.list, span{uint32(lo), uint32(hi)})
}

// more charges for a step along a list.
func (s *spans) more(c *cursor) bool {
	s.walk.left--
	return !c.bad && s.walk.left > 0 && len(s.list) < maxSpans
}

// readRanges reads a list of DWARF 2 to 4 (2.17.3 there).
func (s *spans) readRanges(c *cursor) {
	for s.more(c) {
		lo, hi := uint64(c.u32()), uint64(c.u32())
		switch {
		case lo == 0 && hi == 0:
			return
		case lo == 1<<32-1:
			s.base = hi
		case isDead(lo) && s.base == 0:
		default:
			s.add(s.base+lo, s.base+hi)
		}
	}
}

// readLists reads a list of DWARF 5 (2.17.3).
func (s *spans) readLists(c *cursor) {
	for s.more(c) {
		switch c.u8() {
		case listBaseIndex:
			s.base = s.address(c.uleb())
		case listStartEndIndex:
			lo, hi := s.address(c.uleb()), s.address(c.uleb())
			s.add(lo, hi)
		case listStartLengthIndex:
			lo := s.address(c.uleb())
			s.add(lo, lo+c.uleb())
		case listOffsets:
			lo, hi := c.uleb(), c.uleb()
			s.offsets(lo, hi)
		case listBase:
			s.base = uint64(c.u32())
		case listStartEnd:
			lo, hi := uint64(c.u32()), uint64(c.u32())
			s.add(lo, hi)
		case listStartLength:
			lo := uint64(c.u32())
			s.add(lo, lo+c.uleb())
		case listEnd:
			return
		default:
			return
		}
	}
}

// offsets adds a part of code that was not left out with its base.
func (s *spans) offsets(lo, hi uint64) {
	if s.base != 0 && isDead(s.base) {
		return
	}
	s.add(s.base+lo, s.base+hi)
}

// address is an address of .debug_addr.
func (s *spans) address(index uint64) uint64 {
	if index > 1<<32 {
		return 0
	}
	return uint64(at(s.walk.sections[".debug_addr"], s.walk.addrBase+4*index).u32())
}
