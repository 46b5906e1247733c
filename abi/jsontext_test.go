package abi

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDepthLimit(t *testing.T) {
	nest := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	objects := func(n int) []byte { return []byte(strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n)) }
	for _, pointers := range [][]string{nil, {"/a"}, {"/a/a/a"}, {"/0/0"}, {"/" + strings.Repeat("a/", 600) + "a"}} {
		l, err := NewLocator(pointers)
		if err != nil {
			t.Fatal(err)
		}
		out := make([]Field, len(pointers))
		if !l.Locate(nest(MaxDepth), out) || !l.Locate(objects(MaxDepth), out) {
			t.Fatalf("%d levels refused", MaxDepth)
		}
		if l.Locate(nest(MaxDepth+1), out) || l.Locate(objects(MaxDepth+1), out) {
			t.Fatalf("%d levels accepted", MaxDepth+1)
		}
	}
	if ValidJSON(nest(1 << 20)) {
		t.Fatal("a million levels accepted")
	}
}

func TestParsePointer(t *testing.T) {
	for in, want := range map[string][]string{
		"": nil, "/": {""}, "/a/b": {"a", "b"}, "/a~1b/~0/~01/~0~1": {"a/b", "~", "~1", "~/"}, "//": {"", ""}, "/é": {"é"},
	} {
		if got, err := ParsePointer(in); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	for _, in := range []string{"a", "a/b", "/~", "/a~2", "/~0~", "/x/~a", "/\xff", " /a"} {
		if got, err := ParsePointer(in); err == nil {
			t.Errorf("%q: %q", in, got)
		}
		if _, err := NewLocator([]string{in}); err == nil {
			t.Errorf("locator for %q", in)
		}
	}
}

func TestLocatorForgetsNothingItShould(t *testing.T) {
	l, err := NewLocator([]string{"/name", "/other"})
	if err != nil {
		t.Fatal(err)
	}
	out := make([]Field, 2)
	// Texts that look like the one before, but are not JSON where the expected name stands.
	for _, c := range []struct {
		text string
		want bool
	}{
		{`{"name":1,"other":"0123456789012345678901234567890"}`, true},
		{`{"name":1,"other:":"0123456789012345678901234567890"}`, true},
		{`{"name"|1,"other":"0123456789012345678901234567890"}`, false},
		{`{"name":1 "other":"0123456789012345678901234567890"}`, false},
		{`{"name":1,"other":"0123456789012345678901234567890",}`, false},
		{`{"name":1,,"other":"0123456789012345678901234567890"}`, false},
		{`{"name":1,"a name far too long to be remembered":2,"other":"012345678901234567890123"}`, true},
		{"{\"name\":1,\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00:2}", false},
		{`{"name" : 1 , "other" : "0123456789012345678901234567890"}`, true},
	} {
		if got := l.Locate([]byte(c.text), out); got != c.want {
			t.Errorf("%q: %v", c.text, got)
		}
	}
	other := l.Clone()
	if !other.Locate([]byte(`{"other":5}`), out) || out[0].Kind != FieldAbsent || out[1].Kind != FieldNumber {
		t.Fatalf("clone: %v", out)
	}
}

func TestLocateDoesNotAllocate(t *testing.T) {
	l, err := NewLocator(allOrderFields)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]Field, l.Len())
	value := []byte(`{"order_id":1,"extra\n":{"a":[1,2,{}]},"status":"x\ty"}`)
	l.Locate(value, out)
	if n := testing.AllocsPerRun(100, func() { l.Locate(value, out) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func TestUnescapeString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := UnescapeString(text[1:len(text)-1], nil)
		if err != nil || string(got) != s {
			t.Fatalf("%s: %q, %v", text, got, err)
		}
		var back string
		short := AppendJSONString(nil, []byte(s))
		if err := json.Unmarshal(short, &back); err != nil || back != s || len(short) > len(text) {
			t.Fatalf("%s: %q, %v", short, back, err)
		}
	})
	if got, err := UnescapeString([]byte(`\u00e9\/\ud83d\ude00\b\f\n\r\t\"\\x`), []byte("pre ")); err != nil || string(got) != "pre é/😀\b\f\n\r\t\"\\x" {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{`\`, `\x`, `\u12`, `\ud800`, `\ud800\n`, `\ud800\u0041`, `\udc00`, `\u12g4`, `a\`} {
		if _, err := UnescapeString([]byte(bad), nil); !errors.Is(err, ErrBadEscape) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func keyOf(t *testing.T, value string, pointers ...string) (string, bool) {
	t.Helper()
	l, err := NewLocator(pointers)
	if err != nil {
		t.Fatal(err)
	}
	fields := make([]Field, len(pointers))
	if !l.Locate([]byte(value), fields) {
		t.Fatalf("%s is not JSON", value)
	}
	key, ok := KeyOf([]byte(value), fields, []byte("kept"))
	if string(key[:4]) != "kept" || !ok && len(key) != 4 {
		t.Fatalf("%s: key %q", value, key)
	}
	return string(key[4:]), ok
}

func TestKeyOf(t *testing.T) {
	long := strings.Repeat("k", MaxStateKey)
	for _, c := range []struct {
		value    string
		pointers []string
		want     string
		ok       bool
	}{
		{`{"a":"x"}`, []string{"/a"}, "x", true},
		{`{"a":"\u0078\n"}`, []string{"/a"}, "x\n", true},
		{`{"a":""}`, []string{"/a"}, "", true},
		{`{"a":1.50}`, []string{"/a"}, "1.50", true},
		{`{"a":true}`, []string{"/a"}, "true", true},
		{`{"a":null}`, []string{"/a"}, "", false},
		{`{"a":{}}`, []string{"/a"}, "", false},
		{`{"a":[]}`, []string{"/a"}, "", false},
		{`{}`, []string{"/a"}, "", false},
		{`{"a":"x\u002f\u0001\"","b":false}`, []string{"/a", "/b"}, `["x/\u0001\"",false]`, true},
		{`{"a":"x","b":2}`, []string{"/b", "/a", "/b"}, `[2,"x",2]`, true},
		{`{"a":"x","b":null}`, []string{"/a", "/b"}, "", false},
		{`{"a":"` + long + `"}`, []string{"/a"}, long, true},
		{`{"a":"` + long + `k"}`, []string{"/a"}, long + "k", true},
		{`{}`, nil, "", false},
	} {
		if got, ok := keyOf(t, c.value, c.pointers...); got != c.want || ok != c.ok {
			t.Errorf("%.60s %q: %q %v", c.value, c.pointers, got, ok)
		}
	}
}

// The hashes are those of Kafka's own test of Utils.murmur2.
func TestMurmur2(t *testing.T) {
	for key, want := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536, "a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971, "abc": 479470107,
	} {
		if got := int32(murmur2([]byte(key))); got != want {
			t.Errorf("%s: %d, want %d", key, got, want)
		}
	}
}

func TestLaneOfGroup(t *testing.T) {
	for lanes := 1; lanes <= KeyGroups; lanes++ {
		last := 0
		for group := range KeyGroups {
			lane := LaneOfGroup(group, lanes)
			if lane < last || lane > last+1 || lane >= lanes {
				t.Fatalf("group %d of %d lanes: %d after %d", group, lanes, lane, last)
			}
			last = lane
		}
		if last != lanes-1 {
			t.Fatalf("%d lanes: the last is %d", lanes, last)
		}
	}
}

func TestEventTimeStrings(t *testing.T) {
	for _, s := range []string{
		"1970-01-01T00:00:00Z", "2024-02-29t23:59:59.9999+01:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999z",
		"1999-12-31T00:00:00-05:30", "2000-03-01T12:00:00.5Z", "1900-02-28T23:59:59.123456789123Z", "1969-12-31T23:59:59.9995Z",
	} {
		want, err := time.Parse(time.RFC3339Nano, strings.ToUpper(s))
		if err != nil {
			t.Fatal(err)
		}
		if us, ok := EventTimeOf([]byte(s), FieldString, Milliseconds); !ok || us != want.UnixMilli()*1000 {
			t.Errorf("%s: %d %v, want %d", s, us, ok, want.UnixMilli()*1000)
		}
	}
	if us, ok := EventTimeOf([]byte(`1970-01-01\u00540\u0030:00:01Z`), FieldEscaped, NoUnit); !ok || us != 1_000_000 {
		t.Errorf("escaped: %d %v", us, ok)
	}
	for _, s := range []string{
		"", "2024-01-01", "2024-01-01T00:00:00", "2024-01-01 00:00:00Z", "2023-02-29T00:00:00Z", "2024-13-01T00:00:00Z",
		"2024-00-01T00:00:00Z", "2024-01-00T00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01T00:60:00Z", "2016-12-31T23:59:60Z",
		"2024-01-01T00:00:00.Z", "2024-01-01T00:00:00,5Z", "2024-01-01T00:00:00+0100", "2024-01-01T00:00:00+24:00",
		"2024-01-01T00:00:00+01:60", "0000-12-31T23:59:59Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01",
		"2024-01-01T00:00:00Zx", "+024-01-01T00:00:00Z", "2024-1--01T00:00:00Z", "2024-01-01T00:00:00.5",
	} {
		if us, ok := EventTimeOf([]byte(s), FieldString, Seconds); ok {
			t.Errorf("%q: %d", s, us)
		}
	}
}

func TestEventTimeEqualsTimePackage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		millis := rapid.Int64Range(MinTime/1000, MaxTime/1000).Draw(t, "millis")
		zone := time.FixedZone("", 60*rapid.IntRange(-1439, 1439).Draw(t, "zone"))
		at := time.UnixMilli(millis).In(zone)
		if at.Year() < 1 || at.Year() > 9999 {
			t.Skip("not four digits")
		}
		if us, ok := EventTimeOf([]byte(at.Format(time.RFC3339Nano)), FieldString, NoUnit); !ok || us != millis*1000 {
			t.Fatalf("%s: %d %v, want %d", at.Format(time.RFC3339Nano), us, ok, millis*1000)
		}
	})
}

func TestEventTimeIntegers(t *testing.T) {
	for _, c := range []struct {
		text string
		unit TimeUnit
		want int64
		ok   bool
	}{
		{"1", Seconds, 1_000_000, true},
		{"-1", Milliseconds, -1000, true},
		{"1999", Microseconds, 1000, true},
		{"-1", Microseconds, -1000, true},
		{"-1", Nanoseconds, -1000, true},
		{"1999999", Nanoseconds, 1000, true},
		{"-0", Seconds, 0, true},
		{"253402300799", Seconds, 253402300799_000_000, true},
		{"253402300800", Seconds, 0, false},
		{"253402300799999", Milliseconds, MaxTime, true},
		{"253402300799999999", Microseconds, MaxTime, true},
		{"253402300800000000", Microseconds, 0, false},
		{"-62135596800000000", Microseconds, MinTime, true},
		{"-62135596800000001", Microseconds, 0, false},
		{"9223372036854775807", Nanoseconds, 9223372036854775000 / 1000000 * 1000, true},
		{"9223372036854775808", Nanoseconds, 0, false},
		{"99999999999999999999", Nanoseconds, 0, false},
		{"1", NoUnit, 0, false},
		{"1.0", Seconds, 0, false},
		{"1e3", Seconds, 0, false},
		{"-", Seconds, 0, false},
		{"", Seconds, 0, false},
	} {
		if us, ok := EventTimeOf([]byte(c.text), FieldNumber, c.unit); us != c.want || ok != c.ok {
			t.Errorf("%s %s: %d %v", c.text, c.unit, us, ok)
		}
	}
	for _, c := range []struct {
		text string
		kind FieldKind
		unit TimeUnit
		want int64
		ok   bool
	}{
		{"1767225600000", FieldString, Milliseconds, 1767225600_000_000, true},
		{`\u0031`, FieldEscaped, Seconds, 1_000_000, true},
		{"2026-01-01T00:00:00Z", FieldString, Milliseconds, 1767225600_000_000, true},
		{"1767225600000", FieldString, NoUnit, 0, false},
		{"1767225600000.5", FieldString, Milliseconds, 0, false},
		{" 1", FieldString, Seconds, 0, false},
		{"", FieldString, Seconds, 0, false},
	} {
		if us, ok := EventTimeOf([]byte(c.text), c.kind, c.unit); us != c.want || ok != c.ok {
			t.Errorf("%q as %d in %s: %d %v", c.text, c.kind, c.unit, us, ok)
		}
	}
	for _, kind := range []FieldKind{FieldAbsent, FieldNull, FieldTrue, FieldFalse, FieldObject, FieldArray} {
		if _, ok := EventTimeOf([]byte("1"), kind, Seconds); ok {
			t.Errorf("kind %d is a time", kind)
		}
	}
}
