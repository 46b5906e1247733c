package abi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// reference locates fields the slow way, with the decoder of another library.
type reference struct {
	paths  [][]string
	fields []Field
}

func referenceLocate(value []byte, pointers []string) ([]Field, bool) {
	r := reference{fields: make([]Field, len(pointers))}
	for _, p := range pointers {
		tokens, err := ParsePointer(p)
		if err != nil {
			return nil, false
		}
		r.paths = append(r.paths, tokens)
	}
	absent := make([]Field, len(pointers))
	dec := decoder(value)
	raw, err := dec.ReadValue()
	if err != nil {
		return absent, false
	}
	start := int(dec.InputOffset()) - len(raw)
	raw = slices.Clone(raw)
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return absent, false
	}
	if !r.walk(raw, start, nil) {
		return absent, false
	}
	return r.fields, true
}

func decoder(b []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewReader(b), jsontext.AllowDuplicateNames(true))
}

// walk records the value raw, which begins at start and has path, and all below it. False: too deep.
func (r *reference) walk(raw []byte, start int, path []string) bool {
	if len(path) > MaxDepth || len(path) == MaxDepth && (raw[0] == '{' || raw[0] == '[') {
		return false
	}
	for i, p := range r.paths {
		if len(p) >= len(path) && slices.Equal(p[:len(path)], path) {
			r.fields[i] = Field{}
			if len(p) == len(path) {
				r.fields[i] = referenceField(raw, start)
			}
		}
	}
	if raw[0] != '{' && raw[0] != '[' {
		return true
	}
	dec := decoder(raw)
	_, _ = dec.ReadToken()
	for i := 0; dec.PeekKind() != '}' && dec.PeekKind() != ']'; i++ {
		name := fmt.Sprint(i)
		if raw[0] == '{' {
			token, _ := dec.ReadToken()
			name = token.String()
		}
		sub, _ := dec.ReadValue()
		at := start + int(dec.InputOffset()) - len(sub)
		if !r.walk(slices.Clone(sub), at, append(slices.Clone(path), name)) {
			return false
		}
	}
	return true
}

func referenceField(raw []byte, start int) Field {
	f := Field{Start: uint32(start), Len: uint32(len(raw))}
	switch raw[0] {
	case 'n':
		f.Kind = FieldNull
	case 'f':
		f.Kind = FieldFalse
	case 't':
		f.Kind = FieldTrue
	case '"':
		f.Start, f.Len, f.Kind = f.Start+1, f.Len-2, FieldString
		if bytes.IndexByte(raw, '\\') >= 0 {
			f.Kind = FieldEscaped
		}
	case '{':
		f.Kind = FieldObject
	case '[':
		f.Kind = FieldArray
	default:
		f.Kind = FieldNumber
	}
	return f
}

// names are few, so that pointers hit, duplicates happen and names are spelled in several ways.
var names = []string{`a`, `b`, `0`, `1`, ``, `ab`, `a/b`, `~`, `long_name_of_a_member_over_24`, `\u0061`, `a\u0062`, `\/`, `é`, `\u00e9`}

func space(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "", "", "", " ", "\n\t", "\r "}).Draw(t, "space")
}

// drawJSON draws a JSON text that is mostly valid.
func drawJSON(t *rapid.T, depth int) string {
	kind := rapid.IntRange(0, 9).Draw(t, "kind")
	if depth == 0 {
		kind %= 5
	}
	switch kind {
	case 0:
		return rapid.SampledFrom([]string{"null", "true", "false", "0", "-0", "1.5", "12345678901", "-7e+10", "0.1E-5", "123456789.25"}).Draw(t, "scalar")
	case 1:
		return rapid.SampledFrom([]string{"nul", "01", "1.", "-", "\"\xff\"", `"\ud800"`, `"\x"`, "\"\n\"", "", "1e", "+1", "tru"}).Draw(t, "mostly bad")
	case 2:
		return `"` + strings.Repeat("x", rapid.IntRange(0, 40).Draw(t, "length")) + `"`
	case 3, 4:
		return `"` + rapid.SampledFrom([]string{`plain`, `é`, `\"`, `\\`, `12345678\n`, `\ud83d\ude00`, `日本語`, `\u0000`}).Draw(t, "string") + `"`
	case 5, 6:
		var b strings.Builder
		b.WriteString("[" + space(t))
		for i := range rapid.IntRange(0, 4).Draw(t, "elements") {
			if i > 0 {
				b.WriteString("," + space(t))
			}
			b.WriteString(drawJSON(t, depth-1) + space(t))
		}
		return b.String() + "]"
	}
	var b strings.Builder
	b.WriteString("{" + space(t))
	for i := range rapid.IntRange(0, 6).Draw(t, "members") {
		if i > 0 {
			b.WriteString("," + space(t))
		}
		b.WriteString(`"` + rapid.SampledFrom(names).Draw(t, "name") + `"` + space(t) + ":" + space(t))
		b.WriteString(drawJSON(t, depth-1) + space(t))
	}
	return b.String() + "}"
}

var testPointers = []string{"", "/a", "/a/b", "/a/a", "/b", "/b/0", "/b/1", "/1", "/0/a", "/", "/a~1b", "/~0", "/é", "/ab/a/b", "/a", "/long_name_of_a_member_over_24", "/~1"}

func TestLocateEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pointers := rapid.SliceOfN(rapid.SampledFrom(testPointers), 0, 8).Draw(t, "pointers")
		l, err := NewLocator(pointers)
		if err != nil {
			t.Fatal(err)
		}
		// Several texts go through one Locator, so that what it remembers of names is put to the test.
		texts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return space(t) + drawJSON(t, 4) + space(t) }), 1, 6).Draw(t, "texts")
		for _, text := range append(texts, texts...) {
			checkLocate(t, l, pointers, []byte(text))
		}
	})
}

// Each text stands once where pointers lead and once where they do not.
func TestLocateEqualsReferenceOnBrokenTexts(t *testing.T) {
	pointers := []string{"/a/b", "/a/0", "/c", "/c/d"}
	l, err := NewLocator(pointers)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`{`, `{"`, `{"b`, `{"b"`, `{"b":`, `{"b":1`, `{"b":1,`, `{"b":1,}`, `{"b" 1}`, `{b:1}`, `{"b":1 "c":2}`, `{"b":1]`, `{,}`, `{"b":1,"c"}`, `{1:2}`,
		`[`, `[1`, `[1,`, `[1,]`, `[,]`, `[1 2]`, `[1}`, `[]`, `{}`, `[ ]`, `{ }`, `[[],[[]]]`, `{"b":{"b":{}}}`, `[{"b":[1]},2]`,
		`"\`, `"\u12`, `"\u123x"`, `"\u00aF"`, `"\udbff\udfff"`, `"\ud800\ud800"`, `"\ud800x12345"`, `"\q"`, "\"a\x1f\"", "\"\x7f\"",
		`-`, `-a`, `00`, `1.`, `.5`, `1.e1`, `1e`, `1e+`, `1E-05`, `123456789`, `12345678`, `1234567890123456789.5e+10`, `1x`, `12345678x`, `-0`, `0e0`,
		`t`, `true`, `truex`, `tru e`, `fals`, `nul`, `null`, `NaN`, `'a'`, "\t1\v", "\xef\xbb\xbf1", "\x00", `1,`, `/`,
	} {
		for _, whole := range []string{text, `{"a":` + text + `}`, `{"x":` + text + `}`, `{"c":{"d":0},"c":` + text + `,"x":1}`, `[` + text + `]`, `{"a":[` + text + `,1]}`} {
			checkLocate(t, l, pointers, []byte(whole))
			checkLocate(t, l, pointers, []byte(whole+strings.Repeat(" ", 32)))
		}
	}
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func checkLocate(t failer, l *Locator, pointers []string, text []byte) {
	t.Helper()
	got := slices.Repeat([]Field{{Start: 7, Len: 7, Kind: 7}}, len(pointers))
	ok := l.Locate(text, got)
	want, wantOK := referenceLocate(text, pointers)
	if ok != wantOK || !slices.Equal(got, want) {
		t.Fatalf("Locate(%q, %q)\n got %v %v\nwant %v %v", text, pointers, ok, got, wantOK, want)
	}
	if valid := ValidJSON(text); valid != wantOK {
		t.Fatalf("ValidJSON(%q) = %v", text, valid)
	}
}

func FuzzLocate(f *testing.F) {
	for _, seed := range []string{`{"a":{"b":1},"b":[1,{"a":2}],"a":3}`, `["x\u00e9",-1.5e7]`, `{"a":"` + strings.Repeat("é", 20) + `"}`, "{\"a\":\"\xff\"}", strings.Repeat("[", 513) + strings.Repeat("]", 513)} {
		f.Add([]byte(seed), []byte(seed))
	}
	f.Add(orders(1)[0], flights(1)[0])
	pointers := slices.Concat(testPointers, twoOrderFields, flightFields)
	f.Fuzz(func(t *testing.T, first, second []byte) {
		if len(first)+len(second) > 1<<12 {
			t.Skip("the reference is slow")
		}
		l, err := NewLocator(pointers)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range [][]byte{first, second, first} {
			checkLocate(t, l, pointers, text)
		}
	})
}
