package avro

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for _, c := range []struct {
		name, text string
		refs       []string
		payload    string
		want       string
	}{
		{
			"a namespace holds for what lies in it", `{"type":"record","name":"A","namespace":"x.y","fields":[
				{"name":"e","type":{"type":"enum","name":"E","symbols":["P"]}},{"name":"f","type":"E"},{"name":"g","type":"x.y.E"}]}`,
			nil, "\x00\x00\x00", `{"e":"P","f":"P","g":"P"}`,
		},
		{
			"a full name wins over the namespace", `{"type":"record","name":"p.A","namespace":"q","fields":[
				{"name":"e","type":["null","int",{"type":"fixed","name":"F","size":1}]}]}`,
			nil, "\x04A", `{"e":{"p.F":"QQ=="}}`,
		},
		{
			"an own namespace", `{"type":"record","name":"A","namespace":"p","fields":[
				{"name":"e","type":["null","int",{"type":"fixed","name":"F","namespace":"q","size":1}]}]}`,
			nil, "\x04A", `{"e":{"q.F":"QQ=="}}`,
		},
		{
			"other schemas", `{"type":"record","name":"A","namespace":"p","fields":[{"name":"b","type":"q.B"},{"name":"c","type":"C"}]}`,
			[]string{`{"type":"enum","name":"C","symbols":["Z"]}`, `{"type":"record","name":"q.B","fields":[{"name":"c","type":["null","C"]}]}`},
			"\x02\x00\x00", `{"b":{"c":"Z"},"c":"Z"}`,
		},
		{"a type in a type", `{"type":{"type":"array","items":{"type":{"type":"string"}}}}`, nil, "\x02\x02x\x00", `["x"]`},
		{"a bare name", ` string `, nil, "\x02x", `"x"`},
		{"aliases and docs", `{"type":"record","name":"A","aliases":["B"],"doc":"d","fields":[{"name":"a","aliases":["b"],"type":"int","order":"ignore"}]}`, nil, "\x02", `{"a":1}`},
		{"a logical type that does not fit", `{"type":"string","logicalType":"timestamp-millis"}`, nil, "\x02x", `"x"`},
		{"a decimal without precision", `{"type":"bytes","logicalType":"decimal"}`, nil, "\x02\x01", `"AQ=="`},
		{"a decimal with a larger scale", `{"type":"bytes","logicalType":"decimal","precision":2,"scale":3}`, nil, "\x02\x01", `"AQ=="`},
		{"a uuid of bytes", `{"type":"fixed","name":"U","size":16,"logicalType":"uuid"}`, nil, "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff", `"00112233-4455-6677-8899-aabbccddeeff"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := parsed(t, c.text, c.refs...)
			got, err := s.AppendJSON(nil, []byte(c.payload))
			if err != nil || string(got) != c.want {
				t.Fatalf("got %s, %v; want %s", got, err, c.want)
			}
			back, err := encode(s, c.want)
			if err != nil || string(back) != c.payload {
				t.Errorf("written again: %q, %v", back, err)
			}
		})
	}
}

func TestSchemasThatAreNone(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{``, "not an Avro schema"},
		{`{`, "not an Avro schema"},
		{`7`, "a type is a name"},
		{`"nothing"`, "no type"},
		{`{}`, "a type is a name"},
		{`{"type":"record","name":"A"}`, "no fields"},
		{`{"type":"record","fields":[]}`, "no name"},
		{`{"type":"record","name":"A","fields":[{"type":"int"}]}`, "has no name"},
		{`{"type":"record","name":"A","fields":[7]}`, "has no name"},
		{`{"type":"record","name":"A","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}`, "two fields"},
		{`{"type":"record","name":"A","fields":[{"name":"a","type":{"type":"record","name":"A","fields":[]}}]}`, "defined twice"},
		{`{"type":"fixed","name":"int","size":1}`, "defined twice"},
		{`{"type":"enum","name":"E"}`, "no symbols"},
		{`{"type":"enum","name":"E","symbols":[1]}`, "no text"},
		{`{"type":"enum","name":"E","symbols":["a","a"]}`, "two symbols"},
		{`{"type":"fixed","name":"F"}`, "no size"},
		{`{"type":"fixed","name":"F","size":-1}`, "no size"},
		{`{"type":"fixed","name":"F","size":99999999}`, "no size"},
		{`[]`, "no branches"},
		{`["int","int"]`, "two branches"},
		{`["int",["null"]]`, "in a union"},
		{`{"type":"array"}`, "items of a array"},
		{`{"type":"map","values":"?"}`, "values of a map"},
		{strings.Repeat(`{"type":"array","items":`, 400) + `"int"` + strings.Repeat("}", 400), "nest"},
		{`"` + strings.Repeat("x", MaxText) + `"`, "more than"},
	} {
		_, err := Parse(c.text, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80s: %v, want %q", c.text, err, c.want)
		}
	}
	if _, err := Parse(`"int"`, []string{`{"type":"fixed","name":"F"}`}); err == nil || !strings.Contains(err.Error(), "refers to") {
		t.Errorf("a schema that another needs: %v", err)
	}
}
