package protobuf

import (
	"errors"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/wasmill/wasmill/host/rows/jsonvalue"
)

// The well-known types have JSON forms of their own (protobuf.dev, "ProtoJSON format").

// maxDuration is the most seconds of a Duration.
const maxDuration = 315_576_000_000

func (d *decoder) special(m *message, base, depth int) error {
	switch m.special {
	case timestamp, duration:
		return d.time(m, base)
	case wrapper:
		if s := d.last(m.fields[0], base); s != nil {
			return d.scalar(m.fields[0], s.b)
		}
		d.dst = append(d.dst, m.fields[0].deflt...)
		return nil
	case anyValue:
		if len(d.spans) == base {
			return errors.New("a google.protobuf.Value without a value")
		}
		f := d.spans[base].f // one member of its oneof is left
		switch f.name {
		case "null_value":
			d.dst = append(d.dst, "null"...)
			return nil
		case "number_value":
			x, _ := protowire.ConsumeFixed64(d.spans[len(d.spans)-1].b)
			if n := math.Float64frombits(x); math.IsNaN(n) || math.IsInf(n, 0) {
				return errors.New("a google.protobuf.Value holds a number that JSON has not")
			}
		}
		return d.field(f, base, len(d.spans), depth)
	}
	f := m.fields[0] // of a Struct its map, of a ListValue its list
	if len(d.spans) == base {
		d.dst = append(d.dst, f.deflt...)
		return nil
	}
	return d.field(f, base, len(d.spans), depth)
}

func (d *decoder) time(m *message, base int) error {
	var at [2]int64 // seconds, nanos
	for i, f := range m.fields[:2] {
		if s := d.last(f, base); s != nil {
			x, n := protowire.ConsumeVarint(s.b)
			if n < 0 {
				return errWire
			}
			if at[i] = int64(x); i == 1 {
				at[i] = int64(int32(x))
			}
		}
	}
	sec, nanos := at[0], at[1]
	ok := nanos > -1_000_000_000 && nanos < 1_000_000_000
	if m.special == timestamp {
		if ok = ok && nanos >= 0; ok {
			d.dst, ok = jsonvalue.AppendTime(d.dst, sec, nanos, true)
		}
	} else if ok = ok && sec <= maxDuration && sec >= -maxDuration && (sec == 0 || nanos == 0 || sec > 0 == (nanos > 0)); ok {
		d.dst = appendDuration(d.dst, sec, nanos)
	}
	if !ok {
		return errTime
	}
	return nil
}

// appendDuration writes seconds with as many of none, three, six or nine digits as they need, and an s.
func appendDuration(dst []byte, sec, nanos int64) []byte {
	dst = append(dst, '"')
	if sec < 0 || nanos < 0 {
		dst = append(dst, '-')
		sec, nanos = -sec, -nanos
	}
	dst = strconv.AppendInt(dst, sec, 10)
	if nanos != 0 {
		digits := strconv.AppendInt(nil, 1_000_000_000+nanos, 10)[1:]
		for len(digits) > 3 && string(digits[len(digits)-3:]) == "000" {
			digits = digits[:len(digits)-3]
		}
		dst = append(append(dst, '.'), digits...)
	}
	return append(dst, `s"`...)
}
