"""Writes golden.json: schemas, payloads in hex as fastavro writes them, and the JSON text that they stand for.

Run it with Python 3 and fastavro (pip install fastavro); the file is committed, tests need neither.
"""

import datetime as dt
import decimal
import io
import json
import uuid

import fastavro

decimal.getcontext().prec = 2000
UTC = dt.timezone.utc
cases = []


def case(name, schema, value, text):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    cases.append({"name": name, "schema": json.dumps(schema), "payload": out.getvalue().hex(), "json": text})


def record(*fields):
    return {"type": "record", "name": "R", "namespace": "t", "fields": [dict(zip(("name", "type"), f)) for f in fields]}


def field(name, typ, value, text):
    case(name, record(("v", typ)), {"v": value}, '{"v":' + text + "}")


for n in (0, -1, 1, 63, -64, 64, 2**31 - 1, -(2**31)):
    field(f"int {n}", "int", n, str(n))
for n in (2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)):
    field(f"long {n}", "long", n, str(n))
field("boolean", "boolean", True, "true")
field("float", "float", 0.1, "0.1")
field("double", "double", 1e-7, "1e-07")
field("double large", "double", 1e21, "1e+21")
field("double -0", "double", -0.0, "-0")
field("NaN", "double", float("nan"), '"NaN"')
field("Infinity", "float", float("inf"), '"Infinity"')
field("-Infinity", "double", float("-inf"), '"-Infinity"')
field("string", "string", 'ü "q" \\ \n \u0001 \U0001f600', '"ü \\"q\\" \\\\ \\n \\u0001 \U0001f600"')
field("bytes", "bytes", b"\x00\xff\x10", '"AP8Q"')
field("fixed", {"type": "fixed", "name": "F", "size": 3}, b"abc", '"YWJj"')
field("enum", {"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", '"B"')
field("array", {"type": "array", "items": "long"}, [1, 2, 3], "[1,2,3]")
field("array empty", {"type": "array", "items": "long"}, [], "[]")
field("map", {"type": "map", "values": "int"}, {"b": 1, "a": 2}, '{"b":1,"a":2}')
field("nullable null", ["null", "string"], None, "null")
field("nullable set", ["null", "string"], "x", '"x"')
field("nullable after", ["long", "null"], 5, "5")
field("general null", ["null", "string", "long"], None, "null")
field("general string", ["null", "string", "long"], "x", '{"string":"x"}')
field("general long", ["null", "string", "long"], 7, '{"long":7}')

DEC = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 4}
for text in ("0.0000", "1.2345", "-1.2345", "-0.0001", "99999999999999999999999999999999.9999", "-12345678901234567890.1234", "12.8000", "-0.0128"):
    field("decimal " + text, DEC, decimal.Decimal(text), text)
FIX = {"type": "fixed", "name": "D", "size": 16, "logicalType": "decimal", "precision": 38, "scale": 2}
for text in ("0.00", "-1.00", "123456789012345678901234567890123456.78", "-0.01"):
    field("decimal fixed " + text, FIX, decimal.Decimal(text), text)
field("decimal scale 0", {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0}, decimal.Decimal("18446744073709551616"), "18446744073709551616")

field("date", {"type": "int", "logicalType": "date"}, dt.date(2024, 2, 29), '"2024-02-29"')
field("date before", {"type": "int", "logicalType": "date"}, dt.date(1, 1, 1), '"0001-01-01"')
field("time-millis", {"type": "int", "logicalType": "time-millis"}, dt.time(23, 59, 59, 999000), '"23:59:59.999000"')
field("time-micros", {"type": "long", "logicalType": "time-micros"}, dt.time(1, 2, 3, 456789), '"01:02:03.456789"')
at = dt.datetime(2013, 1, 31, 10, 0, 0, 123456, UTC)
field("timestamp-millis", {"type": "long", "logicalType": "timestamp-millis"}, at.replace(microsecond=123000), '"2013-01-31T10:00:00.123000Z"')
field("timestamp-micros", {"type": "long", "logicalType": "timestamp-micros"}, at, '"2013-01-31T10:00:00.123456Z"')
field("timestamp before 1970", {"type": "long", "logicalType": "timestamp-micros"}, dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), '"1969-12-31T23:59:59.999999Z"')
field("timestamp year 1", {"type": "long", "logicalType": "timestamp-micros"}, dt.datetime(1, 1, 1, tzinfo=UTC), '"0001-01-01T00:00:00.000000Z"')
field("timestamp-nanos", {"type": "long", "logicalType": "timestamp-nanos"}, 1359626400123456789, '"2013-01-31T10:00:00.123456789Z"')
field("timestamp-nanos micro", {"type": "long", "logicalType": "timestamp-nanos"}, 1359626400123456000, '"2013-01-31T10:00:00.123456Z"')
field("local-timestamp-millis", {"type": "long", "logicalType": "local-timestamp-millis"}, dt.datetime(2013, 1, 31, 10, 0, 0, 5000), '"2013-01-31T10:00:00.005000"')
field("local-timestamp-micros", {"type": "long", "logicalType": "local-timestamp-micros"}, dt.datetime(2013, 1, 31, 10, 0, 0, 5), '"2013-01-31T10:00:00.000005"')
u = uuid.UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")
field("uuid", {"type": "string", "logicalType": "uuid"}, u, f'"{u}"')
field("duration", {"type": "fixed", "name": "P", "size": 12, "logicalType": "duration"}, bytes([1, 0, 0, 0, 2, 0, 0, 0, 255, 255, 255, 255]), '{"months":1,"days":2,"millis":4294967295}')
field("unknown logical", {"type": "long", "logicalType": "of-tomorrow"}, 5, "5")

case("primitive", "long", 42, "42")
case("two fields in order", record(("z", "int"), ("a", "string")), {"a": "x", "z": 1}, '{"z":1,"a":"x"}')
case("nested", record(("in", {"type": "record", "name": "In", "fields": [{"name": "x", "type": "int"}]}), ("again", "In")), {"in": {"x": 1}, "again": {"x": 2}}, '{"in":{"x":1},"again":{"x":2}}')
LIST = {"type": "record", "name": "t.List", "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "List"]}]}
case("recursive", LIST, {"v": 1, "next": {"v": 2, "next": None}}, '{"v":1,"next":{"v":2,"next":null}}')
case("union of records", [{"type": "record", "name": "n.A", "fields": [{"name": "x", "type": "int"}]}, {"type": "record", "name": "n.B", "fields": [{"name": "y", "type": "int"}]}], ("n.B", {"y": 3}), '{"n.B":{"y":3}}')
case("empty record", {"type": "record", "name": "Empty", "fields": []}, {}, "{}")

with open("golden.json", "w", encoding="utf-8") as f:
    json.dump(cases, f, indent=1, ensure_ascii=False)
    f.write("\n")
