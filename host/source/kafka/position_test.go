package kafka

import (
	"errors"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/source"
)

const someID = "00112233445566778899aabbccddeeff"

// TestPositionText pins the text of positions: it stands in checkpoints.
func TestPositionText(t *testing.T) {
	p := position{}
	p.set(partition{"b", 10}, someID, partPos{offset: 7, epoch: 3, start: none})
	p.set(partition{"b", 2}, someID, partPos{offset: 9, epoch: none, start: 4})
	p.set(partition{"a", 0}, "", partPos{offset: 0, epoch: 0, start: 0})
	got, err := p.format()
	if err != nil {
		t.Fatal(err)
	}
	want := checkpoint.Position{
		Line:  `{"a":{"0":0},"b":{"10":7,"2":9}}`,
		Extra: `{"v":1,"topics":{"a":{"epochs":{"0":0},"starts":{"0":0}},"b":{"id":"` + someID + `","epochs":{"10":3},"starts":{"2":4}}}}`,
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	back, err := parsePosition(got)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := back.format(); err != nil || again != want {
		t.Errorf("read and written again: %+v, %v", again, err)
	}
}

func TestBadPositions(t *testing.T) {
	code := func(err error) string {
		var f *fault.Error
		if errors.As(err, &f) {
			return f.Code()
		}
		return ""
	}
	for name, c := range map[string]struct {
		p    checkpoint.Position
		code string
	}{
		"Spark's own":      {checkpoint.Position{Line: `{"t":{"0":5}}`}, ""},
		"no JSON":          {checkpoint.Position{Line: `x`}, CodePosition},
		"another shape":    {checkpoint.Position{Line: `{"logOffset":3}`}, CodePosition},
		"negative offset":  {checkpoint.Position{Line: `{"t":{"0":-2}}`}, CodePosition},
		"odd partition":    {checkpoint.Position{Line: `{"t":{"00":2}}`}, CodePosition},
		"huge partition":   {checkpoint.Position{Line: `{"t":{"4294967296":2}}`}, CodePosition},
		"extra no JSON":    {checkpoint.Position{Line: `{"t":{"0":5}}`, Extra: `{`}, CodePosition},
		"newer":            {checkpoint.Position{Line: `{"t":{"0":5}}`, Extra: `{"v":2,"topics":7}`}, CodeVersion},
		"unknown topic":    {checkpoint.Position{Line: `{"t":{"0":5}}`, Extra: `{"v":1,"topics":{"u":{}}}`}, CodePosition},
		"odd id":           {checkpoint.Position{Line: `{"t":{"0":5}}`, Extra: `{"v":1,"topics":{"t":{"id":"abcd"}}}`}, CodePosition},
		"odd epoch":        {checkpoint.Position{Line: `{"t":{"0":5}}`, Extra: `{"v":1,"topics":{"t":{"epochs":{"0":-1}}}}`}, CodePosition},
		"starts after end": {checkpoint.Position{Line: `{"t":{"0":5}}`, Extra: `{"v":1,"topics":{"t":{"starts":{"0":6}}}}`}, CodePosition},
		"unknown start":    {checkpoint.Position{Line: `{"t":{"0":5}}`, Extra: `{"v":1,"topics":{"t":{"starts":{"1":6}}}}`}, CodePosition},
	} {
		if _, err := parsePosition(c.p); code(err) != c.code || (err == nil) != (c.code == "") {
			t.Errorf("%s: %v, want code %q", name, err, c.code)
		}
	}
}

func TestMeasure(t *testing.T) {
	r := source.Range{From: checkpoint.Position{Line: `{"t":{"0":5,"1":7}}`}, To: checkpoint.Position{Line: `{"t":{"0":8,"1":9}}`}}
	if got, err := new(Source).Measure(t.Context(), r); err != nil || got != (source.Extent{Records: 5, Offsets: true}) {
		t.Errorf("measured %+v, %v", got, err)
	}
	r.To.Line = "x"
	if _, err := new(Source).Measure(t.Context(), r); err == nil {
		t.Error("a range that ends nowhere is measured")
	}
}

func TestParts(t *testing.T) {
	at := func(line, extra string) checkpoint.Position { return checkpoint.Position{Line: line, Extra: extra} }
	x := func(id string) string { return `{"v":1,"topics":{"t":{"id":"` + id + `"}}}` }
	other := "ff112233445566778899aabbccddeeff"
	for name, c := range map[string]struct {
		from, to checkpoint.Position
		want     []part
		code     string
	}{
		"one": {at(`{"t":{"0":5}}`, x(someID)), at(`{"t":{"0":8}}`, x(someID)), []part{{Topic: "t", ID: someID, From: 5, To: 8, Epoch: none}}, ""},
		"by number": {
			at(`{"t":{"2":1,"10":1}}`, ""), at(`{"t":{"2":2,"10":2}}`, ""),
			[]part{{Topic: "t", Partition: 2, From: 1, To: 2, Epoch: none}, {Topic: "t", Partition: 10, From: 1, To: 2, Epoch: none}},
			"",
		},
		"start of its own":       {at(`{"t":{"0":5}}`, ""), at(`{"t":{"0":8}}`, `{"v":1,"topics":{"t":{"starts":{"0":7},"epochs":{"0":3}}}}`), []part{{Topic: "t", From: 7, To: 8, Epoch: 3}}, ""},
		"nothing":                {at(`{"t":{"0":5},"u":{"0":1}}`, ""), at(`{"t":{"0":5}}`, ""), nil, ""},
		"backwards":              {at(`{"t":{"0":5}}`, ""), at(`{"t":{"0":4}}`, ""), nil, CodePosition},
		"planned by Spark":       {checkpoint.Position{}, at(`{"t":{"0":5}}`, ""), nil, CodePosition},
		"another topic":          {at(`{"t":{"0":5}}`, x(someID)), at(`{"t":{"0":8}}`, x(other)), nil, CodePosition},
		"continues one of Spark": {at(`{"t":{"0":5}}`, ""), at(`{"t":{"0":8}}`, x(someID)), []part{{Topic: "t", ID: someID, From: 5, To: 8, Epoch: none}}, ""},
	} {
		got, err := parts(source.Range{From: c.from, To: c.to})
		var f *fault.Error
		if (err != nil) != (c.code != "") || err != nil && (!errors.As(err, &f) || f.Code() != c.code) {
			t.Errorf("%s: %v, want code %q", name, err, c.code)
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: got %+v, want %+v", name, got[i], c.want[i])
			}
		}
	}
}
