package confluent

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/wasmill/wasmill/host/rows/jsonvalue"
)

const (
	magic     = 0
	magicGUID = 1 // in a header alone
	idSize    = 5 // with the magic byte
	guidSize  = 17
	// maxParsed is how many schemas are kept ready. Beyond it others are parsed again when they come.
	maxParsed = 1000
	// maxPath is how deep a message may be nested in its file.
	maxPath = 64
)

// Decoder turns framed payloads of one format into JSON. It may be used by several goroutines.
type Decoder struct {
	format Format
	find   Finder
	mu     sync.RWMutex
	ready  map[key]*parsed
}

// key is how a payload names its schema: by id, or by GUID.
type key struct {
	id   int32
	guid [16]byte
	by   byte // the magic byte
}

// NewDecoder returns a decoder of a format other than Raw.
func NewDecoder(format Format, find Finder) *Decoder {
	return &Decoder{format: format, find: find, ready: map[key]*parsed{}}
}

// AppendJSON appends the JSON text of one payload. header is the value of the header that holds its framing, nil when there
// is none. An error is a *Reject when it is the record's, else the host's.
func (d *Decoder) AppendJSON(ctx context.Context, dst, payload, header []byte) ([]byte, error) {
	frame := payload
	if header != nil {
		frame = header
	}
	k, rest, bad := readFrame(frame, header != nil)
	if bad != nil {
		return dst, bad
	}
	p, err := d.schema(ctx, k)
	if err != nil {
		return dst, err
	}
	if p.reject != nil {
		return dst, p.reject
	}
	path := first
	if d.format == Protobuf {
		var n int
		if path, n = readPath(rest); n < 0 {
			return dst, reject(RejectFraming, "the path of the message in its file does not end")
		}
		rest = rest[n:]
	}
	if header != nil {
		rest = payload
	}
	return d.body(p, dst, rest, path)
}

// readFrame reads how a schema is named, and returns what follows.
func readFrame(b []byte, inHeader bool) (k key, rest []byte, bad *Reject) {
	switch {
	case inHeader && len(b) >= guidSize && b[0] == magicGUID:
		k.by = magicGUID
		copy(k.guid[:], b[1:])
		return k, b[guidSize:], nil
	case len(b) < idSize:
		return k, nil, reject(RejectFraming, fmt.Sprintf("%d bytes are no schema registry framing, which has %d at least", len(b), idSize))
	case b[0] != magic:
		return k, nil, reject(RejectFraming, fmt.Sprintf("schema registry framing begins with a zero byte, and this with %#02x", b[0]))
	}
	k.id = int32(binary.BigEndian.Uint32(b[1:]))
	if k.id < 0 {
		return k, nil, reject(RejectUnknown, fmt.Sprintf("no schema has the id %d", k.id))
	}
	return k, b[idSize:], nil
}

func (d *Decoder) body(p *parsed, dst, body []byte, path []int) ([]byte, error) {
	var out []byte
	var err error
	switch d.format {
	case Avro:
		out, err = p.avro.AppendJSON(dst, body)
	case Protobuf:
		m, merr := p.protobuf.At(path)
		if merr != nil {
			return dst, reject(RejectFraming, merr.Error())
		}
		out, err = m.AppendJSON(dst, body)
	default:
		return append(dst, body...), nil
	}
	switch {
	case errors.Is(err, jsonvalue.ErrTooLarge):
		return dst, reject(RejectTooLarge, err.Error())
	case err != nil:
		return dst, reject(RejectPayload, err.Error())
	}
	return out, nil
}

func (d *Decoder) schema(ctx context.Context, k key) (*parsed, error) {
	d.mu.RLock()
	p := d.ready[k]
	d.mu.RUnlock()
	if p != nil {
		return p, nil
	}
	s, err := d.ask(ctx, k)
	if errors.Is(err, ErrUnknown) {
		return nil, reject(RejectUnknown, err.Error())
	}
	if err != nil {
		return nil, err
	}
	p = parse(s, d.format)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.ready) >= maxParsed {
		clear(d.ready)
	}
	d.ready[k] = p
	return p, nil
}

func (d *Decoder) ask(ctx context.Context, k key) (*Schema, error) {
	if k.by == magicGUID {
		text := jsonvalue.AppendUUID(nil, k.guid[:])
		return d.find.ByGUID(ctx, string(text[1:len(text)-1]))
	}
	return d.find.Schema(ctx, k.id)
}

var first = []int{0}

// readPath reads the path of a message: zigzag varints, their number first; a lone zero is short for the first message.
// Some writers leave the zigzag out, but not for the path of the first message, and that of another would be no path.
func readPath(b []byte) (path []int, n int) {
	count, n := binary.Varint(b)
	if n <= 0 || count < 0 || count > maxPath {
		return nil, -1
	}
	if count == 0 {
		return first, n
	}
	for range count {
		i, m := binary.Varint(b[n:])
		if m <= 0 || i < 0 || i > 1<<20 {
			return nil, -1
		}
		path = append(path, int(i))
		n += m
	}
	return path, n
}

func appendPath(dst []byte, path []int) []byte {
	if len(path) == 1 && path[0] == 0 {
		return append(dst, 0)
	}
	dst = binary.AppendVarint(dst, int64(len(path)))
	for _, i := range path {
		dst = binary.AppendVarint(dst, int64(i))
	}
	return dst
}
