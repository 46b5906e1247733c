package binary

import (
	"fmt"
	"unicode/utf8"
)

// reader walks over bytes and keeps the first error: after it every call returns zero values. base is the offset of b in
// the module, for messages.
type reader struct {
	b    []byte
	pos  int
	base int
	err  *Error
}

func (r *reader) fail(reason Reason, format string, args ...any) {
	if r.err == nil {
		r.err = &Error{Reason: reason, Offset: r.base + r.pos, Text: fmt.Sprintf(format, args...)}
	}
}

func (r *reader) left() int { return len(r.b) - r.pos }

func (r *reader) done() bool { return r.err != nil || r.pos >= len(r.b) }

func (r *reader) byte() byte {
	if r.err != nil {
		return 0
	}
	if r.pos >= len(r.b) {
		r.fail(Malformed, "it ends in the middle of a value")
		return 0
	}
	c := r.b[r.pos]
	r.pos++
	return c
}

func (r *reader) bytes(n uint32) []byte {
	if r.err != nil {
		return nil
	}
	if uint64(n) > uint64(r.left()) {
		r.fail(Malformed, "%d bytes are announced, %d are left", n, r.left())
		return nil
	}
	b := r.b[r.pos : r.pos+int(n) : r.pos+int(n)]
	r.pos += int(n)
	return b
}

// u32 reads an unsigned LEB128 of at most 32 bits; the padded forms that the format allows are taken.
func (r *reader) u32() uint32 {
	if r.err == nil && r.pos < len(r.b) && r.b[r.pos] < 0x80 { // nearly all are so short
		r.pos++
		return uint32(r.b[r.pos-1])
	}
	var v uint32
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		if r.err != nil {
			return 0
		}
		if shift == 28 && c > 0x0f {
			r.fail(Malformed, "a number has more than 32 bits")
			return 0
		}
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
	return v
}

// signed reads a signed LEB128 of the given width, 32 or 64 bits.
func (r *reader) signed(width int) int64 {
	var v int64
	for shift := 0; shift < width; shift += 7 {
		c := r.byte()
		if r.err != nil {
			return 0
		}
		v |= int64(c&0x7f) << shift
		if c >= 0x80 {
			continue
		}
		if used := width - shift; used < 7 && !signFits(c, used) {
			break
		}
		if shift+7 < 64 && c&0x40 != 0 {
			v |= -1 << (shift + 7)
		}
		return v
	}
	r.fail(Malformed, "a number has more than %d bits", width)
	return 0
}

// signFits says whether the bits above the lowest used ones repeat the sign bit, as the format asks of a last byte.
func signFits(c byte, used int) bool {
	high := int8(c<<1) >> used // 7 bits, sign-extended, without the lowest used-1 ones
	return high == 0 || high == -1
}

func (r *reader) name() string {
	n := r.u32()
	if r.err == nil && n > MaxName {
		r.fail(TooLarge, "a name has %d bytes, at most %d are taken", n, MaxName)
	}
	b := r.bytes(n)
	if r.err == nil && !utf8.Valid(b) {
		r.fail(Malformed, "a name is not UTF-8")
	}
	return string(b)
}

// count reads how many items follow and holds it to a limit and to what the bytes left can hold.
func (r *reader) count(most int, what string) int {
	n := r.u32()
	if r.err != nil {
		return 0
	}
	if uint64(n) > uint64(most) {
		r.fail(TooLarge, "%d %s, at most %d are taken", n, what, most)
		return 0
	}
	if uint64(n) > uint64(r.left()) {
		r.fail(Malformed, "%d %s are announced, %d bytes are left", n, what, r.left())
		return 0
	}
	return int(n)
}

func (r *reader) valueType() ValueType {
	t := ValueType(r.byte())
	switch t {
	case I32, I64, F32, F64, V128, FuncRef, ExternRef:
	default:
		r.fail(Feature, "0x%02x is no value type", byte(t))
	}
	return t
}

func (r *reader) refType() ValueType {
	t := ValueType(r.byte())
	if r.err == nil && t != FuncRef && t != ExternRef {
		r.fail(Feature, "0x%02x is no reference type", byte(t))
	}
	return t
}

// limits reads a memory's or a table's limits.
func (r *reader) limits() Limits {
	var l Limits
	flag := r.byte()
	switch {
	case flag == 0:
		l.Min = r.u32()
	case flag == 1:
		l.Min, l.Max, l.HasMax = r.u32(), r.u32(), true
	case flag < 8:
		r.fail(Feature, "shared and 64-bit memories and tables are not run here")
	default:
		r.fail(Malformed, "0x%02x is no kind of limits", flag)
	}
	if r.err == nil && l.HasMax && l.Min > l.Max {
		r.fail(Malformed, "the minimum %d is above the maximum %d", l.Min, l.Max)
	}
	return l
}
