package kafka

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// prefetcher fetches what comes after the batch that is planned, while that one runs and is published. What it holds is a
// cache: plans and reads come to the same without it. It reports no error; where anything is out of the ordinary a stream
// goes cold, and the next plan asks the cluster what is wrong.
//
// One goroutine a leader has one fetch under way for all partitions of that leader. The broker holds it until there is
// something, so a record is here as soon as it is stored. The memory is one for all partitions: when it is full nothing is
// fetched until a batch is sealed, except for a reader that waits.
type prefetcher struct {
	s      *Source
	client *kgo.Client // of its own: a fetch that waits at the broker holds up what is asked after it on its connection
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	news   chan struct{}

	mu      sync.Mutex
	streams map[partition]*stream
	workers map[int32]*worker
	bytes   int
	closed  bool
	moved   chan struct{} // closed at the next answer; nil: nobody waits
}

func newPrefetcher(s *Source) *prefetcher {
	ctx, cancel := context.WithCancel(context.Background())
	return &prefetcher{
		s: s, ctx: ctx, cancel: cancel, news: make(chan struct{}, 1),
		streams: map[partition]*stream{}, workers: map[int32]*worker{},
	}
}

// close stops everything at once.
func (p *prefetcher) close() {
	p.mu.Lock()
	p.closed = true
	for _, st := range p.streams {
		st.tell()
	}
	p.move()
	p.mu.Unlock()
	p.cancel()
	p.wg.Wait()
	if p.client != nil {
		p.client.Close()
	}
}

// wait returns a channel that is closed when an answer has come, of whatever partition.
func (p *prefetcher) wait() <-chan struct{} {
	if p.moved == nil {
		p.moved = make(chan struct{})
	}
	return p.moved
}

// move wakes those who wait for an answer.
func (p *prefetcher) move() {
	if p.moved != nil {
		close(p.moved)
		p.moved = nil
	}
}

// tell says that a plan may find something new.
func (p *prefetcher) tell() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// start makes the client and the clock of discovery, once.
func (p *prefetcher) start() error {
	if p.client != nil {
		return nil
	}
	client, err := kgo.NewClient(p.s.opts...)
	if err != nil {
		return configFault(p.s.cfg.Name, err.Error())
	}
	p.client = client
	p.wg.Go(func() { // partitions that are new have nobody else to tell of them
		t := time.NewTicker(p.s.cfg.Discovery)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				p.tell()
			case <-p.ctx.Done():
				return
			}
		}
	})
	return nil
}

// follow makes the streams those of the partitions that a look at the cluster has found and a plan is made of: each holds
// the planned range and what comes after it.
func (p *prefetcher) follow(parts []ahead) error {
	if err := p.start(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	there := make(map[partition]bool, len(parts))
	for i := range parts {
		there[parts[i].partition] = true
		p.followOne(&parts[i])
	}
	for k, st := range p.streams {
		if !there[k] {
			p.remove(st)
		}
	}
	p.hire()
	return nil
}

func (p *prefetcher) followOne(a *ahead) {
	st := p.streams[a.partition]
	t := p.s.meta.get(a.topic)
	if t == nil || !t.has(a.num) || t.parts[a.num].leader < 0 {
		p.remove(st)
		return
	}
	info := t.parts[a.num]
	if st != nil && st.life == paused && !st.holds(a.start) { // its pause goes on, however often plans are made
		p.bytes -= st.size()
		st.chunks, st.next = nil, a.start
	}
	if st == nil || st.id != t.id || st.leader != info.leader || st.epoch != info.epoch || st.life == cold || !st.holds(a.start) {
		fails := 0
		if st != nil {
			fails = st.fails
		}
		p.remove(st)
		st = newStream(a.partition, t, a.start)
		st.fails = fails
		p.streams[a.partition] = st
		p.revive(st)
	}
	st.plan(a)
	if end, ok := p.s.frozen[a.partition]; ok {
		st.stop = end
	}
}

// plan notes what is planned of a stream.
func (st *stream) plan(a *ahead) {
	st.kept, st.from = a.start, a.start+a.take
}

// revive lets a stream begin; one that has failed makes a pause first, the longer the more often it has.
func (p *prefetcher) revive(st *stream) {
	if st.fails == 0 {
		st.life = live
		return
	}
	st.life = paused
	time.AfterFunc(min(firstPause<<min(st.fails-1, 10), maxPause), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if st.life != paused || p.streams[st.partition] != st {
			return
		}
		st.life = live
		if w := p.workers[st.leader]; w != nil {
			w.kick()
		}
	})
}

// chill says that something is wrong with a stream. What it holds stays for the batch that runs.
func (p *prefetcher) chill(st *stream) {
	st.life, st.flying = cold, false
	st.fails++
	st.tell()
	p.s.stale.Store(true)
	p.tell()
}

// remove gives a stream up, if there is one.
func (p *prefetcher) remove(st *stream) {
	if st == nil {
		return
	}
	p.bytes -= st.size()
	delete(p.streams, st.partition)
	st.tell()
}

// hire gives each leader its worker, and each worker its streams.
func (p *prefetcher) hire() {
	by := map[int32][]*stream{}
	for _, st := range p.streams {
		by[st.leader] = append(by[st.leader], st)
	}
	for leader, list := range by {
		slices.SortFunc(list, func(a, b *stream) int { return comparePartitions(a.partition, b.partition) })
		w := p.workers[leader]
		if w == nil {
			w = &worker{p: p, leader: leader, kicked: make(chan struct{}, 1), gauge: gauge{max: int64(p.s.cfg.MaxBatch)}}
			p.workers[leader] = w
			p.wg.Go(w.run)
		}
		w.streams = list
		w.kick()
	}
	for leader, w := range p.workers {
		if by[leader] == nil {
			w.streams, w.done = nil, true
			delete(p.workers, leader)
			w.kick()
		}
	}
}

// kick lets all workers look whether there is something to fetch.
func (p *prefetcher) kick() {
	for _, w := range p.workers {
		w.kick()
	}
}

// find returns the chunk that holds an offset of a part, and waits for the answer that should bring it. nil: the reader has
// to fetch it by itself.
func (p *prefetcher) find(ctx context.Context, part *part, pos int64) (*chunk, error) {
	c, wait := p.look(part, pos)
	if wait == nil {
		return c, nil
	}
	select {
	case <-wait:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c, _ = p.look(part, pos)
	return c, nil
}

func (p *prefetcher) look(part *part, pos int64) (*chunk, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := p.streams[part.key()]
	if st == nil || st.id != part.ID || p.closed {
		return nil, nil
	}
	if c := st.chunk(pos); c != nil {
		return c, nil
	}
	w := p.workers[st.leader]
	if w == nil || pos != st.next || st.life != live || st.fails > 0 || st.stop <= pos || w.busy && w.waits && !st.flying {
		return nil, nil
	}
	st.demand = max(st.demand, part.To)
	w.kick()
	return nil, st.wait()
}

// full reports whether there is no room for a fetch that is worth it.
func (p *prefetcher) full() bool {
	return p.s.cfg.Memory-p.bytes < p.s.cfg.Memory/pollShare/2
}

// passed says that a reader has passed an offset: where the memory is too small for the batch, what it has read goes.
func (p *prefetcher) passed(part *part, pos int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := p.streams[part.key()]
	if st == nil || !p.full() {
		return
	}
	if n := st.drop(pos); n > 0 {
		p.bytes -= n
		p.kick()
	}
}

// release lets go of what lies before a position that is sealed.
func (p *prefetcher) release(pos position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	freed := 0
	for k, st := range p.streams {
		if at, ok := pos.at(k); ok {
			freed += st.drop(at.offset)
		}
	}
	p.bytes -= freed
	if freed > 0 {
		p.kick()
	}
}
