// Package orders is what the Go guests share: memory, the loop over a frame, the exports and the output. A guest sets Each
// in an init function.
package orders

import (
	"runtime"
	"strconv"
	"unsafe"
)

// Record is a record as it lies in memory, in and out.
type Record struct {
	EventTime, Offset int64
	Key               uint32
	KeyLen            int32
	Value             uint32
	ValueLen          int32
	Headers           uint32
	HeaderCount       uint16
	Kind, Flags       uint8
	Partition         int32
	Port, Input       uint16
	Index, zero       uint32
}

// Each looks at a value and appends to out what it becomes; false drops the record. It may read 16 bytes behind the value.
var Each func(out, value []byte, index uint32) ([]byte, bool)

// arena is for frames of 1,000 records and for their output.
const arena = 512 << 10

var (
	frames  = make([]uint64, arena/8+2)
	output  = make([]byte, 0, arena)
	pending = make([]Record, 1024)
	ends    = make([]int, 1024)
)

//go:wasmimport wasmill_1 emit
func emit(records unsafe.Pointer, count, stride uint32)

//go:wasmexport wasmill_alloc
func wasmillAlloc(n uint32) unsafe.Pointer {
	if int(n) > 8*len(frames) {
		frames = make([]uint64, n/8+2)
	}
	return unsafe.Pointer(&frames[0])
}

//go:wasmexport wasmill_init
func wasmillInit(config, n, maxFrame uint32) int32 { return 0 }

//go:wasmexport wasmill_batch
func wasmillBatch(frame, n uint32) int32 {
	f := pointer(frame)
	count, at, stride := *(*uint32)(unsafe.Add(f, 16)), *(*uint32)(unsafe.Add(f, 20)), *(*uint32)(unsafe.Add(f, 24))
	progress := (*uint32)(unsafe.Add(f, 96))
	kept := 0
	output = output[:0]
	for ; count > 0; count-- {
		r := (*Record)(pointer(at))
		at += stride
		*progress = r.Index
		out, ok := Each(output, unsafe.Slice((*byte)(pointer(r.Value)), r.ValueLen), r.Index)
		if !ok {
			continue
		}
		output = out
		pending[kept], ends[kept] = *r, len(output)
		kept++
	}
	// The output may have moved while it grew, so addresses come last.
	base, from := uint32(uintptr(unsafe.Pointer(unsafe.SliceData(output)))), 0
	for i := range pending[:kept] {
		pending[i].Value, pending[i].ValueLen = base+uint32(from), int32(ends[i]-from)
		from = ends[i]
	}
	emit(unsafe.Pointer(&pending[0]), uint32(kept), 56)
	runtime.Gosched()
	return 0
}

func pointer(address uint32) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(nil), uintptr(address)) }

// Cents reads a number with at most two decimals.
func Cents(text []byte) uint64 {
	v, left, point := uint64(0), 2, false
	for _, c := range text {
		if c == '.' {
			point = true
			continue
		}
		if point && left == 0 {
			break
		}
		if point {
			left--
		}
		v = v*10 + uint64(c-'0')
	}
	for ; left > 0; left-- {
		v *= 10
	}
	return v
}

// AppendEUR appends the new member and the brace.
func AppendEUR(out []byte, cents uint64) []byte {
	out = append(out, `,"amount_eur":`...)
	return append(AppendMoney(out, cents), '}')
}

// AppendMoney appends what so many cents of a dollar are in euros.
func AppendMoney(out []byte, cents uint64) []byte {
	eur := (cents*92 + 50) / 100
	out = strconv.AppendUint(out, eur/100, 10)
	return append(out, '.', byte('0'+eur/10%10), byte('0'+eur%10))
}
