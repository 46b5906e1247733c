package engine

import (
	"encoding/binary"
	"errors"

	"github.com/wasmill/wasmill/abi"
)

// tape keeps copies of records for reading them again in order, in little more memory than their bytes: what waits
// between stages is many records, and an abi.Record is larger than most of them. Its memory is used again after reset.
//
// A record is: u8 flags, i64 event time, i32 key length, i32 value length, u16 header count, u16 port, the key, the value,
// then for each header u32 name length, i32 value length, name, value; -1 for null. A record does not cross a block. Spool
// files hold records in this form: a change of it is a new version of theirs.
type tape struct {
	blocks [][]byte
	block  int // index of the block being filled
	count  int
	first  int // size of the first block, each further one is twice as large up to blockSize; 0 all have that size
}

const tapeHead = 1 + 8 + 4 + 4 + 2 + 2

func (t *tape) reset() {
	for i := range t.blocks {
		t.blocks[i] = t.blocks[i][:0]
	}
	t.block, t.count = 0, 0
}

// add appends a copy of r: its flags that travel, event time, port, key, value and headers.
func (t *tape) add(r *abi.Record) {
	t.blocks[t.block] = appendTape(t.room(tapeSize(r)), r)
	t.count++
}

// tapeSize is how many bytes a record takes of a tape.
func tapeSize(r *abi.Record) int {
	size := tapeHead + len(r.Key) + len(r.Value)
	for i := range r.Headers {
		size += 8 + len(r.Headers[i].Name) + len(r.Headers[i].Value)
	}
	return size
}

func appendTape(b []byte, r *abi.Record) []byte {
	le := binary.LittleEndian
	b = append(b, r.Flags&abi.FlagEventTime)
	b = le.AppendUint64(b, uint64(r.EventTime))
	b = le.AppendUint32(b, nullable(r.Key))
	b = le.AppendUint32(b, nullable(r.Value))
	b = le.AppendUint16(b, uint16(len(r.Headers)))
	b = le.AppendUint16(b, r.Port)
	b = append(append(b, r.Key...), r.Value...)
	for i := range r.Headers {
		h := &r.Headers[i]
		b = le.AppendUint32(b, uint32(len(h.Name)))
		b = le.AppendUint32(b, nullable(h.Value))
		b = append(append(b, h.Name...), h.Value...)
	}
	return b
}

// room returns the block that so many bytes fit into. Blocks that cannot take them are left as they are.
func (t *tape) room(size int) []byte {
	for t.block < len(t.blocks) && cap(t.blocks[t.block])-len(t.blocks[t.block]) < size {
		t.block++
	}
	if t.block == len(t.blocks) {
		least := blockSize
		if t.first > 0 {
			least = min(t.first<<min(t.block, 20), blockSize)
		}
		t.blocks = append(t.blocks, make([]byte, 0, max(least, size)))
	}
	return t.blocks[t.block]
}

// null is the length of what is not there.
const null = 0xffffffff

func nullable(p []byte) uint32 {
	if p == nil {
		return null
	}
	return uint32(len(p))
}

// each hands the records over in order. The record is reused; its bytes lie in the tape and stay valid until reset.
func (t *tape) each(f func(i int, r *abi.Record) error) error {
	var r abi.Record
	var headers []abi.Header
	n := 0
	for _, block := range t.blocks {
		for len(block) > 0 {
			block, headers = readTape(block, &r, headers[:0])
			if err := f(n, &r); err != nil {
				return err
			}
			n++
		}
	}
	return nil
}

// tapeOf makes a tape of what a file holds. It fails when a length points beyond the end.
func tapeOf(data []byte) (*tape, error) {
	le := binary.LittleEndian
	t := &tape{blocks: [][]byte{data}}
	for b := data; len(b) > 0; t.count++ {
		if len(b) < tapeHead {
			return nil, errTapeShort
		}
		key, value, count := le.Uint32(b[9:]), le.Uint32(b[13:]), le.Uint16(b[17:])
		b = b[tapeHead:]
		var ok bool
		for _, n := range []uint32{key, value} {
			if b, ok = skipBytes(b, n); !ok {
				return nil, errTapeShort
			}
		}
		for range count {
			if len(b) < 8 {
				return nil, errTapeShort
			}
			name, size := le.Uint32(b), le.Uint32(b[4:])
			if b, ok = skipBytes(b[8:], name); !ok {
				return nil, errTapeShort
			}
			if b, ok = skipBytes(b, size); !ok {
				return nil, errTapeShort
			}
		}
	}
	return t, nil
}

var errTapeShort = errors.New("a record ends too early")

func skipBytes(b []byte, n uint32) (rest []byte, ok bool) {
	switch {
	case n == null:
		return b, true
	case uint64(n) > uint64(len(b)):
		return nil, false
	}
	return b[n:], true
}

// readTape decodes one record and returns what follows it. Lengths are right: add wrote the tape, or tapeOf read it.
func readTape(b []byte, r *abi.Record, headers []abi.Header) ([]byte, []abi.Header) {
	le := binary.LittleEndian
	*r = abi.Record{Flags: b[0], EventTime: int64(le.Uint64(b[1:])), Port: le.Uint16(b[19:]), Index: abi.NoIndex}
	key, value, count := le.Uint32(b[9:]), le.Uint32(b[13:]), le.Uint16(b[17:])
	b = b[tapeHead:]
	r.Key, b = takeBytes(b, key)
	r.Value, b = takeBytes(b, value)
	for range count {
		var h abi.Header
		name, size := le.Uint32(b), le.Uint32(b[4:])
		h.Name, b = takeBytes(b[8:], name)
		h.Value, b = takeBytes(b, size)
		headers = append(headers, h)
	}
	if count > 0 {
		r.Headers = headers
	}
	return b, headers
}

func takeBytes(b []byte, n uint32) (p, rest []byte) {
	if n == null {
		return nil, b
	}
	return b[:n:n], b[n:]
}
