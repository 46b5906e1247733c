package protobuf

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"

	"github.com/wasmill/wasmill/host/rows/jsonvalue"
)

const sample = `syntax = "proto3"; package t;
message M {
  optional int32 i = 1; optional string s = 2; M m = 3; repeated int32 list = 4; map<string, M> table = 5;
  oneof o { int32 a = 6; M b = 7; } optional fixed32 x = 8; optional bool yes = 9; map<int32, int32> nums = 10;
}`

func parsed(t testing.TB, source string) *Schema {
	t.Helper()
	s, err := Parse(source, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func first(t testing.TB, source string) Message {
	t.Helper()
	m, err := parsed(t, source).At([]int{0})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// wire builds payloads: numbers are varints, texts are bytes.
func wire(parts ...any) []byte {
	var b []byte
	for i := 0; i < len(parts); i += 2 {
		num := protowire.Number(parts[i].(int))
		switch v := parts[i+1].(type) {
		case int:
			b = protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), uint64(v))
		case []byte:
			b = protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
		case string:
			b = protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), v)
		}
	}
	return b
}

func TestPayloadsInOtherForms(t *testing.T) {
	m := first(t, sample)
	const rest = `"list":[],"table":{}`
	for _, c := range []struct {
		name    string
		payload []byte
		want    string
	}{
		{"nothing", nil, `{"list":[],"table":{},"nums":{}}`},
		{"another order", wire(9, 1, 2, "x", 1, 5), `{"i":5,"s":"x",` + rest + `,"yes":true,"nums":{}}`},
		{"the last counts", wire(1, 5, 1, 6), `{"i":6,` + rest + `,"nums":{}}`},
		{"messages are merged", wire(3, wire(1, 1, 4, 7), 3, wire(2, "x", 4, 8)), `{"m":{"i":1,"s":"x","list":[7,8],"table":{},"nums":{}},` + rest + `,"nums":{}}`},
		{"unknown fields", wire(99, 1, 1, 5, 100, "x"), `{"i":5,` + rest + `,"nums":{}}`},
		{"a known field of another type", wire(1, "x", 2, 5), `{` + rest + `,"nums":{}}`},
		{"packed and not", append(wire(4, 1, 4, []byte{2, 3}), wire(4, 4, 4, []byte{})...), `{"list":[1,2,3,4],"table":{},"nums":{}}`},
		{"the last of a oneof", wire(6, 1, 7, wire(1, 2)), `{` + rest + `,"b":{"i":2,` + rest + `,"nums":{}},"nums":{}}`},
		{"back and forth in a oneof", wire(7, wire(1, 2), 6, 1, 7, wire(2, "x")), `{` + rest + `,"b":{"s":"x",` + rest + `,"nums":{}},"nums":{}}`},
		{"an entry without parts", wire(5, []byte{}, 10, []byte{}), `{"list":[],"table":{"":{` + rest + `,"nums":{}}},"nums":{"0":0}}`},
		{"an entry the wrong way round", wire(10, wire(2, 7, 1, 3)), `{` + rest + `,"nums":{"3":7}}`},
		{"an entry twice", wire(10, wire(1, 3, 2, 7, 2, 8)), `{` + rest + `,"nums":{"3":8}}`},
		{"a group that is unknown", append(append(protowire.AppendTag(nil, 50, protowire.StartGroupType), wire(1, 5)...), protowire.AppendTag(nil, 50, protowire.EndGroupType)...), `{` + rest + `,"nums":{}}`},
		{"an int32 of many bits", wire(1, 1<<40+3), `{"i":3,` + rest + `,"nums":{}}`},
		{"a bool of 2", wire(9, 2), `{` + rest + `,"yes":true,"nums":{}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := m.AppendJSON(nil, c.payload)
			if err != nil || string(got) != c.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
			}
		})
	}
}

func TestPayloadsThatAreNone(t *testing.T) {
	m := first(t, sample)
	proto2 := first(t, `syntax = "proto2"; message M { required int32 r = 1; optional M m = 2; }`)
	known := first(t, `syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto"; import "google/protobuf/struct.proto";
		message M { google.protobuf.Timestamp at = 1; google.protobuf.Duration took = 2; google.protobuf.Value v = 3; }`)
	nan := protowire.AppendFixed64(protowire.AppendTag(nil, 2, protowire.Fixed64Type), 0x7ff8<<48)
	for _, c := range []struct {
		name    string
		m       Message
		payload []byte
		want    string
	}{
		{"a cut tag", m, []byte{0x80}, "wire format"},
		{"a field 0", m, []byte{0, 0}, "wire format"},
		{"a cut varint", m, []byte{8, 0x80}, "wire format"},
		{"a length beyond the payload", m, []byte{18, 200, 1}, "wire format"},
		{"a huge length", m, append([]byte{18}, protowire.AppendVarint(nil, 1<<63)...), "wire format"},
		{"an end without a group", m, []byte{12}, "wire format"},
		{"a wire type 6", m, []byte{14}, "wire format"},
		{"text that is not UTF-8", m, wire(2, "\xff"), "s: a text"},
		{"text deep in it", m, wire(3, wire(5, wire(1, "k", 2, wire(2, "\xff")))), "m.table.s: a text"},
		{"a packed varint without end", m, wire(4, []byte{0x80}), "wire format"},
		{"a nested message that is none", m, wire(3, []byte{0x80}), "wire format"},
		{"a required field", proto2, nil, "required field r"},
		{"a required field deep in it", proto2, wire(1, 1, 2, []byte{}), "m: the required field r"},
		{"a time before the years", known, wire(1, wire(1, -62135596801)), "outside"},
		{"nanos below 0", known, wire(1, wire(2, -1)), "outside"},
		{"nanos of two signs", known, wire(2, wire(1, 1, 2, -1)), "outside"},
		{"a long duration", known, wire(2, wire(1, 315576000001)), "outside"},
		{"a value without one", known, wire(3, []byte{}), "without a value"},
		{"a value of NaN", known, wire(3, nan), "JSON has not"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.m.AppendJSON([]byte("kept"), c.payload)
			if err == nil || !strings.Contains(err.Error(), c.want) || string(got) != "kept" {
				t.Errorf("%s, %v; want %q", got, err, c.want)
			}
		})
	}
}

// TestPayloadsThatGrow: few bytes that stand for much text end at the limit, and what nests without end at the depth.
func TestPayloadsThatGrow(t *testing.T) {
	m := first(t, sample)
	deep := wire(1, 1)
	for range maxDepth + 1 {
		deep = wire(3, deep)
	}
	if _, err := m.AppendJSON(nil, deep); !errors.Is(err, errDeep) {
		t.Errorf("deep: %v", err)
	}
	wide := first(t, `syntax = "proto3"; message M { repeated N n = 1; } message N { `+manyFields(500)+` }`)
	if _, err := wide.AppendJSON(nil, []byte(strings.Repeat("\x0a\x00", 100_000))); !errors.Is(err, jsonvalue.ErrTooLarge) {
		t.Errorf("defaults: %v", err)
	}
	if _, err := m.AppendJSON(nil, []byte(strings.Repeat("\x20\x01", maxSpans+1))); !errors.Is(err, jsonvalue.ErrTooLarge) {
		t.Errorf("elements: %v", err)
	}
}

func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("int32 field_" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + "_" + string(rune('a'+i/26)) + "_f = " + itoa(i+1) + ";")
	}
	return b.String()
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}

func TestSchemas(t *testing.T) {
	imports := map[string]string{
		"other/b.proto": `syntax = "proto3"; package o; import "c.proto"; message B { C c = 1; }`,
		"c.proto":       `syntax = "proto3"; package o; message C { int32 v = 1; }`,
	}
	s, err := Parse(`syntax = "proto3"; import "other/b.proto"; import "confluent/meta.proto"; import "confluent/type/decimal.proto";
		message A { o.B b = 1 [(confluent.field_meta) = {doc: "d"}]; confluent.type.Decimal d = 2; }`, imports)
	if err != nil {
		t.Fatal(err)
	}
	m, path, err := s.Named("A")
	if err != nil || len(path) != 1 || path[0] != 0 || m.Name() != "A" {
		t.Fatal(m.Name(), path, err)
	}
	if got, err := m.AppendJSON(nil, wire(1, wire(1, wire(1, 5)))); err != nil || string(got) != `{"b":{"c":{"v":5}}}` {
		t.Errorf("%s, %v", got, err)
	}
	for _, text := range []string{"", "message", `syntax = "proto3"; import "gone.proto";`, `syntax = "proto3"; message A { B b = 1; }`, strings.Repeat("/", MaxText+1)} {
		if _, err := Parse(text, nil); err == nil && text != "" {
			t.Errorf("%.40q compiles", text)
		}
	}
}

// TestDescriptors: a schema may be a serialised descriptor in base64, as Confluent's client for Python registers it.
func TestDescriptors(t *testing.T) {
	d := protodesc.ToFileDescriptorProto(parsed(t, sample).file)
	for _, f := range append(d.MessageType[0].Field, d.MessageType[0].NestedType[0].Field...) {
		f.JsonName = nil // that client leaves them out
	}
	b, err := proto.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	s := parsed(t, base64.StdEncoding.EncodeToString(b))
	m, _, err := s.Named("t.M")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := m.AppendJSON(nil, wire(1, 5)); err != nil || string(got) != `{"i":5,"list":[],"table":{},"nums":{}}` {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := Parse(base64.StdEncoding.EncodeToString(b[:len(b)-3]), nil); err == nil {
		t.Error("one that is cut compiles")
	}
}

func TestMessages(t *testing.T) {
	s := parsed(t, `syntax = "proto3"; package p; message A { map<string, int32> m = 1; message X { } message Y { message Z { } } } message B { }`)
	for _, c := range []struct {
		name string
		path []int
	}{{"p.A", []int{0}}, {"p.B", []int{1}}, {"p.A.X", nil}, {"p.A.Y.Z", nil}} {
		m, path, err := s.Named(c.name)
		if err != nil || c.path != nil && path[0] != c.path[0] {
			t.Fatal(c.name, path, err)
		}
		if at, err := s.At(path); err != nil || at.Name() != m.Name() {
			t.Errorf("%s stands at %v, and there is %s, %v", c.name, path, at.Name(), err)
		}
	}
	for _, path := range [][]int{nil, {2}, {-1}, {0, 9}, {1, 0}} {
		if _, err := s.At(path); err == nil {
			t.Errorf("there is a message at %v", path)
		}
	}
	entries := 0
	for i := range 3 {
		if _, err := s.At([]int{0, i}); err != nil {
			entries++
		}
	}
	if entries != 1 {
		t.Errorf("%d of the messages in A are refused: the entry of its map alone should be", entries)
	}
	for _, name := range []string{"p.C", "A", "google.protobuf.Timestamp"} {
		if _, _, err := s.Named(name); err == nil {
			t.Errorf("there is a message %s", name)
		}
	}
	if _, _, err := parsed(t, `syntax = "proto3";`).Named(""); err == nil {
		t.Error("a file without messages has a first one")
	}
}
