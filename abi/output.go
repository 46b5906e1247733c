package abi

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
)

// The span of times that a record may carry, in microseconds: the first and the last millisecond of the years 1 to 9999.
const (
	MinTime = -62135596800_000_000
	MaxTime = 253402300799_999_000
)

// OutputRules is what one lane of one batch lets its guest emit. It keeps the running total and the reused record, so it
// serves one lane at a time. The zero value allows nothing.
type OutputRules struct {
	Ports    int   // declared outputs
	MaxBytes int64 // the lane's quota, limits.output
	Used     int64 // sizes of all records emitted so far, of every kind

	record  Record
	headers [MaxHeaders]Header
	reason  []byte
}

// ReadOutput reads the count records that a guest handed to emit and calls visit for each, in order. The record, its
// headers and the bytes they point to are valid only during that call: all are views of mem, except a reason.
//
// Each address, length and count is checked in 64 bits against mem, on a copy of the struct, so memory that changes
// meanwhile can spoil contents but not the host. What ABI 1 forbids is a *Violation with trap emit or quota; what it ignores arrives
// as zero. Of KindDeadLetter and KindFail, Partition is the code and Value the reason: at most MaxReason bytes of it, then
// invalid UTF-8 replaced by U+FFFD; Key is nil.
//
// What ReadOutput cannot know is which indexes this lane run was given. visit checks that, and returns BadIndex for an
// Index that is not NoIndex and was not handed over or is excluded, and for a second verdict on the same record. An error
// of visit ends the reading and is returned as it is.
func ReadOutput(mem []byte, ptr, count, stride uint32, rules *OutputRules, visit func(*Record) error) error {
	if count == 0 {
		return nil
	}
	if stride%8 != 0 || stride < RecordSize || ptr%8 != 0 {
		return emitTrap("%d records at address %d with stride %d", count, ptr, stride)
	}
	last := uint64(ptr) + uint64(count-1)*uint64(stride)
	if last+RecordSize > uint64(len(mem)) {
		return emitTrap("%d records of stride %d at address %d end outside memory of %d bytes", count, stride, ptr, len(mem))
	}
	for at := uint64(ptr); at <= last; at += uint64(stride) {
		if err := rules.read(mem, (*[RecordSize]byte)(mem[at:])); err != nil {
			return err
		}
		if err := visit(&rules.record); err != nil {
			return err
		}
	}
	return nil
}

// BadIndex is the violation of a record that stems from an index this lane run was not given, or may not use again.
func BadIndex(index uint32) *Violation {
	return emitTrap("index %d is no record that was handed to this lane, or has its verdict already", index)
}

func emitTrap(format string, args ...any) *Violation {
	return &Violation{Trap: TrapEmit, Detail: fmt.Sprintf(format, args...)}
}

// read takes one struct apart into rules.record and charges its size.
func (o *OutputRules) read(mem []byte, s *[RecordSize]byte) error {
	le := binary.LittleEndian
	time := int64(le.Uint64(s[0:]))
	key, value, heads := le.Uint64(s[16:]), le.Uint64(s[24:]), le.Uint64(s[32:])
	place, index := le.Uint64(s[40:]), le.Uint64(s[48:])

	kind, flags := Kind(heads>>48), uint8(heads>>56)
	if flags&^(FlagEventTime|FlagNotJSON) != 0 || index>>32 != 0 ||
		kind != KindRecord && kind != KindDeadLetter && kind != KindFail {
		return emitTrap("record of kind %d with flags %#x and %#x in byte 52", kind, flags, index>>32)
	}
	r := &o.record
	*r = Record{Index: uint32(index), Kind: kind, Flags: flags & FlagEventTime, Port: uint16(place >> 32)}
	if r.Flags != 0 {
		if time < MinTime || time >= MaxTime+1000 {
			return emitTrap("event time %d is outside the years 1 to 9999", time)
		}
		r.EventTime = floorMillis(time)
	}
	var err error
	if r.Key, err = nullable(mem, key); err != nil {
		return err
	}
	if r.Value, err = nullable(mem, value); err != nil {
		return err
	}
	size := uint64(RecordSize + len(r.Key) + len(r.Value))
	if n := uint16(heads >> 32); n != 0 {
		if size, err = o.readHeaders(mem, uint32(heads), int(n), size); err != nil {
			return err
		}
	}
	if kind == KindRecord {
		if int(r.Port) >= o.Ports {
			return emitTrap("port %d of %d", r.Port, o.Ports)
		}
	} else if err := o.verdict(int32(uint32(place))); err != nil {
		return err
	}
	return o.charge(size)
}

// verdict checks and finishes a record of KindDeadLetter or KindFail.
func (o *OutputRules) verdict(code int32) error {
	r := &o.record
	if code < 0 || r.Index == NoIndex || len(r.Key) != 0 || r.Port != 0 || len(r.Headers) != 0 {
		return emitTrap("kind %d with code %d, index %d, key of %d bytes, port %d, %d headers",
			r.Kind, code, r.Index, len(r.Key), r.Port, len(r.Headers))
	}
	r.Partition, r.Key = code, nil
	o.reason = append(o.reason[:0], cutText(r.Value, MaxReason)...)
	if !utf8.Valid(o.reason) {
		o.reason = bytes.ToValidUTF8(o.reason, []byte("\uFFFD"))
	}
	if r.Value != nil {
		r.Value = o.reason
	}
	return nil
}

// LaneFull begins the detail of the violation that a lane's output is over OutputRules.MaxBytes: whichever record comes last
// is over it, though the others have filled it.
const LaneFull = "output of the lane is over "

func (o *OutputRules) charge(size uint64) error {
	if size > MaxRecord {
		return &Violation{Trap: TrapQuota, Detail: fmt.Sprintf("a record of %d bytes, at most %d are taken whatever the limits", size, MaxRecord)}
	}
	if int64(size) > o.MaxBytes-o.Used {
		return &Violation{Trap: TrapQuota, Detail: LaneFull + fmt.Sprintf("%d bytes (limits.output)", o.MaxBytes)}
	}
	o.Used += int64(size)
	return nil
}

// nullable is what an address (low half) and a length (high half) stand for: nil for -1, a view of mem otherwise.
func nullable(mem []byte, word uint64) ([]byte, error) {
	n := uint32(word >> 32)
	if n == 0 {
		return mem[:0:0], nil
	}
	if n == math.MaxUint32 {
		return nil, nil
	}
	ptr := uint64(uint32(word))
	end := ptr + uint64(n)
	if int32(n) < 0 || end > uint64(len(mem)) {
		return nil, emitTrap("%d bytes at address %d, memory has %d", int32(n), ptr, len(mem))
	}
	return mem[ptr:end:end], nil
}

// readHeaders reads n header entries at ptr and returns size with theirs added.
func (o *OutputRules) readHeaders(mem []byte, ptr uint32, n int, size uint64) (uint64, error) {
	if n > MaxHeaders || ptr%4 != 0 {
		return 0, emitTrap("%d headers at address %d", n, ptr)
	}
	entries := view(mem, ptr, uint32(n)*HeaderEntrySize)
	if entries == nil {
		return 0, emitTrap("%d headers at address %d, memory has %d bytes", n, ptr, len(mem))
	}
	le := binary.LittleEndian
	for i := range n {
		e := (*[HeaderEntrySize]byte)(entries[i*HeaderEntrySize:])
		name, value := le.Uint64(e[0:]), le.Uint64(e[8:])
		h := &o.headers[i]
		var err error
		if int32(name>>32) < 0 {
			return 0, emitTrap("header name of length %d", int32(name>>32))
		}
		if h.Name, err = nullable(mem, name); err != nil {
			return 0, err
		}
		if h.Value, err = nullable(mem, value); err != nil {
			return 0, err
		}
		size += uint64(HeaderEntrySize + len(h.Name) + len(h.Value))
	}
	o.record.Headers = o.headers[:n]
	return size, nil
}

// floorMillis is t microseconds without its fraction of a millisecond, rounded down.
func floorMillis(t int64) int64 {
	rest := t % 1000
	if rest < 0 {
		rest += 1000
	}
	return t - rest
}
