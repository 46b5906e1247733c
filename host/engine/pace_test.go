package engine

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/source"
)

func TestPaceStarts(t *testing.T) {
	for name, c := range map[string]struct {
		trigger Trigger
		own     source.Limit
		want    source.Limit
	}{
		"available now":       {Trigger{AvailableNow: true}, source.Limit{Records: 100_000, Bytes: 7}, source.Limit{Records: 100_000, Bytes: 7}},
		"interval":            {Trigger{Interval: time.Second}, source.Limit{Records: 100_000}, source.Limit{Records: 100_000}},
		"back to back":        {Trigger{}, source.Limit{Records: 100_000, Bytes: 7}, source.Limit{Records: paceFirst, Bytes: 7}},
		"a smaller own limit": {Trigger{}, source.Limit{Records: 10}, source.Limit{Records: 10}},
		"no own limit":        {Trigger{}, source.Limit{}, source.Limit{Records: paceFirst}},
	} {
		p := newPace(c.trigger)
		if got := p.limit(c.own); got != c.want {
			t.Errorf("%s: the first batch may take %+v, want %+v", name, got, c.want)
		}
	}
}

// TestPaceFollowsTheCost runs batches of a backlog at a fixed cost a record: they come to take about as long as they may,
// whatever a record costs, and never much longer once a batch has run.
func TestPaceFollowsTheCost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cost := time.Duration(rapid.IntRange(100, 2_000_000).Draw(t, "ns a record"))
		overhead := time.Duration(rapid.IntRange(0, 20_000_000).Draw(t, "ns a batch"))
		trigger := Trigger{Interval: time.Duration(rapid.IntRange(0, 10_000).Draw(t, "interval")) * time.Millisecond}
		p := newPace(trigger)
		own := source.Limit{Records: 1 << 30}
		var took time.Duration
		for i := range 30 {
			n := p.limit(own).Records
			took = overhead + time.Duration(n)*cost
			if n > paceLeast && i > 1 && took > 2*p.most+2*overhead {
				t.Fatalf("batch %d of %d records takes %s, it should take %s", i, n, took, p.most)
			}
			p.ran(n, took)
		}
		if n := p.limit(own).Records; took < p.most/4 && n < own.Records {
			t.Fatalf("batches of %d records take %s of %s", n, took, p.most)
		}
	})
}

// TestPaceKeepsWhenIdle: small batches say nothing about how large one may be.
func TestPaceKeepsWhenIdle(t *testing.T) {
	p := newPace(Trigger{})
	p.ran(paceFirst, 10*time.Millisecond)
	grown := p.limit(source.Limit{}).Records
	for range 100 {
		p.ran(3, 4*time.Millisecond)
		p.ran(0, time.Minute)
	}
	if got := p.limit(source.Limit{}).Records; got != grown || grown <= paceFirst {
		t.Errorf("the limit went from %d to %d to %d", paceFirst, grown, got)
	}
}
