package abi

import "encoding/binary"

// KeyOf appends the key that keyBy takes from a value's located fields to dst. One field gives a string's text or another
// scalar as it is written; several give a JSON array of them without blanks and with the shortest escapes. There is no
// key, and false, when one of them is absent, null, an object or an array. It may be longer than MaxStateKey.
func KeyOf(value []byte, fields []Field, dst []byte) ([]byte, bool) {
	start := len(dst)
	var ok bool
	switch len(fields) {
	case 0:
		return dst, false
	case 1:
		dst, ok = appendScalar(value, fields[0], dst)
	default:
		dst, ok = appendKeyArray(value, fields, dst)
	}
	if !ok {
		return dst[:start], false
	}
	return dst, true
}

func appendScalar(value []byte, f Field, dst []byte) ([]byte, bool) {
	if f.Kind <= FieldNull || f.Kind >= FieldObject {
		return dst, false
	}
	text := f.Text(value)
	if f.Kind != FieldEscaped {
		return append(dst, text...), true
	}
	dst, err := UnescapeString(text, dst)
	return dst, err == nil
}

func appendKeyArray(value []byte, fields []Field, dst []byte) ([]byte, bool) {
	var buf [64]byte
	for i, f := range fields {
		sep := byte(',')
		if i == 0 {
			sep = '['
		}
		dst = append(dst, sep)
		text, ok := appendScalar(value, f, buf[:0])
		if !ok {
			return dst, false
		}
		if f.Kind == FieldString || f.Kind == FieldEscaped {
			dst = AppendJSONString(dst, text)
		} else {
			dst = append(dst, text...)
		}
	}
	return append(dst, ']'), true
}

// Text is the field's bytes in the value it was located in.
func (f Field) Text(value []byte) []byte {
	return value[f.Start : f.Start+f.Len]
}

// KeyGroup is the key group of a key, 0 to KeyGroups-1: Kafka's default partitioner for KeyGroups partitions, that is
// murmur2 (seed 0x9747b28c) without its sign bit, modulo KeyGroups.
func KeyGroup(key []byte) int {
	return int(murmur2(key)&0x7fffffff) % KeyGroups
}

// LaneOfGroup is the lane, of lanes, that a key group belongs to.
func LaneOfGroup(group, lanes int) int {
	return group * lanes / KeyGroups
}

// murmur2 is the 32-bit MurmurHash2 by Austin Appleby as Kafka's Utils.murmur2 has it.
func murmur2(key []byte) uint32 {
	const m = 0x5bd1e995
	h := uint32(0x9747b28c) ^ uint32(len(key))
	for len(key) >= 4 {
		k := binary.LittleEndian.Uint32(key) * m
		k = (k ^ k>>24) * m
		h = h*m ^ k
		key = key[4:]
	}
	switch len(key) {
	case 3:
		h ^= uint32(key[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(key[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(key[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}
