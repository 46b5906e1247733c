package abi

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden vectors anew")

// golden compares content with a file of the vectors, or writes it.
func golden(t *testing.T, name string, content []byte) {
	t.Helper()
	path := filepath.Join("vectors", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, content) {
		t.Errorf("%s differs; if the contract was meant to change, run with -update\n%s", path, cmp.Diff(string(want), string(content)))
	}
}

func goldenJSON(t *testing.T, name string, v any) {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	golden(t, name, b.Bytes())
}

type object = map[string]any

// vectorBytes is how the vectors write bytes: null, a string if they are UTF-8, else {"hex": ..}.
func vectorBytes(b []byte) any {
	if b == nil {
		return nil
	}
	if !utf8.Valid(b) {
		return object{"hex": hex.EncodeToString(b)}
	}
	return string(b)
}

var fieldKindNames = []string{"absent", "null", "false", "true", "number", "string", "escaped", "object", "array"}

func vectorFields(value []byte, fields []Field) []object {
	out := []object{}
	for _, f := range fields {
		o := object{"kind": fieldKindNames[f.Kind]}
		if f.Kind != FieldAbsent {
			o["start"], o["length"], o["text"] = f.Start, f.Len, vectorBytes(f.Text(value))
		}
		out = append(out, o)
	}
	return out
}

func vectorRecord(r *Record) object {
	headers := []object{}
	for _, h := range r.Headers {
		headers = append(headers, object{"name": vectorBytes(h.Name), "value": vectorBytes(h.Value)})
	}
	return object{
		"eventTime": r.EventTime, "offset": r.Offset, "key": vectorBytes(r.Key), "value": vectorBytes(r.Value), "headers": headers,
		"partition": r.Partition, "port": r.Port, "input": r.Input, "index": r.Index, "kind": r.Kind, "flags": r.Flags,
		"fields": vectorFields(r.Value, r.Fields),
	}
}

// u64 writes what a JSON number of a common parser cannot hold.
func u64(n uint64) string { return strconv.FormatUint(n, 10) }

func located(t *testing.T, value string, pointers ...string) []Field {
	t.Helper()
	l, err := NewLocator(pointers)
	if err != nil {
		t.Fatal(err)
	}
	fields := make([]Field, len(pointers))
	l.Locate([]byte(value), fields)
	return fields
}

func TestVectorsFrames(t *testing.T) {
	order := `{"order_id":17,"customer":"c-000042","amount":12.50,"note":"a \"b\""}`
	header := FrameHeader{
		Flags: FlagFirst, Batch: 7, BatchTime: 1_700_000_000_000_000, LateWatermark: 1_699_999_000_000_000, Watermark: 1_699_999_500_000_000,
		Seed: Seed("3f2a", 7, "clean", 2), Lane: 2, Chunk: 0, Fuel: 54_000_000,
	}
	last := header
	last.Flags, last.Chunk, last.Fuel = FlagLast, 3, 50_000_000+2_000_000*MaxChunkRecords
	timers := header
	timers.Flags, timers.Chunk = 0, 2
	var vectors []object
	for _, c := range []struct {
		name, doc string
		header    FrameHeader
		nfields   int
		recs      []Record
	}{
		{"records", "Two records with two fields; the second has no key, one header of three without a value, and an absent field.", header, 2, []Record{
			{
				EventTime: 1_699_999_999_123_000, Offset: 1000, Key: []byte("c-000042"), Value: []byte(order), Partition: 3, Index: 0,
				Flags: FlagEventTime, Fields: located(t, order, "/amount", "/note"),
			},
			{
				Offset: 1002, Value: []byte(`{"note":null}`), Partition: 3, Index: 2, Input: 1, Fields: located(t, `{"note":null}`, "/amount", "/note"),
				Headers: []Header{{[]byte("trace"), []byte("ab")}, {[]byte("empty"), []byte{}}, {[]byte("none"), nil}},
			},
		}},
		{"odd-values", "No fields. A null value, an empty one with an empty key, and one that is no JSON and no UTF-8.", header, 0, []Record{
			{Offset: 0, Index: 0, Flags: FlagNotJSON},
			{Offset: 1, Index: 1, Flags: FlagNotJSON, Key: []byte{}, Value: []byte{}},
			{Offset: 2, Index: 2, Flags: FlagNotJSON, Value: []byte{0xff, 0x00, 0x7b}},
		}},
		{"timers", "Event-time timers: the key and the sub they were set with.", timers, 0, []Record{
			{EventTime: 1_699_999_400_000_000, Key: []byte("UA"), Value: []byte("window"), Index: NoIndex, Kind: KindEventTimer, Flags: FlagEventTime},
		}},
		{"timers-order", "More of them in their order: by time, then key, then sub; an empty sub, and one before 1970.", timers, 0, []Record{
			{EventTime: -1000, Key: []byte("UA"), Value: []byte{}, Index: NoIndex, Kind: KindEventTimer, Flags: FlagEventTime},
			{EventTime: 1_699_999_400_000_000, Key: []byte("UA"), Value: []byte{0x00, 0xff}, Index: NoIndex, Kind: KindEventTimer, Flags: FlagEventTime},
			{EventTime: 1_699_999_400_000_000, Key: []byte("UA"), Value: []byte("a"), Index: NoIndex, Kind: KindEventTimer, Flags: FlagEventTime},
			{EventTime: 1_699_999_400_000_000, Key: []byte(`["DL","JFK"]`), Value: []byte("b"), Index: NoIndex, Kind: KindEventTimer, Flags: FlagEventTime},
			{EventTime: 1_699_999_500_000_000, Key: []byte{}, Value: []byte("at the watermark"), Index: NoIndex, Kind: KindEventTimer, Flags: FlagEventTime},
		}},
		{"timers-processing", "A processing-time timer: a frame of its own, after those of event time.", timers, 0, []Record{
			{EventTime: 1_700_000_000_000_000, Key: []byte("UA"), Value: []byte("flush"), Index: NoIndex, Kind: KindProcessingTimer, Flags: FlagEventTime},
		}},
		{"last", "The lane's end: no records.", last, 0, nil},
	} {
		n := FrameSize(c.recs, c.nfields)
		mem := make([]byte, testBase+n+Overrun)
		if err := PutFrame(mem[testBase:], testBase, c.header, c.recs, c.nfields); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadFrame(mem, testBase, uint32(n)); err != nil {
			t.Fatal(err)
		}
		golden(t, "frames/"+c.name+".bin", mem[testBase:])
		records := []object{}
		for i := range c.recs {
			records = append(records, vectorRecord(&c.recs[i]))
		}
		h := c.header
		vectors = append(vectors, object{
			"name": c.name, "doc": c.doc, "base": testBase, "length": n, "nfields": c.nfields, "records": records,
			"header": object{
				"flags": h.Flags, "batch": u64(h.Batch), "batchTime": h.BatchTime, "lateWatermark": h.LateWatermark, "watermark": h.Watermark,
				"seed": []string{u64(h.Seed[0]), u64(h.Seed[1])}, "lane": h.Lane, "chunk": h.Chunk, "fuel": u64(h.Fuel),
			},
		})
	}
	goldenJSON(t, "frames.json", vectors)
}

func TestVectorsOutputs(t *testing.T) {
	plain := outStruct{keyLen: -1, valuePtr: testBase + 3, valueLen: 5, index: NoIndex}
	with := func(change func(*outStruct)) outStruct {
		o := plain
		change(&o)
		return o
	}
	var vectors []object
	for _, c := range []struct {
		name, doc string
		stride    uint32
		structs   []outStruct
	}{
		{"records", "Key, value, headers, event time rounded down, port 1; then null key and value; offset, input, partition, flag 2 and an event time without flag 1 are ignored.", 56, []outStruct{
			{time: 1_234_567, offset: 9, keyPtr: testBase, keyLen: 3, valuePtr: testBase + 3, valueLen: 5, headersPtr: testBase + 256, headerCount: 2, flags: 3, partition: -5, port: 1, input: 8, index: 4},
			{time: 99, keyPtr: 0xffffffff, keyLen: -1, valuePtr: 0xffffffff, valueLen: -1, headersPtr: 3, index: NoIndex},
		}},
		{"wide-stride", "The stride of input records with one field; a pointer with length 0 is not looked at.", 64, []outStruct{
			plain, with(func(o *outStruct) { o.keyPtr, o.keyLen = 0xffffffff, 0 }),
		}},
		{"verdicts", "A dead letter and a failure.", 56, []outStruct{
			{kind: 16, keyLen: -1, valuePtr: testBase, valueLen: 8, partition: 7, index: 0},
			{kind: 17, valueLen: -1, partition: 0, index: 1},
		}},
		{"trap-address", "A value that ends one byte behind memory.", 56, []outStruct{with(func(o *outStruct) { o.valuePtr, o.valueLen = testBase+1024-4, 5 })}},
		{"trap-wrap", "An address and a length whose sum passes 32 bits.", 56, []outStruct{with(func(o *outStruct) { o.valuePtr, o.valueLen = 0xfffffff0, 0x20 })}},
		{"trap-length", "A length of -2.", 56, []outStruct{with(func(o *outStruct) { o.keyLen = -2 })}},
		{"trap-port", "A port that is not declared.", 56, []outStruct{with(func(o *outStruct) { o.port = 2 })}},
		{"trap-kind", "A kind that output does not have.", 56, []outStruct{with(func(o *outStruct) { o.kind = 1 })}},
		{"trap-flags", "An unknown flag.", 56, []outStruct{with(func(o *outStruct) { o.flags = 8 })}},
		{"trap-reserved", "Byte 52 is not zero.", 56, []outStruct{with(func(o *outStruct) { o.mustBeZero = 1 })}},
		{"trap-headers", "Header entries that are not 4-aligned.", 56, []outStruct{with(func(o *outStruct) { o.headersPtr, o.headerCount = testBase+257, 1 })}},
		{"trap-stride", "A stride that is no multiple of 8.", 60, []outStruct{plain}},
		{"trap-time", "An event time in the year 10000.", 56, []outStruct{with(func(o *outStruct) { o.flags, o.time = 1, MaxTime+1000 })}},
		{"trap-verdict-key", "A dead letter with a key.", 56, []outStruct{with(func(o *outStruct) { o.kind, o.index, o.keyPtr, o.keyLen = 16, 0, testBase, 3 })}},
		{"trap-quota", "The second record is over the lane's output.", 56, []outStruct{with(func(o *outStruct) { o.valueLen = 500 }), with(func(o *outStruct) { o.valueLen = 500 })}},
	} {
		mem := outMemory()[:testBase+1024]
		for i, o := range c.structs {
			o.put(mem, outAt+uint32(i)*c.stride)
		}
		rules := &OutputRules{Ports: 2, MaxBytes: 1000}
		got, err := emitted(mem, outAt, uint32(len(c.structs)), c.stride, rules)
		v := object{
			"name": c.name, "doc": c.doc, "base": testBase, "memory": len(mem), "ptr": outAt, "count": len(c.structs), "stride": c.stride,
			"ports": rules.Ports, "maxBytes": rules.MaxBytes,
		}
		if violation, ok := err.(*Violation); ok {
			v["trap"] = violation.Trap
		} else if err != nil {
			t.Fatal(err)
		} else {
			records := []object{}
			for i := range got {
				r := vectorRecord(&got[i])
				for _, ignored := range []string{"offset", "input", "fields"} {
					delete(r, ignored)
				}
				records = append(records, r)
			}
			v["records"], v["used"] = records, rules.Used
		}
		golden(t, "outputs/"+c.name+".bin", mem[testBase:])
		vectors = append(vectors, v)
	}
	goldenJSON(t, "outputs.json", vectors)
}
