package parquetfile

import (
	"encoding/binary"
	"errors"

	"github.com/klauspost/compress/huff0"
)

// Many columns hold numbers or random digits, in which a search for repeated text finds next to nothing and costs most of
// the time. For these a zstd frame is written that has Huffman-coded literals and no matches at all (RFC 8878, sections
// 3.1.1.2 and 3.1.1.3.1), five to ten times as fast and about as small.

// strategy is how a column chunk's pages are compressed. It is chosen at the first page that is large enough.
type strategy uint8

const (
	undecided strategy = iota
	matches            // ordinary zstd
	literals           // Huffman-coded literals only
)

const (
	sampleBytes = 16 << 10 // of a page, to choose the strategy by
	// literalsOver is how much larger, in percent, literals may be and still be chosen.
	literalsOver = 60
	zstdBlock    = 128 << 10
	zstdMagic    = 0xfd2fb528
	// singleSegment and contentSize4 are bits of the frame header descriptor: the window is the content, whose size
	// follows in four bytes.
	singleSegment = 1 << 5
	contentSize4  = 2 << 6

	blockRaw        = 0
	blockRLE        = 1
	blockCompressed = 2

	literalsCompressed = 2
	fourStreams18      = 3 // four streams, sizes of 18 bits
	literalsHeader     = 5
)

// choose compares both ways on a part of a page.
func (c *compressor) choose(page []byte) strategy {
	if len(page) < sampleBytes {
		return undecided
	}
	sample := page[len(page)-sampleBytes:]
	c.huff.Reuse = huff0.ReusePolicyNone
	table, data, _, err := huff0.EstimateSizes(sample, &c.huff)
	if err != nil {
		return matches
	}
	c.sample = c.zstd.EncodeAll(sample, c.sample[:0])
	if (table+data)*100 <= len(c.sample)*(100+literalsOver) {
		return literals
	}
	return matches
}

// appendLiterals appends a page as a zstd frame without matches.
func (c *compressor) appendLiterals(dst, page []byte) ([]byte, error) {
	dst = binary.LittleEndian.AppendUint32(dst, zstdMagic)
	dst = append(dst, contentSize4|singleSegment)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(page)))
	for {
		n := min(len(page), zstdBlock)
		var err error
		if dst, err = c.appendBlock(dst, page[:n], n == len(page)); err != nil {
			return nil, err
		}
		if page = page[n:]; len(page) == 0 {
			return dst, nil
		}
	}
}

func (c *compressor) appendBlock(dst, block []byte, last bool) ([]byte, error) {
	c.huff.Reuse = huff0.ReusePolicyNone
	packed, _, err := huff0.Compress4X(block, &c.huff)
	switch {
	case errors.Is(err, huff0.ErrIncompressible):
		return append(appendBlockHeader(dst, blockRaw, len(block), last), block...), nil
	case errors.Is(err, huff0.ErrUseRLE):
		return append(appendBlockHeader(dst, blockRLE, len(block), last), block[0]), nil
	case err != nil:
		return nil, err
	case literalsHeader+len(packed)+1 >= len(block):
		return append(appendBlockHeader(dst, blockRaw, len(block), last), block...), nil
	}
	dst = appendBlockHeader(dst, blockCompressed, literalsHeader+len(packed)+1, last)
	header := uint64(literalsCompressed) | fourStreams18<<2 | uint64(len(block))<<4 | uint64(len(packed))<<22
	dst = append(dst, byte(header), byte(header>>8), byte(header>>16), byte(header>>24), byte(header>>32))
	dst = append(dst, packed...)
	return append(dst, 0), nil // no sequences
}

func appendBlockHeader(dst []byte, kind, size int, last bool) []byte {
	h := kind<<1 | size<<3
	if last {
		h |= 1
	}
	return append(dst, byte(h), byte(h>>8), byte(h>>16))
}
