//go:build !wasm

package mem

import (
	"encoding/binary"
	"hash/fnv"
	"unsafe"
)

// size is that of the stand-in for linear memory; pages that are not touched cost nothing.
const size = 512 << 20

var (
	memory = make([]uint64, size/8)
	base   = unsafe.Pointer(&memory[0])
	used   = uint64(65536)

	// Host is what a test puts in place of the host's functions.
	Host struct {
		Emit func(records, count, stride uint64)
		Log  func(level uint32, text string)

		StateRead  func(ops, count, buf, size, need uint64) int32
		StateWrite func(ops, count uint64)
	}
	// Guest is what the SDK exports from a module, for a test to call.
	Guest struct {
		Use   func(transform any)
		Alloc func(n uint32) uint32
		Init  func(config, n, maxFrame uint32) int32
		Batch func(frame, n uint32) int32
	}
)

// Ptr is the pointer an address stands for.
func Ptr(a uint64) unsafe.Pointer { return unsafe.Add(base, uintptr(a)) }

// Addr is the address of a pointer into the stand-in.
func Addr(p unsafe.Pointer) uint64 { return uint64(uintptr(p) - uintptr(base)) }

// Reset forgets all blocks.
func Reset() { used = 65536 }

// NameKey stands for a string of 1 to 16 bytes, by its contents; it is 0 for any other.
func NameKey(s string) uint64 {
	if s == "" || len(s) > 16 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return h.Sum64() | 1
}

// FastKey is NameKey, and differs from all keys where that is 0.
func FastKey(s string) uint64 { return max(NameKey(s), 2) }

// Load reads eight bytes of a string at offset i, and zeros behind its end.
func Load(s string, i uintptr) uint64 {
	var b [8]byte
	if i < uintptr(len(s)) {
		copy(b[:], s[i:])
	}
	return binary.LittleEndian.Uint64(b[:])
}

func alloc(n uint64) []uint64 {
	words := (n + 7) / 8
	if words > size/8-used/8 {
		return nil
	}
	block := memory[used/8 : used/8+words]
	clear(block)
	used += words * 8
	return block
}

// Emit hands records to the test.
func Emit(records, count, stride uint64) { Host.Emit(records, count, stride) }

// Log hands a line to the test.
func Log(level uint32, text string) { Host.Log(level, text) }

// StateRead has the test answer operations.
func StateRead(ops, count, buf, size, need uint64) int32 {
	return Host.StateRead(ops, count, buf, size, need)
}

// StateWrite has the test carry out operations.
func StateWrite(ops, count uint64) { Host.StateWrite(ops, count) }
