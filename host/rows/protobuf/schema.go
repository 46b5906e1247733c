// Package protobuf turns Protobuf payloads into JSON text and back, by a schema that is given as .proto source.
//
// A message becomes an object with its fields in the order of their declaration, under the names of the .proto file. Rules
// for single values are those of package jsonvalue: every integer, int64 and uint64 too, is an exact number (protobuf's own
// JSON has text there). Further:
//
//   - a field without presence (proto3's plain ones, lists, maps) is always there, with its default when the payload has
//     none; one with presence (optional, messages, members of a oneof, all of proto2) only when it is set;
//   - an enum is its name, a number without a name that number;
//   - a map is an object in the order of the payload, its keys as text;
//   - Timestamp is RFC 3339 text, Duration text as "1.5s", the wrappers are their values, Struct, Value and ListValue the JSON
//     that they stand for. Any and FieldMask are plain messages, and so is confluent.type.Decimal;
//   - fields that the schema does not know, extensions too, are left out.
//
// The text is made here and not by protojson, which varies its output on purpose.
//
// Back, members are found by the field's name or its JSON name; one that names no field is skipped. A missing member leaves
// the field unset, and so does null where the field has presence; null for any other is a misfit, not a default. What does
// not fit is a *sink.Misfit that names the field. Payloads are written in the order of field numbers, maps in the order of
// the document.
//
// Payloads and schemas may be hostile: nothing is allocated by a length that they claim, nesting ends at
// jsonvalue.MaxDepth, and output at jsonvalue.MaxBytes.
package protobuf

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/wasmill/wasmill/host/rows/jsonvalue"
)

// MaxText is the most bytes of a schema, those that it imports included.
const MaxText = 4 << 20

const (
	maxDepth = jsonvalue.MaxDepth
	mainFile = "main schema"
)

// builtIn are files that Confluent's serialisers know without a reference.
var builtIn = map[string]string{
	"confluent/meta.proto": `syntax = "proto3"; package confluent; import "google/protobuf/descriptor.proto";
message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }`,
	"confluent/type/decimal.proto": `syntax = "proto3"; package confluent.type;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }`,
}

// Schema is a compiled .proto file. It may be used by several goroutines.
type Schema struct {
	file     protoreflect.FileDescriptor
	messages map[protoreflect.FullName]*message
	decoders sync.Pool // of *decoder
	encoders sync.Pool // of *encoder
}

// resolver finds files. One that is no source but a serialised descriptor in base64 is taken as that: some clients register
// schemas so, and some registries give them back as they came.
func resolver(files map[string]string) protocompile.ResolverFunc {
	return func(path string) (protocompile.SearchResult, error) {
		text, ok := files[path]
		if !ok {
			return protocompile.SearchResult{}, protoregistry.NotFound
		}
		if raw, err := base64.StdEncoding.DecodeString(text); err == nil && len(raw) > 0 {
			d := &descriptorpb.FileDescriptorProto{}
			if proto.Unmarshal(raw, d) == nil {
				d.Name = proto.String(path)
				nameFields(d.MessageType, d.Extension)
				return protocompile.SearchResult{Proto: d}, nil
			}
		}
		return protocompile.SearchResult{Source: strings.NewReader(text)}, nil
	}
}

// nameFields gives fields the JSON names that some serialisers leave out.
func nameFields(messages []*descriptorpb.DescriptorProto, fields []*descriptorpb.FieldDescriptorProto) {
	for _, f := range fields {
		if f.JsonName == nil {
			f.JsonName = proto.String(camelCase(f.GetName()))
		}
	}
	for _, m := range messages {
		nameFields(nil, m.Field)
		nameFields(m.NestedType, m.Extension)
	}
}

func camelCase(name string) string {
	var b []byte
	up := false
	for _, c := range []byte(name) {
		if c == '_' {
			up = true
			continue
		}
		if up && 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		b, up = append(b, c), false
	}
	return string(b)
}

// Parse compiles a file. imports are the sources that it needs, by the paths of its import statements; Google's well-known
// files and Confluent's are there.
func Parse(text string, imports map[string]string) (*Schema, error) {
	files := map[string]string{mainFile: text}
	size := len(text)
	for path, source := range builtIn {
		files[path] = source
	}
	for path, source := range imports {
		size += len(source)
		files[path] = source
	}
	if size > MaxText {
		return nil, fmt.Errorf("the schema has more than %d bytes", MaxText)
	}
	c := protocompile.Compiler{
		MaxParallelism: 1,
		Resolver:       protocompile.WithStandardImports(resolver(files)),
	}
	out, err := c.Compile(context.Background(), mainFile)
	if err != nil {
		return nil, fmt.Errorf("not a Protobuf schema: %w", err)
	}
	s := &Schema{file: out[0], messages: map[protoreflect.FullName]*message{}}
	s.decoders.New = func() any { return new(decoder) }
	s.encoders.New = func() any { return new(encoder) }
	for i := range s.file.Messages().Len() {
		s.messageOf(s.file.Messages().Get(i))
	}
	return s, nil
}

// Message is one message type of a schema.
type Message struct {
	s *Schema
	m *message
}

// Name returns the full name.
func (m Message) Name() string { return string(m.m.name) }

// At returns the message at a path of indexes: of the file, then of the messages nested in it.
func (s *Schema) At(path []int) (Message, error) {
	list := s.file.Messages()
	var found protoreflect.MessageDescriptor
	for _, i := range path {
		if i < 0 || i >= list.Len() {
			return Message{}, fmt.Errorf("the schema has no message at %v", path)
		}
		found = list.Get(i)
		list = found.Messages()
	}
	if found == nil || found.IsMapEntry() {
		return Message{}, fmt.Errorf("the schema has no message at %v", path)
	}
	return Message{s, s.messages[found.FullName()]}, nil
}

// Named returns the message with that full name and its path of indexes; "" is the file's first message.
func (s *Schema) Named(name string) (Message, []int, error) {
	if name == "" {
		m, err := s.At([]int{0})
		return m, []int{0}, err
	}
	m := s.messages[protoreflect.FullName(name)]
	if m == nil || m.desc.ParentFile() != s.file {
		return Message{}, nil, fmt.Errorf("the schema has no message %.200q", name)
	}
	var path []int
	for d := protoreflect.Descriptor(m.desc); ; d = d.Parent() {
		if _, ok := d.(protoreflect.MessageDescriptor); !ok {
			return Message{s, m}, path, nil
		}
		path = slices.Insert(path, 0, d.Index())
	}
}

// special is a message with a JSON form of its own.
type special uint8

const (
	ordinary special = iota
	timestamp
	duration
	wrapper
	structure
	listValue
	anyValue
)

var specials = map[protoreflect.FullName]special{
	"google.protobuf.Timestamp": timestamp, "google.protobuf.Duration": duration,
	"google.protobuf.Struct": structure, "google.protobuf.ListValue": listValue, "google.protobuf.Value": anyValue,
	"google.protobuf.DoubleValue": wrapper, "google.protobuf.FloatValue": wrapper, "google.protobuf.Int64Value": wrapper,
	"google.protobuf.UInt64Value": wrapper, "google.protobuf.Int32Value": wrapper, "google.protobuf.UInt32Value": wrapper,
	"google.protobuf.BoolValue": wrapper, "google.protobuf.StringValue": wrapper, "google.protobuf.BytesValue": wrapper,
}

type message struct {
	name     protoreflect.FullName
	desc     protoreflect.MessageDescriptor
	special  special
	fields   []*field // in the order of declaration
	byNumber map[protowire.Number]*field
	byName   map[string]*field
	inOrder  []*field // by number
	always   []*field // those without presence, in the order of declaration
	required []*field
	oneofs   int
}

type field struct {
	index    int // in the order of declaration
	number   protowire.Number
	name     string
	key      []byte // `"name":`
	kind     protoreflect.Kind
	list     bool
	packed   bool
	entry    *message // of a map
	msg      *message
	enum     *enum
	presence bool
	required bool
	oneof    int // its index, or -1
	deflt    []byte
}

type enum struct {
	name     string
	byNumber map[int32][]byte // names as JSON
	byName   map[string]int32
}

func (s *Schema) messageOf(d protoreflect.MessageDescriptor) *message {
	if m := s.messages[d.FullName()]; m != nil {
		return m
	}
	m := &message{
		name: d.FullName(), desc: d, special: specials[d.FullName()],
		byNumber: map[protowire.Number]*field{}, byName: map[string]*field{},
	}
	s.messages[m.name] = m
	for i := range d.Fields().Len() {
		fd := d.Fields().Get(i)
		f := s.fieldOf(fd, i)
		m.fields = append(m.fields, f)
		m.byNumber[f.number] = f
		m.byName[fd.JSONName()] = f
		m.oneofs = max(m.oneofs, f.oneof+1)
		if !f.presence {
			m.always = append(m.always, f)
		}
		if f.required {
			m.required = append(m.required, f)
		}
	}
	for _, f := range m.fields {
		m.byName[f.name] = f // before any JSON name
	}
	m.inOrder = slices.SortedFunc(slices.Values(m.fields), func(a, b *field) int { return cmp.Compare(a.number, b.number) })
	for i := range d.Messages().Len() {
		s.messageOf(d.Messages().Get(i))
	}
	return m
}

func (s *Schema) fieldOf(fd protoreflect.FieldDescriptor, index int) *field {
	f := &field{
		index: index, number: fd.Number(), name: string(fd.Name()), kind: fd.Kind(), list: fd.IsList(), packed: fd.IsPacked(),
		presence: fd.HasPresence(), required: fd.Cardinality() == protoreflect.Required, oneof: -1,
	}
	key, _ := jsonvalue.AppendString(nil, []byte(f.name))
	f.key = append(key, ':')
	if o := fd.ContainingOneof(); o != nil && !o.IsSynthetic() {
		f.oneof = o.Index()
	}
	switch {
	case fd.IsMap():
		f.entry = s.messageOf(fd.Message())
	case fd.Message() != nil:
		f.msg = s.messageOf(fd.Message())
	case fd.Enum() != nil:
		f.enum = enumOf(fd.Enum())
	}
	f.deflt = f.defaultText()
	return f
}

// nullEnum is the enum whose one value is JSON's null.
const nullEnum = "google.protobuf.NullValue"

func enumOf(d protoreflect.EnumDescriptor) *enum {
	e := &enum{name: string(d.FullName()), byNumber: map[int32][]byte{}, byName: map[string]int32{}}
	for i := range d.Values().Len() {
		v := d.Values().Get(i)
		n := int32(v.Number())
		if e.byNumber[n] == nil {
			e.byNumber[n], _ = jsonvalue.AppendString(nil, []byte(v.Name()))
		}
		e.byName[string(v.Name())] = n
	}
	if e.name == nullEnum {
		e.byNumber[0] = []byte("null")
	}
	return e
}

// defaultText is what stands for a field without presence that is not in the payload, and for one of an entry of a map.
func (f *field) defaultText() []byte {
	switch {
	case f.entry != nil:
		return []byte("{}")
	case f.list:
		return []byte("[]")
	}
	switch f.kind {
	case protoreflect.BoolKind:
		return []byte("false")
	case protoreflect.StringKind, protoreflect.BytesKind:
		return []byte(`""`)
	case protoreflect.EnumKind:
		if text := f.enum.byNumber[0]; text != nil {
			return text
		}
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return nil
	}
	return []byte("0")
}

var errDeep = errors.New("values nest too deep")
