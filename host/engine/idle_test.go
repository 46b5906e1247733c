package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

// bubbleClock is the time of a synctest bubble.
type bubbleClock struct{}

func (bubbleClock) Now() time.Time { return time.Now() }

func (bubbleClock) Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// quiet is a source without records that counts how often it is asked.
type quiet struct {
	source.Source
	asked int
}

func (q *quiet) Latest(_ context.Context, from checkpoint.Position, _ source.Limit) (checkpoint.Position, error) {
	q.asked++
	return from, nil
}

// bell is a quiet source that rings.
type bell struct {
	quiet
	news chan struct{}
}

func (b *bell) News() <-chan struct{} { return b.news }

// TestIdleIsWoken: a source that says when something has come is asked at once when it does, and hardly ever before.
func TestIdleIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bell{news: make(chan struct{}, 1)}
		e := idleEngine(b)
		stop, done := make(chan struct{}), make(chan error, 1)
		go func() { done <- e.Run(t.Context(), stop) }()
		synctest.Wait()
		for range 50 {
			before, at := b.asked, time.Now()
			<-time.After(3 * time.Millisecond)
			b.news <- struct{}{}
			synctest.Wait()
			if b.asked != before+1 || time.Since(at) != 3*time.Millisecond {
				t.Fatalf("asked %d times within %s of something new", b.asked-before, time.Since(at))
			}
		}
		before := b.asked
		<-time.After(10 * time.Second)
		if n := b.asked - before; n > 11 {
			t.Errorf("asked %d times in 10 s without news", n)
		}
		close(stop)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestIdleAsksTheSilent: beside one that rings, a source that cannot say when something has come is still asked.
func TestIdleAsksTheSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, q := &bell{news: make(chan struct{}, 1)}, &quiet{}
		e := idleEngine(b, q)
		stop, done := make(chan struct{}), make(chan error, 1)
		go func() { done <- e.Run(t.Context(), stop) }()
		<-time.After(time.Second)
		close(stop)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if q.asked < 90 || q.asked > 110 {
			t.Errorf("asked %d times in a second, want about 100", q.asked)
		}
	})
}

// TestIdleKeepsTheInterval: news do not begin a batch before its time.
func TestIdleKeepsTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bell{news: make(chan struct{}, 1)}
		e := idleEngine(b)
		e.cfg.Trigger.Interval = time.Second
		stop, done := make(chan struct{}), make(chan error, 1)
		go func() { done <- e.Run(t.Context(), stop) }()
		synctest.Wait()
		before := b.asked
		b.news <- struct{}{}
		<-time.After(900 * time.Millisecond)
		if b.asked != before {
			t.Error("asked before the interval was over")
		}
		close(stop)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func idleEngine(sources ...source.Source) *Engine {
	g := &Graph{}
	for _, s := range sources {
		g.Sources = append(g.Sources, SourceNode{Name: "in", Source: s})
	}
	return &Engine{cfg: Config{Graph: g, Clock: bubbleClock{}, NewAttempt: func() string { return "" }}}
}

// silent is a source that does not answer until nobody asks any more.
type silent struct{ quiet }

func (s *silent) Latest(ctx context.Context, _ checkpoint.Position, _ source.Limit) (checkpoint.Position, error) {
	s.asked++
	<-ctx.Done()
	return checkpoint.Position{}, ctx.Err()
}

// TestStopWhileAsking: a job whose source does not answer ends at once when it is told to, and well: nothing was planned.
func TestStopWhileAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &silent{}
		e := idleEngine(s)
		stop, done := make(chan struct{}), make(chan error, 1)
		go func() { done <- e.Run(t.Context(), stop) }()
		synctest.Wait()
		at := time.Now()
		close(stop)
		if err := <-done; err != nil || s.asked != 1 || time.Since(at) > 0 {
			t.Errorf("ended after %s with %v, asked %d times", time.Since(at), err, s.asked)
		}
	})
}
