package confluent

import (
	"encoding/binary"
	"fmt"

	"github.com/wasmill/wasmill/host/rows/avro"
	"github.com/wasmill/wasmill/host/rows/jsonvalue"
	"github.com/wasmill/wasmill/host/rows/protobuf"
)

// Codec is a schema that is ready to write by. It may be used by several goroutines.
type Codec struct {
	format  Format
	prefix  []byte
	avro    *avro.Schema
	message protobuf.Message
}

// NewCodec makes a schema ready. message is the full name of a Protobuf message, "" the file's first.
func NewCodec(s *Schema, want Format, message string) (*Codec, error) {
	p := parse(s, want)
	if p.reject != nil {
		return nil, p.reject
	}
	c := &Codec{format: want, avro: p.avro, prefix: binary.BigEndian.AppendUint32([]byte{magic}, uint32(s.ID))}
	if want != Protobuf {
		return c, nil
	}
	m, path, err := p.protobuf.Named(message)
	if err != nil {
		return nil, fmt.Errorf("schema %d: %w", s.ID, err)
	}
	c.message, c.prefix = m, appendPath(c.prefix, path)
	return c, nil
}

// Encoder turns JSON texts into framed payloads. It is for one goroutine.
type Encoder struct {
	codec *Codec
	doc   jsonvalue.Doc
	avro  *avro.Encoder
}

// NewEncoder returns an encoder.
func (c *Codec) NewEncoder() *Encoder {
	e := &Encoder{codec: c}
	if c.avro != nil {
		e.avro = c.avro.NewEncoder()
	}
	return e
}

// Append appends the framed payload of one JSON text. What does not fit is a *sink.Misfit.
func (e *Encoder) Append(dst, text []byte) ([]byte, error) {
	v, err := e.doc.Parse(text)
	if err != nil {
		return dst, err
	}
	out := append(dst, e.codec.prefix...)
	switch e.codec.format {
	case Avro:
		out, err = e.avro.Append(out, v)
	case Protobuf:
		out, err = e.codec.message.Append(out, v)
	default:
		out = append(out, text...)
	}
	if err != nil {
		return dst, err
	}
	return out, nil
}
