package sim

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrKilled is what every part of a killed process answers.
var ErrKilled = errors.New("the process was killed")

// Process is the life of one engine: its parts work until it is killed.
type Process struct {
	mu    sync.Mutex
	dead  bool
	count int
	// KillAt ends the process at the n-th call of any part, counted from 1; 0 never.
	KillAt int
	// Hook, if set, is called for every call with its number and name; its error is the call's.
	Hook func(n int, call string) error
}

// Kill ends the process.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
}

// Dead reports whether the process was killed.
func (p *Process) Dead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// Calls is how many calls the process has made.
func (p *Process) Calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// Call counts one call of a part and says whether it may go on.
func (p *Process) Call(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return ErrKilled
	}
	p.count++
	if p.count == p.KillAt {
		p.dead = true
		return ErrKilled
	}
	if p.Hook != nil {
		return p.Hook(p.count, name)
	}
	return nil
}

// Clock is a clock that stands still until someone waits or moves it.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that stands at now.
func NewClock(now time.Time) *Clock { return &Clock{now: now} }

// Now is the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Wait moves the clock by d at once.
func (c *Clock) Wait(ctx context.Context, d time.Duration) error {
	c.Move(d)
	return ctx.Err()
}

// Move moves the clock, backwards too.
func (c *Clock) Move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
