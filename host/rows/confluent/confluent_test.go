package confluent

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/wasmill/wasmill/host/sink"
)

// shelf is a Finder over schemas in memory.
type shelf struct {
	mu      sync.Mutex
	schemas map[int32]*Schema
	err     error
	asked   int
}

func (s *shelf) Schema(_ context.Context, id int32) (*Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.err != nil {
		return nil, s.err
	}
	if found := s.schemas[id]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("%w: nothing", ErrUnknown)
}

func (s *shelf) ByGUID(ctx context.Context, guid string) (*Schema, error) {
	if guid == "00112233-4455-6677-8899-aabbccddeeff" {
		return s.Schema(ctx, 2)
	}
	return s.Schema(ctx, 99)
}

func newShelf() *shelf {
	list := []*Schema{
		{
			ID: 1, Format: Avro, Text: `{"type":"record","name":"A","fields":[{"name":"n","type":"long"},{"name":"b","type":"p.B"}]}`,
			References: []Reference{{Name: "p.B", Text: `{"type":"enum","name":"p.B","symbols":["X"]}`}},
		},
		{
			ID: 2, Format: Protobuf, Text: `syntax = "proto3"; import "b.proto"; message A { message In { uint64 v = 1; } } message C { B b = 1; }`,
			References: []Reference{{Name: "b.proto", Text: `syntax = "proto3"; message B { int32 x = 1; }`}},
		},
		{ID: 3, Format: JSONSchema, Text: `{"type":"object"}`},
		{ID: 4, Format: Avro, Text: `{"type":`},
		{ID: 5, Format: Protobuf, Text: `message {`},
		{ID: 6, Format: Avro, Text: `{"type":"array","items":"null"}`},
	}
	s := &shelf{schemas: map[int32]*Schema{}}
	for _, x := range list {
		s.schemas[x.ID] = x
	}
	return s
}

func framed(id uint32, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, id), body...)
}

func TestPayloads(t *testing.T) {
	for _, c := range []struct {
		name    string
		format  Format
		payload []byte
		want    string
		code    string // of a Reject
	}{
		{"avro", Avro, framed(1, "\x05\x00"), `{"n":-3,"b":"X"}`, ""},
		{"protobuf, the first message in short", Protobuf, framed(2, "\x00"), `{}`, ""},
		{"protobuf, the first message at length", Protobuf, framed(2, "\x02\x00"), `{}`, ""},
		{"protobuf, the second message", Protobuf, framed(2, "\x02\x02\x0a\x02\x08\x05"), `{"b":{"x":5}}`, ""},
		{"protobuf, a nested message", Protobuf, framed(2, "\x04\x00\x00\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), `{"v":18446744073709551615}`, ""},
		{"json schema", JSONSchema, framed(3, `{ "a" : 1e2 }`), `{ "a" : 1e2 }`, ""},
		{"nothing", Avro, []byte{}, "", RejectFraming},
		{"short", Avro, []byte{0, 0, 0, 1}, "", RejectFraming},
		{"plain JSON", Avro, []byte(`{"n":1}`), "", RejectFraming},
		{"another magic byte", Avro, []byte{1, 0, 0, 0, 1, 0}, "", RejectFraming},
		{"an id that nobody knows", Avro, framed(99, "x"), "", RejectUnknown},
		{"an id below 0", Avro, framed(1<<31, "x"), "", RejectUnknown},
		{"another format", Avro, framed(2, "\x00"), "", RejectSchema},
		{"an avro schema that is none", Avro, framed(4, "x"), "", RejectSchema},
		{"a protobuf schema that is none", Protobuf, framed(5, "\x00"), "", RejectSchema},
		{"no avro", Avro, framed(1, "\x0a"), "", RejectPayload},
		{"no protobuf", Protobuf, framed(2, "\x00\x08"), "", RejectPayload},
		{"no path", Protobuf, framed(2, ""), "", RejectFraming},
		{"a path without end", Protobuf, framed(2, "\x04\x00"), "", RejectFraming},
		{"a path that is too long", Protobuf, framed(2, "\xfe\x01"), "", RejectFraming},
		{"a path of a negative length", Protobuf, framed(2, "\x01"), "", RejectFraming},
		{"a path to nowhere", Protobuf, framed(2, "\x02\x0a"), "", RejectFraming},
		{"a path below 0", Protobuf, framed(2, "\x02\x01"), "", RejectFraming},
		{"very much in few bytes", Avro, framed(6, "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "", RejectTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := NewDecoder(c.format, newShelf()).AppendJSON(t.Context(), []byte("kept"), c.payload, nil)
			var r *Reject
			if c.code != "" {
				if !errors.As(err, &r) || r.Code != c.code || r.Reason == "" || string(got) != "kept" {
					t.Errorf("%s, %v; want a reject %s", got, err, c.code)
				}
				return
			}
			if err != nil || string(got) != "kept"+c.want {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
		})
	}
}

// TestFramingInHeaders: the schema is named in a header, and the payload stands alone.
func TestFramingInHeaders(t *testing.T) {
	const guid = "\x01\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff"
	for _, c := range []struct {
		name, header, payload, want, code string
		format                            Format
	}{
		{"an id", "\x00\x00\x00\x00\x01", "\x05\x00", `{"n":-3,"b":"X"}`, "", Avro},
		{"a GUID and the first message", guid + "\x00", "", `{}`, "", Protobuf},
		{"a GUID and a path", guid + "\x02\x02", "\x0a\x02\x08\x05", `{"b":{"x":5}}`, "", Protobuf},
		{"a GUID that nobody knows", "\x01" + strings.Repeat("x", 16), "", "", RejectUnknown, Avro},
		{"a GUID that is cut", guid[:10], "", "", RejectFraming, Avro},
		{"nothing", "", "\x05\x00", "", RejectFraming, Avro},
		{"another magic byte", "\x02\x00\x00\x00\x01", "\x05\x00", "", RejectFraming, Avro},
	} {
		got, err := NewDecoder(c.format, newShelf()).AppendJSON(t.Context(), nil, []byte(c.payload), []byte(c.header))
		var r *Reject
		if errors.As(err, &r) != (c.code != "") || r != nil && r.Code != c.code || r == nil && err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v", c.name, got, err)
		}
	}
}

// TestSchemasThatCannotBeFound: what is no fault of the record is no Reject, and is asked for again.
func TestSchemasThatCannotBeFound(t *testing.T) {
	down := errors.New("the registry is down")
	s := newShelf()
	s.err = down
	d := NewDecoder(Avro, s)
	if _, err := d.AppendJSON(t.Context(), nil, framed(1, "\x05\x00"), nil); !errors.Is(err, down) || errors.As(err, new(*Reject)) {
		t.Errorf("%v", err)
	}
	s.err = nil
	for range 3 {
		if got, err := d.AppendJSON(t.Context(), nil, framed(1, "\x05\x00"), nil); err != nil || string(got) != `{"n":-3,"b":"X"}` {
			t.Errorf("%s, %v", got, err)
		}
	}
	if s.asked != 2 {
		t.Errorf("asked %d times, want 2: a schema is parsed once", s.asked)
	}
}

func TestManySchemas(t *testing.T) {
	s := newShelf()
	for id := int32(100); id < 100+2*maxParsed; id++ {
		s.schemas[id] = &Schema{ID: id, Format: Avro, Text: `"int"`}
	}
	d := NewDecoder(Avro, s)
	for id := uint32(100); id < 100+2*maxParsed; id++ {
		if got, err := d.AppendJSON(t.Context(), nil, framed(id, "\x02"), nil); err != nil || string(got) != "1" {
			t.Fatal(string(got), err)
		}
	}
	if len(d.ready) > maxParsed {
		t.Errorf("%d schemas are kept ready", len(d.ready))
	}
}

func TestWriting(t *testing.T) {
	all := newShelf().schemas
	for _, c := range []struct {
		name, message, text, want string
		schema                    int32
	}{
		{"avro", "", `{"n":-3,"b":"X"}`, "\x00\x00\x00\x00\x01\x05\x00", 1},
		{"the first message", "", `{}`, "\x00\x00\x00\x00\x02\x00", 2},
		{"the second message", "C", `{"b":{"x":5}}`, "\x00\x00\x00\x00\x02\x02\x02\x0a\x02\x08\x05", 2},
		{"a nested message", "A.In", `{"v":1}`, "\x00\x00\x00\x00\x02\x04\x00\x00\x08\x01", 2},
		{"json schema", "", ` {"a": 1}`, "\x00\x00\x00\x00\x03 {\"a\": 1}", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := all[c.schema]
			codec, err := NewCodec(s, s.Format, c.message)
			if err != nil {
				t.Fatal(err)
			}
			e := codec.NewEncoder()
			for range 2 {
				got, err := e.Append([]byte("kept"), []byte(c.text))
				if err != nil || string(got) != "kept"+c.want {
					t.Fatalf("%q, %v; want %q", got, err, c.want)
				}
				back, err := NewDecoder(s.Format, newShelf()).AppendJSON(t.Context(), nil, got[4:], nil)
				if err != nil || string(back) != c.text {
					t.Fatalf("it reads as %s, %v", back, err)
				}
			}
			got, err := e.Append([]byte("kept"), []byte(`{"n":`))
			if m := (*sink.Misfit)(nil); !errors.As(err, &m) || string(got) != "kept" {
				t.Errorf("no JSON: %q, %v", got, err)
			}
		})
	}
	for _, c := range []struct {
		schema  int32
		format  Format
		message string
	}{{1, Protobuf, ""}, {2, Protobuf, "D"}, {2, Protobuf, "B"}, {4, Avro, ""}, {5, Protobuf, ""}} {
		if _, err := NewCodec(all[c.schema], c.format, c.message); err == nil {
			t.Errorf("schema %d is ready to write %s %q", c.schema, c.format, c.message)
		}
	}
}

func TestLongReasonsAreCut(t *testing.T) {
	s := newShelf()
	s.schemas[7] = &Schema{ID: 7, Format: Avro, Text: `"` + strings.Repeat("x", 10_000) + `"`}
	_, err := NewDecoder(Avro, s).AppendJSON(t.Context(), nil, framed(7, ""), nil)
	if r := (*Reject)(nil); !errors.As(err, &r) || len(r.Reason) > 500 {
		t.Errorf("%v", err)
	}
}

func FuzzFraming(f *testing.F) {
	f.Add(framed(1, "\x05\x00"))
	f.Add(framed(2, "\x04\x00\x00\x08\x01"))
	f.Add(framed(3, "{}"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, format := range []Format{Avro, Protobuf, JSONSchema} {
			got, err := NewDecoder(format, newShelf()).AppendJSON(t.Context(), nil, payload, nil)
			if r := (*Reject)(nil); err != nil && (!errors.As(err, &r) || r.Code == "" || len(got) > 0) {
				t.Fatalf("%v is no reject", err)
			}
		}
	})
}
