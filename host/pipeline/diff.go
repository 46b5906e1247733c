package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/engine"
)

// maxShownRecord is how many bytes of a differing record are shown.
const maxShownRecord = 4 << 10

// SinkDiff is how two runs of one batch differ in what they send to a sink.
type SinkDiff struct {
	Sink           string
	Before, After  checkpoint.Digest
	Removed, Added int64 // records that one of them alone has, equal ones counted
	// Moved counts the records that both have, at another place.
	Moved int64
	// Lines are the first records that one of them alone has, in the order of the output.
	Lines []DiffLine
}

// Same reports whether the runs gave the sink the same records in the same order.
func (d *SinkDiff) Same() bool { return d.Before == d.After }

// DiffLine is one record that one of two runs alone has.
type DiffLine struct {
	Added bool
	Lane  int
	// Record is the record as one line of JSON: its value, and its key, event time and headers where it has them. It is
	// cut when Cut is set, and is then no JSON.
	Record string
	Cut    bool
}

// Diff runs a batch with two sets of modules and compares what the sinks get, sink by sink, in order. Records that both
// have are matched wherever they stand. At most limit records a sink are shown; what is kept in memory meanwhile is a
// digest for each record.
func Diff(ctx context.Context, before, after *Rerun, limit int) ([]SinkDiff, error) {
	a, b := &digestTee{sinks: map[string][][]sum{}}, &digestTee{sinks: map[string][][]sum{}}
	x, err := before.Run(ctx, a)
	if err != nil {
		return nil, err
	}
	y, err := after.Run(ctx, b)
	if err != nil {
		return nil, err
	}
	var out []SinkDiff
	pickA, pickB := newPick(), newPick()
	for _, name := range before.SinkNames() {
		d := SinkDiff{Sink: name, Before: x.Outputs[name], After: y.Outputs[name]}
		if !d.Same() {
			compareSums(&d, flatten(a.sinks[name]), flatten(b.sinks[name]), limit, pickA, pickB)
		}
		out = append(out, d)
	}
	for i := range out {
		pickA.slots(&out[i], false)
		pickB.slots(&out[i], true)
	}
	for _, side := range []struct {
		run  *Rerun
		pick *pick
	}{{before, pickA}, {after, pickB}} {
		if len(side.pick.wanted) == 0 {
			continue
		}
		if _, err := side.run.Run(ctx, side.pick); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// sum is the digest of one record.
type sum [16]byte

var _, _ engine.Tee = (*digestTee)(nil), (*pick)(nil)

// digestTee keeps a digest of every record, by sink and lane.
type digestTee struct {
	sinks map[string][][]sum
	one   abi.RecordDigest
}

func (t *digestTee) Record(sink string, lane int, r *abi.Record) error {
	lanes := t.sinks[sink]
	for len(lanes) <= lane {
		lanes = append(lanes, nil)
	}
	t.one.Reset()
	t.one.Add(r)
	lanes[lane] = append(lanes[lane], t.one.Sum())
	t.sinks[sink] = lanes
	return nil
}

func (t *digestTee) Again(sink string, lane int) {
	if lanes := t.sinks[sink]; lane < len(lanes) {
		lanes[lane] = lanes[lane][:0]
	}
}

// at is the place of a record in one run.
type at struct {
	sink        string
	lane, index int
}

// item is one record of one run of one sink.
type item struct {
	sum         sum
	lane, index int
	shared      bool // the other run has it too
}

func flatten(lanes [][]sum) []item {
	var out []item
	for l := range lanes {
		for i, s := range lanes[l] {
			out = append(out, item{sum: s, lane: l, index: i})
		}
	}
	return out
}

// compareSums matches equal records, in pairs, and then walks both runs side by side: between two shared records stand
// those that one run alone has.
func compareSums(d *SinkDiff, a, b []item, limit int, pickA, pickB *pick) {
	share(a, b)
	show := func(added bool, it *item) {
		if len(d.Lines) >= limit {
			return
		}
		d.Lines = append(d.Lines, DiffLine{Added: added, Lane: it.lane})
		p := pickA
		if added {
			p = pickB
		}
		p.want(at{d.Sink, it.lane, it.index})
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		removes, adds := i < len(a) && !a[i].shared, j < len(b) && !b[j].shared
		if removes {
			d.Removed++
			show(false, &a[i])
			i++
		}
		if adds {
			d.Added++
			show(true, &b[j])
			j++
		}
		if removes || adds {
			continue
		}
		if a[i].sum != b[j].sum {
			d.Moved++
		}
		i, j = i+1, j+1
	}
}

// share marks the records that both runs have, as often as both have them.
func share(a, b []item) {
	left := make(map[sum]int, len(a))
	for i := range a {
		left[a[i].sum]++
	}
	both := make(map[sum]int, len(a))
	for j := range b {
		s := b[j].sum
		if left[s] > 0 {
			left[s]--
			both[s]++
			b[j].shared = true
		}
	}
	for i := range a {
		s := a[i].sum
		if both[s] > 0 {
			both[s]--
			a[i].shared = true
		}
	}
}

// pick takes the texts of chosen records from another run.
type pick struct {
	order  []at
	wanted map[at]*DiffLine
	next   map[at]int // by sink and lane, index 0
}

func newPick() *pick { return &pick{wanted: map[at]*DiffLine{}, next: map[at]int{}} }

func (p *pick) want(place at) { p.order = append(p.order, place) }

// slots gives the chosen places of a sink their lines, which stand in the same order.
func (p *pick) slots(d *SinkDiff, added bool) {
	for i := range d.Lines {
		if d.Lines[i].Added != added {
			continue
		}
		p.wanted[p.order[0]] = &d.Lines[i]
		p.order = p.order[1:]
	}
}

func (p *pick) Record(sink string, lane int, r *abi.Record) error {
	counter := at{sink, lane, 0}
	place := at{sink, lane, p.next[counter]}
	p.next[counter]++
	l := p.wanted[place]
	if l == nil {
		return nil
	}
	text, err := recordJSON(r)
	if err != nil {
		return fmt.Errorf("show a record of sink %s: %w", sink, err)
	}
	if l.Cut = len(text) > maxShownRecord; l.Cut {
		text = strings.ToValidUTF8(text[:maxShownRecord], "")
	}
	l.Record = text
	return nil
}

func (p *pick) Again(sink string, lane int) { p.next[at{sink, lane, 0}] = 0 }

// recordJSON is all of a record that counts, as one line of JSON.
func recordJSON(r *abi.Record) (string, error) {
	var b bytes.Buffer
	b.WriteString(`{"value":`)
	if err := writeValue(&b, r.Value); err != nil {
		return "", err
	}
	if r.Key != nil {
		b.WriteString(`,"key":`)
		b.Write(abi.AppendJSONString(nil, bytes.ToValidUTF8(r.Key, []byte("\ufffd"))))
	}
	if r.Flags&abi.FlagEventTime != 0 {
		fmt.Fprintf(&b, `,"eventTime":%q`, time.UnixMicro(r.EventTime).UTC().Format(time.RFC3339Nano))
	}
	for i, h := range r.Headers {
		b.WriteString([]string{`,"headers":[`, ","}[min(i, 1)])
		b.WriteByte('[')
		b.Write(abi.AppendJSONString(nil, bytes.ToValidUTF8(h.Name, []byte("\ufffd"))))
		b.WriteByte(',')
		if err := writeValue(&b, h.Value); err != nil {
			return "", err
		}
		b.WriteByte(']')
	}
	if len(r.Headers) > 0 {
		b.WriteByte(']')
	}
	b.WriteByte('}')
	return b.String(), nil
}

// writeValue writes JSON as it is, without line ends, and anything else as a string.
func writeValue(b *bytes.Buffer, v []byte) error {
	switch {
	case v == nil:
		b.WriteString("null")
	case json.Valid(v):
		return json.Compact(b, v)
	default:
		b.Write(abi.AppendJSONString(nil, bytes.ToValidUTF8(v, []byte("\ufffd"))))
	}
	return nil
}
