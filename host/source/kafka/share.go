package kafka

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/wasmill/wasmill/host/source"
)

// seenPatience is how long a plan waits for a fetch to bring anything before it goes by what is there.
const seenPatience = 2 * time.Second

// share says how many offsets a batch takes of each partition.
func (s *Source) share(ctx context.Context, parts []ahead, limit source.Limit) error {
	if limit.Bytes > 0 {
		return s.seen(ctx, parts, limit)
	}
	lags := make([]int64, len(parts))
	for i := range parts {
		lags[i] = parts[i].lag()
	}
	for i, n := range allot(lags, limit.Records) {
		parts[i].take = n
	}
	return nil
}

// seen shares out what has been fetched and nothing else: what was not looked at can be of any size, and a plan that is too
// large for the machine stays so. It waits until a batch is full, or all is there.
func (s *Source) seen(ctx context.Context, parts []ahead, limit source.Limit) error {
	for late := false; ; {
		wait := s.pre.gather(parts, limit, late)
		if wait == nil {
			break
		}
		within, cancel := context.WithTimeout(ctx, seenPatience)
		select {
		case <-wait:
		case <-within.Done():
			late = true
		}
		cancel()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	most := -1
	for i := range parts {
		if parts[i].take > 0 {
			return nil
		}
		if lag := parts[i].lag(); lag > 0 && (most < 0 || lag > parts[most].lag()) {
			most = i
		}
	}
	if most < 0 {
		return nil
	}
	return s.probe(ctx, &parts[most], limit)
}

// probe gives a partition of which nothing could be fetched ahead its next stored batch, or a part of it, by a fetch for that
// alone.
func (s *Source) probe(ctx context.Context, a *ahead, limit source.Limit) error {
	p := part{Topic: a.topic, ID: a.id, Partition: a.num, From: a.start, To: a.end.offset, Epoch: a.end.epoch}
	d := s.pool.Get().(*decoder)
	defer s.pool.Put(d)
	d.begin(nil, p.Partition)
	r := reader{s: s, part: &p, pos: p.From, d: d, probing: true, direct: true}
	w := window{to: p.To, one: true, committed: !s.cfg.Uncommitted, maxRecord: s.cfg.MaxRecord, out: nobody{}}
	if err := r.run(ctx, w); err != nil {
		return err
	}
	a.take = min(r.pos, p.To) - p.From
	if d.unpacked > limit.Bytes {
		a.take, _ = mulDiv(a.take, limit.Bytes, d.unpacked)
	}
	if a.take = max(a.take, 1); limit.Records > 0 {
		a.take = min(a.take, limit.Records)
	}
	return nil
}

// allot shares limit out over lags; 0 is no limit. Each gets an even share of half of the limit, as far as it has use for
// it, and the rest goes by what is left of the lags. The same lags give the same shares.
func allot(lags []int64, limit int64) []int64 {
	out := make([]int64, len(lags))
	var total, busy int64
	for _, l := range lags {
		total += l
		if l > 0 {
			busy++
		}
	}
	if limit <= 0 || total <= limit {
		copy(out, lags)
		return out
	}
	left, open := limit, total
	if even := limit / 2 / busy; even > 0 {
		for i, l := range lags {
			out[i] = min(l, even)
			left -= out[i]
			open -= out[i]
		}
	}
	type rest struct {
		i   int
		rem uint64
	}
	rests := make([]rest, 0, len(lags))
	pool := left
	for i, l := range lags {
		q, rem := mulDiv(l-out[i], pool, open)
		rests = append(rests, rest{i, rem})
		out[i] += q
		left -= q
	}
	slices.SortStableFunc(rests, func(a, b rest) int { return cmp.Compare(b.rem, a.rem) })
	for _, r := range rests {
		if left > 0 && out[r.i] < lags[r.i] {
			out[r.i]++
			left--
		}
	}
	return out
}

// mulDiv is a*b/c with its remainder; a <= c.
func mulDiv(a, b, c int64) (int64, uint64) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, rem := bits.Div64(hi, lo, uint64(c))
	return int64(q), rem
}

// sizes remembers how many unpacked bytes an offset of a partition has taken of late, to ask for no more than is needed.
type sizes struct {
	mu sync.Mutex
	of map[partition]float64
}

// sizeWeight is how much the newest look at sizes counts when it is lower; a higher one counts at once.
const sizeWeight = 0.3

func (s *sizes) add(k partition, bytes, offsets int64) {
	if offsets <= 0 {
		return
	}
	now := float64(bytes) / float64(offsets)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[partition]float64{}
	}
	if was, ok := s.of[k]; ok && now < was {
		now = was + sizeWeight*(now-was)
	}
	s.of[k] = max(now, 1)
}

func (s *sizes) get(k partition) (float64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size, ok := s.of[k]
	return size, ok
}
