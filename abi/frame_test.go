package abi

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// testBase is where frames lie in tests and vectors.
const testBase = 65536

// nullable draws bytes, nil now and then.
func drawBytes(t *rapid.T, name string) []byte {
	return rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOfN(rapid.Byte(), 0, 20)).Draw(t, name)
}

func drawRecord(t *rapid.T, nfields int) Record {
	r := Record{
		Offset: rapid.Int64().Draw(t, "offset"), Key: drawBytes(t, "key"), Value: drawBytes(t, "value"),
		Partition: rapid.Int32().Draw(t, "partition"), Input: rapid.Uint16().Draw(t, "input"),
		Index: rapid.Uint32().Draw(t, "index"), Kind: Kind(rapid.IntRange(0, 2).Draw(t, "kind")),
		Flags: uint8(rapid.IntRange(0, 3).Draw(t, "flags")),
	}
	if r.Flags&FlagEventTime != 0 {
		r.EventTime = rapid.Int64().Draw(t, "time")
	}
	for range rapid.IntRange(0, 3).Draw(t, "headers") {
		r.Headers = append(r.Headers, Header{Name: []byte(rapid.StringN(0, 5, 20).Draw(t, "name")), Value: drawBytes(t, "header")})
	}
	if nfields > 0 {
		r.Fields = make([]Field, nfields)
	}
	for i := range r.Fields {
		if len(r.Value) == 0 || rapid.Bool().Draw(t, "absent") {
			continue
		}
		start := rapid.IntRange(0, len(r.Value)).Draw(t, "start")
		length := rapid.IntRange(0, len(r.Value)-start).Draw(t, "length")
		r.Fields[i] = Field{Start: uint32(start), Len: uint32(length), Kind: FieldKind(rapid.IntRange(1, 8).Draw(t, "field kind"))}
	}
	return r
}

func TestFrameRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nfields := rapid.IntRange(0, 4).Draw(t, "nfields")
		recs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Record { return drawRecord(t, nfields) }), 0, 5).Draw(t, "records")
		h := FrameHeader{
			Flags: uint16(rapid.IntRange(0, 3).Draw(t, "flags")), Batch: rapid.Uint64().Draw(t, "batch"),
			BatchTime: rapid.Int64().Draw(t, "batch time"), LateWatermark: rapid.Int64().Draw(t, "late"),
			Watermark: rapid.Int64().Draw(t, "watermark"), Seed: [2]uint64{rapid.Uint64().Draw(t, "seed"), 7},
			Lane: rapid.Uint32().Draw(t, "lane"), Chunk: rapid.Uint32().Draw(t, "chunk"), Fuel: rapid.Uint64().Draw(t, "fuel"),
		}
		n := FrameSize(recs, nfields)
		mem := slices.Repeat([]byte{0xaa}, testBase+n+Overrun)
		if err := PutFrame(mem[testBase:], testBase, h, recs, nfields); err != nil {
			t.Fatal(err)
		}
		if rest := mem[testBase+n:]; !bytes.Equal(rest, slices.Repeat([]byte{0xaa}, Overrun)) {
			t.Fatalf("written behind the frame: % x", rest)
		}
		f, err := ReadFrame(mem, testBase, uint32(n))
		if err != nil {
			t.Fatal(err)
		}
		if f.FrameHeader != h || f.NFields != nfields || !slices.EqualFunc(f.Records, recs, func(a, b Record) bool { return cmp.Equal(a, b) }) {
			t.Fatalf("got %+v\nwant %+v %+v", f, h, recs)
		}
		if got := FrameProgress(mem, testBase); got != NoIndex {
			t.Fatalf("progress %d", got)
		}
	})
}

func TestPutFrameFillsAbsentFieldsAndIgnoresWhatInputHasNot(t *testing.T) {
	recs := []Record{{Value: []byte(`{"a":1}`), EventTime: 99, Port: 3, Fields: []Field{{Start: 5, Len: 1, Kind: FieldNumber}}}}
	n := FrameSize(recs, 3)
	mem := slices.Repeat([]byte{0xff}, testBase+n)
	if err := PutFrame(mem[testBase:], testBase, FrameHeader{}, recs, 3); err != nil {
		t.Fatal(err)
	}
	f, err := ReadFrame(mem, testBase, uint32(n))
	if err != nil {
		t.Fatal(err)
	}
	want := Record{Value: recs[0].Value, Fields: []Field{recs[0].Fields[0], {}, {}}}
	if !cmp.Equal(f.Records[0], want) {
		t.Fatal(cmp.Diff(want, f.Records[0]))
	}
}

func TestPutFrameRefuses(t *testing.T) {
	value := []byte("0123456789")
	for name, c := range map[string]struct {
		rec     Record
		base    uint32
		nfields int
	}{
		"more fields than the frame": {rec: Record{Fields: make([]Field, 2)}, nfields: 1},
		"field behind the value":     {rec: Record{Value: value, Fields: []Field{{Start: 8, Len: 3, Kind: FieldNumber}}}, nfields: 1},
		"field that overflows":       {rec: Record{Value: value, Fields: []Field{{Start: 8, Len: math.MaxUint32, Kind: FieldNumber}}}, nfields: 1},
		"unknown field kind":         {rec: Record{Value: value, Fields: []Field{{Kind: 9}}}, nfields: 1},
		"too many headers":           {rec: Record{Headers: make([]Header, MaxHeaders+1)}},
		"too many fields":            {nfields: MaxFields + 1},
		"end of the address space":   {base: math.MaxUint32 - 127},
	} {
		t.Run(name, func(t *testing.T) {
			recs := []Record{c.rec}
			if err := PutFrame(make([]byte, FrameSize(recs, c.nfields)), c.base, FrameHeader{}, recs, c.nfields); err == nil {
				t.Fatal("no error")
			}
		})
	}
	if err := PutFrame(make([]byte, FrameHeaderSize-1), 0, FrameHeader{}, nil, 0); err == nil {
		t.Fatal("no error for a short buffer")
	}
}

func TestFrameErrorText(t *testing.T) {
	mem := make([]byte, testBase+4096)
	if err := PutFrame(mem[testBase:], testBase, FrameHeader{Flags: FlagLast}, nil, 0); err != nil {
		t.Fatal(err)
	}
	const textAt = testBase + 1024
	copy(mem[textAt:], "line 1\nline\x00\xff \\ é")
	long := strings.Repeat("x", MaxReason-1) + "éé"
	copy(mem[textAt+64:], long)
	for name, c := range map[string]struct {
		ptr, n uint32
		want   string
	}{
		"none":      {0, 0, ""},
		"escaped":   {textAt, 18, `line 1\nline\u{0}\xff \\ é`},
		"cut":       {textAt + 64, uint32(len(long)), strings.Repeat("x", MaxReason-1)},
		"wild":      {0xfffffff0, 100, ""},
		"past end":  {uint32(len(mem)) - 1, 2, ""},
		"wraps":     {textAt, math.MaxUint32, ""},
		"last byte": {uint32(len(mem)) - 1, 1, `\u{0}`},
	} {
		t.Run(name, func(t *testing.T) {
			binary.LittleEndian.PutUint32(mem[testBase+frameErrorPtr:], c.ptr)
			binary.LittleEndian.PutUint32(mem[testBase+frameErrorLen:], c.n)
			if got := FrameErrorText(mem, testBase); got != c.want {
				t.Fatalf("got %q, want %q", got, c.want)
			}
		})
	}
	if FrameErrorText(mem, uint32(len(mem))-8) != "" || FrameProgress(mem, math.MaxUint32) != NoIndex {
		t.Fatal("a wild frame was read")
	}
}

func TestReadFrameRefuses(t *testing.T) {
	value := []byte(`{"a":1}`)
	recs := []Record{{Key: []byte("k"), Value: value, Headers: []Header{{[]byte("h"), []byte("v")}}, Fields: []Field{{5, 1, FieldNumber}}}}
	n := FrameSize(recs, 1)
	const rec, entry = FrameHeaderSize, FrameHeaderSize + RecordSize + FieldSize
	for name, c := range map[string]struct {
		at    int
		value uint32
	}{
		"magic":               {0, 1},
		"version":             {4, 2},
		"header length":       {8, 120},
		"total":               {12, uint32(n) + 1},
		"count":               {16, 3},
		"records before it":   {20, testBase + 64},
		"records misaligned":  {20, testBase + FrameHeaderSize + 4},
		"stride too small":    {24, 56},
		"stride of 4":         {24, 68},
		"fields":              {28, 65},
		"key wild":            {rec + 16, testBase + uint32(n)},
		"key before":          {rec + 16, 8},
		"key length":          {rec + 20, 0xfffffffe},
		"value wild":          {rec + 24, 0xffffffff},
		"headers misaligned":  {rec + 32, testBase + entry + 2},
		"headers wild":        {rec + 32, testBase + uint32(n) - 8},
		"too many headers":    {rec + 36, 65},
		"kind":                {rec + 36, 1 | 16<<16},
		"flags":               {rec + 36, 1 | 4<<24},
		"port":                {rec + 44, 1},
		"byte 52":             {rec + 52, 1},
		"field before":        {rec + 56, testBase},
		"field kind":          {rec + 60, 1 | 9<<28},
		"absent with address": {rec + 60, 1},
		"field past value":    {rec + 60, 3 | 4<<28},
		"header name":         {entry, 0},
		"header name length":  {entry + 4, 0xffffffff},
		"header value length": {entry + 12, 0xfffffffe},
	} {
		t.Run(name, func(t *testing.T) {
			mem := make([]byte, testBase+n)
			if err := PutFrame(mem[testBase:], testBase, FrameHeader{}, recs, 1); err != nil {
				t.Fatal(err)
			}
			binary.LittleEndian.PutUint32(mem[testBase+c.at:], c.value)
			if f, err := ReadFrame(mem, testBase, uint32(n)); err == nil {
				t.Fatalf("%+v", f)
			}
		})
	}
	if _, err := ReadFrame(make([]byte, 256), 8, 128); err == nil {
		t.Fatal("a misaligned frame was read")
	}
	if _, err := ReadFrame(make([]byte, 256), 128, math.MaxUint32); err == nil {
		t.Fatal("a frame past memory was read")
	}
}

func FuzzReadFrame(f *testing.F) {
	recs := []Record{{Key: []byte("k"), Value: []byte(`{"a":1}`), Headers: []Header{{Name: []byte("h")}}, Fields: []Field{{5, 1, FieldNumber}}}}
	frame := make([]byte, FrameSize(recs, 1))
	if err := PutFrame(frame, 16, FrameHeader{Batch: 1}, recs, 1); err != nil {
		f.Fatal(err)
	}
	f.Add(frame)
	f.Fuzz(func(t *testing.T, frame []byte) {
		mem := append(make([]byte, 16), frame...)
		got, err := ReadFrame(mem, 16, uint32(len(frame)))
		if err != nil {
			return
		}
		for _, r := range got.Records {
			for _, field := range r.Fields {
				_ = field.Text(r.Value)
			}
		}
		again := make([]byte, FrameSize(got.Records, got.NFields))
		if err := PutFrame(again, 0, got.FrameHeader, got.Records, got.NFields); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
	})
}

func BenchmarkPutFrame(b *testing.B) {
	values := orders(1024)
	l, err := NewLocator(twoOrderFields)
	if err != nil {
		b.Fatal(err)
	}
	recs := make([]Record, len(values))
	for i, v := range values {
		recs[i] = Record{Value: v, Key: v[30:41], Fields: make([]Field, 2), Index: uint32(i)}
		l.Locate(v, recs[i].Fields)
	}
	mem := make([]byte, FrameSize(recs, 2))
	b.ReportAllocs()
	for b.Loop() {
		if err := PutFrame(mem, testBase, FrameHeader{}, recs, 2); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(recs)), "ns/record")
}
