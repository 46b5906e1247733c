package wasmill_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	wasmill "github.com/wasmill/wasmill/abi/sdk/go"
	"github.com/wasmill/wasmill/abi/sdk/go/wasmilltest"
)

const manifest = `{"abi": 1, "name": "t", "version": "1",
 "inputs": [{"name": "in", "fields": ["/s", "/n", "/b", "/x~1y", "/list/1"]}],
 "outputs": [{"name": "out"}, {"name": "other"},
  {"name": "every", "rows": 1, "columns": "id: int64, small: int8, short: int16, n: int32, ok: boolean, f: float, d: double, day: date, at: timestamp, s: string, b: binary, p: decimal(9,2), q: decimal(18,4), w: decimal(38,10)"},
  {"name": "nulls", "rows": 1, "columns": "a: int8, b: string"},
  {"name": "nested", "rows": 1, "columns": "tags: list<string>, by: map<string, int32>, place: struct<lat: double, names: list<struct<lang: string, text: string>>>"},
  {"name": "none", "rows": 1, "columns": "a: int8 not null"},
  {"name": "text", "rows": 1, "columns": "a: string, t: timestamp(ms) not null"}]}`

var (
	m                 = wasmill.Manifest(manifest)
	fs, fn, fb        = m.Field("/s"), m.Field("/n"), m.Field("/b")
	fslash, felement  = m.Field("/x~1y"), m.Field("/list/1")
	portOut, portMore = m.Port("out"), m.Port("other")
)

type record func(r *wasmill.Record, out *wasmill.Out) error

// run is what f makes of these values; a test fails when the lane does.
func run(t *testing.T, f record, values ...string) []wasmilltest.Output {
	t.Helper()
	out, err := wasmilltest.Run(wasmill.Transform{Record: f}, manifest, wasmilltest.Values(values...))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func one(t *testing.T, f record, value string) wasmilltest.Output {
	t.Helper()
	out := run(t, f, value)
	if len(out) != 1 {
		t.Fatalf("%d outputs, want 1: %v", len(out), out)
	}
	return out[0]
}

func TestManifestNames(t *testing.T) {
	for name, f := range map[string]func(){
		"field": func() { m.Field("/nothing") },
		"port":  func() { m.Port("nothing") },
		"input": func() { m.InputField(1, "/s") },
		"text":  func() { wasmill.Manifest("{").Port("out") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("a name that is not declared was found")
				}
			}()
			f()
		})
	}
	if portOut != 0 || portMore != 1 {
		t.Errorf("ports %d and %d", portOut, portMore)
	}
}

func TestObject(t *testing.T) {
	o := one(t, func(r *wasmill.Record, out *wasmill.Out) error {
		o := out.Object(r)
		for range 2 { // the second time the names are known
			o.Value("s", r.Text(fs))
			o.Int("n", r.Int(fn))
			o.Bool("b", r.Bool(fb))
			o.Value("slash", r.Field(fslash))
			o.Value("element", r.Field(felement))
		}
		o.Int("minus", wasmill.IntOf(-1<<63))
		o.Int("", wasmill.Int{})
		o.Decimal("d1", wasmill.IntOf(5), 1)
		o.Decimal("d1", wasmill.IntOf(-5), 3)
		o.Decimal("d0", wasmill.IntOf(7), 0)
		o.Decimal("dn", wasmill.Int{}, 2)
		o.Bool("yes", wasmill.BoolOf(true))
		o.Bool("no", wasmill.BoolOf(false))
		o.Bool("null", wasmill.Bool{})
		o.String("q\"uote\n", "tab\t\x01\\\"€")
		o.Null("nothing")
		o.String("a name of more than sixteen bytes", "")
		o.Open("open")
		o.OpenList("list")
		o.Int("", wasmill.IntOf(1))
		o.Open("")
		o.Close()
		o.String("", "x")
		o.OpenList("")
		o.Close()
		o.Close()
		o.Close()
		o.Int("last", wasmill.IntOf(123456789))
		return o.Emit(portMore)
	}, `{"s":"a \u0041 string of more than 32 bytes, which is long","n":-12,"b":true,"x/y":{"z":[1, 2]},"list":[0,"e"]}`)
	const member = `"s":"a \u0041 string of more than 32 bytes, which is long","n":-12,"b":true,"slash":{"z":[1, 2]},"element":"e",`
	want := `{` + member + member + `"minus":-9223372036854775808,"":null,"d1":0.5,"d1":-0.005,"d0":7,"dn":null,"yes":true,"no":false,"null":null,` +
		`"q\"uote\n":"tab\t\u0001\\\"€","nothing":null,"a name of more than sixteen bytes":"","open":{"list":[1,{},"x",[]]},"last":123456789}`
	if string(o.Value) != want {
		t.Errorf("got  %s\nwant %s", o.Value, want)
	}
	if o.Port != portMore || o.Index != 0 {
		t.Errorf("port %d, index %d", o.Port, o.Index)
	}
}

func TestEmptyObject(t *testing.T) {
	o := one(t, func(r *wasmill.Record, out *wasmill.Out) error { return out.Object(r).Emit(portOut) }, `1`)
	if string(o.Value) != `{}` {
		t.Errorf("got %s", o.Value)
	}
}

func TestExtend(t *testing.T) {
	extend := func(r *wasmill.Record, out *wasmill.Out) error {
		o := out.Extend(r)
		o.Int("c", wasmill.IntOf(1))
		return o.Emit(portOut)
	}
	for in, want := range map[string]string{
		`{"a":1}`:               `{"a":1,"c":1}`,
		" {\"a\": {} \n }\r\n ": `{"a": {},"c":1}`,
		`{}`:                    `{"c":1}`,
		` { } `:                 `{"c":1}`,
		`{"a":","}`:             `{"a":",","c":1}`,
	} {
		if o := one(t, extend, in); string(o.Value) != want {
			t.Errorf("%q: %q, want %q", in, o.Value, want)
		}
	}
	for _, in := range []string{``, ` `, `[]`, `[1]`, `"{}"`, `7`, `{`, `{"a":1`, `}`} {
		if o := one(t, extend, in); o.Reject == nil || o.Reject.Code != wasmill.BadField || o.Reject.Reason != "the value is not a JSON object" {
			t.Errorf("%q: %s, %v", in, o.Value, o.Reject)
		}
	}
}

func TestFields(t *testing.T) {
	tests := []struct {
		value  string
		read   func(r *wasmill.Record) any
		want   any
		reason string
	}{
		{`{"n":12345678}`, func(r *wasmill.Record) any { return r.Int(fn) }, wasmill.IntOf(12345678), ""},
		{`{"n":-1234567890123}`, func(r *wasmill.Record) any { return r.Int(fn) }, wasmill.IntOf(-1234567890123), ""},
		{`{"n":null}`, func(r *wasmill.Record) any { return r.Int(fn) }, wasmill.Int{}, ""},
		{`{}`, func(r *wasmill.Record) any { return r.Int(fn) }, wasmill.Int{}, ""},
		{`{"n":1.5}`, func(r *wasmill.Record) any { return r.Int(fn) }, wasmill.Int{}, "/n is not a 64-bit integer: 1.5"},
		{`{"n":"1"}`, func(r *wasmill.Record) any { return r.Int(fn) }, wasmill.Int{}, "/n is not a 64-bit integer: 1"},
		{`{"n":1.005}`, func(r *wasmill.Record) any { return r.Scaled(fn, 2) }, wasmill.IntOf(101), ""},
		{`{"n":1e30}`, func(r *wasmill.Record) any { return r.Scaled(fn, 2) }, wasmill.Int{}, "/n is not a number in range: 1e30"},
		{`{"n":true}`, func(r *wasmill.Record) any { return r.Scaled(fn, 2) }, wasmill.Int{}, "/n is not a number in range: true"},
		{`{"b":false}`, func(r *wasmill.Record) any { return r.Bool(fb) }, wasmill.BoolOf(false), ""},
		{`{"b":null}`, func(r *wasmill.Record) any { return r.Bool(fb) }, wasmill.Bool{}, ""},
		{`{"b":0}`, func(r *wasmill.Record) any { return r.Bool(fb) }, wasmill.Bool{}, "/b is not a boolean: 0"},
		{`{"s":"\u0041"}`, func(r *wasmill.Record) any { return r.Text(fs).String() }, "A", ""},
		{`{"s":[1]}`, func(r *wasmill.Record) any { return r.Text(fs).Kind() }, wasmill.KindArray, "/s is not a string: [1]"},
		{`{"s":"view"}`, func(r *wasmill.Record) any { return r.Field(fs).Is("view") && !r.Field(fs).Is("views") }, true, ""},
		{`{"s":"vi\u0065w"}`, func(r *wasmill.Record) any { return r.Field(fs).Is("view") && !r.Field(fs).Is("views") }, true, ""},
		{`{"s":"a","s":"b"}`, func(r *wasmill.Record) any { return string(r.Field(fs).Raw()) }, "b", ""},
		{`not JSON`, func(r *wasmill.Record) any {
			return r.IsJSON() || !r.Field(fs).IsNull() || r.JSON().Kind() != wasmill.KindAbsent
		}, false, ""},
		{`{"q":{"r":[1,true]}}`, func(r *wasmill.Record) any { return r.JSON().Get("q").Get("r").Kind() }, wasmill.KindArray, ""},
		{`{"q":7,"w":[3,4]}`, func(r *wasmill.Record) any { return walk(r.JSON()) }, "q=7 w=[3 4]", ""},
	}
	for _, tt := range tests {
		var got any
		out := run(t, func(r *wasmill.Record, _ *wasmill.Out) error { got = tt.read(r); return nil }, tt.value)
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %#v, want %#v", tt.value, got, tt.want)
		}
		switch {
		case tt.reason == "" && len(out) != 0:
			t.Errorf("%s: came out: %v", tt.value, out)
		case tt.reason != "" && (len(out) != 1 || out[0].Reject == nil || out[0].Reject.Reason != tt.reason):
			t.Errorf("%s: came out: %v, want the dead letter %q", tt.value, out, tt.reason)
		}
	}
}

func walk(v wasmill.Value) string {
	var parts []string
	for name, value := range v.Members() {
		if n, ok := value.Int(); ok {
			parts = append(parts, fmt.Sprintf("%s=%d", name, n))
			continue
		}
		var list []int64
		for e := range value.Elements() {
			n, _ := e.Int()
			list = append(list, n)
		}
		parts = append(parts, fmt.Sprintf("%s=%v", name, list))
	}
	return strings.Join(parts, " ")
}

// TestMisreadRecordWritesNothing: from the first field that is not what was wanted, nothing comes out but the dead letter.
func TestMisreadRecordWritesNothing(t *testing.T) {
	out := run(t, func(r *wasmill.Record, out *wasmill.Out) error {
		r.Int(fn)
		_ = out.Pass(r, portOut)
		_ = out.From(r).Value([]byte("x"), portOut)
		o := out.Object(r)
		_ = o.Emit(portOut)
		return errors.New("another error")
	}, `{"n":"x"}`, `{"n":1}`)
	if len(out) != 5 || out[0].Reject == nil || out[0].Reject.Reason != "/n is not a 64-bit integer: x" {
		t.Fatalf("came out: %v", out)
	}
	if out[4].Reject == nil || out[4].Reject.Reason != "another error" || out[4].Index != 1 {
		t.Errorf("the second record: %v", out[1:])
	}
}

func TestRejects(t *testing.T) {
	long := strings.Repeat("é", 1000)
	out := run(t, func(r *wasmill.Record, out *wasmill.Out) error {
		switch r.Index() {
		case 0:
			return wasmill.DeadLetter(7, "seven")
		case 1:
			return wasmill.Fail(65535, long)
		}
		return out.Pass(r, portMore)
	}, `a`, `b`, `c`)
	want := []wasmilltest.Output{
		{Index: 0, Reject: &wasmill.Reject{Code: 7, Reason: "seven"}},
		{Index: 1, Reject: &wasmill.Reject{Code: 65535, Reason: long[:1024], Poison: true}},
		{Index: 2, Port: portMore, Value: []byte("c")},
	}
	if !reflect.DeepEqual(out, want) {
		t.Errorf("got %v", out)
	}
}

func TestDraft(t *testing.T) {
	in := wasmilltest.Input{
		Key: []byte("k"), Value: []byte(`{"s":"x"}`), EventTime: 5000, Offset: 9, Partition: 3,
		Headers: []wasmilltest.Header{{Name: "a", Value: []byte("1")}, {Name: "n"}, {Name: "a", Value: []byte("2")}},
	}
	h := wasmilltest.Host{Manifest: manifest}
	out, err := h.Run(wasmill.Transform{Record: func(r *wasmill.Record, out *wasmill.Out) error {
		us, ok := r.EventTime()
		if us != 5000 || !ok || string(r.Key()) != "k" || r.Offset() != 9 || r.Partition() != 3 || r.Input() != 0 || r.Kind() != wasmill.InputRecord ||
			string(r.Header("a")) != "2" || r.Header("n") != nil || string(r.Value()) != `{"s":"x"}` {
			return errors.New("the record is not what went in")
		}
		o := out.From(r).Key([]byte("key")).Header("h", []byte("v")).Header("null", nil).EventTime(7000).Object()
		o.Value("s", r.Text(fs))
		if err := o.Emit(portOut); err != nil {
			return err
		}
		if err := out.From(r).Key(nil).NoHeaders().Value(nil, portMore); err != nil {
			return err
		}
		if err := out.From(r).Header("h", []byte{}).Value(nil, portMore); err != nil {
			return err
		}
		return out.New().Key([]byte{}).Value([]byte("new"), portOut)
	}}, []wasmilltest.Input{in})
	if err != nil {
		t.Fatal(err)
	}
	hs := in.Headers
	want := []wasmilltest.Output{
		{Key: []byte("key"), Value: []byte(`{"s":"x"}`), EventTime: 7000, Headers: []wasmilltest.Header{hs[0], hs[1], hs[2], {Name: "h", Value: []byte("v")}, {Name: "null"}}},
		{Port: portMore, EventTime: 5000},
		{Port: portMore, Key: []byte("k"), EventTime: 5000, Headers: []wasmilltest.Header{hs[0], hs[1], hs[2], {Name: "h", Value: []byte{}}}},
		{Key: []byte{}, Value: []byte("new"), Index: -1},
	}
	if !reflect.DeepEqual(out, want) {
		t.Errorf("got  %v\nwant %v", out, want)
	}
}

// TestLargeOutput lets outputs outgrow the arena: many small ones, one that is larger than the arena, and one that reaches
// its end with key and headers written already.
func TestLargeOutput(t *testing.T) {
	for _, size := range []int{10, 700, 5000, 100_000, 3 << 20} {
		text := strings.Repeat("x", size)
		value, _ := json.Marshal(map[string]string{"s": text})
		records := 3000
		if size > 10 {
			records = 7
		}
		var in []wasmilltest.Input
		for i := range records {
			in = append(in, wasmilltest.Input{Value: value, Key: fmt.Append(nil, i)})
		}
		h := wasmilltest.Host{Manifest: manifest, MaxFrame: 4096, Chunk: 2000}
		out, err := h.Run(wasmill.Transform{Record: func(r *wasmill.Record, out *wasmill.Out) error {
			o := out.From(r).Key(append([]byte("new-"), r.Key()...)).Header("h", r.Key()).Object()
			o.Value("a", r.Text(fs))
			o.String("b", string(r.Text(fs).Raw()))
			o.Open("c")
			o.Value("d", r.JSON())
			return o.Emit(portOut)
		}}, in)
		if err != nil {
			t.Fatal(err)
		}
		want := []byte(`{"a":"` + text + `","b":"` + text + `","c":{"d":` + string(value) + `}}`)
		if len(out) != records {
			t.Fatalf("size %d: %d outputs", size, len(out))
		}
		for i, o := range out {
			key := fmt.Sprint(i)
			if string(o.Key) != "new-"+key || len(o.Headers) != 1 || o.Headers[0].Name != "h" || string(o.Headers[0].Value) != key || !bytes.Equal(o.Value, want) {
				t.Fatalf("size %d, output %d: key %q, headers %v, %d bytes, want %d", size, i, o.Key, o.Headers, len(o.Value), len(want))
			}
		}
	}
}

func TestPassMany(t *testing.T) {
	values := make([]string, 2500)
	for i := range values {
		values[i] = fmt.Sprint(i)
	}
	h := wasmilltest.Host{Manifest: manifest, Chunk: 2500}
	out, err := h.Run(wasmill.Transform{Record: func(r *wasmill.Record, out *wasmill.Out) error { return out.Pass(r, portOut) }}, wasmilltest.Values(values...))
	if err != nil || len(out) != len(values) {
		t.Fatalf("%d outputs, %v", len(out), err)
	}
	for i, o := range out {
		if string(o.Value) != values[i] || o.Index != int64(i) {
			t.Fatalf("output %d: %v", i, o)
		}
	}
}

func TestLifeOfALane(t *testing.T) {
	var seen []string
	count, least := 0, int64(0)
	h := wasmilltest.Host{Manifest: manifest, Config: `{"least": 2}`, Chunk: 2, Batch: wasmill.Batch{ID: 4, Lane: 1, Time: 5000, Seed: [2]uint64{6, 7}}}
	out, err := h.Run(wasmill.Transform{
		Init: func(config wasmill.Value) error {
			least, _ = config.Get("least").Int()
			return nil
		},
		Record: func(_ *wasmill.Record, out *wasmill.Out) error {
			b := out.Batch()
			seen = append(seen, fmt.Sprintf("%d.%d first=%v last=%v", b.ID, b.Chunk, b.First, b.Last))
			count++
			return nil
		},
		Finish: func(out *wasmill.Out) error {
			if b := out.Batch(); !b.Last || b.Seed != [2]uint64{6, 7} || b.Time != 5000 || b.Lane != 1 {
				return errors.New("not the batch")
			}
			wasmill.Log(wasmill.Info, "done")
			o := out.New().Key([]byte("total")).Object()
			o.Int("n", wasmill.IntOf(int64(count)-least))
			return o.Emit(portOut)
		},
	}, wasmilltest.Values("1", "2", "3"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"4.0 first=true last=false", "4.0 first=true last=false", "4.1 first=false last=false"}; !reflect.DeepEqual(seen, want) {
		t.Errorf("batches %v", seen)
	}
	if len(out) != 1 || string(out[0].Value) != `{"n":1}` || string(out[0].Key) != "total" || out[0].Index != -1 || !reflect.DeepEqual(h.Log, []string{"done"}) {
		t.Errorf("came out: %v, log %v", out, h.Log)
	}
}

func TestTroubleIsTold(t *testing.T) {
	nothing := func(*wasmill.Record, *wasmill.Out) error { return nil }
	var none []int
	tests := []struct {
		name string
		t    wasmill.Transform
		want string
	}{
		{"init refuses", wasmill.Transform{Init: func(wasmill.Value) error { return errors.New("no config") }, Record: nothing}, "wasmill_init: no config"},
		{"init panics", wasmill.Transform{Init: func(wasmill.Value) error { panic("oh") }, Record: nothing}, "wasmill_init: panic: oh"},
		{"no transform", wasmill.Transform{}, "wasmill_init: wasmill: no transform is registered"},
		{"a panic", wasmill.Transform{Record: func(*wasmill.Record, *wasmill.Out) error { none[0] = 1; return nil }}, "panic: runtime error: index out of range [0] with length 0"},
		{"finish", wasmill.Transform{Record: nothing, Finish: func(*wasmill.Out) error { return errors.New("half done") }}, "status 1: half done"},
		{"too many headers", wasmill.Transform{Record: func(r *wasmill.Record, out *wasmill.Out) error {
			d := out.From(r)
			for range 65 {
				d = d.Header("h", nil)
			}
			return nil
		}}, "at most 64 headers"},
		{"close", wasmill.Transform{Record: func(r *wasmill.Record, out *wasmill.Out) error { out.Object(r).Close(); return nil }}, "Close without Open"},
	}
	for _, tt := range tests {
		_, err := wasmilltest.Run(tt.t, manifest, wasmilltest.Values("1"))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestAnotherManifest: a host that locates other fields than the module was built with is told so, and gets no record.
func TestAnotherManifest(t *testing.T) {
	const front = `{"abi": 1, "name": "t", "version": "1", "outputs": [{"name": "out"}], "inputs": [{"name": "in", "fields": [`
	for name, tt := range map[string]struct{ manifest, want string }{
		"none":        {"", "the host locates 0 fields a record, the module was built with a manifest of 5"},
		"fewer":       {front + `"/s"]}]}`, "the host locates 1 fields a record"},
		"more":        {front + `"/1","/2","/3","/4","/5","/6","/7","/8","/9","/10","/11","/12"]}]}`, "the host locates 12 fields a record"},
		"as many":     {front + `"/1","/2","/3","/4","/5"]}]}`, ""},
		"its own one": {manifest, ""},
	} {
		calls := 0
		_, err := wasmilltest.Run(wasmill.Transform{Record: func(*wasmill.Record, *wasmill.Out) error { calls++; return nil }}, tt.manifest, wasmilltest.Values("{}", "{}"))
		switch {
		case tt.want == "" && (err != nil || calls != 2):
			t.Errorf("%s: %d calls, %v", name, calls, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || calls != 0):
			t.Errorf("%s: %d calls, %v, want %q", name, calls, err, tt.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	const lowest, highest = -1 << 63, 1<<63 - 1
	type result struct {
		n  int64
		ok bool
	}
	of := func(n int64, ok bool) result {
		if !ok {
			n = 0
		}
		return result{n, ok}
	}
	for what, pair := range map[string][2]result{
		"7 - 9":           {of(wasmill.Sub(7, 9)), {-2, true}},
		"lowest - 1":      {of(wasmill.Sub(lowest, 1)), {}},
		"0 - lowest":      {of(wasmill.Sub(0, lowest)), {}},
		"-3 * 5":          {of(wasmill.Mul(-3, 5)), {-15, true}},
		"lowest * 1":      {of(wasmill.Mul(lowest, 1)), {lowest, true}},
		"lowest * -1":     {of(wasmill.Mul(lowest, -1)), {}},
		"highest * 2":     {of(wasmill.Mul(highest, 2)), {}},
		"7 / 2":           {of(wasmill.DivRound(7, 2)), {4, true}},
		"-7 / 2":          {of(wasmill.DivRound(-7, 2)), {-4, true}},
		"7 / -2":          {of(wasmill.DivRound(7, -2)), {-4, true}},
		"1 / 3":           {of(wasmill.DivRound(1, 3)), {0, true}},
		"1 / 0":           {of(wasmill.DivRound(1, 0)), {}},
		"lowest / -1":     {of(wasmill.DivRound(lowest, -1)), {}},
		"lowest / lowest": {of(wasmill.DivRound(lowest, lowest)), {1, true}},
		"highest / 2":     {of(wasmill.DivRound(highest, 2)), {1 << 62, true}},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s = %v, want %v", what, pair[0], pair[1])
		}
	}
}
