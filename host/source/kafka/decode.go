package kafka

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/source"
)

// The layout of a record batch of magic 2 (Kafka protocol guide, "Record Batch").
const (
	batchHeader = 61
	batchPrefix = 12 // base offset and length, which the length does not count
	atLength    = 8
	atEpoch     = 12
	atMagic     = 16
	atCRC       = 17
	atChecked   = 21 // the checksum covers all from here on
	atLastDelta = 23
	atFirstTime = 27
	atMaxTime   = 35
	atProducer  = 43
	atCount     = 57

	attrCodec         = 0x07
	attrAppendTime    = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// damaged says that stored bytes are not what the protocol says.
type damaged struct{ err error }

func (e *damaged) Error() string { return e.err.Error() }
func (e *damaged) Unwrap() error { return e.err }

func damage(format string, args ...any) error { return &damaged{fmt.Errorf(format, args...)} }

// batch is the header of one stored batch.
type batch struct {
	base, last  int64
	epoch       int32
	attr        uint16
	first, most int64 // timestamps
	producer    int64
	count       int32
	records     []byte
}

func (b *batch) is(attr uint16) bool { return b.attr&attr != 0 }

// splitBatch cuts the first batch off a fetched run of them. ok is false when it is not whole: a fetch may end anywhere.
func splitBatch(in []byte) (b batch, raw, rest []byte, ok bool, err error) {
	if len(in) < batchHeader {
		return b, nil, nil, false, nil
	}
	base := int64(binary.BigEndian.Uint64(in))
	if in[atMagic] != 2 {
		return b, nil, nil, false, damage("the batch at offset %d has message format %d, which is older than Kafka 0.11", base, in[atMagic])
	}
	length := int64(int32(binary.BigEndian.Uint32(in[atLength:]))) + batchPrefix
	delta := int32(binary.BigEndian.Uint32(in[atLastDelta:]))
	if length < batchHeader || base < 0 || delta < 0 || base > math.MaxInt64-int64(delta)-1 {
		return b, nil, nil, false, damage("the batch at offset %d has a length of %d and ends %d offsets on", base, length, delta)
	}
	if length > int64(len(in)) {
		return b, nil, nil, false, nil
	}
	raw = in[:length]
	b = batch{
		base: base, last: base + int64(delta), epoch: int32(binary.BigEndian.Uint32(raw[atEpoch:])),
		attr:  binary.BigEndian.Uint16(raw[atChecked:]),
		first: int64(binary.BigEndian.Uint64(raw[atFirstTime:])), most: int64(binary.BigEndian.Uint64(raw[atMaxTime:])),
		producer: int64(binary.BigEndian.Uint64(raw[atProducer:])),
		count:    int32(binary.BigEndian.Uint32(raw[atCount:])),
		records:  raw[batchHeader:],
	}
	return b, raw, in[length:], true, nil
}

// decoder turns fetched bytes into records. It is not safe for parallel use.
type decoder struct {
	unpacker
	rec     abi.Record
	headers []abi.Header // the first ones are those that are attached

	unpacked int64 // bytes of records that were unpacked since the decoder was made ready
}

func newDecoder(maxBatch int) *decoder {
	return &decoder{unpacker: unpacker{max: maxBatch}}
}

// window is what a decoder delivers of one partition: the offsets from From up to and without To.
type window struct {
	from, to  int64
	committed bool // leave out what was aborted
	one       bool // no more than one stored batch that has records
	maxRecord int
	out       source.Writer
}

// writeError is an error of the writer, which is handed on as it is.
type writeError struct{ err error }

func (e *writeError) Error() string { return e.err.Error() }

// decode delivers the records of an answer to a fetch at w.from that lie in a window, and returns the offset after the last
// batch that was passed, or w.from when there was none.
func (d *decoder) decode(p *kmsg.FetchResponseTopicPartition, w *window) (next int64, err error) {
	c, bad := scan(p, w.from, w.committed)
	next, err = d.deliver(c, w)
	if err == nil && next < w.to {
		err = bad
	}
	return next, err
}

// deliver does the same with a chunk that holds w.from.
func (d *decoder) deliver(c *chunk, w *window) (next int64, err error) {
	next = w.from
	for i := c.at(w.from); i < len(c.spans); i++ {
		s := &c.spans[i]
		if s.base >= w.to {
			return w.to, nil
		}
		if s.raw != nil {
			if err := d.batch(s.raw, w); err != nil {
				return next, err
			}
		}
		if next = s.last + 1; next >= w.to || w.one && s.raw != nil {
			return next, nil
		}
	}
	return next, nil
}

func checksum(raw []byte, base int64) error {
	if want, got := binary.BigEndian.Uint32(raw[atCRC:]), crc32.Checksum(raw[atChecked:], castagnoli); want != got {
		return damage("the batch at offset %d has checksum %08x and says %08x", base, got, want)
	}
	return nil
}

// batch delivers the records of one batch that lie in the window.
func (d *decoder) batch(raw []byte, w *window) error {
	b, _, _, _, err := splitBatch(raw)
	if err != nil {
		return err
	}
	if err := checksum(raw, b.base); err != nil {
		return err
	}
	records, err := d.unpack(int(b.attr&attrCodec), b.records)
	if err != nil {
		return damage("the batch at offset %d: %w", b.base, err)
	}
	d.unpacked += int64(len(records))
	at := b.base - 1
	for n := int32(0); n < b.count; n++ {
		f := fields{b: records}
		size := f.varint()
		if !f.ok() || size < 0 || size > int64(len(f.b)) {
			return damage("the batch at offset %d holds %d records and ends after %d", b.base, b.count, n)
		}
		body := fields{b: f.b[:size]}
		records = f.b[size:]
		offset, err := d.record(&body, &b)
		if err != nil || offset <= at || offset > b.last {
			return damage("record %d of the batch at offset %d: %w", n, b.base, errors.Join(err, errRecord))
		}
		at = offset
		if offset < w.from || offset >= w.to {
			continue
		}
		if err := w.deliver(&d.rec); err != nil {
			return &writeError{err}
		}
	}
	return nil
}

var errRecord = errors.New("its fields do not fit")

// record reads one record's fields into d.rec and returns its offset.
func (d *decoder) record(f *fields, b *batch) (int64, error) {
	f.skip(1) // attributes: none are defined
	at := b.first + f.varint()
	if b.is(attrAppendTime) {
		at = b.most
	}
	offset := b.base + f.varint()
	d.rec.Key = f.bytes()
	d.rec.Value = f.bytes()
	n := f.varint()
	if !f.ok() || n < 0 || n > int64(len(f.b)) {
		return 0, errRecord
	}
	headers := d.headers
	for range n {
		h := abi.Header{Name: f.bytes(), Value: f.bytes()}
		if !f.ok() {
			return 0, errRecord
		}
		if len(headers) <= abi.MaxHeaders { // one too many tells enough
			headers = append(headers, h)
		}
	}
	d.rec.Headers = headers
	if cap(headers) > cap(d.headers) {
		d.headers = headers[:len(d.headers)]
	}
	d.rec.Offset = offset
	d.rec.Flags, d.rec.EventTime = 0, 0
	if at >= 0 && at <= math.MaxInt64/1000 {
		d.rec.Flags, d.rec.EventTime = abi.FlagEventTime, at*1000
	}
	return offset, nil
}

// cutReject is how much of what is too long to be a record is handed over with its rejection.
const cutReject = 64 << 10

// deliver hands a record to the writer, or what is none to its rejections.
func (w *window) deliver(r *abi.Record) error {
	size := len(r.Key) + len(r.Value)
	for i := range r.Headers {
		size += len(r.Headers[i].Name) + len(r.Headers[i].Value)
	}
	switch {
	case size > w.maxRecord:
		cut := *r
		cut.Headers = nil
		cut.Key = r.Key[:min(len(r.Key), cutReject)]
		cut.Value = r.Value[:min(len(r.Value), cutReject)]
		return w.out.Reject(&cut, RejectTooLarge, fmt.Sprintf("the record has %d bytes, at most %d are taken", size, w.maxRecord))
	case len(r.Headers) > abi.MaxHeaders:
		cut := *r
		cut.Headers = r.Headers[:abi.MaxHeaders]
		return w.out.Reject(&cut, RejectHeaders, fmt.Sprintf("the record has more than %d headers", abi.MaxHeaders))
	}
	return w.out.Write(r)
}

// fields reads the fields of a record; after an error all are empty.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) ok() bool { return !f.bad }

// varint reads a number in zigzag coding.
func (f *fields) varint() int64 {
	if len(f.b) > 0 && f.b[0] < 0x80 {
		u := uint64(f.b[0])
		f.b = f.b[1:]
		return int64(u>>1) ^ -int64(u&1)
	}
	v, n := binary.Varint(f.b)
	if n <= 0 {
		f.bad, f.b = true, nil
		return 0
	}
	f.b = f.b[n:]
	return v
}

func (f *fields) skip(n int) {
	if len(f.b) < n {
		f.bad, f.b = true, nil
		return
	}
	f.b = f.b[n:]
}

// bytes reads bytes with their length before them; -1 is nil.
func (f *fields) bytes() []byte {
	n := f.varint()
	if n == -1 {
		return nil
	}
	if n < 0 || n > int64(len(f.b)) {
		f.bad, f.b = true, nil
		return nil
	}
	out := f.b[:n:n]
	f.b = f.b[n:]
	return out
}
