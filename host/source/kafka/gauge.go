package kafka

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// gauge tells how many bytes the records of stored batches unpack to: by what the codec has written down, and by unpacking
// where that says nothing or not enough. It is never too low, as a plan is kept that was made of it. It is not safe for
// parallel use.
type gauge struct {
	max  int64 // what a stored batch may unpack to
	in   bytes.Reader
	gzip gzip.Reader
	zstd *zstd.Decoder
}

// weigh notes in a chunk what each of its stored batches unpacks to.
func (g *gauge) weigh(c *chunk) {
	for i := range c.spans {
		if s := &c.spans[i]; s.raw != nil {
			s.unpacked = g.size(s.raw)
		}
	}
}

// size is what a stored batch unpacks to. Of one that is damaged, which a reader says, it is what could be told.
func (g *gauge) size(raw []byte) int64 {
	src := raw[batchHeader:]
	n := int64(len(src))
	switch binary.BigEndian.Uint16(raw[atChecked:]) & attrCodec {
	case codecGzip:
		n = g.gzipSize(src)
	case codecSnappy:
		n = snappySize(src)
	case codecLZ4:
		n = lz4Size(src)
	case codecZstd:
		n = g.zstdSize(src)
	}
	return min(max(n, 0), g.max)
}

const (
	// leastWindow is what a frame of zstd may need to be unpacked at all, however little it holds.
	leastWindow = 8 << 20
	// zstdBlock is the most that a block of zstd unpacks to; zstdRun and zstdPacked are types of blocks.
	zstdBlock, zstdRun, zstdPacked = 128 << 10, 1, 2
	// closeEnough: what a stored batch unpacks to at most is taken for what it unpacks to when that is no more than so many
	// times what is stored. It saves unpacking most batches twice.
	closeEnough = 8
)

var gzipMagic, zstdMagic = []byte("\x1f\x8b\x08"), []byte("\x28\xb5\x2f\xfd")

// gzipSize goes by the size at the end of a member, where there is no other member (RFC 1952).
func (g *gauge) gzipSize(src []byte) int64 {
	if len(src) >= 4 && bytes.Count(src, gzipMagic) == 1 {
		return int64(binary.LittleEndian.Uint32(src[len(src)-4:]))
	}
	g.in.Reset(src)
	if g.gzip.Reset(&g.in) != nil {
		return 0
	}
	n, _ := io.CopyN(io.Discard, &g.gzip, g.max) //nolint:errcheck // the reader of the records tells of damage
	return n
}

// zstdSize goes by the size in the header of a frame, where there is no other frame (RFC 8878). Java's producers leave it
// out.
func (g *gauge) zstdSize(src []byte) int64 {
	var h zstd.Header
	if err := h.Decode(src); err == nil && !h.Skippable && bytes.Count(src, zstdMagic) == 1 {
		if h.HasFCS {
			return int64(min(h.FrameContentSize, uint64(g.max)))
		}
		if n := zstdMost(src[h.HeaderSize:]); n <= closeEnough*int64(len(src)) {
			return n
		}
	}
	if g.zstd == nil {
		d, err := zstd.NewReader(nil, zstd.WithDecoderLowmem(true), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(max(g.max, leastWindow))))
		if err != nil {
			return g.max
		}
		g.zstd = d
	}
	g.in.Reset(src)
	if g.zstd.Reset(&g.in) != nil {
		return 0
	}
	n, _ := io.CopyN(io.Discard, g.zstd, g.max) //nolint:errcheck // the reader of the records tells of damage
	return n
}

// zstdMost is what the blocks of a frame unpack to at most.
func zstdMost(src []byte) (total int64) {
	for len(src) >= 3 {
		head := uint32(src[0]) | uint32(src[1])<<8 | uint32(src[2])<<16
		src = src[3:]
		size, stored := int64(head>>3), int(head>>3)
		switch head >> 1 & 3 {
		case zstdRun:
			stored = 1
		case zstdPacked:
			size = zstdBlock
		}
		total += size
		if head&1 != 0 || stored > len(src) { // the last block
			break
		}
		src = src[stored:]
	}
	return total
}

// close gives back what unpacking holds.
func (g *gauge) close() {
	if g.zstd != nil {
		g.zstd.Close()
	}
}

// snappySize adds up what blocks say.
func snappySize(src []byte) (total int64) {
	if !bytes.HasPrefix(src, xerial) || len(src) < xerialHeader {
		n, _ := s2.DecodedLen(src) //nolint:errcheck // the reader of the records tells of damage
		return int64(n)
	}
	for src = src[xerialHeader:]; len(src) > 4; {
		n := binary.BigEndian.Uint32(src)
		if src = src[4:]; uint64(n) > uint64(len(src)) {
			break
		}
		size, err := s2.DecodedLen(src[:n])
		if err != nil {
			break
		}
		total += int64(size)
		src = src[n:]
	}
	return total
}

// The LZ4 frame format, version 1.6.
const (
	lz4Magic         = 0x184D2204
	lz4Plain         = 1 << 31 // of a block's size
	lz4BlockSum      = 0x10    // of the flags
	lz4Size8         = 0x08
	lz4Sum           = 0x04
	lz4Dictionary    = 0x01
	lz4LeastMatch    = 4
	lz4LengthGoesOn  = 15
	lz4LengthGoesOn2 = 255
)

// lz4Size adds up the sequences of all blocks of all frames: producers write no size.
func lz4Size(src []byte) (total int64) {
	for len(src) >= 7 && binary.LittleEndian.Uint32(src) == lz4Magic {
		flags := src[4]
		skip, after, end := 7, 0, 0
		if flags&lz4Size8 != 0 {
			skip += 8
		}
		if flags&lz4Dictionary != 0 {
			skip += 4
		}
		if flags&lz4BlockSum != 0 {
			after = 4
		}
		if flags&lz4Sum != 0 {
			end = 4
		}
		if len(src) < skip {
			return total
		}
		src = src[skip:]
		for {
			if len(src) < 4 {
				return total
			}
			n := binary.LittleEndian.Uint32(src)
			if src = src[4:]; n == 0 {
				break
			}
			size := int(n &^ lz4Plain)
			if size+after > len(src) {
				return total
			}
			if n&lz4Plain != 0 {
				total += int64(size)
			} else {
				total += lz4Block(src[:size])
			}
			src = src[size+after:]
		}
		src = src[min(end, len(src)):]
	}
	return total
}

// lz4Block adds up the lengths of literals and matches of a block.
func lz4Block(src []byte) (total int64) {
	for len(src) > 0 {
		token := src[0]
		literals, rest := lz4Length(int64(token>>4), src[1:])
		if total += literals; literals >= int64(len(rest)) { // the last sequence has no match
			return total
		}
		if rest = rest[literals:]; len(rest) < 2 {
			return total
		}
		match, rest := lz4Length(int64(token&0x0f), rest[2:])
		total += match + lz4LeastMatch
		src = rest
	}
	return total
}

// lz4Length reads the bytes that go on with a length.
func lz4Length(n int64, src []byte) (int64, []byte) {
	if n < lz4LengthGoesOn {
		return n, src
	}
	for i, b := range src {
		if n += int64(b); b < lz4LengthGoesOn2 {
			return n, src[i+1:]
		}
	}
	return n, nil
}
