package protobuf

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/wasmill/wasmill/host/rows/jsonvalue"
)

var (
	errWire = errors.New("the payload is not in Protobuf's wire format")
	errText = errors.New("a text is not valid UTF-8")
	errTime = errors.New("a time lies outside of what has a text")
)

// AppendJSON appends the JSON text of one payload. jsonvalue.ErrTooLarge, wrapped, when that is too large; any other error
// says what is wrong with the payload.
func (m Message) AppendJSON(dst, payload []byte) ([]byte, error) {
	d := m.s.decoders.Get().(*decoder)
	defer m.s.decoders.Put(d)
	d.dst, d.limit, d.spans = dst, len(dst)+jsonvalue.MaxBytes, d.spans[:0]
	err := d.message(m.m, payload, 0)
	out := d.dst
	clear(d.spans[:d.peak]) // what was read is not held on to
	d.peak = 0
	if d.dst = nil; cap(d.spans) > maxIdle {
		d.spans = nil
	}
	if err != nil {
		return dst, err
	}
	return out, nil
}

type decoder struct {
	dst   []byte
	limit int
	spans []span
	peak  int // the most spans there were at once
}

// maxIdle is how many spans are kept for the next payload.
const maxIdle = 1000

// maxSpans bounds the known fields of the messages that are open at once, and with them the memory.
const maxSpans = 2 << 20

// span is one occurrence of a known field in a payload.
type span struct {
	f    *field
	wire protowire.Type
	b    []byte // a varint or fixed value, or what a length or group encloses
}

// scan finds the known fields of a message. It appends them to spans in the order of the payload; of a oneof only the
// member that was set last is left.
func (d *decoder) scan(m *message, b []byte) error {
	base := len(d.spans)
	var oneofs []choice
	if m.oneofs > 0 {
		oneofs = make([]choice, m.oneofs)
	}
	for len(b) > 0 {
		num, wire, n := protowire.ConsumeTag(b)
		if n < 0 || num > protowire.MaxValidNumber {
			return errWire
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(num, wire, b); n < 0 {
			return errWire
		}
		value := b[:n]
		b = b[n:]
		f := m.byNumber[num]
		if f == nil || !f.takes(wire) {
			continue
		}
		if f.oneof >= 0 {
			if c := &oneofs[f.oneof]; c.f != f {
				c.f, c.from = f, len(d.spans)
			}
		}
		d.spans = append(d.spans, span{f, wire, inner(num, wire, value)})
	}
	if len(d.spans) > maxSpans {
		return jsonvalue.ErrTooLarge
	}
	d.peak = max(d.peak, len(d.spans))
	if oneofs != nil {
		d.dropUnset(base, oneofs)
	}
	return nil
}

// choice is the member of a oneof that was set last, and the first span that counts.
type choice struct {
	f    *field
	from int
}

func (d *decoder) dropUnset(base int, oneofs []choice) {
	kept := d.spans[:base]
	for i := base; i < len(d.spans); i++ {
		s := d.spans[i]
		if o := s.f.oneof; o < 0 || oneofs[o].f == s.f && oneofs[o].from <= i {
			kept = append(kept, s)
		}
	}
	d.spans = kept
}

// inner takes the length or the end of a group off a value.
func inner(num protowire.Number, wire protowire.Type, value []byte) []byte {
	switch wire {
	case protowire.BytesType:
		b, _ := protowire.ConsumeBytes(value)
		return b
	case protowire.StartGroupType:
		b, _ := protowire.ConsumeGroup(num, value)
		return b
	}
	return value
}

// takes reports whether values of the field come in a wire type.
func (f *field) takes(wire protowire.Type) bool {
	return wire == wireOf(f.kind) || f.list && wire == protowire.BytesType && wireOf(f.kind) <= protowire.Fixed32Type &&
		wireOf(f.kind) != protowire.BytesType && f.kind != protoreflect.GroupKind
}

func wireOf(k protoreflect.Kind) protowire.Type {
	switch k {
	case protoreflect.DoubleKind, protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return protowire.Fixed64Type
	case protoreflect.FloatKind, protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind:
		return protowire.Fixed32Type
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		return protowire.BytesType
	case protoreflect.GroupKind:
		return protowire.StartGroupType
	}
	return protowire.VarintType
}

// message writes one message. Its fields come from spans, grouped by declaration.
func (d *decoder) message(m *message, b []byte, depth int) error {
	if depth > maxDepth {
		return errDeep
	}
	if len(d.dst) > d.limit {
		return jsonvalue.ErrTooLarge
	}
	base := len(d.spans)
	if err := d.scan(m, b); err != nil {
		return err
	}
	byField := func(a, b span) int { return cmp.Compare(a.f.index, b.f.index) }
	if set := d.spans[base:]; !slices.IsSortedFunc(set, byField) {
		slices.SortStableFunc(set, byField)
	}
	err := d.body(m, base, depth)
	d.spans = d.spans[:base]
	return err
}

func (d *decoder) body(m *message, base, depth int) error {
	if err := d.checkRequired(m, base); err != nil {
		return err
	}
	if m.special != ordinary {
		return d.special(m, base, depth)
	}
	d.dst = append(d.dst, '{')
	open := len(d.dst)
	always := m.always
	for at, end := base, len(d.spans); at < end || len(always) > 0; {
		if at < end && (len(always) == 0 || d.spans[at].f.index <= always[0].index) {
			f := d.spans[at].f
			if len(always) > 0 && always[0] == f {
				always = always[1:]
			}
			to := at + 1
			for to < end && d.spans[to].f == f {
				to++
			}
			d.key(f, open)
			if err := d.field(f, at, to, depth); err != nil {
				return inField(f.name, err)
			}
			at = to
			continue
		}
		d.key(always[0], open)
		d.dst = append(d.dst, always[0].deflt...)
		always = always[1:]
	}
	d.dst = append(d.dst, '}')
	return nil
}

func (d *decoder) key(f *field, open int) {
	if len(d.dst) > open {
		d.dst = append(d.dst, ',')
	}
	d.dst = append(d.dst, f.key...)
}

func (d *decoder) checkRequired(m *message, base int) error {
	for _, f := range m.required {
		if !slices.ContainsFunc(d.spans[base:], func(s span) bool { return s.f == f }) {
			return fmt.Errorf("the required field %s is missing", f.name)
		}
	}
	return nil
}

// field writes the value of the spans from at up to to, all of one field.
func (d *decoder) field(f *field, at, to, depth int) error {
	switch {
	case f.entry != nil:
		return d.table(f, at, to, depth)
	case f.list:
		return d.listed(f, at, to, depth)
	case f.msg != nil:
		b, err := joined(d.spans[at:to])
		if err != nil {
			return err
		}
		return d.message(f.msg, b, depth+1)
	}
	return d.scalar(f, d.spans[to-1].b)
}

// joined puts the occurrences of one message together: that is how they are merged. Each must be one by itself.
func joined(spans []span) ([]byte, error) {
	if len(spans) == 1 {
		return spans[0].b, nil
	}
	var all []byte
	for _, s := range spans {
		for rest := s.b; len(rest) > 0; {
			_, _, n := protowire.ConsumeField(rest)
			if n < 0 {
				return nil, errWire
			}
			rest = rest[n:]
		}
		all = append(all, s.b...)
	}
	return all, nil
}

func (d *decoder) listed(f *field, at, to, depth int) error {
	d.dst = append(d.dst, '[')
	open := len(d.dst)
	for i := at; i < to; i++ {
		s := d.spans[i]
		if s.wire == protowire.BytesType && wireOf(f.kind) != protowire.BytesType {
			if err := d.unpack(f, s.b, open); err != nil {
				return err
			}
			continue
		}
		if err := d.element(f, s.b, open, depth); err != nil {
			return err
		}
	}
	d.dst = append(d.dst, ']')
	return nil
}

func (d *decoder) element(f *field, b []byte, open, depth int) error {
	if len(d.dst) > open {
		d.dst = append(d.dst, ',')
	}
	if len(d.dst) > d.limit {
		return jsonvalue.ErrTooLarge
	}
	if f.msg != nil {
		return d.message(f.msg, b, depth+1)
	}
	return d.scalar(f, b)
}

func (d *decoder) unpack(f *field, b []byte, open int) error {
	for len(b) > 0 {
		n := protowire.ConsumeFieldValue(1, wireOf(f.kind), b)
		if n < 0 {
			return errWire
		}
		if err := d.element(f, b[:n], open, 0); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func (d *decoder) table(f *field, at, to, depth int) error {
	key, value := f.entry.fields[0], f.entry.fields[1]
	d.dst = append(d.dst, '{')
	for i := at; i < to; i++ {
		if i > at {
			d.dst = append(d.dst, ',')
		}
		base := len(d.spans)
		if err := d.scan(f.entry, d.spans[i].b); err != nil {
			return err
		}
		if err := d.mapKey(key, base); err != nil {
			return err
		}
		d.dst = append(d.dst, ':')
		if err := d.mapValue(value, base, depth); err != nil {
			return err
		}
		d.spans = d.spans[:base]
	}
	d.dst = append(d.dst, '}')
	return nil
}

// last returns the last occurrence of a field of an entry, nil when there is none.
func (d *decoder) last(f *field, base int) *span {
	for i := len(d.spans) - 1; i >= base; i-- {
		if d.spans[i].f == f {
			return &d.spans[i]
		}
	}
	return nil
}

func (d *decoder) mapKey(f *field, base int) error {
	s := d.last(f, base)
	text := f.kind == protoreflect.StringKind
	if !text {
		d.dst = append(d.dst, '"')
	}
	if s == nil {
		d.dst = append(d.dst, f.deflt...)
	} else if err := d.scalar(f, s.b); err != nil {
		return err
	}
	if !text {
		d.dst = append(d.dst, '"')
	}
	return nil
}

func (d *decoder) mapValue(f *field, base, depth int) error {
	if f.msg != nil {
		var spans []span
		for _, s := range d.spans[base:] {
			if s.f == f {
				spans = append(spans, s)
			}
		}
		b, err := joined(spans)
		if err != nil {
			return err
		}
		return d.message(f.msg, b, depth+1)
	}
	s := d.last(f, base)
	if s == nil {
		d.dst = append(d.dst, f.deflt...)
		return nil
	}
	return d.scalar(f, s.b)
}

func (d *decoder) scalar(f *field, b []byte) error {
	switch wireOf(f.kind) {
	case protowire.Fixed32Type:
		d.fixed32(f, b)
	case protowire.Fixed64Type:
		d.fixed64(f, b)
	case protowire.VarintType:
		x, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return errWire
		}
		d.varint(f, x)
	default:
		if f.kind == protoreflect.BytesKind {
			d.dst = jsonvalue.AppendBytes(d.dst, b)
			return nil
		}
		var ok bool
		if d.dst, ok = jsonvalue.AppendString(d.dst, b); !ok {
			return errText
		}
	}
	return nil
}

func (d *decoder) fixed32(f *field, b []byte) {
	x, _ := protowire.ConsumeFixed32(b)
	switch f.kind {
	case protoreflect.FloatKind:
		d.dst = jsonvalue.AppendFloat(d.dst, float64(math.Float32frombits(x)), 32)
	case protoreflect.Sfixed32Kind:
		d.dst = strconv.AppendInt(d.dst, int64(int32(x)), 10)
	default:
		d.dst = strconv.AppendUint(d.dst, uint64(x), 10)
	}
}

func (d *decoder) fixed64(f *field, b []byte) {
	x, _ := protowire.ConsumeFixed64(b)
	switch f.kind {
	case protoreflect.DoubleKind:
		d.dst = jsonvalue.AppendFloat(d.dst, math.Float64frombits(x), 64)
	case protoreflect.Sfixed64Kind:
		d.dst = strconv.AppendInt(d.dst, int64(x), 10)
	default:
		d.dst = strconv.AppendUint(d.dst, x, 10)
	}
}

func (d *decoder) varint(f *field, x uint64) {
	switch f.kind {
	case protoreflect.BoolKind:
		d.dst = strconv.AppendBool(d.dst, x != 0)
	case protoreflect.EnumKind:
		if text := f.enum.byNumber[int32(x)]; text != nil {
			d.dst = append(d.dst, text...)
			return
		}
		d.dst = strconv.AppendInt(d.dst, int64(int32(x)), 10)
	case protoreflect.Int32Kind:
		d.dst = strconv.AppendInt(d.dst, int64(int32(x)), 10)
	case protoreflect.Sint32Kind:
		d.dst = strconv.AppendInt(d.dst, int64(int32(protowire.DecodeZigZag(x&math.MaxUint32))), 10)
	case protoreflect.Uint32Kind:
		d.dst = strconv.AppendUint(d.dst, uint64(uint32(x)), 10)
	case protoreflect.Int64Kind:
		d.dst = strconv.AppendInt(d.dst, int64(x), 10)
	case protoreflect.Sint64Kind:
		d.dst = strconv.AppendInt(d.dst, protowire.DecodeZigZag(x), 10)
	default:
		d.dst = strconv.AppendUint(d.dst, x, 10)
	}
}

// fieldError says in which field an error is.
type fieldError struct {
	path string
	err  error
}

func (e *fieldError) Error() string { return e.path + ": " + e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }

// maxPath bounds the path of a field in a message.
const maxPath = 200

func inField(name string, err error) error {
	in, ok := err.(*fieldError) //nolint:errorlint // only what this package has just made
	if !ok {
		return &fieldError{name, err}
	}
	if len(name)+len(in.path) < maxPath {
		in.path = name + "." + in.path
	}
	return in
}
