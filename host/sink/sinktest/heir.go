package sinktest

import (
	"context"
	"slices"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
)

// heir asks the targets of another query, open or not, what the first one has published: as much as is there, at each step of two
// batches, by whatever names, and nothing where the first one has never been.
func heir(t *testing.T, d *driver) {
	if _, ok := d.target.(sink.Heir); !ok {
		t.Skip("the target does not know what others have published in its place")
	}
	ask := func(when string, of sink.Target, query string, want sink.Published) {
		t.Helper()
		before := d.place.Visible(t)
		got, disown, err := of.(sink.Heir).PublishedBy(context.Background(), query)
		if err != nil || got != want {
			t.Errorf("%s: query %s has published %+v, %v, want %+v", when, query, got, err, want)
		}
		if disown != "" && got.Batch < 0 {
			t.Errorf("%s: %q, where there is nothing to disown", when, disown)
		}
		if after := d.place.Visible(t); !slices.Equal(after, before) {
			t.Errorf("%s: asking changed what readers see", when)
		}
	}
	nothing := sink.Published{Batch: checkpoint.NoBatch}
	steps := func(when string, want sink.Published) {
		t.Helper()
		d.must(d.target.Close())
		other := d.place.Open(t)
		ask(when+", not open", other, query, want)
		if got, err := other.Open(context.Background(), sink.Owner{Query: otherQuery, Job: "other"}); err != nil || got != nothing {
			t.Fatalf("%s: the other query begins with %+v, %v", when, got, err)
		}
		ask(when+", open", other, query, want)
		ask(when, other, otherQuery, nothing)
		d.must(other.Close())
		if d.place.Alias != nil {
			alias := d.place.Alias(t)
			ask(when+", by other names", alias, query, want)
			d.must(alias.Close())
		}
		if d.place.Elsewhere != nil {
			elsewhere := d.place.Elsewhere(t)
			ask(when+", in another place", elsewhere, query, nothing)
			d.must(elsewhere.Close())
		}
		d.reopen()
	}
	steps("empty", nothing)
	for id := range checkpoint.BatchID(2) {
		b := d.stage(id, "0000000a", 3)
		d.must(d.publish(b))
		steps("published", sink.Published{Batch: id, Digest: b.digest})
		d.finish(b)
	}
}
