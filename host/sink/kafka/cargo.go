package kafka

import (
	"cmp"
	"slices"
)

// place is one partition of a topic.
type place struct {
	topic     string
	partition int32
}

// cargo is all that a batch sends, by partition.
type cargo struct {
	batchMS int64
	queues  map[place]*queue
	order   []*queue // as they came up
}

// queue is what goes to one partition: a request may carry one chunk of it at a time.
type queue struct {
	place
	id     [16]byte // the topic's
	chunks []*chunk
	last   *chunk // the last chunk while others may be joined to it
	owned  bool   // last is not a lane's

	next     int   // chunks that are acknowledged
	limit    int   // bytes up to which chunks are joined
	sequence int32 // of chunks[next]
	offset   int64 // of the last record that was acknowledged
	unknown  int   // how often the topic was said not to exist
}

// joinBytes is up to what size chunks are put together: what lanes of a small batch have for a partition is one request.
const (
	joinBytes = 128 << 10
	growth    = 16 // bytes that a record may become longer by, with other deltas
)

func (g *cargo) queue(at place, l *layout) *queue {
	q := g.queues[at]
	if q == nil {
		q = &queue{place: at, id: l.topics[at.topic].id, limit: min(joinBytes, l.limit(at.topic)), offset: -1}
		g.queues[at] = q
		g.order = append(g.order, q)
	}
	return q
}

// put appends a chunk, which is left as it is.
func (g *cargo) put(q *queue, c *chunk) {
	small := c.codec == 0 && len(c.buf) < joinBytes/2
	if small && q.last != nil && len(q.last.buf)+len(c.buf)+int(c.rows)*growth <= q.limit {
		if !q.owned {
			first := q.last
			q.last, q.owned = newChunk(2*(len(first.buf)+len(c.buf))), true
			q.last.join(first, g.batchMS)
			q.chunks[len(q.chunks)-1] = q.last
		}
		q.last.join(c, g.batchMS)
		return
	}
	q.chunks, q.last, q.owned = append(q.chunks, c), nil, false
	if small {
		q.last = c
	}
}

func newChunk(size int) *chunk {
	c := &chunk{buf: make([]byte, 0, headerSize+size)}
	c.reset()
	return c
}

// dealer gives out what has no partition of its own: all to one until enough has gone there, then to the next. It begins by
// the batch's id, so that small batches do not all go to one partition and a batch run again goes where it went.
type dealer struct {
	partitions int32
	turn       uint64
	bytes      int
}

// turnBytes is how much goes to one partition before the next has its turn.
const turnBytes = 64 << 10

func (d *dealer) next(bytes int) int32 {
	if d.bytes >= turnBytes {
		d.turn, d.bytes = d.turn+1, 0
	}
	d.bytes += bytes
	return int32(d.turn % uint64(d.partitions))
}

// load takes the chunks of a batch's lanes. The topics are known.
func (g *cargo) load(batch uint64, lanes []*lane, at *layout) {
	dealers := map[string]*dealer{}
	for _, l := range lanes {
		for i := range l.topics {
			t, name := &l.topics[i], l.route.topics[i]
			if t.rows == 0 {
				continue
			}
			d := dealers[name]
			if d == nil {
				d = &dealer{partitions: int32(len(at.topics[name].leaders)), turn: batch}
				dealers[name] = d
			}
			for p, list := range t.parts {
				for _, c := range list {
					switch {
					case p > 0:
						g.put(g.queue(place{name, int32(p - 1)}, at), c)
					case t.shape.partitions > 0:
						g.put(g.queue(place{name, d.next(len(c.buf))}, at), c)
					default:
						g.deal(name, at, d, c)
					}
				}
			}
		}
	}
}

// deal gives out records one by one: their lane did not know the topic's partitions.
func (g *cargo) deal(name string, at *layout, d *dealer, c *chunk) {
	c.each(func(e encoded) {
		part := int32(0)
		if k := e.key(); k != nil {
			part = partitionOf(k, d.partitions)
		} else {
			part = d.next(len(e.tail))
		}
		one := newChunk(len(e.tail) + recordOverhead)
		one.put(e)
		g.put(g.queue(place{name, part}, at), one)
	})
}

// close compresses what is not compressed yet and is large enough to be sent as it is.
func (g *cargo) close(p *press) {
	var open []*chunk
	for _, q := range g.order {
		q.last = nil
		for _, c := range q.chunks {
			if c.codec == 0 {
				open = append(open, c)
			}
		}
	}
	p.squeezeAll(open)
}

// places lists where the cargo goes.
func (g *cargo) places() []place {
	var out []place
	for _, q := range g.order {
		out = append(out, q.place)
	}
	sortPlaces(out)
	return out
}

func sortPlaces(list []place) {
	slices.SortFunc(list, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
	})
}
