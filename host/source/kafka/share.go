package kafka

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"sync"

	"github.com/wasmill/wasmill/host/source"
)

// share says how many offsets a batch takes of each partition.
func (s *Source) share(ctx context.Context, parts []ahead, limit source.Limit) error {
	lags := make([]int64, len(parts))
	for i := range parts {
		lags[i] = parts[i].lag()
	}
	for i, n := range allot(lags, limit.Records) {
		parts[i].take = n
	}
	if limit.Bytes <= 0 {
		return nil
	}
	return s.fit(ctx, parts, limit.Bytes)
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

// fit scales the shares down to about so many bytes, by the sizes that were seen in each partition. At least one offset
// is left.
func (s *Source) fit(ctx context.Context, parts []ahead, limit int64) error {
	var total, most float64
	largest := -1
	for i := range parts {
		a := &parts[i]
		if a.take == 0 {
			continue
		}
		size, err := s.size(ctx, a)
		if err != nil {
			return err
		}
		total += size * float64(a.take)
		if w := size * float64(a.take); w > most {
			most, largest = w, i
		}
	}
	if largest < 0 || total <= float64(limit) {
		return nil
	}
	left := int64(0)
	for i := range parts {
		parts[i].take = int64(float64(parts[i].take) * float64(limit) / total)
		left += parts[i].take
	}
	if left == 0 {
		parts[largest].take = 1
	}
	return nil
}

// sizes remembers how many unpacked bytes an offset of a partition has taken of late.
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

// size is how many bytes an offset of a partition takes, from what was read of it or by a look at its next batch: in
// memory, where the first fetch brings it, or by a fetch for that alone.
func (s *Source) size(ctx context.Context, a *ahead) (float64, error) {
	if size, ok := s.sizes.get(a.partition); ok {
		return size, nil
	}
	p := part{Topic: a.topic, ID: a.id, Partition: a.num, From: a.start, To: a.start + a.take, Epoch: a.end.epoch}
	next := p
	next.To = p.From + 1
	switch c, err := s.pre.find(ctx, &next, p.From); {
	case err != nil:
		return 0, err
	case c != nil && s.sample(c, &p) == nil:
	default:
		if err := s.probe(ctx, &p); err != nil {
			return 0, err
		}
	}
	size, ok := s.sizes.get(a.partition)
	if !ok {
		return 1, nil // the range holds no batch at all
	}
	return size, nil
}

// sample unpacks the next stored batch of a part that has records, for its size alone.
func (s *Source) sample(c *chunk, p *part) error {
	i := c.at(p.From)
	for i < len(c.spans) && c.spans[i].raw == nil {
		i++
	}
	if i == len(c.spans) {
		return nil
	}
	d := s.pool.Get().(*decoder)
	defer s.pool.Put(d)
	d.begin(nil, p.Partition)
	sp := &c.spans[i]
	w := window{from: sp.base, to: sp.last + 1, committed: !s.cfg.Uncommitted, maxRecord: s.cfg.MaxRecord, out: nobody{}}
	if _, err := d.deliver(c, &w); err != nil {
		return err
	}
	s.sizes.add(p.key(), d.unpacked, sp.last-sp.base+1)
	return nil
}
