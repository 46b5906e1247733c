package scan

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"testing"

	"github.com/wasmill/wasmill/abi/sdk/go/internal/mem"
)

func place(t testing.TB, text string) (at, n uint64) {
	t.Helper()
	mem.Reset()
	var a mem.Arena
	if !a.Hold(uint64(len(text)) + 64) {
		t.Fatal("no memory")
	}
	copy(mem.Bytes(a.Base, a.Len), text+`"]}\",:`)
	return a.Base, uint64(len(text))
}

// build makes Go values of what the scanner finds, as encoding/json does.
func build(s Span) any {
	switch s.Kind() {
	case True:
		return true
	case False:
		return false
	case Number:
		return json.Number(mem.String(s.At(), s.Len()))
	case String, Escaped:
		return string(Unescape(s))
	case Object:
		m := map[string]any{}
		w := Begin(s, Object)
		for k, v, ok := w.Member(); ok; k, v, ok = w.Member() {
			m[string(Unescape(k))] = build(v)
		}
		return m
	case Array:
		l := []any{}
		w := Begin(s, Array)
		for e, ok := w.Element(); ok; e, ok = w.Element() {
			l = append(l, build(e))
		}
		return l
	}
	return nil
}

var texts = []string{
	`{}`, `[]`, ` { } `, `[ ]`, `0`, `-1.5e3`, `null`, `true`, `false`, `""`, `"a"`, `"a\"b"`, `"\\"`, `"\\\""`, `"\u00e9\ud83d\ude00\ud800x"`, `"\b\f\n\r\t\/"`,
	`{"a":1,"b":[1,2,{"c":"}"}],"d":"]","e":{"f":{}},"a":2}`, `[[[]],[],{"x":[]}]`, "{\"long name of more than eight\"\t:\n\"a value that is longer than sixteen bytes\" , \"x\" : 1 }",
	`"exactly8"`, `"1234567\\"`, `{"a":"\\\\","b":"\\"}`, `["a,b","c]d","e\"]"]`, `"ü€😀"`,
}

func TestAgainstEncodingJSON(t *testing.T) {
	for _, text := range texts {
		at, n := place(t, text)
		d := json.NewDecoder(bytes.NewReader([]byte(text)))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if got := build(Whole(at, n)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v, want %#v", text, got, want)
		}
	}
}

func TestWhatIsNoJSON(t *testing.T) {
	for _, text := range []string{``, ` `, `{`, `[`, `"`, `"a\`, `"a\"`, `{"a"`, `{"a":`, `{"a":1`, `[1,`, `1 2`, `{}{}`, `]`, `}`, `,`, `abc`, `{"a":"b}`, `[[]`} {
		at, n := place(t, text)
		if s := Whole(at, n); s != 0 {
			t.Errorf("%q: kind %d, %q", text, s.Kind(), mem.String(s.At(), s.Len()))
		}
	}
}

func TestWalksEnd(t *testing.T) {
	for _, text := range []string{`{"a" 1}`, `{1:2}`, `{"a":1,}`, `{"a":1 "b":2}`, `[1,,2]`, `[1 2]`, `{,}`} {
		at, n := place(t, text)
		s := Make(uint64(Object), at, at+n)
		w := Begin(s, Object)
		steps := 0
		for _, _, ok := w.Member(); ok; _, _, ok = w.Member() {
			if steps++; steps > 10 {
				t.Fatalf("%s: no end", text)
			}
		}
	}
}

func TestIs(t *testing.T) {
	at, n := place(t, `["view","vi\u0065w","views",7,null]`)
	w := Begin(Whole(at, n), Array)
	for i, want := range []bool{true, true, false, false, false} {
		e, ok := w.Element()
		if !ok || Is(e, "view") != want {
			t.Errorf("element %d: Is = %v, want %v", i, Is(e, "view"), want)
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, n := place(t, text)
		s := Whole(at, n)
		got := build(s)
		if s != 0 && (s.At() < at || s.At()+s.Len() > at+n) {
			t.Fatalf("%q: found at %d, %d bytes", text, s.At()-at, s.Len())
		}
		if !json.Valid([]byte(text)) {
			return
		}
		d := json.NewDecoder(bytes.NewReader([]byte(text)))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil {
			return
		}
		if !utf8Clean(text) {
			return // encoding/json replaces what is no UTF-8
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %#v, want %#v", text, got, want)
		}
	})
}

func utf8Clean(s string) bool {
	return strconv.CanBackquote(s) || bytes.Equal(bytes.ToValidUTF8([]byte(s), nil), []byte(s))
}
