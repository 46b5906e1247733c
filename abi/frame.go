package abi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// FrameMagic is the first four bytes of a frame, "WMF1", as a little-endian number.
const FrameMagic = 0x31464d57

// Offsets in a frame's header of what the guest writes, and of the fields both sides read.
const (
	frameProgress  = 96
	frameErrorPtr  = 100
	frameErrorLen  = 104
	frameSeed      = 64
	frameFuel      = 88
	recordFieldsAt = RecordSize
)

// ErrBadRecord says that a record cannot be laid out in a frame: too many headers, or fields outside its value.
var ErrBadRecord = errors.New("record does not fit the frame layout")

// Size is what a record takes of a frame that has nfields declared fields: its struct, its field entries, its header
// entries and its bytes. Chunks are cut, and limits are checked, by this number.
func (r *Record) Size(nfields int) int {
	n := RecordSize + FieldSize*nfields + len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += HeaderEntrySize + len(r.Headers[i].Name) + len(r.Headers[i].Value)
	}
	return n
}

// FrameSize is the length in bytes of a frame with recs, without the Overrun bytes behind it.
func FrameSize(recs []Record, nfields int) int {
	n := FrameHeaderSize
	for i := range recs {
		n += recs[i].Size(nfields)
	}
	return n
}

// PutFrame writes a whole frame to dst, for a guest that sees dst[0] at address base of its memory. dst holds at least
// FrameSize bytes; exactly so many are written, and the Overrun zero bytes behind them are the caller's to write. A record
// with fewer Fields than nfields has the rest absent; its Port is written as 0, and its EventTime as 0 without
// FlagEventTime. For timers nfields is 0. Null is address 0 and length -1; what is empty has the address it would lie at.
// On error what stands in dst is undefined.
func PutFrame(dst []byte, base uint32, h FrameHeader, recs []Record, nfields int) error {
	total := FrameSize(recs, nfields)
	if total > len(dst) || uint64(base)+uint64(total) > math.MaxUint32+1 || nfields < 0 || nfields > MaxFields {
		return fmt.Errorf("put frame: %d bytes at address %d do not fit", total, base)
	}
	dst = dst[:total]
	stride := RecordSize + FieldSize*nfields
	putFrameHeader(dst, base, &h, uint32(len(recs)), uint32(stride), uint32(nfields))
	w := frameWriter{dst: dst, base: base, entries: FrameHeaderSize + stride*len(recs), nfields: nfields}
	w.data = w.entries
	for i := range recs {
		w.data += HeaderEntrySize * len(recs[i].Headers)
	}
	at := FrameHeaderSize
	for i := range recs {
		if !w.record(&recs[i], dst[at:at+stride]) {
			return fmt.Errorf("put frame: record %d: %w", i, ErrBadRecord)
		}
		at += stride
	}
	return nil
}

func putFrameHeader(dst []byte, base uint32, h *FrameHeader, count, stride, nfields uint32) {
	le := binary.LittleEndian
	b := (*[FrameHeaderSize]byte)(dst)
	le.PutUint32(b[0:], FrameMagic)
	le.PutUint16(b[4:], Version)
	le.PutUint16(b[6:], h.Flags)
	le.PutUint32(b[8:], FrameHeaderSize)
	le.PutUint32(b[12:], uint32(len(dst)))
	le.PutUint32(b[16:], count)
	le.PutUint32(b[20:], base+FrameHeaderSize)
	le.PutUint32(b[24:], stride)
	le.PutUint32(b[28:], nfields)
	le.PutUint64(b[32:], h.Batch)
	le.PutUint64(b[40:], uint64(h.BatchTime))
	le.PutUint64(b[48:], uint64(h.LateWatermark))
	le.PutUint64(b[56:], uint64(h.Watermark))
	le.PutUint64(b[frameSeed:], h.Seed[0])
	le.PutUint64(b[frameSeed+8:], h.Seed[1])
	le.PutUint32(b[80:], h.Lane)
	le.PutUint32(b[84:], h.Chunk)
	le.PutUint64(b[frameFuel:], h.Fuel)
	le.PutUint32(b[frameProgress:], NoIndex)
	clear(b[frameErrorPtr:])
}

// frameWriter keeps the two places of a frame that grow while its records are written.
type frameWriter struct {
	dst     []byte
	base    uint32
	entries int // where the next header entry goes
	data    int // where the next bytes go
	nfields int
}

// bytes copies b to the frame's data and returns its address and length as a record holds them.
func (w *frameWriter) bytes(b []byte) (ptr, length uint32) {
	if b == nil {
		return 0, math.MaxUint32
	}
	at := w.data
	w.data = at + copy(w.dst[at:], b)
	return w.base + uint32(at), uint32(len(b))
}

func (w *frameWriter) record(r *Record, s []byte) bool {
	if len(r.Headers) > MaxHeaders || len(r.Fields) > w.nfields {
		return false
	}
	var time int64
	if r.Flags&FlagEventTime != 0 {
		time = r.EventTime
	}
	keyPtr, keyLen := w.bytes(r.Key)
	var headers uint32
	if len(r.Headers) > 0 {
		headers = w.headers(r.Headers)
	}
	valuePtr, valueLen := w.bytes(r.Value)
	le := binary.LittleEndian
	b := (*[RecordSize]byte)(s)
	le.PutUint64(b[0:], uint64(time))
	le.PutUint64(b[8:], uint64(r.Offset))
	le.PutUint64(b[16:], uint64(keyPtr)|uint64(keyLen)<<32)
	le.PutUint64(b[24:], uint64(valuePtr)|uint64(valueLen)<<32)
	le.PutUint64(b[32:], uint64(headers)|uint64(len(r.Headers))<<32|uint64(r.Kind)<<48|uint64(r.Flags)<<56)
	le.PutUint64(b[40:], uint64(uint32(r.Partition))|uint64(r.Input)<<48)
	le.PutUint64(b[48:], uint64(r.Index))
	return putFields(s[recordFieldsAt:], r.Fields, valuePtr, uint64(len(r.Value)))
}

func (w *frameWriter) headers(headers []Header) uint32 {
	first := w.base + uint32(w.entries)
	le := binary.LittleEndian
	for i := range headers {
		b := (*[HeaderEntrySize]byte)(w.dst[w.entries:])
		name := headers[i].Name
		at := w.data
		w.data = at + copy(w.dst[at:], name)
		ptr, length := w.bytes(headers[i].Value)
		le.PutUint32(b[0:], w.base+uint32(at))
		le.PutUint32(b[4:], uint32(len(name)))
		le.PutUint32(b[8:], ptr)
		le.PutUint32(b[12:], length)
		w.entries += HeaderEntrySize
	}
	return first
}

// putFields writes the field entries to s, which has room for as many as the frame has.
func putFields(s []byte, fields []Field, value uint32, size uint64) bool {
	le := binary.LittleEndian
	for i := range fields {
		f := &fields[i]
		if f.Kind == FieldAbsent {
			le.PutUint64(s[i*FieldSize:], 0)
			continue
		}
		if uint64(f.Start)+uint64(f.Len) > size || f.Kind > FieldArray || f.Len >= 1<<28 {
			return false
		}
		le.PutUint64(s[i*FieldSize:], uint64(value+f.Start)|uint64(f.Len|uint32(f.Kind)<<28)<<32)
	}
	clear(s[len(fields)*FieldSize:])
	return true
}

// FrameProgress is what the guest left in the progress field of the frame at ptr: the index of the record it was at, or
// NoIndex. It proves nothing: the caller takes an index that was not in the frame for NoIndex.
func FrameProgress(mem []byte, ptr uint32) uint32 {
	b := view(mem, ptr, FrameHeaderSize)
	if b == nil {
		return NoIndex
	}
	return binary.LittleEndian.Uint32(b[frameProgress:])
}

// FrameErrorText is the error text that the guest left in the frame at ptr, cut at MaxReason bytes and escaped as
// EscapeText does. It is empty when there is none or when its address is wild.
func FrameErrorText(mem []byte, ptr uint32) string {
	b := view(mem, ptr, FrameHeaderSize)
	if b == nil {
		return ""
	}
	text := view(mem, binary.LittleEndian.Uint32(b[frameErrorPtr:]), binary.LittleEndian.Uint32(b[frameErrorLen:]))
	return EscapeText(text, MaxReason)
}

// view is mem[ptr:ptr+n], or nil when that is not inside mem.
func view(mem []byte, ptr, n uint32) []byte {
	end := uint64(ptr) + uint64(n)
	if end > uint64(len(mem)) {
		return nil
	}
	return mem[ptr:end:end]
}
