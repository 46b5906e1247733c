package badger

import (
	"sync"
	"time"
)

// A compaction reads and writes in up to five goroutines at once, which on a small machine leaves the batch beside it
// little: there are no priorities. As long as there is no hurry, tables are therefore made one after the other, with a
// pause after each that is about as long as making it takes.
const (
	pause = 20 * time.Millisecond
	// hurryAt is the number of tables in the first level from which there are no pauses; the compaction of that level begins
	// at levelZero of them, and at levelZeroStall writers wait.
	hurryAt        = 20
	levelZero      = 12
	levelZeroStall = 40
)

// pacer holds compactions back.
type pacer struct {
	mu      sync.Mutex
	turn    chan struct{} // holds one while somebody pauses; nil while there are no pauses
	closing chan struct{}
}

// start ends the time in which nothing is known of the tables, as they are being opened.
func (p *pacer) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn, p.closing = make(chan struct{}, 1), make(chan struct{})
}

// close lets everything go on: closing waits for compactions.
func (p *pacer) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn != nil {
		p.turn = nil
		close(p.closing)
	}
}

func (p *pacer) channels() (turn, closing chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turn, p.closing
}

// wait is called by each goroutine of a compaction for each table that it has made.
func (p *pacer) wait(tables func() int) {
	turn, closing := p.channels()
	if turn == nil {
		return
	}
	select {
	case turn <- struct{}{}:
	case <-closing:
		return
	}
	defer func() { <-turn }()
	if tables() >= hurryAt {
		return
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-closing:
	}
}
