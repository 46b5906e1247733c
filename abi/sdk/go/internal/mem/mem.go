// Package mem is linear memory as the SDK sees it: addresses, arenas that never move, and the host's functions.
//
// Addresses are held in 64 bits, because Go's 32-bit arithmetic costs a mask each time in a module. There an address is a
// pointer. Natively, where pointers are wider, one block of the process plays linear memory,
// and the host's functions are hooks, so that the same code runs in ordinary tests. It must not know what lies in memory.
package mem

import "unsafe"

// Align is the alignment of arenas, in bytes.
const Align = 16

// Slack is how many bytes behind the end of an arena can be read and written. Wide copies run over into them.
const Slack = 64

// U64 reads eight bytes, little-endian, at any alignment.
func U64(a uint64) uint64 { return *(*uint64)(Ptr(a)) }

// U32 reads four bytes.
func U32(a uint64) uint64 { return uint64(*(*uint32)(Ptr(a))) }

// U16 reads two bytes.
func U16(a uint64) uint64 { return uint64(*(*uint16)(Ptr(a))) }

// U8 reads a byte.
func U8(a uint64) uint64 { return uint64(*(*byte)(Ptr(a))) }

// PutU64 writes eight bytes.
func PutU64(a, v uint64) { *(*uint64)(Ptr(a)) = v }

// PutU32 writes four bytes.
func PutU32(a, v uint64) { *(*uint32)(Ptr(a)) = uint32(v) }

// PutU16 writes two bytes.
func PutU16(a, v uint64) { *(*uint16)(Ptr(a)) = uint16(v) }

// PutU8 writes a byte.
func PutU8(a, v uint64) { *(*byte)(Ptr(a)) = byte(v) }

// Bytes is n bytes at a, not copied.
func Bytes(a, n uint64) []byte {
	if n == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(Ptr(a)), n)
}

// String is n bytes at a as a string, not copied: for comparing and looking up, never to be kept.
func String(a, n uint64) string {
	if n == 0 {
		return ""
	}
	return unsafe.String((*byte)(Ptr(a)), n)
}

// Copy copies n bytes, at most 1 GiB, between places that do not overlap.
func Copy(to, from, n uint64) {
	// As arrays: unsafe.Slice would multiply and check, with a call.
	copy((*[1 << 30]byte)(Ptr(to))[:n], (*[1 << 30]byte)(Ptr(from))[:n])
}

// Arena is a block that lives as long as the module, or until a larger one takes its place.
type Arena struct {
	block []uint64 // keeps it alive
	Base  uint64
	Len   uint64 // without the slack
}

// Hold makes the arena at least n bytes long, which loses its contents when it has to grow. False when memory is short.
func (a *Arena) Hold(n uint64) bool {
	if n <= a.Len && a.block != nil {
		return true
	}
	*a = Arena{}
	block := alloc(n + Slack + Align)
	if block == nil {
		return false
	}
	base := Addr(unsafe.Pointer(&block[0]))
	*a = Arena{block: block, Base: (base + Align - 1) &^ (Align - 1), Len: n}
	return true
}

// Release gives the block back.
func (a *Arena) Release() { *a = Arena{} }
