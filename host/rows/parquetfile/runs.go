package parquetfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// boolReader reads the booleans of a chunk whose data pages have the encoding RLE, as those of version 2 have. The library
// takes a run of true for one true in eight values. What it reads is described in the format's Encodings.md.
type boolReader struct {
	in             *bufio.Reader
	left           int64 // bytes of the chunk
	codec          compress.Codec
	maxRep, maxDef int
	rep, def       hybrid
	runs           hybrid
	values         int // of the page that are still to come
	raw, page      []byte
}

// inRuns reports whether data pages of a chunk have the encoding RLE, or may have: it is also that of levels, and not every
// writer says which pages have which.
func inRuns(m *format.ColumnMetaData) bool {
	for _, st := range m.EncodingStats {
		if st.PageType != format.DictionaryPage && st.Encoding == format.RLE {
			return true
		}
	}
	return len(m.EncodingStats) == 0 && slices.Contains(m.Encoding, format.RLE)
}

func newBoolReader(in io.ReaderAt, size int64, m *format.ColumnMetaData, e *element) (*boolReader, error) {
	if m.DataPageOffset < 0 || m.TotalCompressedSize < 0 || m.DataPageOffset > size-m.TotalCompressedSize {
		return nil, errors.New("a column chunk lies outside of the file")
	}
	return &boolReader{
		in: bufio.NewReaderSize(io.NewSectionReader(in, m.DataPageOffset, m.TotalCompressedSize), readBuffer), left: m.TotalCompressedSize,
		codec: parquet.LookupCompressionCodec(m.Codec), maxRep: e.rep, maxDef: e.def,
	}, nil
}

// read fills buf with the next values and returns how many, 0 at the end.
func (r *boolReader) read(buf []parquet.Value) (int, error) {
	for r.values == 0 {
		if r.left <= 0 {
			return 0, nil
		}
		if err := r.nextPage(); err != nil {
			return 0, err
		}
	}
	n := min(r.values, len(buf))
	for i := range n {
		rep, ok1 := r.rep.next()
		def, ok2 := r.def.next()
		var v parquet.Value
		if def == r.maxDef {
			x, ok := r.bit()
			ok2 = ok2 && ok
			v = parquet.BooleanValue(x)
		}
		if !ok1 || !ok2 || rep > r.maxRep || def > r.maxDef {
			return 0, errors.New("a page of booleans has fewer values than it says")
		}
		buf[i] = v.Level(rep, def, 0)
	}
	r.values -= n
	return n, nil
}

// bit returns the next boolean. Of a run's byte some writers set all bits for true.
func (r *boolReader) bit() (x, ok bool) {
	v, ok := r.runs.next()
	return v != 0, ok
}

// nextPage reads the next data page's header and bytes. Pages of another kind are passed over.
func (r *boolReader) nextPage() error {
	var header format.PageHeader
	counted := &countingReader{in: r.in}
	compact := thrift.CompactProtocol{}
	if err := thrift.NewDecoder(compact.NewReader(counted)).Decode(&header); err != nil {
		return fmt.Errorf("read a page's header: %w", err)
	}
	r.left -= counted.n + int64(header.CompressedPageSize)
	if header.CompressedPageSize < 0 || header.UncompressedPageSize < 0 || r.left < 0 {
		return errors.New("a page is longer than its column chunk")
	}
	r.raw = slices.Grow(r.raw[:0], int(header.CompressedPageSize))[:header.CompressedPageSize]
	if _, err := io.ReadFull(r.in, r.raw); err != nil {
		return fmt.Errorf("read a page: %w", err)
	}
	if header.CRC != 0 && uint32(header.CRC) != crc32.ChecksumIEEE(r.raw) { // 0: there is none
		return errors.New("a page is not what its checksum says")
	}
	switch header.Type {
	case format.DataPage:
		return r.pageV1(&header.DataPageHeader.V)
	case format.DataPageV2:
		return r.pageV2(&header.DataPageHeaderV2.V)
	}
	return nil
}

func (r *boolReader) decode(b []byte) ([]byte, error) {
	var err error
	if r.page, err = r.codec.Decode(r.page, b); err != nil {
		return nil, fmt.Errorf("decompress a page: %w", err)
	}
	return r.page, nil
}

func (r *boolReader) pageV1(h *format.DataPageHeader) error {
	b, err := r.decode(r.raw)
	if err != nil {
		return err
	}
	var rep, def []byte
	if r.maxRep > 0 {
		if rep, b, err = prefixed(b); err != nil {
			return err
		}
	}
	if r.maxDef > 0 {
		if def, b, err = prefixed(b); err != nil {
			return err
		}
	}
	return r.begin(int(h.NumValues), h.Encoding, rep, def, b)
}

func (r *boolReader) pageV2(h *format.DataPageHeaderV2) error {
	a, d := int64(h.RepetitionLevelsByteLength), int64(h.DefinitionLevelsByteLength)
	if a < 0 || d < 0 || a+d > int64(len(r.raw)) {
		return errors.New("a page's levels are longer than the page")
	}
	b := r.raw[a+d:]
	if len(b) > 0 && (!h.IsCompressed.Valid || h.IsCompressed.V) {
		var err error
		if b, err = r.decode(b); err != nil {
			return err
		}
	}
	return r.begin(int(h.NumValues), h.Encoding, r.raw[:a], r.raw[a:a+d], b)
}

func (r *boolReader) begin(values int, encoding format.Encoding, rep, def, data []byte) error {
	if values < 0 {
		return errors.New("a page has fewer than no values")
	}
	r.values = values
	r.rep, r.def = newHybrid(rep, r.maxRep), newHybrid(def, r.maxDef)
	switch encoding {
	case format.RLE:
		if len(data) == 0 {
			data = make([]byte, 4) // nothing but nulls
		}
		runs, _, err := prefixed(data)
		if err != nil {
			return err
		}
		r.runs = newHybrid(runs, 1)
	case format.Plain:
		r.runs = hybrid{width: 1, packed: data, left: 8 * len(data)}
	default:
		return fmt.Errorf("booleans of encoding %s", encoding)
	}
	return nil
}

// prefixed takes bytes that begin with their length.
func prefixed(b []byte) (inside, rest []byte, err error) {
	if len(b) < 4 || int64(binary.LittleEndian.Uint32(b)) > int64(len(b)-4) {
		return nil, nil, errors.New("a part of a page is longer than the page")
	}
	n := 4 + int(binary.LittleEndian.Uint32(b))
	return b[4:n], b[n:], nil
}

// hybrid reads numbers of a few bits in runs and packed groups, without unpacking more than one at a time.
type hybrid struct {
	src    []byte
	width  int // bits; 0: all are zero
	left   int // numbers of the run or the group
	value  int // of a run
	packed []byte
	at     int // the bit in packed
}

func newHybrid(src []byte, most int) hybrid { return hybrid{src: src, width: bits.Len(uint(most))} }

// next returns the next number; false when there is none.
func (h *hybrid) next() (int, bool) {
	if h.width == 0 {
		return 0, true
	}
	for h.left == 0 {
		if !h.group() {
			return 0, false
		}
	}
	h.left--
	if h.packed == nil {
		return h.value, true
	}
	x := 0
	for i := range h.width {
		x |= int(h.packed[h.at>>3]>>(h.at&7)&1) << i
		h.at++
	}
	return x, true
}

// group begins the next run or packed group.
func (h *hybrid) group() bool {
	head, n := binary.Uvarint(h.src)
	if n <= 0 || head>>1 > 1<<31 {
		return false
	}
	h.src = h.src[n:]
	count := int(head >> 1)
	h.packed, h.at = nil, 0
	if head&1 == 0 {
		size := (h.width + 7) / 8
		if size > len(h.src) {
			return false
		}
		h.value, h.left = int(h.src[0]), count
		if size > 1 {
			h.value |= int(h.src[1]) << 8
		}
		h.src = h.src[size:]
		return true
	}
	size := count * h.width
	if size > len(h.src) {
		size = len(h.src) // a last group may be cut where its values end
	}
	h.packed, h.left = h.src[:size], 8*size/h.width
	h.src = h.src[size:]
	return size > 0
}

// countingReader counts what a header takes.
type countingReader struct {
	in *bufio.Reader
	n  int64
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.in.Read(b)
	c.n += int64(n)
	return n, err
}

func (c *countingReader) ReadByte() (byte, error) {
	b, err := c.in.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}
