package debuginfo

import (
	"bytes"
	"encoding/binary"
)

// cursor reads from bytes and notes when there was too little: then it is bad, and all it returns is zero.
type cursor struct {
	b   []byte
	bad bool
}

// take returns n bytes.
func (c *cursor) take(n uint64) []byte {
	if c.bad || n > uint64(len(c.b)) {
		c.b, c.bad = nil, true
		return nil
	}
	out := c.b[:n]
	c.b = c.b[n:]
	return out
}

func (c *cursor) u8() byte {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if b := c.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// uleb is an unsigned LEB128; bits over 64 are lost.
func (c *cursor) uleb() uint64 {
	var v uint64
	for shift := uint(0); ; shift += 7 {
		b := c.u8()
		if shift < 64 {
			v |= uint64(b&0x7f) << shift
		}
		if b < 0x80 {
			return v
		}
	}
}

// sleb is a signed LEB128; bits over 64 are lost.
func (c *cursor) sleb() int64 {
	var v int64
	for shift := uint(0); ; shift += 7 {
		b := c.u8()
		if shift < 64 {
			v |= int64(b&0x7f) << shift
		}
		if b < 0x80 {
			if shift += 7; shift < 64 && b&0x40 != 0 {
				v |= -1 << shift
			}
			return v
		}
	}
}

// str is a string up to a zero byte.
func (c *cursor) str() text {
	n := bytes.IndexByte(c.b, 0)
	if n < 0 {
		c.take(uint64(len(c.b)) + 1)
		return nil
	}
	s := c.take(uint64(n))
	c.take(1)
	return s
}

// unit reads the length of a unit and returns its bytes. The 64-bit form, which no 32-bit target has, is bad.
func (c *cursor) unit() *cursor {
	n := c.u32()
	if n >= 0xfffffff0 {
		c.take(uint64(len(c.b)) + 1)
	}
	return &cursor{b: c.take(uint64(n)), bad: c.bad}
}

// at returns a cursor at an offset of a section.
func at(section []byte, offset uint64) *cursor {
	c := &cursor{b: section}
	c.take(offset)
	return c
}
