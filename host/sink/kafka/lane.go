package kafka

import (
	"fmt"
	"sync/atomic"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink"
)

// route says which topic a sink's record goes to.
type route struct {
	topics []string
	header string
	byName map[string]int32
	deflt  int32 // none: a record needs the header
	keyed  bool  // a record needs a key
	// shapes are by topic, as the cluster last said. Lanes look at them whenever they start again.
	shapes []atomic.Pointer[shape]
}

// shape is what lanes must know of a topic.
type shape struct {
	partitions int32
	limit      int // bytes of a batch, header included
}

const none = -1

func newRoute(s *Sink) *route {
	r := &route{topics: s.topics(), header: s.TopicHeader, byName: map[string]int32{}, deflt: none, keyed: s.Keyed}
	for i, t := range r.topics {
		r.byName[t] = int32(i)
	}
	r.shapes = make([]atomic.Pointer[shape], len(r.topics))
	if s.Topic != "" {
		r.deflt = 0
	}
	return r
}

// of returns the index of a record's topic, and of the header that names it or none.
func (r *route) of(rec *abi.Record) (topic int32, header int, err error) {
	if r.header == "" {
		return r.deflt, none, nil
	}
	for i := range rec.Headers {
		if string(rec.Headers[i].Name) != r.header {
			continue
		}
		t, ok := r.byName[string(rec.Headers[i].Value)]
		if !ok {
			return 0, 0, &sink.Misfit{
				Code: "range", Column: "header " + r.header,
				Reason: fmt.Sprintf("%.100q is not among the sink's topics", rec.Headers[i].Value),
			}
		}
		return t, i, nil
	}
	if r.deflt == none {
		return 0, 0, &sink.Misfit{Code: "missing", Column: "header " + r.header, Reason: "the record names no topic"}
	}
	return r.deflt, none, nil
}

// lane keeps one lane's records as they will be sent, by partition. Encoding and compression are done here because lanes
// run side by side; what depends on the batch and the producer comes later.
type lane struct {
	route  *route
	limit  int // bytes of a record's batch
	press  *press
	topics []laneTopic // by topic of the route
	free   []*chunk
	rows   int64
	bytes  int64
}

// laneTopic is one topic's part of a lane.
type laneTopic struct {
	shape shape // as it was when the lane started
	rows  int64
	// parts are the chunks by partition, the last one of each open. In front of them is what is dealt out when it is
	// staged: records without a key, or all, while the topic's partitions are not known.
	parts [][]*chunk
}

const (
	batchOverhead  = headerSize
	recordOverhead = 36 // what stands in a record beside its bytes, at most: length, attributes, deltas and lengths
	headerOverhead = 10 // two lengths

	// chunkBytes ends a chunk: a batch this large costs little per record for everybody. pressBytes does where it is
	// compressed, so that most of that work is done by the lanes.
	chunkBytes = 1_000_000
	pressBytes = 512 << 10
	// Buffers that grew for large records are not kept, nor more of the others than this.
	keptBytes  = 2 * chunkBytes
	keptChunks = 16
)

func (t *Target) newLane(r *route) *lane {
	l := &lane{route: r, limit: int(t.cfg.MaxMessage), press: t.press, topics: make([]laneTopic, len(r.topics))}
	l.Reset()
	return l
}

// Append implements sink.Lane.
func (l *lane) Append(r *abi.Record) error {
	if l.route.keyed && r.Key == nil {
		return rows.NoKey()
	}
	topic, named, err := l.route.of(r)
	if err != nil {
		return err
	}
	ms := int64(batchTime)
	if r.Flags&abi.FlagEventTime != 0 {
		if ms = r.EventTime / 1000; r.EventTime < 0 {
			return &sink.Misfit{Code: "range", Column: "event time", Reason: "Kafka has no timestamps before 1970"}
		}
	}
	n := size(r)
	if n > l.limit {
		return &sink.Misfit{Code: "length", Reason: fmt.Sprintf("a message of %d bytes, the most is %d", n, l.limit)}
	}
	t := &l.topics[topic]
	part := 0
	if r.Key != nil && t.shape.partitions > 0 {
		part = 1 + int(partitionOf(r.Key, t.shape.partitions))
	}
	c := l.open(t, part, ms, n)
	before := len(c.buf)
	c.add(r, named, ms)
	l.bytes += int64(len(c.buf) - before)
	l.rows++
	t.rows++
	return nil
}

// size is the most that a batch with this record alone can have.
func size(r *abi.Record) int {
	n := batchOverhead + recordOverhead + len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += headerOverhead + len(r.Headers[i].Name) + len(r.Headers[i].Value)
	}
	return n
}

// open returns the chunk that a record of a size goes to.
func (l *lane) open(t *laneTopic, part int, ms int64, size int) *chunk {
	list := t.parts[part]
	if len(list) > 0 {
		c := list[len(list)-1]
		if c.takes(ms) && len(c.buf)+size-headerSize <= t.shape.limit {
			return c
		}
		l.finish(t, c)
	}
	c := &chunk{}
	if n := len(l.free); n > 0 {
		c, l.free = l.free[n-1], l.free[:n-1]
	}
	c.reset()
	t.parts[part] = append(list, c)
	return c
}

// finish compresses a full chunk, unless it is still to be dealt out record by record.
func (l *lane) finish(t *laneTopic, c *chunk) {
	if t.shape.partitions > 0 && len(c.buf) >= t.shape.limit/2 {
		before := len(c.buf)
		l.press.squeeze(c)
		l.bytes += int64(len(c.buf) - before)
	}
}

// Reset implements sink.Lane.
func (l *lane) Reset() {
	l.rows, l.bytes = 0, 0
	for i := range l.topics {
		t := &l.topics[i]
		for p, list := range t.parts {
			l.keep(list)
			t.parts[p] = list[:0]
		}
		t.rows, t.shape = 0, shape{limit: l.limit}
		if s := l.route.shapes[i].Load(); s != nil {
			t.shape = *s
		}
		t.shape.limit = min(t.shape.limit, l.limit, l.press.chunkBytes())
		for len(t.parts) < int(t.shape.partitions)+1 {
			t.parts = append(t.parts, nil)
		}
	}
}

func (l *lane) keep(list []*chunk) {
	for _, c := range list {
		if cap(c.buf) <= keptBytes && len(l.free) < keptChunks {
			l.free = append(l.free, c)
		}
	}
}

// Rows implements sink.Lane.
func (l *lane) Rows() int64 { return l.rows }

// Bytes implements sink.Lane.
func (l *lane) Bytes() int64 { return l.bytes }

// take moves the rows to a lane of its own.
func (l *lane) take() *lane {
	out := *l
	out.free = nil
	l.free, l.topics = nil, make([]laneTopic, len(l.topics))
	l.Reset()
	return &out
}
