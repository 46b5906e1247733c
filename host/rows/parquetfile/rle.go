package parquetfile

import "encoding/binary"

// Parquet's hybrid of run lengths and bit-packed groups of eight, for definition levels and dictionary indices.

// appendHybrid appends values of at most width bits. A value repeated at least eight times from a group's start becomes a
// run; all else is packed.
func appendHybrid(dst []byte, values []uint32, width int) []byte {
	packed := 0 // values[packed:i] wait to be packed; i-packed is a multiple of eight
	for i := 0; i < len(values); {
		run := runLength(values, i)
		if run >= 8 || i+run == len(values) && run >= len(values)-i && packed == i {
			dst = appendPacked(dst, values[packed:i], width)
			dst = appendRun(dst, values[i], run, width)
			i += run
			packed = i
			continue
		}
		i = min(i+8, len(values))
	}
	return appendPacked(dst, values[packed:], width)
}

func runLength(values []uint32, i int) int {
	n := 1
	for i+n < len(values) && values[i+n] == values[i] {
		n++
	}
	return n
}

func appendRun(dst []byte, value uint32, n, width int) []byte {
	dst = binary.AppendUvarint(dst, uint64(n)<<1)
	for bytes := (width + 7) / 8; bytes > 0; bytes-- {
		dst = append(dst, byte(value))
		value >>= 8
	}
	return dst
}

// appendPacked appends groups of eight values, the last filled up with zeros.
func appendPacked(dst []byte, values []uint32, width int) []byte {
	if len(values) == 0 {
		return dst
	}
	groups := (len(values) + 7) / 8
	dst = binary.AppendUvarint(dst, uint64(groups)<<1|1)
	end := len(dst) + groups*width
	var acc uint64
	bits := 0
	for _, v := range values {
		acc |= uint64(v) << bits
		bits += width
		for bits >= 8 {
			dst = append(dst, byte(acc))
			acc >>= 8
			bits -= 8
		}
	}
	if bits > 0 {
		dst = append(dst, byte(acc))
	}
	for len(dst) < end {
		dst = append(dst, 0)
	}
	return dst
}

// appendLevels appends definition levels of 0 and 1, one byte each, with the length in front that version 1 pages want.
// nulls is how many are 0.
func appendLevels(dst, levels []uint8, nulls int) []byte {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	switch nulls {
	case 0:
		dst = appendRun(dst, 1, len(levels), 1)
	case len(levels):
		dst = appendRun(dst, 0, len(levels), 1)
	default:
		dst = binary.AppendUvarint(dst, uint64((len(levels)+7)/8)<<1|1)
		dst = appendBits(dst, levels)
	}
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

// appendBits packs bytes of 0 and 1, the first into the lowest bit.
func appendBits(dst, bits []uint8) []byte {
	for len(bits) >= 8 {
		x := binary.LittleEndian.Uint64(bits)
		dst = append(dst, byte(x*0x0102040810204080>>56))
		bits = bits[8:]
	}
	if len(bits) > 0 {
		var last byte
		for i, b := range bits {
			last |= b << i
		}
		dst = append(dst, last)
	}
	return dst
}
