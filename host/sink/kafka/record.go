package kafka

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/bits"

	"github.com/wasmill/wasmill/abi"
)

// The format of record batches, version 2, is that of KIP-98: a header of 61 bytes, then the records, which alone may be
// compressed. Lengths and deltas in records are zigzag varints, as those of encoding/binary.
const (
	headerSize = 61
	magic      = 2

	attrTransactional = 1 << 4
	noDelta           = 0
	noLength          = -1 // of a null key or value

	batchTime = math.MinInt64 // a record without an event time has that of its batch
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chunk is records of one partition in the order in which they came, encoded, behind room for the header of their batch.
type chunk struct {
	buf    []byte
	rows   int32
	baseMS int64 // of the first record, or batchTime: then of all
	maxMS  int64
	codec  int8 // of what lies behind the header
}

func (c *chunk) reset() {
	if cap(c.buf) < headerSize {
		c.buf = make([]byte, headerSize)
	}
	*c = chunk{buf: c.buf[:headerSize]}
}

// takes tells whether a record of a time can follow: those with a time of their own and those without do not mix.
func (c *chunk) takes(ms int64) bool {
	return c.rows == 0 || c.baseMS == batchTime == (ms == batchTime)
}

// begin writes what comes before a record's key. tail is how many bytes come from the key on.
func (c *chunk) begin(ms int64, tail int) {
	if c.rows == 0 {
		c.baseMS, c.maxMS = ms, ms
	}
	delta := int64(noDelta)
	if ms != batchTime {
		delta = ms - c.baseMS
		c.maxMS = max(c.maxMS, ms)
	}
	b := binary.AppendVarint(c.buf, int64(1+varintSize(delta)+varintSize(int64(c.rows))+tail))
	b = append(b, 0) // attributes, of which there are none
	b = binary.AppendVarint(b, delta)
	c.buf = binary.AppendVarint(b, int64(c.rows))
	c.rows++
}

// add encodes a record without its header at index skip.
func (c *chunk) add(r *abi.Record, skip int, ms int64) {
	c.begin(ms, tailSize(r, skip))
	b := appendBytes(c.buf, r.Key)
	b = appendBytes(b, r.Value)
	if len(r.Headers) == 0 {
		c.buf = append(b, 0)
		return
	}
	b = binary.AppendVarint(b, int64(headersOf(r, skip)))
	for i := range r.Headers {
		if i == skip {
			continue
		}
		b = binary.AppendVarint(b, int64(len(r.Headers[i].Name)))
		b = append(b, r.Headers[i].Name...)
		b = appendBytes(b, r.Headers[i].Value)
	}
	c.buf = b
}

func headersOf(r *abi.Record, skip int) int {
	if skip >= 0 {
		return len(r.Headers) - 1
	}
	return len(r.Headers)
}

// tailSize is how many bytes a record has from its key on.
func tailSize(r *abi.Record, skip int) int {
	n := bytesSize(r.Key) + bytesSize(r.Value) + varintSize(int64(headersOf(r, skip)))
	for i := range r.Headers {
		if i != skip {
			n += varintSize(int64(len(r.Headers[i].Name))) + len(r.Headers[i].Name) + bytesSize(r.Headers[i].Value)
		}
	}
	return n
}

func appendBytes(dst, b []byte) []byte {
	if b == nil {
		return binary.AppendVarint(dst, noLength)
	}
	return append(binary.AppendVarint(dst, int64(len(b))), b...)
}

func bytesSize(b []byte) int {
	if b == nil {
		return 1
	}
	return varintSize(int64(len(b))) + len(b)
}

func varintSize(v int64) int {
	return (bits.Len64(uint64(v<<1^v>>63)|1) + 6) / 7
}

// encoded is one record of a chunk: its time, and its bytes from the key on.
type encoded struct {
	ms   int64
	tail []byte
}

// each walks over the records of a chunk that is not compressed. The chunk is our own work, so its bytes are not doubted.
func (c *chunk) each(visit func(encoded)) {
	for b := c.buf[headerSize:]; len(b) > 0; {
		size, n := binary.Varint(b)
		r := b[n : n+int(size)]
		b = b[n+int(size):]
		delta, n := binary.Varint(r[1:])
		_, m := binary.Varint(r[1+n:])
		e := encoded{ms: batchTime, tail: r[1+n+m:]}
		if c.baseMS != batchTime {
			e.ms = c.baseMS + delta
		}
		visit(e)
	}
}

// key is the record's key, nil when there is none.
func (e encoded) key() []byte {
	size, n := binary.Varint(e.tail)
	if size < 0 {
		return nil
	}
	return e.tail[n : n+int(size) : n+int(size)]
}

// put takes an encoded record over.
func (c *chunk) put(e encoded) {
	c.begin(e.ms, len(e.tail))
	c.buf = append(c.buf, e.tail...)
}

// join takes the records of another chunk over. What has no time of its own gets the batch's.
func (c *chunk) join(o *chunk, batchMS int64) {
	o.each(func(e encoded) {
		if e.ms == batchTime {
			e.ms = batchMS
		}
		c.put(e)
	})
}

// producerID is who sends a batch, for the brokers.
type producerID struct {
	id            int64
	epoch         int16
	transactional bool
}

// seal writes the header of the batch that a chunk has become.
func (c *chunk) seal(p producerID, sequence int32, batchMS int64) {
	base, last := c.baseMS, c.maxMS
	if base == batchTime {
		base, last = batchMS, batchMS
	}
	attrs := uint16(c.codec)
	if p.transactional {
		attrs |= attrTransactional
	}
	b, be := c.buf, binary.BigEndian
	be.PutUint64(b[0:], 0)                 // base offset: the broker's to say
	be.PutUint32(b[8:], uint32(len(b)-12)) // length of what follows
	be.PutUint32(b[12:], math.MaxUint32)   // leader epoch: none
	b[16] = magic
	be.PutUint16(b[21:], attrs)
	be.PutUint32(b[23:], uint32(c.rows-1)) // last offset delta
	be.PutUint64(b[27:], uint64(base))
	be.PutUint64(b[35:], uint64(last))
	be.PutUint64(b[43:], uint64(p.id))
	be.PutUint16(b[51:], uint16(p.epoch))
	be.PutUint32(b[53:], uint32(sequence))
	be.PutUint32(b[57:], uint32(c.rows))
	be.PutUint32(b[17:], crc32.Checksum(b[21:], castagnoli))
}

// after is the sequence number that follows a batch of rows: they go around at 2^31.
func after(sequence, rows int32) int32 {
	return int32((int64(sequence) + int64(rows)) & math.MaxInt32)
}

// partitionOf is the Java client's choice for a record with a key: murmur2 (Austin Appleby's, with the client's seed), its
// sign bit taken off.
func partitionOf(key []byte, partitions int32) int32 {
	const seed, m, shift = 0x9747b28c, 0x5bd1e995, 24
	h := seed ^ uint32(len(key))
	for ; len(key) >= 4; key = key[4:] {
		k := binary.LittleEndian.Uint32(key) * m
		k = (k ^ k>>shift) * m
		h = h*m ^ k
	}
	if len(key) > 0 {
		for i, b := range key {
			h ^= uint32(b) << (8 * i)
		}
		h *= m
	}
	h = (h ^ h>>13) * m
	h ^= h >> 15
	return int32(h&math.MaxInt32) % partitions
}
