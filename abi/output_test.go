package abi

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// outStruct is an output struct as a guest would write it.
type outStruct struct {
	time, offset      int64
	keyPtr            uint32
	keyLen            int32
	valuePtr          uint32
	valueLen          int32
	headersPtr        uint32
	headerCount       uint16
	kind, flags       uint8
	partition         int32
	port, input       uint16
	index, mustBeZero uint32
}

func (o outStruct) put(mem []byte, ptr uint32) {
	le := binary.LittleEndian
	b := mem[ptr:]
	le.PutUint64(b[0:], uint64(o.time))
	le.PutUint64(b[8:], uint64(o.offset))
	le.PutUint32(b[16:], o.keyPtr)
	le.PutUint32(b[20:], uint32(o.keyLen))
	le.PutUint32(b[24:], o.valuePtr)
	le.PutUint32(b[28:], uint32(o.valueLen))
	le.PutUint32(b[32:], o.headersPtr)
	le.PutUint16(b[36:], o.headerCount)
	b[38], b[39] = o.kind, o.flags
	le.PutUint32(b[40:], uint32(o.partition))
	le.PutUint16(b[44:], o.port)
	le.PutUint16(b[46:], o.input)
	le.PutUint32(b[48:], o.index)
	le.PutUint32(b[52:], o.mustBeZero)
}

func emitted(mem []byte, ptr, count, stride uint32, rules *OutputRules) ([]Record, error) {
	var recs []Record
	err := ReadOutput(mem, ptr, count, stride, rules, func(r *Record) error {
		c := *r
		c.Headers, c.Value = slices.Clone(r.Headers), slices.Clone(r.Value)
		if r.Value != nil && c.Value == nil {
			c.Value = []byte{}
		}
		recs = append(recs, c)
		return nil
	})
	return recs, err
}

const outAt = testBase + 512

// outMemory has a few bytes at testBase and room for structs at outAt. Headers lie at testBase+256.
func outMemory() []byte {
	mem := make([]byte, testBase+4096)
	copy(mem[testBase:], "keyvalue")
	le := binary.LittleEndian
	for i, word := range []uint32{testBase, 3, testBase + 3, 5, testBase, 3, 1, math.MaxUint32} {
		le.PutUint32(mem[testBase+256+4*i:], word)
	}
	return mem
}

func TestReadOutput(t *testing.T) {
	full := outStruct{
		time: 1_234_567, offset: 9, keyPtr: testBase, keyLen: 3, valuePtr: testBase + 3, valueLen: 5, headersPtr: testBase + 256,
		headerCount: 2, flags: 3, partition: -5, port: 1, input: 8, index: 4,
	}
	null := outStruct{keyPtr: math.MaxUint32, keyLen: -1, valuePtr: math.MaxUint32, valueLen: -1, headersPtr: 3, time: 5, index: NoIndex}
	empty := outStruct{keyPtr: math.MaxUint32, valuePtr: math.MaxUint32}
	for name, c := range map[string]struct {
		out  outStruct
		want Record
	}{
		"all": {full, Record{
			EventTime: 1_234_000, Key: []byte("key"), Value: []byte("value"), Flags: FlagEventTime, Port: 1, Index: 4,
			Headers: []Header{{[]byte("key"), []byte("value")}, {[]byte("key"), nil}},
		}},
		"null":           {null, Record{Index: NoIndex}},
		"empty":          {empty, Record{Key: []byte{}, Value: []byte{}}},
		"time rounded":   {outStruct{keyLen: -1, valueLen: -1, flags: 1, time: -1}, Record{EventTime: -1000, Flags: 1}},
		"first time":     {outStruct{keyLen: -1, valueLen: -1, flags: 1, time: MinTime}, Record{EventTime: MinTime, Flags: 1}},
		"last time":      {outStruct{keyLen: -1, valueLen: -1, flags: 1, time: MaxTime + 999}, Record{EventTime: MaxTime, Flags: 1}},
		"dead letter":    {outStruct{kind: 16, keyLen: -1, valuePtr: testBase, valueLen: 3, partition: 7}, Record{Kind: 16, Value: []byte("key"), Partition: 7}},
		"fail":           {outStruct{kind: 17, keyPtr: 1, valueLen: -1, index: 2}, Record{Kind: 17, Index: 2}},
		"verdict's time": {outStruct{kind: 17, valueLen: -1, flags: 1, time: 1999}, Record{Kind: 17, Flags: 1, EventTime: 1000}},
	} {
		t.Run(name, func(t *testing.T) {
			mem := outMemory()
			c.out.put(mem, outAt)
			rules := &OutputRules{Ports: 2, MaxBytes: 1000}
			got, err := emitted(mem, outAt, 1, RecordSize, rules)
			if err != nil || len(got) != 1 || !cmp.Equal(got[0], c.want) {
				t.Fatalf("%v %s", err, cmp.Diff([]Record{c.want}, got))
			}
			if size := int64(c.want.Size(0)); rules.Used != size {
				t.Fatalf("charged %d, want %d", rules.Used, size)
			}
		})
	}
}

func TestReadOutputTraps(t *testing.T) {
	ok := outStruct{keyLen: -1, valuePtr: testBase, valueLen: 3}
	with := func(change func(*outStruct)) outStruct {
		o := ok
		change(&o)
		return o
	}
	const end = testBase + 4096
	for name, c := range map[string]struct {
		out                outStruct
		ptr, count, stride uint32
		trap               TrapName
	}{
		"stride too small":       {ok, outAt, 1, 48, TrapEmit},
		"stride not of 8":        {ok, outAt, 1, 60, TrapEmit},
		"misaligned":             {ok, outAt + 4, 1, 56, TrapEmit},
		"one past memory":        {ok, end - 48, 1, 56, TrapEmit},
		"count past memory":      {ok, outAt, 1000, 56, TrapEmit},
		"count wraps":            {ok, outAt, math.MaxUint32, 0xfffffff8, TrapEmit},
		"key length":             {with(func(o *outStruct) { o.keyLen = -2 }), outAt, 1, 56, TrapEmit},
		"wild key":               {with(func(o *outStruct) { o.keyLen, o.keyPtr = 1, end }), outAt, 1, 56, TrapEmit},
		"value length":           {with(func(o *outStruct) { o.valueLen = math.MinInt32 }), outAt, 1, 56, TrapEmit},
		"value past memory":      {with(func(o *outStruct) { o.valuePtr, o.valueLen = end-1, 2 }), outAt, 1, 56, TrapEmit},
		"value wraps":            {with(func(o *outStruct) { o.valuePtr, o.valueLen = 0xfffffff0, 0x100 }), outAt, 1, 56, TrapEmit},
		"undeclared port":        {with(func(o *outStruct) { o.port = 2 }), outAt, 1, 56, TrapEmit},
		"kind":                   {with(func(o *outStruct) { o.kind = 1 }), outAt, 1, 56, TrapEmit},
		"flags":                  {with(func(o *outStruct) { o.flags = 4 }), outAt, 1, 56, TrapEmit},
		"byte 52":                {with(func(o *outStruct) { o.mustBeZero = 1 }), outAt, 1, 56, TrapEmit},
		"year 0":                 {with(func(o *outStruct) { o.flags, o.time = 1, MinTime-1 }), outAt, 1, 56, TrapEmit},
		"year 10000":             {with(func(o *outStruct) { o.flags, o.time = 1, MaxTime+1000 }), outAt, 1, 56, TrapEmit},
		"too many headers":       {with(func(o *outStruct) { o.headersPtr, o.headerCount = testBase, 65 }), outAt, 1, 56, TrapEmit},
		"headers misaligned":     {with(func(o *outStruct) { o.headersPtr, o.headerCount = testBase+258, 1 }), outAt, 1, 56, TrapEmit},
		"headers wild":           {with(func(o *outStruct) { o.headersPtr, o.headerCount = end-12, 1 }), outAt, 1, 56, TrapEmit},
		"header name length":     {with(func(o *outStruct) { o.headersPtr, o.headerCount = testBase+256+24, 1 }), outAt, 1, 56, TrapEmit},
		"header value length":    {with(func(o *outStruct) { o.headersPtr, o.headerCount = testBase+320, 1 }), outAt, 1, 56, TrapEmit},
		"quota":                  {with(func(o *outStruct) { o.valueLen = 1000 }), outAt, 1, 56, TrapQuota},
		"quota in the second":    {with(func(o *outStruct) { o.valueLen = 500 }), outAt, 2, 56, TrapQuota},
		"verdict without code":   {with(func(o *outStruct) { o.kind, o.partition = 16, -1 }), outAt, 1, 56, TrapEmit},
		"verdict without index":  {with(func(o *outStruct) { o.kind, o.index = 17, NoIndex }), outAt, 1, 56, TrapEmit},
		"verdict with key":       {with(func(o *outStruct) { o.kind, o.keyPtr, o.keyLen = 16, testBase, 1 }), outAt, 1, 56, TrapEmit},
		"verdict with port":      {with(func(o *outStruct) { o.kind, o.port = 16, 1 }), outAt, 1, 56, TrapEmit},
		"verdict with headers":   {with(func(o *outStruct) { o.kind, o.headersPtr, o.headerCount = 16, testBase+256, 1 }), outAt, 1, 56, TrapEmit},
		"verdict with long text": {with(func(o *outStruct) { o.kind, o.valueLen = 16, 2000 }), outAt, 1, 56, TrapQuota},
	} {
		t.Run(name, func(t *testing.T) {
			mem := outMemory()
			binary.LittleEndian.PutUint32(mem[testBase+320+12:], 0xfffffffe)
			for at := uint32(outAt); at+2*56 < end && c.stride >= 56; at += 56 {
				c.out.put(mem, at)
			}
			_, err := emitted(mem, c.ptr, c.count, c.stride, &OutputRules{Ports: 2, MaxBytes: 1000})
			var v *Violation
			if !errors.As(err, &v) || v.Trap != c.trap {
				t.Fatalf("got %v, want trap %s", err, c.trap)
			}
		})
	}
}

func TestReadOutputRecordTooLarge(t *testing.T) {
	mem := make([]byte, MaxRecord+4096)
	outStruct{keyLen: -1, valueLen: MaxRecord - RecordSize}.put(mem, 8)
	rules := &OutputRules{Ports: 1, MaxBytes: math.MaxInt64}
	if got, err := emitted(mem, 8, 1, 56, rules); err != nil || len(got) != 1 {
		t.Fatalf("a record of exactly the limit: %v", err)
	}
	outStruct{keyLen: -1, valueLen: MaxRecord - RecordSize + 1}.put(mem, 8)
	var v *Violation
	if _, err := emitted(mem, 8, 1, 56, rules); !errors.As(err, &v) || v.Trap != TrapQuota {
		t.Fatalf("got %v", err)
	}
}

func TestReadOutputNothing(t *testing.T) {
	if err := ReadOutput(nil, 3, 0, 1, &OutputRules{}, nil); err != nil {
		t.Fatal(err)
	}
}

func TestReadOutputVisitEndsIt(t *testing.T) {
	mem := outMemory()
	outStruct{}.put(mem, outAt)
	n := 0
	err := ReadOutput(mem, outAt, 2, 56, &OutputRules{Ports: 1, MaxBytes: 1000}, func(r *Record) error {
		n++
		return BadIndex(r.Index)
	})
	var v *Violation
	if !errors.As(err, &v) || v.Trap != TrapEmit || n != 1 {
		t.Fatalf("%d records, %v", n, err)
	}
}

func TestReasons(t *testing.T) {
	x := strings.Repeat("x", MaxReason)
	for _, c := range []struct{ in, want string }{
		{"plain", "plain"},
		{"a\xff\xfeb", "a\uFFFDb"},
		{x + "y", x},
		{x[:MaxReason-1] + "é", x[:MaxReason-1]},
		{x[:MaxReason-2] + "é", x[:MaxReason-2] + "é"},
		{x[:MaxReason-1] + "\xffz", x[:MaxReason-1] + "\uFFFD"},
	} {
		mem := outMemory()
		copy(mem[testBase+1024:], c.in)
		outStruct{kind: 16, keyLen: -1, valuePtr: testBase + 1024, valueLen: int32(len(c.in))}.put(mem, outAt)
		got, err := emitted(mem, outAt, 1, 56, &OutputRules{MaxBytes: 10000})
		if err != nil || string(got[0].Value) != c.want {
			t.Errorf("%q: got %q, %v", c.in, got[0].Value, err)
		}
	}
}

// A filter emits its input records as they lie in the frame.
func TestInputRecordsCanBeEmitted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Record { return drawRecord(t, 2) }), 1, 5).Draw(t, "records")
		for i := range recs {
			recs[i].Kind = KindRecord
			recs[i].EventTime = int64(int32(recs[i].EventTime)) * 1000 * int64(recs[i].Flags&FlagEventTime)
		}
		mem := make([]byte, testBase+FrameSize(recs, 2))
		if err := PutFrame(mem[testBase:], testBase, FrameHeader{}, recs, 2); err != nil {
			t.Fatal(err)
		}
		stride := uint32(RecordSize + 2*FieldSize)
		got, err := emitted(mem, testBase+FrameHeaderSize, uint32(len(recs)), stride, &OutputRules{Ports: 1, MaxBytes: DefaultOutput})
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range recs {
			r.Offset, r.Partition, r.Input, r.Fields = 0, 0, 0, nil
			r.Flags &= FlagEventTime
			if !cmp.Equal(got[i], r) {
				t.Fatal(cmp.Diff(r, got[i]))
			}
		}
	})
}

func FuzzReadOutput(f *testing.F) {
	f.Add(outMemory()[testBase:testBase+600], uint32(512), uint32(1), uint32(56))
	f.Fuzz(func(t *testing.T, mem []byte, ptr, count, stride uint32) {
		rules := &OutputRules{Ports: 2, MaxBytes: 1 << 20}
		var used int64
		err := ReadOutput(mem, ptr, count, stride, rules, func(r *Record) error {
			if r.Kind == KindRecord {
				used += int64(r.Size(0))
			}
			if len(r.Headers) > MaxHeaders || int(r.Port) >= 2 || r.Flags > 1 {
				t.Fatalf("%+v", r)
			}
			return nil
		})
		var v *Violation
		if err != nil && !errors.As(err, &v) {
			t.Fatal(err)
		}
		if used > rules.Used || rules.Used > rules.MaxBytes {
			t.Fatalf("used %d of %d, seen %d", rules.Used, rules.MaxBytes, used)
		}
	})
}

func BenchmarkReadOutput(b *testing.B) {
	values := orders(1024)
	recs := make([]Record, len(values))
	for i, v := range values {
		recs[i] = Record{Value: v, Key: v[30:41], Index: uint32(i)}
	}
	mem := make([]byte, testBase+FrameSize(recs, 0))
	if err := PutFrame(mem[testBase:], testBase, FrameHeader{}, recs, 0); err != nil {
		b.Fatal(err)
	}
	n := 0
	b.ReportAllocs()
	rules := &OutputRules{Ports: 1, MaxBytes: math.MaxInt64}
	visit := func(r *Record) error { n += len(r.Value); return nil }
	for b.Loop() {
		if err := ReadOutput(mem, testBase+FrameHeaderSize, uint32(len(recs)), RecordSize, rules, visit); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(recs)), "ns/record")
}
