package sinktest

import (
	"context"
	"slices"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
)

// inspect looks at a target that is open, and at one that is not, at each step of two batches: it must see what Open sees.
func inspect(t *testing.T, d *driver) {
	if _, ok := d.target.(sink.Inspector); !ok {
		t.Skip("the target cannot be looked at")
	}
	look := func(when string, want sink.Published) {
		t.Helper()
		before := d.place.Visible(t)
		got, err := d.target.(sink.Inspector).Inspect(context.Background(), sink.Owner{Query: query, Job: "test", Next: d.next})
		d.must(err)
		if got != want {
			t.Errorf("%s: looking says %+v, opening %+v", when, got, want)
		}
		if after := d.place.Visible(t); !slices.Equal(after, before) {
			t.Errorf("%s: looking changed what readers see", when)
		}
	}
	steps := func(when string, want sink.Published) {
		t.Helper()
		look(when+", open", want)
		d.must(d.target.Close())
		d.target = d.place.Open(t)
		look(when+", not open", want)
		if got := d.reopen(); got != want {
			t.Errorf("%s: opening after looking says %+v, want %+v", when, got, want)
		}
	}
	steps("empty", sink.Published{Batch: checkpoint.NoBatch})
	for id := range checkpoint.BatchID(2) {
		b := d.stage(id, "0000000a", 3)
		look("staged", sink.Published{Batch: id - 1, Digest: digestBefore(id)})
		d.must(d.publish(b))
		steps("published", sink.Published{Batch: id, Digest: b.digest})
		d.finish(b)
	}
	for _, other := range []string{otherQuery, ""} {
		p, err := d.target.(sink.Inspector).Inspect(context.Background(), sink.Owner{Query: other, Job: "test"})
		if d.place.Shared {
			if want := (sink.Published{Batch: checkpoint.NoBatch}); err != nil || p != want {
				t.Errorf("query %q sees %+v, %v, want nothing of another one's", other, p, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("query %q may have what belongs to another one: %+v", other, p)
		}
	}
}

func digestBefore(id checkpoint.BatchID) string {
	if id == 0 {
		return ""
	}
	return digest(int(id) - 1)
}
