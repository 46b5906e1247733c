package mem

import "unsafe"

// Ptr is the pointer an address stands for.
func Ptr(a uint64) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(nil), uintptr(a)) }

// Addr is the address of a pointer.
func Addr(p unsafe.Pointer) uint64 { return uint64(uintptr(p)) }

// static ends what was laid out by the linker, constant strings among it: they come before the variables.
var static byte

// NameKey stands for a string that never changes and that 16 bytes can be read of: a constant one, not longer than that.
// It is 0 for any other. No two such strings have the same key.
func NameKey(s string) uint64 {
	p := Addr(unsafe.Pointer(unsafe.StringData(s)))
	if p >= Addr(unsafe.Pointer(&static)) || len(s) == 0 || len(s) > 16 {
		return 0
	}
	return FastKey(s)
}

// FastKey is NameKey for strings that it is not 0 for, and something that differs from all keys for others.
func FastKey(s string) uint64 {
	return Addr(unsafe.Pointer(unsafe.StringData(s))) | uint64(len(s))<<32
}

// Load reads eight bytes of a string at offset i; it may read behind its end.
func Load(s string, i uintptr) uint64 {
	return *(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.StringData(s)), i))
}

// alloc makes a block of zeros. The garbage collector never moves it.
func alloc(n uint64) []uint64 { return make([]uint64, (n+7)/8) }

//go:wasmimport wasmill_1 emit
func emit(records, count, stride uint32)

// Emit hands count records of stride bytes to the host, which copies them at once.
func Emit(records, count, stride uint64) { emit(uint32(records), uint32(count), uint32(stride)) }

//go:wasmimport wasmill_1 log
func log(level, text, n uint32)

// Log writes one line to the host's log.
func Log(level uint32, text string) {
	log(level, uint32(Addr(unsafe.Pointer(unsafe.StringData(text)))), uint32(len(text)))
}

//go:wasmimport wasmill_1 state_read
func stateRead(ops, count, buf, size, need uint32) int32

// StateRead has count operations answered into size bytes at buf. Not 0: that is too little, and how much it takes stands at
// need.
func StateRead(ops, count, buf, size, need uint64) int32 {
	return stateRead(uint32(ops), uint32(count), uint32(buf), uint32(size), uint32(need))
}

//go:wasmimport wasmill_1 state_write
func stateWrite(ops, count uint32)

// StateWrite has count operations carried out.
func StateWrite(ops, count uint64) { stateWrite(uint32(ops), uint32(count)) }
