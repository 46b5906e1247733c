package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/wasmill/wasmill/abi"
)

// maxTraced is how many bytes of a differing value are shown.
const maxTraced = 512

// trace keeps a digest of every record that the guests of a run emit, so that two runs can be laid side by side. Lanes
// share nothing in it.
type trace struct {
	emitted [][]emitted // by stage, by lane
	want    spot        // whose record is kept as text
	text    string
}

// emitted is what one stage emits in one lane, in order.
type emitted struct {
	one  abi.RecordDigest
	sums [][16]byte
}

// spot is the place of an emitted record.
type spot struct{ stage, lane, index int }

func newTrace(g *Graph) *trace {
	t := &trace{want: spot{index: -1}}
	for range g.Stages {
		t.emitted = append(t.emitted, make([]emitted, g.Lanes))
	}
	return t
}

// traced runs a batch with a trace. How the run ends is known already.
func (r *runner) traced(ctx context.Context, in input, t *trace) {
	for _, lanes := range t.emitted {
		for i := range lanes {
			lanes[i].sums = lanes[i].sums[:0]
		}
	}
	t.text = ""
	r.trace = t
	defer func() { r.trace = nil }()
	out, _ := r.run(ctx, in)
	(&batch{out: out}).close()
}

// add takes a record of any kind.
func (t *trace) add(stage, lane int, r *abi.Record) {
	e := &t.emitted[stage][lane]
	if t.want == (spot{stage, lane, len(e.sums)}) {
		t.text = traceText(r)
	}
	c := *r
	if r.Kind != abi.KindRecord {
		c.Port = rejectPort - uint16(r.Kind)
		c.EventTime = int64(r.Partition)<<32 | int64(r.Index)
	}
	e.one.Reset()
	e.one.Add(&c)
	e.sums = append(e.sums, e.one.Sum())
}

// again forgets what a stage emitted in a lane that starts again.
func (t *trace) again(stage, lane int) {
	e := &t.emitted[stage][lane]
	e.sums = e.sums[:0]
	if t.want.stage == stage && t.want.lane == lane {
		t.text = ""
	}
}

// parts finds the first place where two traces part: in the first stage, as later ones only follow it.
func (t *trace) parts(u *trace) (spot, bool) {
	for stage := range t.emitted {
		for lane := range t.emitted[stage] {
			a, b := t.emitted[stage][lane].sums, u.emitted[stage][lane].sums
			for i := range max(len(a), len(b)) {
				if i >= len(a) || i >= len(b) || a[i] != b[i] {
					return spot{stage, lane, i}, true
				}
			}
		}
	}
	return spot{}, false
}

// shown is the record at the wanted place.
func (t *trace) shown() string {
	if t.text == "" {
		return "there is none"
	}
	return t.text
}

// traceText is a record for people, on one line.
func traceText(r *abi.Record) string {
	value := "null"
	if r.Value != nil {
		value = abi.EscapeText(r.Value, maxTraced)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "port %d value %s", r.Port, value)
	if r.Kind != abi.KindRecord {
		b.Reset()
		fmt.Fprintf(&b, "kind %d code %d %s", r.Kind, r.Partition, value)
	}
	if r.Key != nil {
		fmt.Fprintf(&b, " key %s", abi.EscapeText(r.Key, maxTraced))
	}
	if r.Index != abi.NoIndex {
		fmt.Fprintf(&b, ", made of record %d of the lane", r.Index)
	}
	return b.String()
}
