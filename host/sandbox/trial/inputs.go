package trial

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/wasmill/wasmill/abi"
)

// input is a list of records for one input port.
type input struct {
	name     string
	records  []abi.Record
	nfields  int
	few      bool // small enough to try its records one by one
	declared bool // what the manifest asks for
	keyed    bool // for a stage with keys: each record has one
	rows     *rowChecks
}

// only is the input with one of its records alone.
func (in *input) only(i int) *input {
	r := in.records[i]
	r.Index = 0
	return &input{name: in.name, records: []abi.Record{r}, nfields: in.nfields, keyed: in.keyed, rows: in.rows}
}

// Sizes of the generated inputs.
const (
	largeValue  = 1 << 20
	manyRecords = 3000
	fieldRounds = 4
)

// allInputs makes every input, for every input port of a manifest, with keys if asked for.
func allInputs(m *abi.Manifest, keyed bool) []input {
	var out []input
	for port := range m.Inputs {
		for _, in := range portInputs(&m.Inputs[port]) {
			if len(m.Inputs) > 1 {
				in.name += " on " + m.Inputs[port].Name
			}
			in.prepare(&m.Inputs[port], uint16(port))
			if in.keyed = keyed; keyed {
				giveKeys(in.records)
			}
			out = append(out, in)
		}
	}
	return out
}

// prepare numbers the records and locates their declared fields, as a host does.
func (in *input) prepare(p *abi.InputPort, port uint16) {
	locator, err := abi.NewLocator(p.Fields)
	if err != nil {
		return // a manifest with such pointers is refused before
	}
	in.nfields = len(p.Fields)
	for i := range in.records {
		r := &in.records[i]
		r.Index, r.Offset, r.Input = uint32(i), int64(i), port
		r.Fields = make([]abi.Field, in.nfields)
		if r.Value == nil || !locator.Locate(r.Value, r.Fields) {
			clear(r.Fields)
			r.Flags |= abi.FlagNotJSON
		}
	}
}

func portInputs(p *abi.InputPort) []input {
	declared := values(declaredObjects(p.Fields, fieldRounds*len(fieldTexts)))
	many := values(plausibleObjects(p.Fields, manyRecords))
	return []input{
		{name: "its declared fields", records: declared, few: true, declared: true},
		{name: "JSON of other shapes", records: values(otherJSON()), few: true},
		{name: "empty values", records: values([]string{"", "", ""}), few: true},
		{name: "null values", records: make([]abi.Record, 3), few: true},
		{name: "what is not JSON", records: values(notJSON), few: true},
		{name: "keys, headers and times", records: dressed(declaredObjects(p.Fields, len(fieldTexts))), few: true, declared: true},
		{name: "a record of 1 MiB", records: values([]string{large()}), few: true},
		{name: "many records", records: many, declared: true},
	}
}

func values(texts []string) []abi.Record {
	out := make([]abi.Record, len(texts))
	for i, t := range texts {
		out[i].Value = []byte(t)
	}
	return out
}

// fieldTexts are the values that declared fields take in turn.
var fieldTexts = []string{
	`7`, `-12`, `3.25`, `"text"`, `"2013-01-01T05:00:00Z"`, `"gr\u00fc\u00df \"x\"\n"`, `""`, `null`, `true`, `false`, `0`, `1e3`,
	`9007199254740993`, `[1,2]`, `{"a":1}`, "",
}

// declaredObjects makes n objects in which the declared pointers name a value of each kind in turn; "" leaves it out. With
// each round the fields stand further apart in the list.
func declaredObjects(fields []string, n int) []string {
	out := make([]string, n)
	for i := range out {
		root := &tree{}
		round := i / len(fieldTexts)
		for j, pointer := range fields {
			if text := fieldTexts[(i+j*round)%len(fieldTexts)]; text != "" {
				root.put(pointer, text)
			}
		}
		root.put("/other", fieldTexts[i%(len(fieldTexts)-1)])
		var b strings.Builder
		root.write(&b)
		out[i] = b.String()
	}
	return out
}

// plausibleObjects makes n objects whose fields are a number or a text that is a time too, in every combination that n has
// room for, so that some of them are what a transform expects.
func plausibleObjects(fields []string, n int) []string {
	out := make([]string, n)
	for i := range out {
		root := &tree{}
		for j, pointer := range fields {
			text := `"2013-01-01T05:00:00Z"`
			if i>>(j%11)&1 == 0 {
				text = fmt.Sprint(i % 1000)
			}
			root.put(pointer, text)
		}
		root.put("/id", fmt.Sprint(i))
		var b strings.Builder
		root.write(&b)
		out[i] = b.String()
	}
	return out
}

// tree is a JSON object in the making, its members in the order of their coming.
type tree struct {
	names    []string
	members  map[string]*tree
	text     string // of a leaf
	hasValue bool
}

// put sets what a pointer names; array indexes become names, which pointers find as well.
func (t *tree) put(pointer, text string) {
	tokens, err := abi.ParsePointer(pointer)
	if err != nil || len(tokens) == 0 {
		return
	}
	for _, token := range tokens {
		if t.members == nil {
			t.members = map[string]*tree{}
		}
		if t.members[token] == nil {
			t.members[token] = &tree{}
			t.names = append(t.names, token)
		}
		t = t.members[token]
	}
	t.text, t.hasValue = text, true
}

func (t *tree) write(b *strings.Builder) {
	if len(t.names) == 0 && t.hasValue {
		b.WriteString(t.text)
		return
	}
	b.WriteByte('{')
	for i, name := range t.names {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(abi.AppendJSONString(nil, []byte(name)))
		b.WriteByte(':')
		t.members[name].write(b)
	}
	b.WriteByte('}')
}

func otherJSON() []string {
	return []string{
		`{}`, `[]`, `null`, `true`, `1`, `"text"`, ` { "a" : 1 } `, `{"a":1,"a":2}`, `{"":0}`, `[[],{}]`,
		strings.Repeat("[", 200) + strings.Repeat("]", 200), `{"a":` + strings.Repeat("9", 400) + `}`, `{"é":"\ud83d\ude00"}`,
	}
}

var notJSON = []string{
	"plain text", `{"a":1`, `{"a":}`, `{a:1}`, `{"a":1}{"a":2}`, "\x00\x01\x02", "\xff\xfe", "{\"a\":\"\xff\"}", " ", "\ufeff{}", "{\"a\":\"\n\"}", "NaN",
	"a,b,c", "\r\n",
}

// dressed gives records keys, headers and event times: none, empty ones and odd ones.
func dressed(texts []string) []abi.Record {
	out := values(texts)
	for i := range out {
		r := &out[i]
		switch i % 4 {
		case 1:
			r.Key = []byte{}
			r.Headers = []abi.Header{{Name: []byte("h"), Value: nil}, {Name: []byte{}, Value: []byte{}}}
		case 2:
			r.Key = []byte("key")
			r.EventTime, r.Flags = trialTime, abi.FlagEventTime
		case 3:
			r.Key = bytes.Repeat([]byte{0xff}, 300)
			for range abi.MaxHeaders {
				r.Headers = append(r.Headers, abi.Header{Name: []byte("h"), Value: []byte("v")})
			}
			r.EventTime, r.Flags = abi.MinTime, abi.FlagEventTime
		}
	}
	return out
}

func large() string {
	return `{"a":"` + strings.Repeat("x", largeValue) + `"}`
}
