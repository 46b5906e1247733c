package abi

import (
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestVectorsFields(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)
	var vectors []object
	for _, c := range []struct {
		doc, value string
		pointers   []string
	}{
		{"every kind", `{"a":null,"b":false,"c":true,"d":-1.50e3,"e":"text","f":"a\"b","g":{"x":1},"h":[1,2]}`, []string{"/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h", "/i"}},
		{"nested, array elements, the whole value", ` {"a":{"b":[10,{"c":"x"}]}} `, []string{"/a/b/0", "/a/b/1/c", "/a/b/2", "/a/b/01", "/a/b/-", "/a/b", ""}},
		{"the last duplicate wins", `{"a":1,"a":2}`, []string{"/a"}},
		{"a later parent hides what an earlier one had", `{"a":{"b":1},"a":{"c":2}}`, []string{"/a/b", "/a/c"}},
		{"and so does a scalar", `{"a":{"b":1},"a":3}`, []string{"/a/b", "/a"}},
		{"names are compared unescaped", `{"\u0061":1,"x\/y":2,"~":3,"":4}`, []string{"/a", "/x~1y", "/~0", "/"}},
		{"a number as a name", `{"0":"name"}`, []string{"/0"}},
		{"an empty string", `{"a":""}`, []string{"/a"}},
		{"a scalar text", ` 12 `, []string{"", "/a"}},
		{"the deepest text", deep, []string{"/0"}},
		{"too deep", "[" + deep + "]", []string{"/0"}},
		{"empty", "", []string{"", "/a"}},
		{"two texts", `{"a":1} {"a":2}`, []string{"/a"}},
		{"not finished", `{"a":1`, []string{"/a"}},
		{"a comma too many", `{"a":1,}`, []string{"/a"}},
		{"a leading zero", `{"a":01}`, []string{"/a"}},
		{"a control character", "{\"a\":\"\t\"}", []string{"/a"}},
		{"not UTF-8", "{\"a\":\"\xff\"}", []string{"/a"}},
		{"half a surrogate pair", `{"a":"\ud800"}`, []string{"/a"}},
		{"a byte order mark", "\uFEFF{}", []string{"/a"}},
	} {
		l, err := NewLocator(c.pointers)
		if err != nil {
			t.Fatal(err)
		}
		fields := make([]Field, l.Len())
		ok := l.Locate([]byte(c.value), fields)
		vectors = append(vectors, object{"doc": c.doc, "value": vectorBytes([]byte(c.value)), "pointers": c.pointers, "json": ok, "fields": vectorFields([]byte(c.value), fields)})
	}
	goldenJSON(t, "fields.json", vectors)
}

func TestVectorsKeys(t *testing.T) {
	vectors := object{}
	var extracted, hashed []object
	for _, c := range []struct {
		value    string
		pointers []string
	}{
		{`{"a":"x"}`, []string{"/a"}},
		{`{"a":"\u00e9\n"}`, []string{"/a"}},
		{`{"a":1.50}`, []string{"/a"}},
		{`{"a":""}`, []string{"/a"}},
		{`{"a":"x","b":false,"c":"\u0001\/\""}`, []string{"/a", "/b", "/c"}},
		{`{"a":null}`, []string{"/a"}},
		{`{"a":[1]}`, []string{"/a"}},
		{`{"a":"x"}`, []string{"/a", "/b"}},
	} {
		v := object{"value": c.value, "pointers": c.pointers, "key": nil}
		if key, ok := keyOf(t, c.value, c.pointers...); ok {
			v["key"] = key
		}
		extracted = append(extracted, v)
	}
	for _, key := range []string{"", "a", "ab", "abc", "abcd", "21", "foobar", "a-little-bit-long-string", `["UA","EWR"]`, "\xff\x00"} {
		group := KeyGroup([]byte(key))
		hashed = append(hashed, object{
			"key": vectorBytes([]byte(key)), "murmur2": fmt.Sprintf("%08x", murmur2([]byte(key))), "group": group,
			"laneOf4": LaneOfGroup(group, 4), "laneOf3": LaneOfGroup(group, 3),
		})
	}
	vectors["keyBy"], vectors["hash"] = extracted, hashed
	goldenJSON(t, "keys.json", vectors)
}

func TestVectorsTimes(t *testing.T) {
	var vectors []object
	for _, c := range []struct {
		value string
		unit  TimeUnit
	}{
		{`"2013-01-01T10:00:00Z"`, NoUnit},
		{`"2013-01-01t10:00:00.1239999-05:30"`, NoUnit},
		{`"1969-12-31T23:59:59.9995Z"`, NoUnit},
		{`"0001-01-01T00:00:00Z"`, NoUnit},
		{`"0001-01-01T00:00:00+00:01"`, NoUnit},
		{`"9999-12-31T23:59:59.9999Z"`, NoUnit},
		{`"2016-12-31T23:59:60Z"`, NoUnit},
		{`"2013-01-01 10:00:00Z"`, NoUnit},
		{`"2013-01-01"`, NoUnit},
		{`"2013-02-29T00:00:00Z"`, NoUnit},
		{`1357034400`, Seconds},
		{`1357034400123`, Milliseconds},
		{`-1`, Microseconds},
		{`1357034400123456789`, Nanoseconds},
		{`1357034400`, NoUnit},
		{`1.5`, Seconds},
		{`1e3`, Seconds},
		{`253402300800`, Seconds},
		{`null`, Seconds},
	} {
		fields := located(t, c.value, "")
		v := object{"value": c.value, "unit": c.unit, "micros": nil}
		if us, ok := EventTimeOf(fields[0].Text([]byte(c.value)), fields[0].Kind, c.unit); ok {
			v["micros"] = us
		}
		vectors = append(vectors, v)
	}
	goldenJSON(t, "times.json", vectors)
}

func TestVectorsCanonical(t *testing.T) {
	var vectors []object
	for _, text := range []string{
		` { "b" : [ 1 , 2.0 ] , "a" : "\u00e9\/" } `, "{\"\uFB33\":1,\"\U0001F600\":2}", `12345678901234567890123`, `-0`, `1e2`, `1E21`, `0.0000001`,
		`0.1234567890123456789`, `5e-324`, `"\u001f\b\u007f"`, `{"a":1,"a":2}`, `1e400`, `"\udc00"`, `{"a":1}x`,
	} {
		v := object{"text": text, "canonical": nil}
		if out, err := CanonicalJSON([]byte(text)); err == nil {
			v["canonical"] = string(out)
		}
		vectors = append(vectors, v)
	}
	goldenJSON(t, "canonical.json", vectors)
}

func TestVectorsManifests(t *testing.T) {
	var vectors []object
	for _, text := range []string{
		fullManifest, string(DefaultManifest().JSON()), `{"name":"a","version":"1","inputs":[{"name":"in"}],"outputs":[]}`,
		`{"name":"a","version":"1","inputs":[],"outputs":[]}`, `{"name":"A","version":"1","inputs":[{"name":"in"}],"outputs":[]}`,
		`{"name":"a","name":"a","version":"1","inputs":[{"name":"in"}],"outputs":[]}`, `{"name":"a","version":"1","inputs":[{"name":"in"}],"outputs":[],"x":1}`,
		`{"abi":1,"name":"a","version":"1","inputs":[{"name":"in","content":"json"}],"outputs":[{"name":"out"}],"tables":[{"name":"b","type":"bytes"},{"name":"c"}]}`,
		`{"name":"a","version":"1","inputs":[{"name":"in"}],"outputs":[{"name":"out","updates":1}]}`,
		`{"name":"a","version":"1","inputs":[{"name":"in"}],"outputs":[],"tables":[{"name":"t","type":"text"}]}`,
		rowsManifest, `{"name":"a","version":"1","inputs":[{"name":"in"}],"outputs":[{"name":"out","rows":2,"columns":"a: int8"}]}`,
		`{"abi":2,"name":"a","version":"1","inputs":[{"name":"in"}],"outputs":[]}`, `{"name":"a","version":"1","inputs":[{"name":"in","fields":["a"]}],"outputs":[]}`,
	} {
		v := object{"text": text, "canonical": nil}
		if m, err := ParseManifest([]byte(text)); err == nil {
			v["canonical"] = string(m.JSON())
		}
		vectors = append(vectors, v)
	}
	goldenJSON(t, "manifests.json", vectors)
}

func TestVectorsSeeds(t *testing.T) {
	var vectors []object
	for _, c := range []struct {
		query string
		batch uint64
		stage string
		lane  uint32
	}{
		{"5a1d6bb5-2a4e-4a43-9a1b-0d6a7c1f2e33", 0, "clean", 0},
		{"5a1d6bb5-2a4e-4a43-9a1b-0d6a7c1f2e33", 41, "hourly", 3},
		{"\"é\"", math.MaxUint64, "s", math.MaxUint32},
	} {
		seed := Seed(c.query, c.batch, c.stage, c.lane)
		vectors = append(vectors, object{
			"query": c.query, "batch": u64(c.batch), "stage": c.stage, "lane": c.lane, "seed": []string{u64(seed[0]), u64(seed[1])},
		})
	}
	goldenJSON(t, "seeds.json", vectors)
}

func TestVectorsDigests(t *testing.T) {
	lanes := [][]Record{
		{
			{EventTime: 1_000, Flags: FlagEventTime, Key: []byte("k"), Value: []byte(`{"a":1}`), Port: 1, Headers: []Header{{[]byte("h"), []byte("v")}, {[]byte("n"), nil}}},
			{Value: []byte{}},
		},
		nil,
		{{Key: []byte{}}},
	}
	vectors := []object{}
	var digests []LaneDigest
	for i, recs := range lanes {
		var d RecordDigest
		records := []object{}
		for j := range recs {
			d.Add(&recs[j])
			r := vectorRecord(&recs[j])
			for name := range r {
				switch name {
				case "port", "flags", "eventTime", "key", "value", "headers":
				default:
					delete(r, name)
				}
			}
			records = append(records, r)
		}
		sum := d.Sum()
		digests = append(digests, LaneDigest{Lane: uint32(i), Records: uint64(d.Count()), Sum: sum})
		vectors = append(vectors, object{"lane": i, "records": records, "bytes": hex.EncodeToString(digestBytes(recs)), "digest": hex.EncodeToString(sum[:])})
	}
	digest, records := CombineLanes(digests)
	goldenJSON(t, "digests.json", object{"lanes": vectors, "sink": object{"digest": digest, "records": records}})
}

// stateVector is a call of state_read, or of state_write when it has no room to answer in.
type stateVector struct {
	name, doc string
	buf       StateBuffer
	ops       []opStruct
}

func TestVectorsState(t *testing.T) {
	get := opWith(OpGet, func(o *opStruct) { o.subPtr = testBase + 64 })
	scan := opWith(OpScan, func(o *opStruct) { o.subLen, o.valueLen = 0, -1 })
	down := opWith(OpScan, func(o *opStruct) { o.subLen, o.valuePtr, o.valueLen, o.flags = 0, testBase+64, 3, 2 })
	two := opWith(OpScan, func(o *opStruct) { o.subLen, o.valueLen, o.limit = 0, -1, 2 })
	after := opWith(OpScan, func(o *opStruct) { o.subLen, o.valuePtr, o.valueLen, o.limit = 1, testBase+64, 3, 9 })
	room := func(n uint32) StateBuffer { return StateBuffer{bufAt, n, needAt} }
	timer := func(op OpCode, domain uint8, at int64) opStruct {
		return opWith(op, func(o *opStruct) { o.domain, o.at, o.valuePtr, o.valueLen = domain, at, math.MaxUint32, math.MinInt32 })
	}
	var vectors []object
	for _, c := range []stateVector{
		{"read", "A get that hits, one that does not, a scan that runs out of room, a scan downwards from s01.", room(8 + 48 + 24), []opStruct{get, opWith(OpGet, nil), scan, down}},
		{"read-limit", "A scan that stops at its limit says nothing of more; one after s01 with the prefix s gives s02.", room(4096), []opStruct{two, after}},
		{"read-room", "Two scans and a get between them share 88 bytes: 24 + 8 + 24 are kept for the first entries and the get, the first scan takes 24 more.", room(88), []opStruct{scan, get, scan}},
		{"read-nothing", "What is absent takes no room: an empty buffer, its address is not looked at.", StateBuffer{math.MaxUint32, 0, needAt}, []opStruct{opWith(OpGet, nil), opWith(OpScan, func(o *opStruct) { o.valueLen = -1 })}},
		{"too-small", "A get and a scan: 8 + 24 bytes are needed.", room(24), []opStruct{get, scan}},
		{"too-small-many", "Three gets of 2 bytes, one of them absent, and two scans: 8 + 8 + 24 + 24, each rounded up.", room(63), []opStruct{get, opWith(OpGet, nil), scan, get, down}},
		{"trap-write", "A put in state_read.", room(64), []opStruct{opWith(OpPut, nil)}},
		{"trap-buf-over-ops", "The buffer's last 8 bytes are the operation's first.", StateBuffer{opsAt - 64, 72, needAt}, []opStruct{get}},
		{"trap-need-in-buf", "need lies in the buffer.", StateBuffer{bufAt, 64, bufAt + 60}, []opStruct{get}},
		{"trap-need-in-ops", "need lies in the operations.", StateBuffer{bufAt, 64, opsAt + 52}, []opStruct{get}},
		{"trap-buf", "The buffer is not 8-aligned.", StateBuffer{bufAt + 4, 64, needAt}, []opStruct{get}},
		{"write", "A put without and one with an expiry, which is rounded down; a delete; what each does not use is anything.", StateBuffer{}, []opStruct{
			opWith(OpPut, func(o *opStruct) { o.table, o.limit, o.ansPtr, o.flags = 1, 9, 9, 3 }),
			opWith(OpPut, func(o *opStruct) { o.at, o.valueLen = 1_700_000_000_123_456, 0 }),
			opWith(OpDelete, func(o *opStruct) { o.valuePtr, o.valueLen, o.at = math.MaxUint32, -9, math.MinInt64 }),
		}},
		{"write-prefix", "delete-prefix of sub, the same up to value, and of everything under the key.", StateBuffer{}, []opStruct{
			opWith(OpDeletePrefix, func(o *opStruct) { o.valueLen = -1 }), opWith(OpDeletePrefix, nil),
			opWith(OpDeletePrefix, func(o *opStruct) { o.subPtr, o.subLen, o.valueLen = math.MaxUint32, 0, -1 }),
		}},
		{"write-timers", "A timer of each domain is set and one deleted; one of the first millisecond that there is.", StateBuffer{}, []opStruct{
			timer(OpTimerSet, DomainEvent, 1_700_000_010_000_000), timer(OpTimerSet, DomainProcessing, 1_700_000_010_000_999),
			timer(OpTimerDelete, DomainEvent, 1_700_000_005_000_000), timer(OpTimerSet, DomainEvent, MinTime),
		}},
		{"trap-timer-time", "A timer in the year 10000.", StateBuffer{}, []opStruct{timer(OpTimerSet, DomainEvent, MaxTime+1000)}},
		{"trap-get", "A get in state_write, after a put that was carried out.", StateBuffer{}, []opStruct{opWith(OpPut, nil), get}},
	} {
		vectors = append(vectors, c.vector(t))
	}
	goldenJSON(t, "state.json", vectors)
}

// vector carries the call out and says what came of it.
func (c *stateVector) vector(t *testing.T) object {
	mem := stateMemory(c.ops...)
	copy(mem[testBase+64:], "s01")
	golden(t, "state/"+c.name+".bin", mem[testBase:])
	m := &meter{most: math.MaxUint64}
	rules := oneLane()
	rules.Pay = m.pay
	v := object{"name": c.name, "doc": c.doc, "base": testBase, "memory": len(mem), "ops": opsAt, "count": len(c.ops), "tables": rules.Tables}
	var err error
	if c.buf == (StateBuffer{}) {
		var got []StateOp
		got, err = writes(mem, opsAt, uint32(len(c.ops)), rules)
		v["call"], v["operations"] = "state_write", vectorOps(got)
	} else {
		var code int32
		code, err = AnswerState(mem, opsAt, uint32(len(c.ops)), c.buf, rules, numbers(3))
		v["call"], v["buf"], v["cap"], v["need"] = "state_read", c.buf.Ptr, c.buf.Cap, c.buf.Need
		v["entries"] = object{"key": "any", "table": 0, "subs": []string{"s00", "s01", "s02"}, "values": []string{"v0", "v1", "v2"}}
		if err == nil {
			v["result"] = code
			golden(t, "state/"+c.name+".after.bin", mem[testBase:])
		}
	}
	if violation, ok := err.(*Violation); ok {
		v["trap"] = violation.Trap
		return v
	}
	if err != nil {
		t.Fatal(err)
	}
	v["fuel"] = m.paid
	return v
}

func vectorOps(ops []StateOp) []object {
	out := []object{}
	for _, op := range ops {
		out = append(out, object{
			"op": op.Op, "domain": op.Domain, "table": op.Table, "key": vectorBytes(op.Key), "sub": vectorBytes(op.Sub), "value": vectorBytes(op.Value), "at": op.At,
		})
	}
	return out
}
