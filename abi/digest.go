package abi

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strconv"

	"github.com/zeebo/xxh3"
)

// Seed is the seed of one lane run: xxh3-128 of the canonical JSON [query, batch, stage, lane], the low half of the hash
// first, as the frame's header holds it.
func Seed(query string, batch uint64, stage string, lane uint32) [2]uint64 {
	text := append(make([]byte, 0, 96), '[')
	text = append(AppendJSONString(text, []byte(query)), ',')
	text = append(strconv.AppendUint(text, batch, 10), ',')
	text = append(AppendJSONString(text, []byte(stage)), ',')
	text = append(strconv.AppendUint(text, uint64(lane), 10), ']')
	sum := xxh3.Hash128(text)
	return [2]uint64{sum.Lo, sum.Hi}
}

// digestBuffer is how many bytes RecordDigest gathers before it hashes them.
const digestBuffer = 8 << 10

// RecordDigest is xxh3-128 over the logical records of one lane in order, each as u16 port, u8 flags, i64 event time, i32
// length and bytes of the key, the same of the value, u16 header count, then for each header u32 length, name, i32 length,
// value; little-endian, length -1 for null. The zero value is ready; it is not for concurrent use and must not be copied.
type RecordDigest struct {
	hash  xxh3.Hasher
	buf   []byte
	count int64
}

// Add appends one record.
func (d *RecordDigest) Add(r *Record) {
	if d.buf == nil {
		d.buf = make([]byte, 0, digestBuffer)
	}
	d.count++
	if len(r.Key)+len(r.Value) > digestBuffer-fixedDigest {
		d.large(r)
	} else {
		d.small(r)
	}
	for i := range r.Headers {
		h := &r.Headers[i]
		d.room(4)
		d.buf = binary.LittleEndian.AppendUint32(d.buf, uint32(len(h.Name)))
		d.bytes(h.Name)
		d.nullable(h.Value)
	}
}

// fixedDigest is what a record takes besides the bytes of its key, value and headers.
const fixedDigest = 21

// small appends all but the headers of a record that fits the buffer.
func (d *RecordDigest) small(r *Record) {
	n := fixedDigest + len(r.Key) + len(r.Value)
	d.room(n)
	start := len(d.buf)
	d.buf = d.buf[:start+n]
	b := d.buf[start:]
	le := binary.LittleEndian
	le.PutUint16(b, r.Port)
	b[2] = r.Flags
	le.PutUint64(b[3:], uint64(r.EventTime))
	le.PutUint32(b[11:], digestLen(r.Key))
	b = b[15+copy(b[15:], r.Key):]
	le.PutUint32(b, digestLen(r.Value))
	b = b[4+copy(b[4:], r.Value):]
	le.PutUint16(b, uint16(len(r.Headers)))
}

// large is small for a record that does not fit the buffer.
func (d *RecordDigest) large(r *Record) {
	d.room(11)
	le := binary.LittleEndian
	b := append(le.AppendUint16(d.buf, r.Port), r.Flags)
	d.buf = le.AppendUint64(b, uint64(r.EventTime))
	d.nullable(r.Key)
	d.nullable(r.Value)
	d.room(2)
	d.buf = le.AppendUint16(d.buf, uint16(len(r.Headers)))
}

// digestLen is the length of b as it is hashed.
func digestLen(b []byte) uint32 {
	if b == nil {
		return math.MaxUint32
	}
	return uint32(len(b))
}

// room makes sure that n more bytes fit the buffer.
func (d *RecordDigest) room(n int) {
	if len(d.buf)+n > cap(d.buf) {
		d.flush()
	}
}

func (d *RecordDigest) flush() {
	_, _ = d.hash.Write(d.buf) // never fails
	d.buf = d.buf[:0]
}

func (d *RecordDigest) nullable(b []byte) {
	d.room(4)
	d.buf = binary.LittleEndian.AppendUint32(d.buf, digestLen(b))
	d.bytes(b)
}

func (d *RecordDigest) bytes(b []byte) {
	if len(d.buf)+len(b) > cap(d.buf) {
		d.flush()
		if len(b) >= cap(d.buf) {
			_, _ = d.hash.Write(b)
			return
		}
	}
	d.buf = append(d.buf, b...)
}

// Count is the number of records added since the last Reset.
func (d *RecordDigest) Count() int64 { return d.count }

// Sum is the digest so far, in the byte order in which xxh128sum prints it. More may be added afterwards.
func (d *RecordDigest) Sum() [16]byte {
	d.flush()
	return d.hash.Sum128().Bytes()
}

// Reset makes d as new, keeping its buffer.
func (d *RecordDigest) Reset() {
	d.hash.Reset()
	d.buf = d.buf[:0]
	d.count = 0
}

// LaneDigest is what one lane sent to a sink.
type LaneDigest struct {
	Lane    uint32
	Records uint64
	Sum     [16]byte
}

// CombineLanes is the digest of a sink: xxh3-128, as 32 hex digits, over {u32 lane, u64 records, 16 bytes}, little-endian,
// of the lanes that have records, in the order of their numbers; and the number of records in all.
func CombineLanes(lanes []LaneDigest) (digest string, records int64) {
	sorted := slices.Clone(lanes)
	slices.SortFunc(sorted, func(a, b LaneDigest) int { return int(a.Lane) - int(b.Lane) })
	buf := make([]byte, 0, 28*len(sorted))
	for _, l := range sorted {
		if l.Records == 0 {
			continue
		}
		records += int64(l.Records)
		buf = binary.LittleEndian.AppendUint32(buf, l.Lane)
		buf = binary.LittleEndian.AppendUint64(buf, l.Records)
		buf = append(buf, l.Sum[:]...)
	}
	sum := xxh3.Hash128(buf).Bytes()
	return hex.EncodeToString(sum[:]), records
}
