package kafka

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sink"
)

// route says which topic a sink's record goes to.
type route struct {
	topics []string
	header string
	byName map[string]int32
	deflt  int32 // none: a record needs the header
}

const none = -1

func newRoute(s *Sink) *route {
	r := &route{topics: s.topics(), header: s.TopicHeader, byName: map[string]int32{}, deflt: none}
	for i, t := range r.topics {
		r.byName[t] = int32(i)
	}
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

// lane keeps one lane's records: their bytes one after another in data, what else belongs to them in entries.
type lane struct {
	route   *route
	limit   int // bytes of a record's batch
	data    []byte
	entries []entry
	headers []header
	names   map[string]string
	used    []bool // by topic of the route
}

// entry is one record: key, value and the values of its headers follow each other in data from at on.
type entry struct {
	at         int
	ms         int64 // timestamp, or batchTime
	key, value int32 // bytes, or none for null
	headers    int32
	topic      int32
}

type header struct {
	name string
	size int32 // bytes of the value, or none for null
}

const (
	batchTime = math.MinInt64

	batchOverhead  = 61 // a batch's header, from baseOffset to numRecords
	recordOverhead = 36 // what stands in a record beside its bytes, at most: length, attributes, deltas and lengths
	headerOverhead = 10 // two lengths
	maxNames       = 1000
)

// Append implements sink.Lane.
func (l *lane) Append(r *abi.Record) error {
	topic, named, err := l.route.of(r)
	if err != nil {
		return err
	}
	e := entry{at: len(l.data), ms: batchTime, key: none, value: none, topic: topic}
	if r.Flags&abi.FlagEventTime != 0 {
		if e.ms = r.EventTime / 1000; r.EventTime < 0 {
			return &sink.Misfit{Code: "range", Column: "event time", Reason: "Kafka has no timestamps before 1970"}
		}
	}
	if n := size(r); n > l.limit {
		return &sink.Misfit{Code: "length", Reason: fmt.Sprintf("a message of %d bytes, the most is %d", n, l.limit)}
	}
	if r.Key != nil {
		e.key = int32(len(r.Key))
		l.data = append(l.data, r.Key...)
	}
	if r.Value != nil {
		e.value = int32(len(r.Value))
		l.data = append(l.data, r.Value...)
	}
	for i := range r.Headers {
		if i == named {
			continue
		}
		h := header{name: l.name(r.Headers[i].Name), size: none}
		if v := r.Headers[i].Value; v != nil {
			h.size = int32(len(v))
			l.data = append(l.data, v...)
		}
		l.headers = append(l.headers, h)
		e.headers++
	}
	l.entries = append(l.entries, e)
	l.used[topic] = true
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

// name returns a header's name as a string: they are few, and repeat.
func (l *lane) name(b []byte) string {
	if s, ok := l.names[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(l.names) < maxNames {
		l.names[s] = s
	}
	return s
}

// Reset implements sink.Lane.
func (l *lane) Reset() {
	l.data, l.entries, l.headers = l.data[:0], l.entries[:0], l.headers[:0]
	clear(l.used)
}

// Rows implements sink.Lane.
func (l *lane) Rows() int64 { return int64(len(l.entries)) }

// Bytes implements sink.Lane.
func (l *lane) Bytes() int64 {
	const perEntry, perHeader = int64(unsafe.Sizeof(entry{})), int64(unsafe.Sizeof(header{}))
	return int64(len(l.data)) + perEntry*int64(len(l.entries)) + perHeader*int64(len(l.headers))
}

// take moves the rows to a lane of its own. What a client still may be sending must not be written over.
func (l *lane) take() *lane {
	out := &lane{route: l.route, data: l.data, entries: l.entries, headers: l.headers, used: slices.Clone(l.used)}
	l.data, l.entries, l.headers = nil, nil, nil
	l.Reset()
	return out
}

// build makes the lane's records, which share its bytes. heads is where their headers go.
func (l *lane) build(out []kgo.Record, heads []kgo.RecordHeader, batchMS int64) ([]kgo.Record, []kgo.RecordHeader) {
	next := 0
	for i := range l.entries {
		e := &l.entries[i]
		at := e.at
		cut := func(size int32) []byte {
			if size < 0 {
				return nil
			}
			b := l.data[at : at+int(size) : at+int(size)]
			at += int(size)
			return b
		}
		out = append(out, kgo.Record{Topic: l.route.topics[e.topic], Key: cut(e.key), Value: cut(e.value)})
		r := &out[len(out)-1]
		first := len(heads)
		for _, h := range l.headers[next : next+int(e.headers)] {
			heads = append(heads, kgo.RecordHeader{Key: h.name, Value: cut(h.size)})
		}
		next += int(e.headers)
		if e.headers > 0 {
			r.Headers = heads[first:len(heads):len(heads)]
		}
		r.Timestamp = timestamp(e.ms, batchMS)
	}
	return out, heads
}
