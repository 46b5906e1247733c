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
	magic  = 0
	header = 5
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
	ready  map[int32]*parsed
}

// NewDecoder returns a decoder of a format other than Raw.
func NewDecoder(format Format, find Finder) *Decoder {
	return &Decoder{format: format, find: find, ready: map[int32]*parsed{}}
}

// AppendJSON appends the JSON text of one payload. An error is a *Reject when it is the record's, else the host's.
func (d *Decoder) AppendJSON(ctx context.Context, dst, payload []byte) ([]byte, error) {
	if len(payload) < header {
		return dst, reject(RejectFraming, fmt.Sprintf("%d bytes are no schema registry framing, which has %d at least", len(payload), header))
	}
	if payload[0] != magic {
		return dst, reject(RejectFraming, fmt.Sprintf("schema registry framing begins with a zero byte, and this with %#02x", payload[0]))
	}
	p, err := d.schema(ctx, int32(binary.BigEndian.Uint32(payload[1:])))
	if err != nil {
		return dst, err
	}
	if p.reject != nil {
		return dst, p.reject
	}
	return d.body(p, dst, payload[header:])
}

func (d *Decoder) body(p *parsed, dst, body []byte) ([]byte, error) {
	var out []byte
	var err error
	switch d.format {
	case Avro:
		out, err = p.avro.AppendJSON(dst, body)
	case Protobuf:
		path, n := readPath(body)
		if n < 0 {
			return dst, reject(RejectFraming, "the path of the message in its file does not end")
		}
		m, merr := p.protobuf.At(path)
		if merr != nil {
			return dst, reject(RejectFraming, merr.Error())
		}
		out, err = m.AppendJSON(dst, body[n:])
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

func (d *Decoder) schema(ctx context.Context, id int32) (*parsed, error) {
	d.mu.RLock()
	p := d.ready[id]
	d.mu.RUnlock()
	if p != nil {
		return p, nil
	}
	if id < 0 {
		return nil, reject(RejectUnknown, fmt.Sprintf("no schema has the id %d", id))
	}
	s, err := d.find.Schema(ctx, id)
	if errors.Is(err, ErrUnknown) {
		return nil, reject(RejectUnknown, fmt.Sprintf("schema %d: %v", id, err))
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
	d.ready[id] = p
	return p, nil
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
