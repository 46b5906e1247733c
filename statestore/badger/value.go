package badger

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// sumSize is the number of bytes that the checksum adds to a value.
const sumSize = 4

// checksum is over key, version and value, so that a value under another key or of another batch does not pass.
func checksum(key []byte, version uint64, value []byte) uint32 {
	return uint32(xxh3.HashSeed(value, xxh3.HashSeed(key, version)))
}

// seal appends value and its checksum to dst.
func seal(dst, key []byte, version uint64, value []byte) []byte {
	dst = append(dst, value...)
	return binary.LittleEndian.AppendUint32(dst, checksum(key, version, value))
}

// unseal returns the value in a sealed one, or false when it is not what was written.
func unseal(key []byte, version uint64, sealed []byte) ([]byte, bool) {
	n := len(sealed) - sumSize
	if n < 0 {
		return nil, false
	}
	value := sealed[:n:n]
	return value, binary.LittleEndian.Uint32(sealed[n:]) == checksum(key, version, value)
}
