package parquetfile

import "encoding/binary"

// Types of Thrift's compact protocol.
const (
	compactTrue   = 1
	compactFalse  = 2
	compactByte   = 3
	compactI16    = 4
	compactI32    = 5
	compactI64    = 6
	compactBinary = 8
	compactList   = 9
	compactStruct = 12
)

// compact writes Thrift's compact protocol. Fields of a struct must come in rising order of their ids, at most 15 apart.
type compact struct {
	buf  []byte
	last []int16 // the last field id of each open struct
}

func (c *compact) reset() {
	c.buf = c.buf[:0]
	c.last = append(c.last[:0], 0)
}

func (c *compact) field(id int16, kind byte) {
	top := len(c.last) - 1
	c.buf = append(c.buf, byte(id-c.last[top])<<4|kind)
	c.last[top] = id
}

func (c *compact) i32(id int16, v int32) {
	c.field(id, compactI32)
	c.varint(int64(v))
}

func (c *compact) i64(id int16, v int64) {
	c.field(id, compactI64)
	c.varint(v)
}

func (c *compact) i16(id, v int16) {
	c.field(id, compactI16)
	c.varint(int64(v))
}

func (c *compact) bool(id int16, v bool) {
	if v {
		c.field(id, compactTrue)
	} else {
		c.field(id, compactFalse)
	}
}

func (c *compact) bytes(id int16, v []byte) {
	c.field(id, compactBinary)
	c.binary(v)
}

func (c *compact) string(id int16, v string) {
	c.field(id, compactBinary)
	c.buf = binary.AppendUvarint(c.buf, uint64(len(v)))
	c.buf = append(c.buf, v...)
}

func (c *compact) binary(v []byte) {
	c.buf = binary.AppendUvarint(c.buf, uint64(len(v)))
	c.buf = append(c.buf, v...)
}

// varint writes a zigzag number.
func (c *compact) varint(v int64) { c.buf = binary.AppendVarint(c.buf, v) }

func (c *compact) list(id int16, kind byte, n int) {
	c.field(id, compactList)
	if n < 15 {
		c.buf = append(c.buf, byte(n)<<4|kind)
		return
	}
	c.buf = binary.AppendUvarint(append(c.buf, 0xf0|kind), uint64(n))
}

// open begins a struct: a field's, or with id 0 an element of a list.
func (c *compact) open(id int16) {
	if id > 0 {
		c.field(id, compactStruct)
	}
	c.last = append(c.last, 0)
}

func (c *compact) close() {
	c.buf = append(c.buf, 0)
	c.last = c.last[:len(c.last)-1]
}

// end closes the outermost struct and returns its bytes, valid until reset.
func (c *compact) end() []byte {
	c.buf = append(c.buf, 0)
	return c.buf
}
