package protobuf

import (
	"errors"
	"testing"

	"github.com/wasmill/wasmill/host/sink"
)

const everything = `syntax = "proto3"; package t;
import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto"; import "google/protobuf/struct.proto"; import "google/protobuf/wrappers.proto";
message M {
  int32 i = 1; uint32 u = 2; uint64 big = 3; float f = 4; bool b = 5; string s = 6; bytes by = 7; E e = 8; repeated int32 list = 9;
  map<int32, string> table = 10; oneof o { int32 one = 11; string two = 12; } google.protobuf.Timestamp at = 13;
  google.protobuf.Duration took = 14; google.protobuf.Value any = 15; google.protobuf.Int64Value wrapped = 16; M camel_case = 17;
  fixed64 x = 18; sfixed32 sx = 19; sint64 z = 20; repeated M many = 21; google.protobuf.Struct st = 22; google.protobuf.ListValue l = 23; double d = 24;
}
enum E { ZERO = 0; ONE = 1; }`

func TestValuesThatDoNotFit(t *testing.T) {
	m := first(t, everything)
	required := first(t, `syntax = "proto2"; message M { required int32 r = 1; }`)
	for _, c := range []struct{ value, code, column string }{
		{`[]`, "type", ""},
		{`null`, "type", ""},
		{`{"i":2147483648}`, "range", "i"},
		{`{"i":1.5}`, "precision", "i"},
		{`{"i":null}`, "type", "i"},
		{`{"u":-1}`, "range", "u"},
		{`{"u":4294967296}`, "range", "u"},
		{`{"big":18446744073709551616}`, "range", "big"},
		{`{"big":-1}`, "range", "big"},
		{`{"f":1e39}`, "range", "f"},
		{`{"d":"x"}`, "type", "d"},
		{`{"b":1}`, "type", "b"},
		{`{"s":null}`, "type", "s"},
		{`{"s":[]}`, "type", "s"},
		{`{"by":"?"}`, "type", "by"},
		{`{"e":"TWO"}`, "range", "e"},
		{`{"e":null}`, "type", "e"},
		{`{"e":1.5}`, "precision", "e"},
		{`{"list":null}`, "type", "list"},
		{`{"list":{}}`, "type", "list"},
		{`{"list":[null]}`, "type", "list"},
		{`{"table":[]}`, "type", "table"},
		{`{"table":{"x":""}}`, "type", "table"},
		{`{"table":{"1":null}}`, "type", "table"},
		{`{"one":1,"two":""}`, "type", "two"},
		{`{"at":"2013-01-31"}`, "type", "at"},
		{`{"took":"1"}`, "type", "took"},
		{`{"took":"1.s"}`, "type", "took"},
		{`{"took":"-s"}`, "type", "took"},
		{`{"took":"1.0000000001s"}`, "type", "took"},
		{`{"took":"315576000001s"}`, "range", "took"},
		{`{"took":5}`, "type", "took"},
		{`{"any":9007199254740993}`, "precision", "any"},
		{`{"any":{"a":[1e999]}}`, "range", "any"},
		{`{"wrapped":"x"}`, "type", "wrapped"},
		{`{"camel_case":{"camelCase":{"i":"x"}}}`, "type", "camel_case.camel_case.i"},
		{`{"x":-1}`, "range", "x"},
		{`{"sx":2147483648}`, "range", "sx"},
		{`{"z":9223372036854775808}`, "range", "z"},
		{`{"many":[{"i":"x"}]}`, "type", "many.i"},
		{`{"many":[null]}`, "type", "many"},
		{`{"st":[]}`, "type", "st"},
		{`{"l":{}}`, "type", "l"},
	} {
		got, err := encode(m, c.value)
		misfit := (*sink.Misfit)(nil)
		if !errors.As(err, &misfit) || misfit.Code != c.code || misfit.Column != c.column || len(got) != 0 {
			t.Errorf("%s: %x, %v; want a misfit %s of %q", c.value, got, err, c.code, c.column)
		}
	}
	_, err := encode(required, `{"r":null}`)
	if misfit := (*sink.Misfit)(nil); !errors.As(err, &misfit) || misfit.Code != "missing" {
		t.Errorf("a required field: %v", err)
	}
}

func TestValuesInOtherForms(t *testing.T) {
	m := first(t, everything)
	for _, c := range []struct{ value, want string }{
		{`{}`, ""},
		{`{"i":0,"s":"","b":false,"e":"ZERO","list":[],"table":{},"nobody":{"knows":1}}`, ""},
		{`{"i":1e2}`, "\x08\x64"},
		{`{"i":"7"}`, "\x08\x07"},
		{`{"e":1}`, "\x40\x01"},
		{`{"e":5}`, "\x40\x05"},
		{`{"camelCase":{}}`, "\x8a\x01\x00"},
		{`{"camel_case":null}`, ""},
		{`{"one":0}`, "\x58\x00"},
		{`{"one":null,"two":"x"}`, "\x62\x01x"},
		{`{"wrapped":0}`, "\x82\x01\x00"},
		{`{"took":"-0.5s"}`, "\x72\x0b\x10\x80\xb6\xca\x91\xfe\xff\xff\xff\xff\x01"},
		{`{"any":null}`, "\x7a\x02\x08\x00"},
		{`{"i":1,"i":2}`, "\x08\x02"},
		{`{"list":[1,-1]}`, "\x4a\x0b\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
		{`{"table":{"0":""}}`, "\x52\x04\x08\x00\x12\x00"},
		{`{"f":-0}`, "\x25\x00\x00\x00\x80"},
	} {
		got, err := encode(m, c.value)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v; want %q", c.value, got, err, c.want)
		}
	}
}
