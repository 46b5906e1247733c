package engine

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/abi"
)

func TestKeysOfRecords(t *testing.T) {
	value := []byte(`{"carrier":"UA","n":7,"t":1700000000123,"none":null,"deep":{"o":"J\u0046K"}}`)
	long := bytes.Repeat([]byte("k"), abi.MaxStateKey+1)
	for name, tc := range map[string]struct {
		by   KeyBy
		rec  abi.Record
		want string // "-" none, and what is said of it
	}{
		"record key":       {KeyBy{Key: true}, abi.Record{Key: []byte("a")}, "a"},
		"empty key":        {KeyBy{Key: true}, abi.Record{Key: []byte{}}, ""},
		"empty JSON":       {KeyBy{JSON: []string{"/k"}}, abi.Record{Value: []byte(`{"k":""}`)}, ""},
		"empty header":     {KeyBy{Header: "user"}, abi.Record{Headers: []abi.Header{{Name: []byte("user"), Value: []byte{}}}}, ""},
		"no record key":    {KeyBy{Key: true}, abi.Record{}, "-"},
		"longest key":      {KeyBy{Key: true}, abi.Record{Key: long[1:]}, string(long[1:])},
		"too long JSON":    {KeyBy{JSON: []string{"/k"}}, abi.Record{Value: fmt.Appendf(nil, `{"k":%q}`, long)}, "-long_key its key by the keyBy of this input has 4097 bytes, at most 4096 are possible"},
		"too long":         {KeyBy{Key: true}, abi.Record{Key: long}, "-long_key its key by the keyBy of this input has 4097 bytes, at most 4096 are possible"},
		"header":           {KeyBy{Header: "user"}, abi.Record{Headers: []abi.Header{{Name: []byte("x")}, {Name: []byte("user"), Value: []byte("u")}, {Name: []byte("user"), Value: []byte("v")}}}, "u"},
		"null header":      {KeyBy{Header: "user"}, abi.Record{Headers: []abi.Header{{Name: []byte("user")}}}, "-"},
		"no such header":   {KeyBy{Header: "user"}, abi.Record{}, "-"},
		"one pointer":      {KeyBy{JSON: []string{"/carrier"}}, abi.Record{Value: value}, "UA"},
		"a number":         {KeyBy{JSON: []string{"/n"}}, abi.Record{Value: value}, "7"},
		"two pointers":     {KeyBy{JSON: []string{"/carrier", "/deep/o"}}, abi.Record{Value: value}, `["UA","JFK"]`},
		"null":             {KeyBy{JSON: []string{"/none"}}, abi.Record{Value: value}, "-no_key it has no key by the keyBy of this input"},
		"absent":           {KeyBy{JSON: []string{"/carrier", "/nope"}}, abi.Record{Value: value}, "-"},
		"an object":        {KeyBy{JSON: []string{"/deep"}}, abi.Record{Value: value}, "-"},
		"not JSON":         {KeyBy{JSON: []string{"/carrier"}}, abi.Record{Value: []byte(`{"carrier":"UA"`)}, "-no_key it has no key by the keyBy of this input: the value is not JSON"},
		"no value":         {KeyBy{JSON: []string{"/carrier"}}, abi.Record{}, "-"},
		"key of not JSON":  {KeyBy{Key: true}, abi.Record{Key: []byte("a"), Value: []byte("nope")}, "a"},
		"key of no value":  {KeyBy{Key: true}, abi.Record{Key: []byte("a")}, "a"},
		"an unused header": {KeyBy{Key: true}, abi.Record{Key: []byte("a"), Headers: []abi.Header{{Name: []byte("user")}}}, "a"},
	} {
		g := &Graph{Lanes: 4, Sources: []SourceNode{{EventTime: &EventTime{Pointer: "/t", Unit: abi.Milliseconds}}}}
		edge := FromSource(0)
		edge.KeyBy = &tc.by
		x, err := newSent(g, &StageNode{Name: "s"}, edge)
		if err != nil {
			t.Fatal(err)
		}
		rec := tc.rec
		key, ok := x.key.keyOf(&rec)
		why, none := strings.CutPrefix(tc.want, "-")
		if got := string(key); ok == none || ok && got != tc.want {
			t.Errorf("%s: %.20q %v, want %.20q", name, got, ok, tc.want)
		}
		if lt := x.keyless(); none && why != "" && lt.word+" "+lt.reason != why {
			t.Errorf("%s: %s %s, want %s", name, lt.word, lt.reason, why)
		}
		if timed := rec.Flags&abi.FlagEventTime != 0; timed != bytes.Equal(rec.Value, value) || timed && rec.EventTime != 1700000000123000 {
			t.Errorf("%s: event time %d, flags %d", name, rec.EventTime, rec.Flags)
		}
	}
}

// TestParcelsComeBack puts records of any form on a tape and reads them again, over several batches.
func TestParcelsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := parcels{keep: rapid.IntRange(0, 1<<16).Draw(t, "keep")}
		p.tape.first = exchangeFirst
		for range rapid.IntRange(1, 3).Draw(t, "batches") {
			p.reset()
			var want []string
			for range rapid.IntRange(0, 60).Draw(t, "records") {
				at := place{rapid.Int64().Draw(t, "offset"), rapid.Int32().Draw(t, "partition"), rapid.Uint32Range(0, placeNotJSON-1).Draw(t, "split"), rapid.Bool().Draw(t, "notJSON")}
				r := abi.Record{Key: []byte(strings.Repeat("k", rapid.IntRange(0, 40).Draw(t, "key")))}
				if rapid.Bool().Draw(t, "valued") {
					r.Value = bytes.Repeat([]byte("v"), rapid.SampledFrom([]int{0, 1, 300, 5000, 300_000}).Draw(t, "value"))
				}
				if rapid.Bool().Draw(t, "timed") {
					r.EventTime, r.Flags = rapid.Int64().Draw(t, "time"), abi.FlagEventTime
				}
				if rapid.Bool().Draw(t, "headed") {
					r.Headers = []abi.Header{{Name: []byte("h"), Value: nil}, {Name: []byte{}, Value: []byte("x")}}
				}
				p.add(at, &r)
				want = append(want, show(at, &r))
			}
			var got []string
			_ = p.each(func(at place, r *abi.Record) error { got = append(got, show(at, r)); return nil })
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Fatalf("read %q, want %q", got, want)
			}
		}
	})
}

func show(at place, r *abi.Record) string {
	return fmt.Sprintf("%v %d %d %v %q %v %d %q", at, r.EventTime, r.Flags, r.Key == nil, r.Key, r.Value == nil, len(r.Value), r.Headers)
}

// TestParcelsLetMemoryGo: what a tape held once it does not keep for ever.
func TestParcelsLetMemoryGo(t *testing.T) {
	p := parcels{keep: exchangeFirst}
	p.tape.first = exchangeFirst
	r := abi.Record{Value: make([]byte, 1000)}
	for range 10_000 {
		p.add(place{}, &r)
	}
	p.reset()
	held := 0
	for _, b := range p.tape.blocks {
		held += cap(b)
	}
	if held > 2*exchangeFirst {
		t.Errorf("it keeps %d bytes", held)
	}
}
