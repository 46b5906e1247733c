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

// Record is the record of the input that is at hand. A module has one: its methods read it where it lies, which is what
// makes them cheap.
type Record struct {
	at     uint64
	fields uint64 // where its fields lie: behind it, or all absent
	bad    uint64 // the first field that was not what was wanted: the field, and what was, plus 1; 0 when there is none
}

// What a field was wanted to be.
const (
	wantText = iota + 1
	wantInt
	wantNumber
	wantBool
	wantBits = 3
)

var wanted = [...]string{wantText: "a string", wantInt: "a 64-bit integer", wantNumber: "a number in range", wantBool: "a boolean"}

// Err is the error of the first field that Text, Int, Scaled or Bool found to be something else. From then on nothing more is
// written for this record, and it becomes a dead letter, whatever the transform returns.
func (r *Record) Err() error {
	if bad := module.rec.bad; bad != 0 {
		f := Field(bad >> wantBits)
		text := r.Field(f).Raw()
		return DeadLetter(BadField, module.nameOf(f)+" is not "+wanted[bad&(1<<wantBits-1)]+": "+string(text[:min(len(text), 64)]))
	}
	return nil
}

// IsJSON is true when the value is one JSON text in UTF-8. If not, all fields are absent.
func (r *Record) IsJSON() bool { return mem.U8(module.rec.at+recordHeaders+7)&flagNotJSON == 0 }

// Field is a declared field, found by the host.
func (r *Record) Field(f Field) Value {
	return Value{scan.Span(mem.U64(module.rec.fields + uint64(f)))}
}

// Text is a declared field that is a string or null.
func (r *Record) Text(f Field) Value {
	v := r.Field(f)
	if textKinds>>(uint64(v.span)>>60)&1 == 0 && module.rec.bad == 0 {
		module.rec.bad = uint64(f)<<wantBits | wantText
	}
	return v
}

// textKinds has a bit for each kind that Text takes.
const textKinds = 1<<KindAbsent | 1<<KindNull | 1<<KindString | 1<<KindEscaped

// Int is a declared field that is an integer of 64 bits, without fraction and exponent, or null.
func (r *Record) Int(f Field) Int {
	v := uint64(r.Field(f).span)
	// As num.Int, but with a look at the kind, and without a call.
	w, n := mem.U64(v&0xffffffff), v>>32&0x0fffffff
	minus := ((w&0xff ^ '-') - 1) >> 63
	digits := n - minus
	shift := (64 - 8*digits) & 63
	i, bad := num.Eight(w>>(8*minus&63)<<shift | num.Zeros(shift))
	if bad|(n-1)>>3|(digits-1)>>3|(v>>60^scan.Number) == 0 {
		return Int{(int64(i) ^ -int64(minus)) + int64(minus), true}
	}
	return intSlowly(f)
}

func intSlowly(f Field) Int {
	v := module.rec.Field(f)
	n, ok := v.Int()
	return module.rec.number(f, v, Int{n, ok}, wantInt)
}

// Scaled is a declared field that is a number or null, times 10^scale and rounded half up.
func (r *Record) Scaled(f Field, scale uint) Int {
	v := r.Field(f)
	n, ok := v.Scaled(scale)
	if ok {
		return Int{n, true}
	}
	return r.number(f, v, Int{}, wantNumber)
}

// number is n; if that is null but v is not, v was not what was wanted.
func (r *Record) number(f Field, v Value, n Int, want uint64) Int {
	if !n.Valid && !v.IsNull() && module.rec.bad == 0 {
		module.rec.bad = uint64(f)<<wantBits | want
	}
	return n
}

// Bool is a declared field that is a boolean or null.
func (r *Record) Bool(f Field) Bool {
	v := r.Field(f)
	b, ok := v.Bool()
	r.number(f, v, Int{Valid: ok}, wantBool)
	return Bool{b, ok}
}

// JSON is the whole value, for fields that the manifest did not declare. Each [Value.Get] scans it again.
func (r *Record) JSON() Value {
	at := module.rec.at + recordValue
	if n := int32(mem.U32(at + 4)); n > 0 && r.IsJSON() {
		return Value{scan.Whole(mem.U32(at), uint64(n))}
	}
	return Value{}
}

// Key is the key, nil when it is null.
func (r *Record) Key() []byte { return nullable(module.rec.at + recordKey) }

// Value is the value, nil when it is null.
func (r *Record) Value() []byte { return nullable(module.rec.at + recordValue) }

func nullable(a uint64) []byte {
	n := int32(mem.U32(a + 4))
	if n < 0 {
		return nil
	}
	return mem.Bytes(mem.U32(a), uint64(n))
}

// Headers are the headers in order: name, and value or nil for null.
func (r *Record) Headers() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		at := mem.U32(module.rec.at + recordHeaders)
		for range mem.U16(module.rec.at + recordHeaders + 4) {
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
	at := module.rec.at
	return int64(mem.U64(at)), mem.U8(at+recordHeaders+7)&flagEventTime != 0
}

// Offset is where the record stands in its partition or file.
func (r *Record) Offset() int64 { return int64(mem.U64(module.rec.at + 8)) }

// Partition is the partition it came from.
func (r *Record) Partition() int32 { return int32(mem.U32(module.rec.at + recordPlace)) }

// Input is the number of the input (the from entry of the job) it came by.
func (r *Record) Input() int { return int(mem.U16(module.rec.at + recordPlace + 6)) }

// Index is the record's number in its lane; -1 for timers.
func (r *Record) Index() int64 {
	if i := mem.U32(module.rec.at + recordIndex); i != noIndex {
		return int64(i)
	}
	return -1
}

// Kind is what the record is: an ordinary one, or a timer.
func (r *Record) Kind() Input { return Input(mem.U8(module.rec.at + recordHeaders + 6)) }
