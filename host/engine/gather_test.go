package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

// growing is a source that gets records when the test says so, and counts them.
type growing struct {
	quiet
	there int64
	mute  bool // it cannot say how much there is
}

func (g *growing) Latest(_ context.Context, from checkpoint.Position, limit source.Limit) (checkpoint.Position, error) {
	g.asked++
	if g.there == 0 {
		return from, nil
	}
	return checkpoint.Position{Line: `"end"`}, nil
}

func (g *growing) Measure(context.Context, source.Range) (source.Extent, error) {
	if g.mute {
		return source.Extent{Bytes: 1}, nil
	}
	return source.Extent{Records: g.there}, nil
}

// TestGathered: a batch waits for records, but not for longer than it may, and not for what cannot be counted.
func TestGathered(t *testing.T) {
	for name, c := range map[string]struct {
		trigger      Trigger
		there        int64
		waited       time.Duration // since they were first seen
		mute, enough bool
	}{
		"nothing asked for": {trigger: Trigger{}, there: 1, enough: true},
		"too few":           {trigger: Trigger{Gather: Gather{Records: 10, Delay: time.Minute}}, there: 9},
		"enough":            {trigger: Trigger{Gather: Gather{Records: 10, Delay: time.Minute}}, there: 10, enough: true},
		"long enough":       {trigger: Trigger{Gather: Gather{Records: 10, Delay: time.Minute}}, there: 9, waited: time.Minute, enough: true},
		"nearly":            {trigger: Trigger{Gather: Gather{Records: 10, Delay: time.Minute}}, there: 9, waited: time.Minute - 1},
		"a clock set back":  {trigger: Trigger{Gather: Gather{Records: 10, Delay: time.Minute}}, there: 9, waited: -time.Hour, enough: true},
		"not counted":       {trigger: Trigger{Gather: Gather{Records: 10, Delay: time.Minute}}, there: 1, mute: true, enough: true},
		"available now":     {trigger: Trigger{AvailableNow: true, Gather: Gather{Records: 10, Delay: time.Minute}}, there: 1, enough: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &growing{there: c.there, mute: c.mute}
				e := idleEngine(g)
				e.cfg.Trigger = c.trigger
				if c.waited != 0 {
					e.waiting = time.Now().Add(-c.waited)
				}
				got, err := e.gathered(t.Context(), []checkpoint.SourcePosition{{Name: "s", End: checkpoint.Position{Line: `"end"`}}})
				if err != nil || got != c.enough {
					t.Errorf("enough: %t, %v; want %t", got, err, c.enough)
				}
			})
		})
	}
}

// TestGatheredWaitsNoLonger: a job that is woken by its sources wakes by itself when what it has has waited long enough.
func TestGatheredWaitsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := idleEngine(&bell{news: make(chan struct{}, 1)})
		e.cfg.Trigger.Gather = Gather{Records: 10, Delay: 30 * time.Millisecond}
		e.waiting = time.Now()
		began := time.Now()
		e.idle(t.Context(), time.Hour, e.news())
		if got := time.Since(began); got != 30*time.Millisecond {
			t.Errorf("it waits for %s", got)
		}
	})
}

// TestPaceTakesWhatIsGathered: the pace of small batches does not keep a batch from what it has waited for.
func TestPaceTakesWhatIsGathered(t *testing.T) {
	p := newPace(Trigger{Gather: Gather{Records: 50_000, Delay: time.Minute}})
	if got := p.limit(source.Limit{Records: 100_000}).Records; got != 50_000 {
		t.Errorf("a batch may take %d, it waits for 50,000", got)
	}
	p.bound = 300
	if got := p.limit(source.Limit{Records: 100_000}).Records; got != 300 {
		t.Errorf("a batch may take %d, more than 300 are too large", got)
	}
}

// TestPaceOfGathered: where what has come may wait for more, a batch that takes longer than one of a job that runs back to back
// does not make the next ones smaller.
func TestPaceOfGathered(t *testing.T) {
	own := source.Limit{Records: 2000}
	p := newPace(Trigger{Gather: Gather{Records: 1000, Delay: 8 * time.Second}})
	p.ran(300, 600*time.Millisecond)
	if got := p.limit(own).Records; got != 2000 {
		t.Errorf("after a slow batch the next one takes %d records, want 2000", got)
	}
	p.ran(2000, 16*time.Second)
	if got := p.limit(own).Records; got != 1000 {
		t.Errorf("after one of twice the delay it takes %d, want 1000", got)
	}
}
