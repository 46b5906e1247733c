package kit

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/abi"
)

func TestCJSON(t *testing.T) {
	all := probes(t)
	for _, c := range []struct{ op, value, arg, want string }{
		{"find", `{"a":1,"b":[1,{"a":2}],"a" : "x\ny" }`, "a", `"x\ny"`},
		{"find", `{"a":1}`, "b", "null"},
		{"find", `{"\u0061":true}`, "a", "true"},
		{"find", `[1]`, "a", "null"},
		{"find", ``, "a", "null"},
		{"find", ` { } `, "a", "null"},
		{"find", `{"long name that is over sixteen bytes":{"x":"}"},"k":-1.5e3}`, "k", "-1.5e3"},
		{
			"walk", ` { "a" : [ 1 , "two" , { } , [ ] , null , true , false ] , "b" : { "c" : "\"}{" } } `, "",
			`{"a":[1,"two",{},[],null,true,false],"b":{"c":"\"}{"}}`,
		},
		{"text", `"a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\u0041"`, "", "a\"\\/\b\f\n\r\té😀A"},
		{"text", `"plain"`, "", "plain"},
		{"text", `12`, "", "12"},
		{"is", `"view"`, "view", "yes"},
		{"is", `"v\u0069ew"`, "view", "yes"},
		{"is", `"view "`, "view", "no"},
		{"is", `"vie"`, "view", "no"},
		{"is", `"v\u0069e"`, "view", "no"},
		{"is", `"v\u0069ews"`, "view", "no"},
		{"is", `1`, "1", "no"},
		{"is", `"exactly sixteen."`, "exactly sixteen.", "yes"},
		{"is", `"exactly sixteen!"`, "exactly sixteen.", "no"},
		{"head", `{}`, "", `{"one":1,"two":2}`},
		{"head", ` { "a" : 1 } `, "", ` { "a" : 1,"one":1,"two":2}`},
		{"string", "\x00\x1f\"\\/\b\f\n\r\t\x7fé", "", `"\u0000\u001f\"\\/\b\f\n\r\t` + "\x7f" + `é"`},
		{"string", "", "", `""`},
		{"config", "", "", ""},
		{"lane", "", "", "5"},
		{"forget", "", "", "seen"},
	} {
		if got := ask(t, all, c.op, []byte(c.value), c.arg); got != c.want {
			t.Errorf("%s(%s, %s) = %s, want %s", c.op, c.value, c.arg, got, c.want)
		}
	}
}

// jsonText draws any JSON text, with blanks.
func jsonText(depth int) *rapid.Generator[string] {
	blank := rapid.SampledFrom([]string{"", "", " ", "\n\t"})
	str := rapid.Custom(func(t *rapid.T) string {
		b, _ := json.Marshal(rapid.StringN(0, 40, 80).Draw(t, "s"))
		return string(b)
	})
	scalar := rapid.OneOf(str, rapid.SampledFrom([]string{"null", "true", "false", "0", "-1.5e+10", "123456789012345678901234567890"}))
	return rapid.Custom(func(t *rapid.T) string {
		form := 0
		if depth > 0 {
			form = rapid.IntRange(0, 2).Draw(t, "form")
		}
		around := func(s string) string { return blank.Draw(t, "blank") + s + blank.Draw(t, "blank") }
		if form == 0 {
			return around(scalar.Draw(t, "scalar"))
		}
		var items []string
		for range rapid.IntRange(0, 5).Draw(t, "n") {
			item := jsonText(depth-1).Draw(t, "item")
			if form == 1 {
				item = around(str.Draw(t, "name")) + ":" + item
			}
			items = append(items, item)
		}
		inner := strings.Join(items, ",")
		if len(items) == 0 {
			inner = blank.Draw(t, "blank")
		}
		return around(map[int]string{1: "{", 2: "["}[form] + inner + map[int]string{1: "}", 2: "]"}[form])
	})
}

func TestCScannerReadsAllJSON(t *testing.T) {
	all := probes(t)
	rapid.Check(t, func(t *rapid.T) {
		text := jsonText(4).Draw(t, "json")
		var want bytes.Buffer
		if err := json.Compact(&want, []byte(text)); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if got := ask(t, all, "walk", []byte(text), ""); got != want.String() {
			t.Fatalf("%q becomes %q, want %q", text, got, want.String())
		}
	})
}

func TestCStringsAgreeWithTheHost(t *testing.T) {
	all := probes(t)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringN(0, 60, 200).Draw(t, "s")
		quoted := ask(t, all, "string", []byte(s), "")
		if want := string(abi.AppendJSONString(nil, []byte(s))); quoted != want {
			t.Fatalf("%q is written as %s, the host writes %s", s, quoted, want)
		}
		if got := ask(t, all, "text", []byte(quoted), ""); got != s {
			t.Fatalf("%s is read as %q, want %q", quoted, got, s)
		}
		if got := ask(t, all, "is", []byte(quoted), s); got != "yes" {
			t.Fatalf("%s is not %q", quoted, s)
		}
	})
}

// Whatever the text, the scanner ends, and stays inside: it is the host that would say otherwise.
func TestCScannerSurvivesNonsense(t *testing.T) {
	all := probes(t)
	nonsense := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom([]byte(`{}[]",:\u0dA-1.e tn `)), rapid.Byte()), 0, 80)
	rapid.Check(t, func(t *rapid.T) {
		text := nonsense.Draw(t, "text")
		for _, op := range []string{"walk", "text", "is", "find", "head", "scaled"} {
			for _, file := range cProbes {
				if _, err := all[file].frame([]abi.Record{call(op, text, "2")}, 0); err != nil {
					t.Fatalf("%s: %s(%q): %v", file, op, text, err)
				}
			}
		}
	})
}

// FuzzCWalk feeds the scanner in its 16-byte form; what is JSON must come out without its blanks.
func FuzzCWalk(f *testing.F) {
	p, err := cGuest(f, "test/probe.wasm", "{}")
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{`{"a":[1,"x\n",{}],"b":null}`, `[[[[`, `{"a":`, `"\ud800"`, ` `, `{"a" 1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > 200 {
			return // the probe itself recurses
		}
		out, err := cCall(p, []abi.Record{call("walk", text, "")}, 0)
		if err != nil || len(out) != 1 {
			t.Fatalf("%q: %d records, %v", text, len(out), err)
		}
		var want bytes.Buffer
		if abi.ValidJSON(text) && json.Compact(&want, text) == nil && want.String() != string(out[0].Value) {
			t.Fatalf("%q becomes %q", text, out[0].Value)
		}
	})
}
