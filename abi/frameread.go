package abi

import (
	"encoding/binary"
	"fmt"
)

// Frame is a frame as a guest reads it. The records' bytes are views of the memory it was read from.
type Frame struct {
	FrameHeader
	NFields int
	Records []Record // Fields count from the first byte of Value again
}

// ReadFrame reads the frame of n bytes at address ptr of mem with every check that a careful guest could make. It is the
// other side of PutFrame: for tests, golden vectors and the conformance kit.
func ReadFrame(mem []byte, ptr, n uint32) (*Frame, error) {
	le := binary.LittleEndian
	b := view(mem, ptr, n)
	if len(b) < FrameHeaderSize || ptr%Alignment != 0 {
		return nil, fmt.Errorf("read frame: no frame of %d bytes at address %d", n, ptr)
	}
	if le.Uint32(b) != FrameMagic || le.Uint16(b[4:]) != Version {
		return nil, fmt.Errorf("read frame: magic %#x, version %d", le.Uint32(b), le.Uint16(b[4:]))
	}
	f := &Frame{NFields: int(le.Uint32(b[28:]))}
	count, stride := uint64(le.Uint32(b[16:])), uint64(le.Uint32(b[24:]))
	headerLen, total, records := le.Uint32(b[8:]), le.Uint32(b[12:]), le.Uint32(b[20:])
	if headerLen < FrameHeaderSize || total != n || f.NFields > MaxFields || stride%8 != 0 ||
		stride < uint64(RecordSize+FieldSize*f.NFields) || records%8 != 0 {
		return nil, fmt.Errorf("read frame: header of %d bytes, total %d, stride %d, %d fields", headerLen, total, stride, f.NFields)
	}
	if uint64(records) < uint64(ptr)+uint64(headerLen) || uint64(records)+count*stride > uint64(ptr)+uint64(n) {
		return nil, fmt.Errorf("read frame: %d records at %d lie outside", count, records)
	}
	f.FrameHeader = FrameHeader{
		Flags: le.Uint16(b[6:]), Batch: le.Uint64(b[32:]), BatchTime: int64(le.Uint64(b[40:])),
		LateWatermark: int64(le.Uint64(b[48:])), Watermark: int64(le.Uint64(b[56:])),
		Seed: [2]uint64{le.Uint64(b[frameSeed:]), le.Uint64(b[frameSeed+8:])},
		Lane: le.Uint32(b[80:]), Chunk: le.Uint32(b[84:]), Fuel: le.Uint64(b[frameFuel:]),
	}
	r := frameReader{frame: b, base: ptr}
	for i := range count {
		at := uint64(records) - uint64(ptr) + i*stride
		rec, err := r.record(b[at:at+stride], f.NFields)
		if err != nil {
			return nil, fmt.Errorf("read frame: record %d: %w", i, err)
		}
		f.Records = append(f.Records, rec)
	}
	return f, nil
}

type frameReader struct {
	frame []byte
	base  uint32
}

// bytes are the n bytes at ptr, nil for n = -1; they must lie inside the frame.
func (r *frameReader) bytes(ptr uint32, n int32) ([]byte, error) {
	if n == -1 {
		return nil, nil
	}
	if n == 0 {
		return []byte{}, nil
	}
	if n < 0 || ptr < r.base {
		return nil, fmt.Errorf("%d bytes at address %d", n, ptr)
	}
	b := view(r.frame, ptr-r.base, uint32(n))
	if b == nil {
		return nil, fmt.Errorf("%d bytes at address %d lie outside the frame", n, ptr)
	}
	return b, nil
}

func (r *frameReader) record(s []byte, nfields int) (Record, error) {
	le := binary.LittleEndian
	rec := Record{
		EventTime: int64(le.Uint64(s)), Offset: int64(le.Uint64(s[8:])), Kind: Kind(s[38]), Flags: s[39],
		Partition: int32(le.Uint32(s[40:])), Port: le.Uint16(s[44:]), Input: le.Uint16(s[46:]), Index: le.Uint32(s[48:]),
	}
	if rec.Kind > KindProcessingTimer || rec.Flags&^(FlagEventTime|FlagNotJSON) != 0 || le.Uint32(s[52:]) != 0 || rec.Port != 0 {
		return rec, fmt.Errorf("kind %d, flags %d, port %d", rec.Kind, rec.Flags, rec.Port)
	}
	var err error
	if rec.Key, err = r.bytes(le.Uint32(s[16:]), int32(le.Uint32(s[20:]))); err != nil {
		return rec, fmt.Errorf("key: %w", err)
	}
	value := le.Uint32(s[24:])
	if rec.Value, err = r.bytes(value, int32(le.Uint32(s[28:]))); err != nil {
		return rec, fmt.Errorf("value: %w", err)
	}
	if rec.Headers, err = r.headers(le.Uint32(s[32:]), int(le.Uint16(s[36:]))); err != nil {
		return rec, fmt.Errorf("headers: %w", err)
	}
	rec.Fields, err = readFields(s[len(s)-FieldSize*nfields:], value, uint64(len(rec.Value)))
	return rec, err
}

func (r *frameReader) headers(ptr uint32, count int) ([]Header, error) {
	if count == 0 {
		return nil, nil
	}
	if count > MaxHeaders || ptr%4 != 0 {
		return nil, fmt.Errorf("%d entries at address %d", count, ptr)
	}
	entries, err := r.bytes(ptr, int32(count*HeaderEntrySize))
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	headers := make([]Header, count)
	for i := range headers {
		e := entries[i*HeaderEntrySize:]
		name, err := r.bytes(le.Uint32(e), int32(le.Uint32(e[4:])))
		if err != nil || name == nil {
			return nil, fmt.Errorf("name %d: %d bytes at address %d", i, le.Uint32(e[4:]), le.Uint32(e))
		}
		value, err := r.bytes(le.Uint32(e[8:]), int32(le.Uint32(e[12:])))
		if err != nil {
			return nil, fmt.Errorf("value %d: %w", i, err)
		}
		headers[i] = Header{Name: name, Value: value}
	}
	return headers, nil
}

func readFields(s []byte, value uint32, size uint64) ([]Field, error) {
	if len(s) == 0 {
		return nil, nil
	}
	le := binary.LittleEndian
	fields := make([]Field, len(s)/FieldSize)
	for i := range fields {
		ptr, word := le.Uint32(s[i*FieldSize:]), le.Uint32(s[i*FieldSize+4:])
		f := Field{Start: ptr - value, Len: word & (1<<28 - 1), Kind: FieldKind(word >> 28)}
		if f.Kind == FieldAbsent && ptr == 0 && f.Len == 0 {
			continue
		}
		if f.Kind == FieldAbsent || f.Kind > FieldArray || ptr < value || uint64(f.Start)+uint64(f.Len) > size {
			return nil, fmt.Errorf("field %d: kind %d, %d bytes at address %d, value at %d", i, f.Kind, f.Len, ptr, value)
		}
		fields[i] = f
	}
	return fields, nil
}
