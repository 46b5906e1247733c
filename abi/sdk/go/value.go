package wasmill

import (
	"iter"

	"github.com/wasmill/wasmill/abi/sdk/go/internal/mem"
	"github.com/wasmill/wasmill/abi/sdk/go/internal/num"
	"github.com/wasmill/wasmill/abi/sdk/go/internal/scan"
)

// Kind is what a JSON value is. The numbers are those of ABI 1.
type Kind uint8

// The kinds of values.
const (
	KindAbsent  Kind = iota // the pointer leads nowhere
	KindNull                // null
	KindFalse               // false
	KindTrue                // true
	KindNumber              // a number, as its exact text
	KindString              // a string without escapes; its text has no quotes
	KindEscaped             // a string with escapes; its text has no quotes, and the escapes are still in it
	KindObject              // an object
	KindArray               // an array
)

// Value is one JSON value of a record: a located field, or one that [Value.Get] found. Nothing is copied or converted
// until it is asked for. The zero Value is absent.
type Value struct {
	span scan.Span
}

// Int is an integer, or null when it is not Valid.
type Int struct {
	N     int64
	Valid bool
}

// Bool is a boolean, or null when it is not Valid.
type Bool struct {
	B, Valid bool
}

// IntOf is an integer that is not null.
func IntOf(n int64) Int { return Int{N: n, Valid: true} }

// BoolOf is a boolean that is not null.
func BoolOf(b bool) Bool { return Bool{B: b, Valid: true} }

// Kind is what it is.
func (v Value) Kind() Kind { return Kind(v.span.Kind()) }

// IsNull is true when the value is absent or null.
func (v Value) IsNull() bool { return v.span < scan.False<<60 }

// Is is true when the value is a string of exactly these characters.
func (v Value) Is(text string) bool {
	if v.span>>32 == scan.Span(scan.String<<28|len(text)) {
		return mem.String(v.span.At(), v.span.Len()) == text
	}
	return v.span.Kind() == scan.Escaped && scan.Is(v.span, text)
}

// Raw is the value as it lies in the record, not copied: a string without its quotes, anything else as its JSON text.
func (v Value) Raw() []byte { return mem.Bytes(v.span.At(), v.span.Len()) }

// Int is the value if it is an integer of 64 bits, written without fraction and exponent; false if it is not.
func (v Value) Int() (int64, bool) {
	if v.span.Kind() != scan.Number {
		return 0, false
	}
	return num.Int(v.span.At(), v.span.Len())
}

// Scaled is a number times 10^scale as an integer of 64 bits, rounded half up; false if it is none, or does not fit.
func (v Value) Scaled(scale uint) (int64, bool) {
	if v.span.Kind() != scan.Number {
		return 0, false
	}
	return num.Scaled(v.span.At(), v.span.Len(), uint64(scale))
}

// Bool is the value if it is a boolean; ok is false if it is not.
func (v Value) Bool() (b, ok bool) {
	return v.span.Kind() == scan.True, v.span.Kind() == scan.True || v.span.Kind() == scan.False
}

// String is a copy of a string's characters; "" if the value is no string.
func (v Value) String() string {
	switch v.span.Kind() {
	case scan.String:
		return string(v.Raw())
	case scan.Escaped:
		return string(scan.Unescape(v.span))
	}
	return ""
}

// Get is a member of an object, absent when there is none. Of members with the same name the last one counts. It scans the
// object.
func (v Value) Get(name string) Value { return Value{member(v.span, name)} }

// Members are the members of an object in order, none for anything else.
func (v Value) Members() iter.Seq2[Value, Value] {
	return func(yield func(Value, Value) bool) {
		w := scan.Begin(v.span, scan.Object)
		for name, value, ok := w.Member(); ok && yield(Value{name}, Value{value}); name, value, ok = w.Member() {
		}
	}
}

// Elements are the elements of an array in order, none for anything else.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		w := scan.Begin(v.span, scan.Array)
		for e, ok := w.Element(); ok && yield(Value{e}); e, ok = w.Element() {
		}
	}
}
