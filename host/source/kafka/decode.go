package kafka

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/source"
)

// The layout of a record batch of magic 2 (Kafka protocol guide, "Record Batch").
const (
	batchHeader = 61
	batchPrefix = 12 // base offset and length, which the length does not count
	atLength    = 8
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
		base: base, last: base + int64(delta),
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
	aborted map[int64]bool

	unpacked int64 // bytes of records that were unpacked since the decoder was made ready
}

func newDecoder(maxBatch int) *decoder {
	return &decoder{unpacker: unpacker{max: maxBatch}, aborted: map[int64]bool{}}
}

// window is what a decoder delivers of one partition: the offsets from From up to and without To.
type window struct {
	from, to  int64
	committed bool // leave out what was aborted
	maxRecord int
	out       source.Writer
}

// writeError is an error of the writer, which is handed on as it is.
type writeError struct{ err error }

func (e *writeError) Error() string { return e.err.Error() }

// decode delivers the records of a fetch that lie in a window, and returns the offset after the last batch that was
// passed, or w.from when there was none. Aborted transactions are left out as the Java client does it: a producer's
// records are out from the first offset of an aborted transaction up to its marker.
func (d *decoder) decode(p *kmsg.FetchResponseTopicPartition, w *window) (next int64, err error) {
	clear(d.aborted)
	begun := abortedBy(p)
	next = w.from
	in, after := p.RecordBatches, int64(0)
	for len(in) > 0 && next < w.to {
		b, raw, rest, ok, err := splitBatch(in)
		if err != nil {
			return next, err
		}
		if !ok {
			break
		}
		in = rest
		if b.base < after { // how far the log reaches is no bound: a broker looks at that before it reads
			return next, damage("the batch at offset %d follows one that ends at %d", b.base, after-1)
		}
		after = b.last + 1
		if b.base >= w.to {
			return w.to, nil
		}
		for len(begun) > 0 && begun[0].FirstOffset <= b.last {
			d.aborted[begun[0].ProducerID] = true
			begun = begun[1:]
		}
		out := w.committed && b.is(attrTransactional) && d.aborted[b.producer]
		if b.is(attrControl) {
			if err := d.control(&b, raw); err != nil {
				return next, err
			}
		} else if !out && b.last >= w.from && b.count > 0 {
			if err := d.batch(&b, raw, w); err != nil {
				return next, err
			}
		}
		next = max(next, b.last+1)
	}
	return next, nil
}

// abortedBy lists aborted transactions by first offset: brokers may give them in another order.
func abortedBy(p *kmsg.FetchResponseTopicPartition) []kmsg.FetchResponseTopicPartitionAbortedTransaction {
	list := p.AbortedTransactions
	slices.SortFunc(list, func(a, b kmsg.FetchResponseTopicPartitionAbortedTransaction) int {
		return cmp.Compare(a.FirstOffset, b.FirstOffset)
	})
	return list
}

func checksum(raw []byte, base int64) error {
	if want, got := binary.BigEndian.Uint32(raw[atCRC:]), crc32.Checksum(raw[atChecked:], castagnoli); want != got {
		return damage("the batch at offset %d has checksum %08x and says %08x", base, got, want)
	}
	return nil
}

// control ends an aborted transaction: the key of a marker is a version and a type of two bytes each, 0 for abort.
func (d *decoder) control(b *batch, raw []byte) error {
	if err := checksum(raw, b.base); err != nil {
		return err
	}
	if b.count < 1 {
		return nil
	}
	f := fields{b: b.records}
	f.varint() // length
	f.skip(1)
	f.varint()
	f.varint()
	if key := f.bytes(); f.ok() && len(key) >= 4 && key[2] == 0 && key[3] == 0 {
		delete(d.aborted, b.producer)
	}
	return nil
}

// batch delivers the records of one batch that lie in the window.
func (d *decoder) batch(b *batch, raw []byte, w *window) error {
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
		offset, err := d.record(&body, b)
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
