package kafka

import (
	"math"
	"slices"

	"github.com/wasmill/wasmill/host/source"
)

const (
	// fullShare: when what lies ahead fills this part of the memory, a batch is made of it and reaches no further, whatever
	// the limit would allow: nobody then waits for a fetch. It takes batchShare of the memory at most, so that there is room
	// for the next one.
	fullShare, batchShare = 4, 2
	// roundFrom and roundShare: a range of so many offsets ends with a stored batch when that costs it no more than this
	// part; one that ends within a batch has that batch unpacked twice.
	roundFrom, roundShare = 256, 8
)

// inMemory plans from what has been fetched already: no request is made. ok is false when that does not do: something of
// the position is not held, a look at the cluster is due, or the batch would be small for want of memory.
func (s *Source) inMemory(pos position, limit source.Limit) (parts []ahead, ok bool) {
	if s.due() {
		return nil, false
	}
	p := s.pre
	p.mu.Lock()
	defer p.mu.Unlock()
	known := 0
	for name, t := range pos {
		if s.reads(name) {
			known += len(t.parts)
		}
	}
	if known == 0 || known != len(p.streams) {
		return nil, false
	}
	parts = make([]ahead, 0, known)
	for _, w := range p.workers {
		for _, st := range w.streams {
			a, ok := st.ahead(pos)
			if !ok {
				return nil, false
			}
			parts = append(parts, a)
		}
	}
	if len(parts) != known {
		return nil, false
	}
	sortAhead(parts)
	if !p.share(parts, limit, false) {
		return nil, false
	}
	left := false
	for i := range parts {
		st := p.streams[parts[i].partition]
		st.settle(p, &parts[i])
		left = left || st.next > st.from
	}
	if left {
		p.tell()
	}
	return parts, true
}

// ahead is what a stream holds for a batch after a position.
func (st *stream) ahead(pos position) (a ahead, ok bool) {
	at, ok := pos.at(st.partition)
	if !ok || st.life != live || st.fails > 0 || st.end == none || pos[st.topic].id != st.id || !st.holds(at.offset) {
		return a, false
	}
	end := max(st.end, st.next)
	if st.stop < math.MaxInt64 {
		if end < st.stop {
			return a, false // the end of what was there when the input was frozen is not seen yet
		}
		end = max(st.stop, at.offset)
	}
	return ahead{partition: st.partition, id: st.id, known: true, was: at, start: at.offset, end: logEnd{end, none}}, true
}

// gather shares out what is held of partitions that a look at the cluster has found. Where more is worth waiting for, and it
// is not late, it shares out nothing and returns what is closed when more has come.
func (p *prefetcher) gather(parts []ahead, limit source.Limit, late bool) (wait <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var held []ahead
	var at []int
	var coming []*stream
	here := false
	for i := range parts {
		a := &parts[i]
		st := p.streams[a.partition]
		if st == nil || p.closed || !st.holds(a.start) {
			continue
		}
		held, at = append(held, *a), append(at, i)
		here = here || min(st.next-a.start, a.lag()) > 0
		if st.next < min(a.end.offset, st.stop) && st.life == live && st.fails == 0 {
			coming = append(coming, st)
		}
	}
	if !here && !late { // room is made for one fetch at least
		for _, st := range coming {
			st.demand = max(st.demand, st.next+1)
		}
	}
	if !p.share(held, limit, late || len(coming) == 0 || here && p.full()) {
		p.kick()
		return p.wait()
	}
	for i := range held {
		parts[at[i]] = held[i]
	}
	return nil
}

// share says how much a batch takes of each stream. It reports false when it takes what is not held, unless that is all
// that it will get.
func (p *prefetcher) share(parts []ahead, limit source.Limit, all bool) bool {
	lags, here := make([]int64, len(parts)), make([]int64, len(parts))
	held := 0
	for i := range parts {
		st := p.streams[parts[i].partition]
		lags[i] = parts[i].lag()
		here[i] = min(st.next-parts[i].start, lags[i])
		held += st.weigh(parts[i].start, math.MaxInt64, math.MaxInt64).stored
	}
	takes := allot(lags, limit.Records)
	full := all || held >= p.s.cfg.Memory/fullShare
	for i, n := range takes {
		if n <= here[i] {
			continue
		}
		if !full {
			return false
		}
		takes = allot(here, limit.Records)
		break
	}
	for i, n := range takes {
		parts[i].take = n
	}
	p.fit(parts, limit.Bytes)
	if full {
		p.leave(parts)
	}
	for i := range parts {
		a := &parts[i]
		st := p.streams[a.partition]
		a.take = st.round(a.start, a.take)
		if a.take > 0 {
			a.end.epoch = st.epochAt(a.start + a.take)
		}
	}
	return true
}

// fit cuts the shares to about so many unpacked bytes; 0 is no limit. At least one offset is left.
func (p *prefetcher) fit(parts []ahead, limit int64) {
	if limit <= 0 {
		return
	}
	var total, most int64
	largest := -1
	weights := make([]int64, len(parts))
	for i := range parts {
		a := &parts[i]
		weights[i] = p.streams[a.partition].weigh(a.start, a.start+a.take, math.MaxInt64).bytes
		total += weights[i]
		if a.take > 0 && weights[i] >= most {
			most, largest = weights[i], i
		}
	}
	if largest < 0 || total <= limit {
		return
	}
	left := int64(0)
	for i := range parts {
		a := &parts[i]
		share, _ := mulDiv(weights[i], limit, total)
		a.take = p.streams[a.partition].weigh(a.start, a.start+a.take, share).offsets
		left += a.take
	}
	if left == 0 {
		parts[largest].take = 1
	}
}

// leave cuts the shares to what leaves room for the next batch.
func (p *prefetcher) leave(parts []ahead) {
	total, most := 0, p.s.cfg.Memory/batchShare
	for i := range parts {
		total += p.streams[parts[i].partition].weigh(parts[i].start, parts[i].start+parts[i].take, math.MaxInt64).stored
	}
	if total <= most {
		return
	}
	for i := range parts {
		parts[i].take = max(int64(float64(parts[i].take)*float64(most)/float64(total)), min(parts[i].take, 1))
	}
}

// weight is how much a part of a stream holds.
type weight struct {
	offsets int64 // that were weighed
	bytes   int64 // unpacked; of a part of a stored batch, by its offsets
	stored  int   // as stored
}

// weigh adds up what lies between two offsets, and stops where it would be more than so many bytes: before a stored batch,
// or within the first one.
func (st *stream) weigh(from, to, most int64) (w weight) {
	end := min(to, st.next)
	st.spans(from, to, func(s *span) bool {
		first, last := max(s.base, from), min(s.last, to-1)
		n, size := last-first+1, s.unpacked
		if n <= s.last-s.base {
			size, _ = mulDiv(n, size, s.last-s.base+1)
		}
		if w.bytes+size > most {
			if end = first; w.bytes == 0 {
				n, _ = mulDiv(most, n, size)
				end += n
			}
			return false
		}
		w.bytes += size
		w.stored += len(s.raw)
		return true
	})
	w.offsets = end - from
	return w
}

// round lets a range end with a stored batch where that costs little.
func (st *stream) round(start, take int64) int64 {
	if take < roundFrom {
		return take
	}
	st.spans(start+take, start+take+1, func(s *span) bool {
		if cut := s.base - start; s.base < start+take && cut >= take-take/roundShare {
			take = cut
		}
		return false
	})
	return take
}

// settle notes a plan, and lets go of what no batch needs any more where sealing has not said so.
func (st *stream) settle(p *prefetcher, a *ahead) {
	p.bytes -= st.drop(st.kept)
	if p.full() && st.next <= a.start {
		p.bytes -= st.drop(a.start)
	}
	st.plan(a)
}

func sortAhead(parts []ahead) {
	slices.SortFunc(parts, func(a, b ahead) int { return comparePartitions(a.partition, b.partition) })
}
