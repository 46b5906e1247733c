package avro

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/wasmill/wasmill/host/rows/jsonvalue"
)

var (
	errShort = errors.New("the payload ends in the middle of a value")
	errDeep  = errors.New("values nest deeper than " + strconv.Itoa(maxDepth) + " levels")
	errText  = errors.New("a text is not valid UTF-8")
	errRest  = errors.New("bytes follow the value")
	errLong  = errors.New("an integer has more bits than its type")
	errTime  = errors.New("a time lies outside of what has a text")
	errSize  = errors.New("a length that cannot be")
)

// AppendJSON appends the JSON text of one payload. jsonvalue.ErrTooLarge, wrapped, when that is too large; any other error
// says what is wrong with the payload, and where.
func (s *Schema) AppendJSON(dst, payload []byte) ([]byte, error) {
	d := decoder{b: payload, dst: dst, limit: len(dst) + jsonvalue.MaxBytes}
	if err := d.value(s.root, 0); err != nil {
		return dst, err
	}
	if d.i != len(payload) {
		return dst, errRest
	}
	return d.dst, nil
}

type decoder struct {
	b     []byte
	i     int
	dst   []byte
	limit int // of len(dst)
}

func (d *decoder) long() (int64, error) {
	var x uint64
	for shift := uint(0); shift < 70; shift += 7 {
		if d.i >= len(d.b) {
			return 0, errShort
		}
		c := d.b[d.i]
		d.i++
		if shift == 63 && c > 1 {
			return 0, errLong
		}
		x |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return int64(x>>1) ^ -int64(x&1), nil
		}
	}
	return 0, errLong
}

func (d *decoder) take(n int64) ([]byte, error) {
	if n < 0 {
		return nil, errSize
	}
	if n > int64(len(d.b)-d.i) {
		return nil, errShort
	}
	out := d.b[d.i : d.i+int(n)]
	d.i += int(n)
	return out, nil
}

// sized takes bytes behind their length.
func (d *decoder) sized() ([]byte, error) {
	n, err := d.long()
	if err != nil {
		return nil, err
	}
	return d.take(n)
}

func (d *decoder) value(t *schemaType, depth int) error {
	if depth > maxDepth {
		return errDeep
	}
	if len(d.dst) > d.limit {
		return jsonvalue.ErrTooLarge
	}
	switch t.kind {
	case kindNull:
		d.dst = append(d.dst, "null"...)
		return nil
	case kindBoolean:
		b, err := d.take(1)
		if err != nil {
			return err
		}
		if b[0] > 1 {
			return errors.New("a boolean that is neither 0 nor 1")
		}
		d.dst = strconv.AppendBool(d.dst, b[0] == 1)
		return nil
	case kindInt, kindLong:
		return d.integer(t)
	case kindFloat:
		b, err := d.take(4)
		if err != nil {
			return err
		}
		d.dst = jsonvalue.AppendFloat(d.dst, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), 32)
		return nil
	case kindDouble:
		b, err := d.take(8)
		if err != nil {
			return err
		}
		d.dst = jsonvalue.AppendFloat(d.dst, math.Float64frombits(binary.LittleEndian.Uint64(b)), 64)
		return nil
	case kindBytes:
		b, err := d.sized()
		if err != nil {
			return err
		}
		return d.binary(t, b)
	case kindFixed:
		b, err := d.take(int64(t.size))
		if err != nil {
			return err
		}
		return d.binary(t, b)
	case kindString:
		return d.text()
	case kindEnum:
		n, err := d.long()
		if err != nil {
			return err
		}
		if n < 0 || n >= int64(len(t.symbols)) {
			return fmt.Errorf("enum %s has no symbol %d", t.name, n)
		}
		d.dst = append(d.dst, t.quoted[n]...)
		return nil
	case kindRecord:
		return d.record(t, depth)
	case kindUnion:
		return d.union(t, depth)
	}
	return d.blocks(t, depth)
}

func (d *decoder) text() error {
	b, err := d.sized()
	if err != nil {
		return err
	}
	var ok bool
	if d.dst, ok = jsonvalue.AppendString(d.dst, b); !ok {
		return errText
	}
	return nil
}

func (d *decoder) integer(t *schemaType) error {
	n, err := d.long()
	if err != nil {
		return err
	}
	if t.kind == kindInt && (n < math.MinInt32 || n > math.MaxInt32) {
		return errLong
	}
	ok := true
	switch t.logical {
	case date:
		d.dst, ok = jsonvalue.AppendDate(d.dst, n)
	case clock:
		unit := 1_000_000_000 / t.perSecond
		if ok = n >= 0 && n < 86_400*t.perSecond; ok {
			d.dst, ok = jsonvalue.AppendClock(d.dst, n*unit)
		}
	case timestamp, local:
		sec, nanos := jsonvalue.Split(n, t.perSecond)
		d.dst, ok = jsonvalue.AppendTime(d.dst, sec, nanos, t.logical == timestamp)
	default:
		d.dst = strconv.AppendInt(d.dst, n, 10)
	}
	if !ok {
		return errTime
	}
	return nil
}

func (d *decoder) binary(t *schemaType, b []byte) error {
	switch t.logical {
	case decimal:
		if len(b) == 0 || len(b) > jsonvalue.MaxDecimalBytes {
			return fmt.Errorf("a decimal of %d bytes", len(b))
		}
		d.dst = jsonvalue.AppendDecimal(d.dst, b, t.scale)
	case uuid:
		d.dst = jsonvalue.AppendUUID(d.dst, b)
	case duration:
		d.dst = jsonvalue.AppendDuration(d.dst, b)
	default:
		d.dst = jsonvalue.AppendBytes(d.dst, b)
	}
	return nil
}

func (d *decoder) record(t *schemaType, depth int) error {
	d.dst = append(d.dst, '{')
	for i := range t.fields {
		f := &t.fields[i]
		if i > 0 {
			d.dst = append(d.dst, ',')
		}
		d.dst = append(d.dst, f.key...)
		if err := d.value(f.typ, depth+1); err != nil {
			return inField(f.name, err)
		}
	}
	d.dst = append(d.dst, '}')
	return nil
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

func (d *decoder) union(t *schemaType, depth int) error {
	n, err := d.long()
	if err != nil {
		return err
	}
	if n < 0 || n >= int64(len(t.branches)) {
		return fmt.Errorf("a union has no branch %d", n)
	}
	b := t.branches[n]
	if b.kind == kindNull || t.other >= 0 {
		return d.value(b, depth+1)
	}
	d.dst, _ = jsonvalue.AppendString(append(d.dst, '{'), []byte(b.name))
	d.dst = append(d.dst, ':')
	if err := d.value(b, depth+1); err != nil {
		return err
	}
	d.dst = append(d.dst, '}')
	return nil
}

// blocks reads an array or a map. Each element has at least one byte of text, so that a count of elements without bytes
// ends at the limit.
func (d *decoder) blocks(t *schemaType, depth int) error {
	open, end := byte('['), byte(']')
	if t.kind == kindMap {
		open, end = '{', '}'
	}
	d.dst = append(d.dst, open)
	first := true
	for {
		n, err := d.blockCount()
		if err != nil {
			return err
		}
		if n == 0 {
			d.dst = append(d.dst, end)
			return nil
		}
		for ; n > 0; n-- {
			if !first {
				d.dst = append(d.dst, ',')
			}
			first = false
			if t.kind == kindMap {
				if err := d.text(); err != nil {
					return err
				}
				d.dst = append(d.dst, ':')
			}
			if err := d.value(t.elem, depth+1); err != nil {
				return err
			}
		}
	}
}

// blockCount reads how many elements follow. A negative count is followed by the bytes of the block.
func (d *decoder) blockCount() (int64, error) {
	n, err := d.long()
	if err != nil || n >= 0 {
		return n, err
	}
	if n == math.MinInt64 {
		return 0, errSize
	}
	size, err := d.long()
	if err == nil && size < 0 {
		err = errSize
	}
	return -n, err
}
