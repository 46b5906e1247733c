"""Writes golden.json: .proto sources, payloads in hex as Google's Python library writes them, and the JSON text that they stand for.

Run it with Python 3, protobuf and grpcio-tools (pip install protobuf grpcio-tools); the file is committed, tests need neither.
"""

import json
import os
import tempfile

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from grpc_tools import protoc
import grpc_tools

SCALARS = """syntax = "proto3"; package t;
message M {
  double d = 1; float f = 2; int32 i32 = 3; int64 i64 = 4; uint32 u32 = 5; uint64 u64 = 6; sint32 s32 = 7; sint64 s64 = 8;
  fixed32 x32 = 9; fixed64 x64 = 10; sfixed32 sx32 = 11; sfixed64 sx64 = 12; bool b = 13; string s = 14; bytes by = 15; E e = 16;
}
enum E { ZERO = 0; ONE = 1; NEG = -1; }
"""
DEFAULTS = '{"d":0,"f":0,"i32":0,"i64":0,"u32":0,"u64":0,"s32":0,"s64":0,"x32":0,"x64":0,"sx32":0,"sx64":0,"b":false,"s":"","by":"","e":"ZERO"}'
SHAPES = """syntax = "proto3"; package t;
message M {
  repeated int64 packed = 1; repeated int64 loose = 2 [packed = false]; repeated string texts = 3; repeated M list = 4;
  map<string, int32> by_text = 5; map<int64, M> by_number = 6; map<bool, bytes> by_bool = 7;
  oneof choice { string a = 8; int32 b = 9; M c = 10; }
  optional int32 maybe = 11; M next = 12; repeated E es = 13;
  message In { int32 x = 1; message Deep { int32 y = 1; } } In in = 14; In.Deep deep = 15;
}
enum E { ZERO = 0; ONE = 1; }
"""
EMPTY = '"packed":[],"loose":[],"texts":[],"list":[],"by_text":{},"by_number":{},"by_bool":{}'
KNOWN = """syntax = "proto3"; package t;
import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto"; import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto"; import "google/protobuf/any.proto"; import "google/protobuf/empty.proto"; import "google/protobuf/field_mask.proto";
message M {
  google.protobuf.Timestamp at = 1; google.protobuf.Duration took = 2; google.protobuf.Int64Value n = 3; google.protobuf.StringValue s = 4;
  google.protobuf.BytesValue by = 5; google.protobuf.BoolValue b = 6; google.protobuf.DoubleValue d = 7; google.protobuf.Struct st = 8;
  google.protobuf.Value v = 9; google.protobuf.ListValue l = 10; google.protobuf.Any any = 11; google.protobuf.Empty e = 12;
  google.protobuf.FieldMask mask = 13; google.protobuf.UInt64Value u = 14; repeated google.protobuf.Timestamp times = 15;
  google.protobuf.NullValue null = 16;
}
"""
PROTO2 = """syntax = "proto2"; package t;
message M {
  required int32 r = 1; optional int32 o = 2; optional string d = 3 [default = "x"]; repeated int32 many = 4; optional group G = 5 { optional int32 x = 1; }
  optional E e = 6; extensions 100 to 200;
}
enum E { ONE = 1; TWO = 2; }
extend M { optional int32 ext = 100; }
"""
ORDER = """syntax = "proto3"; package t;
message First { int32 z = 9; string a = 1; int32 m = 5; }
message Second { message Inner { int32 v = 1; } Inner inner = 1; }
"""
cases = []


def case(name, source, message, text, want):
    with tempfile.TemporaryDirectory() as dir:
        with open(os.path.join(dir, "main.proto"), "w") as f:
            f.write(source)
        out = os.path.join(dir, "out")
        std = os.path.join(os.path.dirname(grpc_tools.__file__), "_proto")
        if protoc.main(["protoc", "-I" + dir, "-I" + std, "--include_imports", "--descriptor_set_out=" + out, "main.proto"]) != 0:
            raise SystemExit(name)
        files = descriptor_pb2.FileDescriptorSet()
        with open(out, "rb") as f:
            files.ParseFromString(f.read())
    pool = descriptor_pool.DescriptorPool()
    for f in files.file:
        pool.Add(f)
    m = message_factory.GetMessageClass(pool.FindMessageTypeByName(message))()
    text_format.Parse(text, m, descriptor_pool=pool)
    cases.append({"name": name, "source": source, "message": message, "payload": m.SerializeToString(deterministic=True).hex(), "json": want})


def scalar(field, text, want):
    case(f"{field} {text}", SCALARS, "t.M", f"{field}: {text}", DEFAULTS.replace(f'"{field}":' + {"b": "false", "s": '""', "by": '""', "e": '"ZERO"'}.get(field, "0"), f'"{field}":{want}'))


case("defaults", SCALARS, "t.M", "", DEFAULTS)
for f, lo, hi in (("i32", -(2**31), 2**31 - 1), ("s32", -(2**31), 2**31 - 1), ("sx32", -(2**31), 2**31 - 1), ("i64", -(2**63), 2**63 - 1),
                  ("s64", -(2**63), 2**63 - 1), ("sx64", -(2**63), 2**63 - 1), ("u32", 1, 2**32 - 1), ("x32", 1, 2**32 - 1),
                  ("u64", 2**53 + 1, 2**64 - 1), ("x64", 2**53 + 1, 2**64 - 1)):
    scalar(f, str(lo), str(lo))
    scalar(f, str(hi), str(hi))
scalar("d", "0.1", "0.1")
scalar("d", "1e300", "1e+300")
scalar("d", "nan", '"NaN"')
scalar("d", "-inf", '"-Infinity"')
scalar("f", "0.1", "0.1")
scalar("f", "inf", '"Infinity"')
scalar("b", "true", "true")
scalar("s", '"\\303\\274 \\"q\\" \\n"', '"ü \\"q\\" \\n"')
scalar("by", '"\\000\\377\\020"', '"AP8Q"')
scalar("e", "ONE", '"ONE"')
scalar("e", "NEG", '"NEG"')
scalar("e", "77", "77")

case("shapes empty", SHAPES, "t.M", "", "{" + EMPTY + ',"es":[]}')
case("lists", SHAPES, "t.M", 'packed: [1, -2] loose: [3, 4] texts: ["a", ""] list { } es: [ONE, ZERO]',
     '{"packed":[1,-2],"loose":[3,4],"texts":["a",""],"list":[{' + EMPTY + ',"es":[]}],"by_text":{},"by_number":{},"by_bool":{},"es":["ONE","ZERO"]}')
case("maps", SHAPES, "t.M", 'by_text { key: "a" value: 1 } by_text { key: "" value: 0 } by_bool { key: true value: "x" } by_number { key: -5 value { maybe: 1 } }',
     '{"packed":[],"loose":[],"texts":[],"list":[],"by_text":{"a":1,"":0},"by_number":{"-5":{' + EMPTY + ',"maybe":1,"es":[]}},"by_bool":{"true":"eA=="},"es":[]}')
case("oneof zero", SHAPES, "t.M", "b: 0", "{" + EMPTY + ',"b":0,"es":[]}')
case("oneof message", SHAPES, "t.M", 'c { a: "" }', "{" + EMPTY + ',"c":{' + EMPTY + ',"a":"","es":[]},"es":[]}')
case("optional zero", SHAPES, "t.M", "maybe: 0", "{" + EMPTY + ',"maybe":0,"es":[]}')
case("nested", SHAPES, "t.M", "in { x: 1 } deep { y: 2 } next { maybe: 1 }", "{" + EMPTY + ',"next":{' + EMPTY + ',"maybe":1,"es":[]},"es":[],"in":{"x":1},"deep":{"y":2}}')

TIMES = '"times":[],"null":null}'
case("known empty", KNOWN, "t.M", "", "{" + TIMES)
case("timestamp", KNOWN, "t.M", "at { seconds: 1359626400 nanos: 123456000 } times { } times { seconds: -1 nanos: 999999999 }",
     '{"at":"2013-01-31T10:00:00.123456Z","times":["1970-01-01T00:00:00.000000Z","1969-12-31T23:59:59.999999999Z"],"null":null}')
case("duration", KNOWN, "t.M", "took { seconds: 1 nanos: 500000000 }", '{"took":"1.500s",' + TIMES)
case("duration whole", KNOWN, "t.M", "took { seconds: -3 }", '{"took":"-3s",' + TIMES)
case("duration nanos", KNOWN, "t.M", "took { nanos: -1 }", '{"took":"-0.000000001s",' + TIMES)
case("wrappers", KNOWN, "t.M", 'n { value: 9007199254740993 } s { } by { value: "x" } b { value: true } d { value: 0.5 } u { value: 18446744073709551615 }',
     '{"n":9007199254740993,"s":"","by":"eA==","b":true,"d":0.5,"u":18446744073709551615,' + TIMES)
case("struct", KNOWN, "t.M", 'st { fields { key: "a" value { number_value: 1.5 } } fields { key: "b" value { list_value { values { null_value: 0 } values { bool_value: true } } } } }',
     '{"st":{"a":1.5,"b":[null,true]},' + TIMES)
case("value null", KNOWN, "t.M", "v { null_value: 0 }", '{"v":null,' + TIMES)
case("value text", KNOWN, "t.M", 'v { string_value: "" } l { }', '{"v":"","l":[],' + TIMES)
case("plain ones", KNOWN, "t.M", 'e { } mask { paths: "a_b" } any { type_url: "u" value: "x" }', '{"any":{"type_url":"u","value":"eA=="},"e":{},"mask":{"paths":["a_b"]},' + TIMES)

case("proto2", PROTO2, "t.M", "r: 0 o: 0 many: [1, 2] G { x: 3 } e: TWO", '{"r":0,"o":0,"many":[1,2],"g":{"x":3},"e":"TWO"}')
case("proto2 unset", PROTO2, "t.M", "r: 7", '{"r":7,"many":[]}')

case("declaration order", ORDER, "t.First", 'z: 1 a: "x" m: 2', '{"z":1,"a":"x","m":2}')
case("second message", ORDER, "t.Second", "inner { v: 5 }", '{"inner":{"v":5}}')
case("inner message", ORDER, "t.Second.Inner", "v: 5", '{"v":5}')

with open("golden.json", "w", encoding="utf-8") as f:
    json.dump(cases, f, indent=1, ensure_ascii=False)
    f.write("\n")
