package files

import (
	"bytes"
	"context"
	"io"
	"math"

	"github.com/wasmill/wasmill/host/source"
)

// budget is what a batch may still take. It counts lines that are not empty (csv and parquet: rows) and decoded bytes.
type budget struct {
	records, bytes int64
	any            bool // something was taken: from here on the limits hold without exception
	lines          bool // empty lines count as well
}

func newBudget(l source.Limit) *budget {
	b := &budget{records: l.Records, bytes: l.Bytes}
	if b.records <= 0 {
		b.records = math.MaxInt64
	}
	if b.bytes <= 0 {
		b.bytes = math.MaxInt64
	}
	return b
}

func (b *budget) take(from place, got scanned) {
	b.records -= got.end.Line - from.Line - got.blank
	b.bytes -= got.end.Off - from.Off
	b.any = b.any || got.end.Line > from.Line
}

func (b *budget) spent() bool { return b.any && (b.records <= 0 || b.bytes <= 0) }

// blocks reads a stream in blocks of blockSize and may keep them.
type blocks struct {
	ctx    context.Context
	st     *stream
	cache  *cache // nil: nothing is kept
	chunks [][]byte
	buf    []byte // used again for each block once nothing is kept
	base   int64  // offset of the current block
	block  []byte
	sums   *sums // nil: nobody asks
}

func (b *blocks) next() ([]byte, error) {
	if err := b.ctx.Err(); err != nil {
		return nil, err
	}
	b.sums.pass(b.base, b.block)
	buf := b.buf
	if b.cache != nil {
		if buf = b.cache.block(); buf == nil {
			b.giveUp()
			buf = b.buf
		}
	}
	b.base = b.st.off
	n, err := b.st.fill(buf[:blockSize])
	b.block = buf[:n]
	switch {
	case b.cache == nil:
	case n == 0:
		b.cache.recycle([][]byte{buf})
	default:
		b.chunks = append(b.chunks, b.block)
	}
	return b.block, err
}

// giveUp stops keeping: there is too much of it.
func (b *blocks) giveUp() {
	b.cache.recycle(b.chunks)
	b.cache, b.chunks = nil, nil
}

// scanned is the outcome of planning a part of a file.
type scanned struct {
	end   place
	eof   bool
	sum   string // of the decoded bytes before end, "" not known
	blank int64  // lines up to end that the budget does not count
	marks []mark
}

// scanText counts the lines from a place on as far as the budget goes; what stands after the last end of line is one at
// the end of the file. It counts whole blocks, which is several times faster than walking lines.
func scanText(in *blocks, from place, left *budget) (scanned, error) {
	out := scanned{end: from}
	start := true // the block begins with a line
	for {
		b, err := in.next()
		if err == io.EOF {
			out.eof = true
			if off := in.st.off; off > out.end.Off {
				out.end = place{off, out.end.Line + 1}
			}
			return out, nil
		}
		if err != nil {
			return scanned{}, err
		}
		fit := len(b)
		if over := in.base + int64(fit) - from.Off - left.bytes; over > 0 {
			fit = int(max(0, int64(fit)-over))
		}
		n, blank := int64(bytes.Count(b[:fit], newline)), int64(0)
		if !left.lines {
			blank = emptyLines(b[:fit], start)
		}
		if cut, blank, ok := cutBlock(b, fit, n, blank, start, in.base, from, &out, left); ok {
			out.end = cut
			out.blank += blank
			out.eof, err = atEnd(in, cut)
			return out, err
		}
		if fit == len(b) && n > 0 {
			out.end = place{in.base + int64(bytes.LastIndexByte(b, '\n')) + 1, out.end.Line + n}
			in.sums.hold(out.end.Off)
			out.blank += blank
			out.marks = append(out.marks, out.end)
		}
		start = b[len(b)-1] == '\n'
	}
}

var (
	newline = []byte{'\n'}
	twice   = []byte{'\n', '\n'}
)

// emptyLines counts the ends of line that follow another directly, or stand at the start of a line that b begins with.
func emptyLines(b []byte, start bool) (n int64) {
	for i := 0; ; {
		if !start {
			if i = bytes.Index(b, twice); i < 0 {
				return n
			}
			i++
		}
		from := i
		for i < len(b) && b[i] == '\n' {
			i++
		}
		n += int64(i - from)
		b, start = b[i:], false
	}
}

// cutBlock finds where the budget ends the part, if that is known within this block, of which fit bytes with n ends of
// line, blank of them of empty lines, are within the budget. done is what is planned before the block. It also returns
// how many empty lines of the block lie before the cut.
func cutBlock(b []byte, fit int, n, blank int64, start bool, base int64, from place, done *scanned, left *budget) (place, int64, bool) {
	last := done.end
	records := left.records - (last.Line - from.Line - done.blank)
	switch {
	case n-blank >= records:
		off, lines := nth(b, records, start, left.lines)
		return place{base + off, last.Line + lines}, lines - records, true
	case fit == len(b):
		return place{}, 0, false
	case n > 0:
		return place{base + int64(bytes.LastIndexByte(b[:fit], '\n')) + 1, last.Line + n}, blank, true
	case last.Line > from.Line || left.any:
		return last, 0, true
	}
	if p := bytes.IndexByte(b, '\n'); p >= 0 {
		return place{base + int64(p) + 1, last.Line + 1}, 0, true
	}
	return place{}, 0, false
}

// nth returns the offset after the n-th line that counts, which is there, and how many lines lie before it. start: the
// block begins with a line; all: empty lines count.
func nth(b []byte, n int64, start, all bool) (off, lines int64) {
	at := 0
	for n > 0 {
		length := bytes.IndexByte(b[at:], '\n')
		if length > 0 || all || at == 0 && !start {
			n--
		}
		at += length + 1
		lines++
	}
	return int64(at), lines
}

// atEnd reports whether a cut is the end of the file, and leaves the stream standing there if it can.
func atEnd(in *blocks, cut place) (bool, error) {
	if cut.Off < in.base {
		return false, nil // in an earlier block, so something follows
	}
	in.st.unread(in.block[cut.Off-in.base:])
	more, err := in.st.more()
	return !more, err
}

// lineScanner cuts blocks into lines.
type lineScanner struct {
	next  func() ([]byte, error)
	max   int
	block []byte
	pos   int
	carry []byte
	off   int64 // bytes consumed
}

// line returns the next line without its end. It stays valid until the next call. A line over max is cut and long. The
// end is io.EOF.
func (s *lineScanner) line() (line []byte, long bool, err error) {
	rest := s.block[s.pos:]
	if i := bytes.IndexByte(rest, '\n'); i >= 0 {
		s.pos += i + 1
		s.off += int64(i) + 1
		return rest[:i], i > s.max, nil
	}
	return s.spanning()
}

// spanning puts a line together that reaches over blocks.
func (s *lineScanner) spanning() ([]byte, bool, error) {
	s.carry = append(s.carry[:0], s.block[s.pos:]...)
	length := len(s.carry)
	for {
		b, err := s.next()
		if err == io.EOF && length > 0 {
			s.block, s.pos = nil, 0
			s.off += int64(length)
			return s.carry, length > s.max, nil
		}
		if err != nil {
			s.block, s.pos = nil, 0
			return nil, false, err
		}
		i := bytes.IndexByte(b, '\n')
		n := i
		if i < 0 {
			n = len(b)
		}
		if len(s.carry) <= s.max {
			s.carry = append(s.carry, b[:n]...)
		}
		length += n
		if i >= 0 {
			s.block, s.pos = b, i+1
			s.off += int64(length) + 1
			return s.carry, length > s.max, nil
		}
	}
}
