package kit

import (
	"fmt"
	"strings"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/abi/statemap"
)

func (k *Keyed) lanes() int { return max(k.Lanes, 1) }

// state is what the run begins with, nil for none; before is what the run before has left.
func (r *Run) state(before *statemap.Map) *statemap.Map {
	if r.Keyed == nil {
		return nil
	}
	m := before
	if m == nil || !r.Keyed.Follows {
		m = &statemap.Map{}
	}
	for _, e := range r.Keyed.Entries {
		_, _ = m.Write(&abi.StateOp{Op: abi.OpPut, Table: e.Table, Key: e.Key, Sub: e.Sub, Value: e.Value, At: e.Expiry}) // never fails
	}
	for _, t := range r.Keyed.Timers {
		_, _ = m.Write(&abi.StateOp{Op: abi.OpTimerSet, Domain: t.Domain, At: t.At, Key: t.Key, Sub: t.Sub})
	}
	m.Begin(r.Header.BatchTime, r.Header.Watermark)
	return m
}

// dueFrames are the frames of the timers that are due now, which have fired with that.
func dueFrames(state *statemap.Map) []Frame {
	var frames []Frame
	for _, t := range state.Due() {
		r := t.Record()
		if n := len(frames); n == 0 || frames[n-1].Records[0].Kind != r.Kind {
			frames = append(frames, Frame{})
		}
		f := &frames[len(frames)-1]
		key, sub := Bytes(r.Key), Bytes(r.Value)
		f.Records = append(f.Records, Record{Kind: r.Kind, EventTime: &t.At, Key: &key, Value: &sub, Index: index(abi.NoIndex), Offset: new(int64)})
	}
	return frames
}

func index(n uint32) *uint32 { return &n }

// compare compares the state that a run left with what it should be.
func (a *After) compare(state *statemap.Map) error {
	if a == nil {
		return nil
	}
	var want, got strings.Builder
	for _, e := range a.Entries {
		fmt.Fprintf(&want, "table %d %q %q = %q expires %d\n", e.Table, e.Key, e.Sub, e.Value, e.Expiry)
	}
	for _, t := range a.Timers {
		fmt.Fprintf(&want, "timer %d %d %q %q\n", t.Domain, t.At, t.Key, t.Sub)
	}
	for _, e := range state.Entries() {
		fmt.Fprintf(&got, "table %d %q %q = %q expires %d\n", e.Table, e.Key, e.Sub, e.Value, e.Expiry)
	}
	for _, t := range state.Timers() {
		fmt.Fprintf(&got, "timer %d %d %q %q\n", t.Domain, t.At, t.Key, t.Sub)
	}
	if got.String() != want.String() {
		return fmt.Errorf("the state is\n%swant\n%s", got.String(), want.String())
	}
	return nil
}
