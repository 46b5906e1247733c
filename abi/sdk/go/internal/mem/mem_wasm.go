package mem

import "unsafe"

// Ptr is the pointer an address stands for.
func Ptr(a uint32) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(nil), uintptr(a)) }

// Addr is the address of a pointer.
func Addr(p unsafe.Pointer) uint32 { return uint32(uintptr(p)) }

// Load reads eight bytes of a string at offset i; it may read behind its end.
func Load(s string, i uintptr) uint64 {
	return *(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.StringData(s)), i))
}

// alloc makes a block of zeros. The garbage collector never moves it.
func alloc(n int) []uint64 { return make([]uint64, (n+7)/8) }

// Emit hands count records of stride bytes to the host, which copies them at once.
//
//go:wasmimport wasmill_1 emit
func Emit(records, count, stride uint32)

//go:wasmimport wasmill_1 log
func log(level, text, n uint32)

// Log writes one line to the host's log.
func Log(level uint32, text string) {
	log(level, Addr(unsafe.Pointer(unsafe.StringData(text))), uint32(len(text)))
}
