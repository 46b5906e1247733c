package protobuf

import (
	"testing"

	"github.com/wasmill/wasmill/host/rows/jsonvalue"
)

const benchSchema = `syntax = "proto3"; import "google/protobuf/timestamp.proto";
message Order {
  string order_id = 1; int64 customer = 2; enum S { NEW = 0; PAID = 1; } S status = 3; int64 cents = 4; string currency = 5;
  google.protobuf.Timestamp at = 6; optional string note = 7; message Item { string sku = 1; int32 qty = 2; } repeated Item items = 8;
}`

const benchJSON = `{"order_id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","customer":4611686018427387904,"status":"PAID","cents":123456,"currency":"EUR",` +
	`"at":"2013-01-31T10:00:00.123456Z","items":[{"sku":"AB-1234","qty":2},{"sku":"XY-9","qty":1}]}`

func BenchmarkDecode(b *testing.B) {
	m := first(b, benchSchema)
	payload, err := encode(m, benchJSON)
	if err != nil {
		b.Fatal(err)
	}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		if dst, err = m.AppendJSON(dst[:0], payload); err != nil {
			b.Fatal(err)
		}
	}
	if string(dst) != benchJSON {
		b.Fatalf("%s", dst)
	}
	b.SetBytes(int64(len(dst)))
}

func BenchmarkEncode(b *testing.B) {
	m := first(b, benchSchema)
	var d jsonvalue.Doc
	var dst []byte
	text := []byte(benchJSON)
	b.ReportAllocs()
	for b.Loop() {
		v, err := d.Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		if dst, err = m.Append(dst[:0], v); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(text)))
}
