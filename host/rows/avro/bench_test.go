package avro

import (
	"testing"

	"github.com/wasmill/wasmill/host/rows/jsonvalue"
)

const benchSchema = `{"type":"record","name":"Order","namespace":"shop","fields":[
	{"name":"order_id","type":"string"},{"name":"customer","type":"long"},{"name":"status","type":{"type":"enum","name":"S","symbols":["new","paid","cancelled"]}},
	{"name":"cents","type":{"type":"bytes","logicalType":"decimal","precision":18,"scale":2}},{"name":"currency","type":"string"},
	{"name":"at","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"note","type":["null","string"]},
	{"name":"items","type":{"type":"array","items":{"type":"record","name":"Item","fields":[{"name":"sku","type":"string"},{"name":"qty","type":"int"}]}}}]}`

const benchJSON = `{"order_id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","customer":4611686018427387904,"status":"paid","cents":1234.56,"currency":"EUR",` +
	`"at":"2013-01-31T10:00:00.123456Z","note":null,"items":[{"sku":"AB-1234","qty":2},{"sku":"XY-9","qty":1}]}`

func BenchmarkDecode(b *testing.B) {
	s := parsed(b, benchSchema)
	payload, err := encode(s, benchJSON)
	if err != nil {
		b.Fatal(err)
	}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		if dst, err = s.AppendJSON(dst[:0], payload); err != nil {
			b.Fatal(err)
		}
	}
	if string(dst) != benchJSON {
		b.Fatalf("%s", dst)
	}
	b.SetBytes(int64(len(dst)))
}

func BenchmarkEncode(b *testing.B) {
	e := parsed(b, benchSchema).NewEncoder()
	var d jsonvalue.Doc
	var dst []byte
	text := []byte(benchJSON)
	b.ReportAllocs()
	for b.Loop() {
		v, err := d.Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		if dst, err = e.Append(dst[:0], v); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(text)))
}
