package wasmill

import (
	"iter"

	"github.com/wasmill/wasmill/abi/sdk/go/internal/mem"
	"github.com/wasmill/wasmill/abi/sdk/go/internal/num"
	"github.com/wasmill/wasmill/abi/sdk/go/internal/scan"
)

// Input says what a record is.
type Input uint8

// What the host hands over.
const (
	InputRecord          Input = iota
	InputEventTimer            // a timer in event time that is due: its sub-key is the value
	InputProcessingTimer       // a timer in processing time that is due
)

// Record is one record of the input, and the first error that reading its fields met.
type Record struct {
	at     uint32
	fields uint32
	err    error
}

// Err is the first error that Text, Int, Scaled or Bool met in this record. From then on nothing more is written for it, and
// it becomes a dead letter, whatever the transform returns.
func (r *Record) Err() error { return r.err }

// IsJSON is true when the value is one JSON text in UTF-8. If not, all fields are absent.
func (r *Record) IsJSON() bool { return mem.U8(r.at+recordHeaders+7)&flagNotJSON == 0 }

// Field is a declared field, found by the host.
func (r *Record) Field(f Field) Value {
	if uint32(f) >= r.fields {
		return Value{}
	}
	return Value{scan.Span(mem.U64(r.at + recordSize + uint32(f)*8))}
}

// Text is a declared field that is a string or null.
func (r *Record) Text(f Field) Value {
	v := r.Field(f)
	if k := v.Kind(); k > KindNull && k != KindString && k != KindEscaped {
		r.wrong(f, v, "a string")
		return Value{}
	}
	return v
}

// Int is a declared field that is an integer of 64 bits, without fraction and exponent, or null.
func (r *Record) Int(f Field) Int {
	v := r.Field(f)
	if n, ok := v.Int(); ok {
		return Int{n, true}
	}
	if !v.IsNull() {
		r.wrong(f, v, "a 64-bit integer")
	}
	return Int{}
}

// Scaled is a declared field that is a number or null, times 10^scale and rounded half up.
func (r *Record) Scaled(f Field, scale uint32) Int {
	v := r.Field(f)
	if v.span.Kind() == scan.Number {
		if n, ok := num.Scaled(v.span.At(), v.span.Len(), scale); ok {
			return Int{n, true}
		}
	}
	if !v.IsNull() {
		r.wrong(f, v, "a number in range")
	}
	return Int{}
}

// Bool is a declared field that is a boolean or null.
func (r *Record) Bool(f Field) Bool {
	v := r.Field(f)
	b, ok := v.Bool()
	if !ok && !v.IsNull() {
		r.wrong(f, v, "a boolean")
	}
	return Bool{b, ok}
}

//go:noinline
func (r *Record) wrong(f Field, v Value, wanted string) {
	if r.err != nil {
		return
	}
	text := v.Raw()
	text = text[:min(len(text), 64)]
	r.err = DeadLetter(BadField, module.nameOf(f)+" is not "+wanted+": "+string(text))
}

// JSON is the whole value, for fields that the manifest did not declare. Each [Value.Get] scans it again.
func (r *Record) JSON() Value {
	if n := int32(mem.U32(r.at + recordValue + 4)); n > 0 && r.IsJSON() {
		return Value{scan.Whole(mem.U32(r.at+recordValue), uint32(n))}
	}
	return Value{}
}

// Key is the key, nil when it is null.
func (r *Record) Key() []byte { return nullable(r.at + recordKey) }

// Value is the value, nil when it is null.
func (r *Record) Value() []byte { return nullable(r.at + recordValue) }

func nullable(a uint32) []byte {
	n := int32(mem.U32(a + 4))
	if n < 0 {
		return nil
	}
	return mem.Bytes(mem.U32(a), uint32(n))
}

// Headers are the headers in order: name, and value or nil for null.
func (r *Record) Headers() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		at := mem.U32(r.at + recordHeaders)
		for range mem.U16(r.at + recordHeaders + 4) {
			if !yield(mem.String(mem.U32(at), mem.U32(at+4)), nullable(at+8)) {
				return
			}
			at += headerSize
		}
	}
}

// Header is the value of the last header of this name, nil when there is none or it is null.
func (r *Record) Header(name string) []byte {
	var found []byte
	for n, v := range r.Headers() {
		if n == name {
			found = v
		}
	}
	return found
}

// EventTime is the event time in microseconds since 1970, if there is one.
func (r *Record) EventTime() (us int64, ok bool) {
	return int64(mem.U64(r.at)), mem.U8(r.at+recordHeaders+7)&flagEventTime != 0
}

// Offset is where the record stands in its partition or file.
func (r *Record) Offset() int64 { return int64(mem.U64(r.at + 8)) }

// Partition is the partition it came from.
func (r *Record) Partition() int32 { return int32(mem.U32(r.at + recordPlace)) }

// Input is the number of the input (the from entry of the job) it came by.
func (r *Record) Input() int { return int(mem.U16(r.at + recordPlace + 6)) }

// Index is the record's number in its lane; -1 for timers.
func (r *Record) Index() int64 {
	if i := mem.U32(r.at + recordIndex); i != noIndex {
		return int64(i)
	}
	return -1
}

// Kind is what the record is: an ordinary one, or a timer.
func (r *Record) Kind() Input { return Input(mem.U8(r.at + recordHeaders + 6)) }
