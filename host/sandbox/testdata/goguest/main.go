//go:build wasip1

// A guest in plain Go that looks at all that could differ between two runs: clocks, random numbers, the order of maps,
// goroutines, the garbage collector. It answers each frame with one record that says what it saw.
package main

import (
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"time"
	"unsafe"
)

//go:wasmimport wasmill_1 emit
func emit(ptr unsafe.Pointer, count, stride uint32)

// record is the record of ABI 1, 56 bytes.
type record struct {
	_        [2]int64
	key      uint32
	keyLen   int32
	value    uint32
	valueLen int32
	_, _     uint32
	_        int32
	_, _     uint16
	index    uint32
	_        uint32
}

var (
	arena  []byte
	seen   = map[string]int{}
	config string
	calls  int
)

//go:wasmexport wasmill_alloc
func alloc(n uint32) unsafe.Pointer {
	if uint32(len(arena)) < n+16 {
		arena = make([]byte, n+16)
	}
	return unsafe.Pointer((uintptr(unsafe.Pointer(unsafe.SliceData(arena))) + 15) &^ 15)
}

//go:wasmexport wasmill_init
func initialise(ptr unsafe.Pointer, n, maxFrame uint32) int32 {
	config = string(unsafe.Slice((*byte)(ptr), n))
	for i := range 20 {
		seen[fmt.Sprint("key", i)] = i
	}
	alloc(maxFrame)
	return 0
}

//go:wasmexport wasmill_batch
func batch(unsafe.Pointer, uint32) int32 {
	defer runtime.Gosched()
	calls++
	before := time.Now()
	time.Sleep(3 * time.Second)
	order := ""
	for k := range seen {
		order += k[3:] + " "
	}
	sums := make(chan int)
	for i := range 4 {
		go func() {
			sum := 0
			for j := range 300 {
				sum += len(fmt.Sprint(i * j))
			}
			sums <- sum
		}()
	}
	text := fmt.Sprintf("calls %d, config %s, at %s, slept %s, random %d, args %d, env %d, order %s", calls, config,
		before.UTC().Format(time.RFC3339), time.Since(before).Round(time.Second), rand.Uint64(), len(os.Args), len(os.Environ()), order)
	for range 4 {
		text += fmt.Sprint(" ", <-sums)
	}
	runtime.GC()
	fmt.Println("said", calls)
	value := []byte(text)
	r := &record{keyLen: -1, value: uint32(uintptr(unsafe.Pointer(unsafe.SliceData(value)))), valueLen: int32(len(value)), index: 0xffffffff}
	emit(unsafe.Pointer(r), 1, 56)
	runtime.KeepAlive(value)
	return 0
}

func main() {}
