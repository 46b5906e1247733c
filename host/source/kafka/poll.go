package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// pollWait is how long a broker holds a fetch that finds nothing, milliseconds.
	pollWait = 500
	// pollShare is the part of the memory that one fetch may fill.
	pollShare = 4
	// leastPart is what a fetch asks for at least; a stored batch comes whole in any case.
	leastPart = 64 << 10
	// emptyPolls is how often an answer may be empty although the log reaches further.
	emptyPolls = 2
	// hastyPause is the first pause after an empty answer that was not waited for, hastyMost the longest.
	hastyPause, hastyMost = time.Millisecond, 100 * time.Millisecond
)

// worker fetches from one leader. Its fields but kicked and gauge are guarded by the prefetcher's lock.
type worker struct {
	p       *prefetcher
	leader  int32
	kicked  chan struct{}
	streams []*stream // by topic and partition
	turn    int       // which stream is asked for first
	busy    bool      // a fetch is under way
	waits   bool      // it may wait at the broker: all its partitions were read to their end
	done    bool

	gauge gauge // of run alone
}

// asked is a stream as it was when a fetch was made.
type asked struct {
	st    *stream
	next  int64
	fails int
	// What has come of it.
	chunk *chunk
	end   int64 // how far the log can be read
	floor int64 // where it begins
	err   error
}

func (w *worker) kick() {
	select {
	case w.kicked <- struct{}{}:
	default:
	}
}

// run fetches until the source is closed or the leader has no partition any more.
func (w *worker) run() {
	defer w.gauge.close()
	pause := hastyPause
	for w.p.ctx.Err() == nil {
		req, list, done := w.ask()
		if done {
			return
		}
		if req == nil {
			select {
			case <-w.kicked:
			case <-w.p.ctx.Done():
			}
			continue
		}
		waited, cancel := context.WithTimeout(w.p.ctx, pollWait/2*time.Millisecond)
		got := w.fetch(req, list)
		hasty := !got && waited.Err() == nil
		cancel()
		if !hasty {
			pause = hastyPause
			continue
		}
		w.rest(pause)
		pause = min(2*pause, hastyMost)
	}
}

func (w *worker) rest(d time.Duration) {
	t, cancel := context.WithTimeout(w.p.ctx, d)
	defer cancel()
	<-t.Done()
}

// ask makes the next fetch, or none when nothing is to be fetched. It waits for room for a good deal: an answer ends
// within a stored batch, whose bytes then come again. Partitions that are read to their end come first, as they have little;
// the others take turns at having the answer for themselves.
func (w *worker) ask() (req *kmsg.FetchRequest, list []asked, done bool) {
	p := w.p
	p.mu.Lock()
	defer p.mu.Unlock()
	w.busy, w.waits = false, true
	if w.done {
		return nil, nil, true
	}
	most := p.s.cfg.Memory / pollShare
	room := p.s.cfg.Memory - p.bytes
	for _, behind := range []bool{false, true} {
		for i := range w.streams {
			st := w.streams[(w.turn+i)%len(w.streams)]
			if st.behind() != behind || !st.wants() || p.full() && st.demand <= st.next {
				continue
			}
			w.waits = w.waits && !behind
			if req == nil {
				req = kmsg.NewPtrFetchRequest()
				req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = -1, pollWait, 1, int32(max(min(room, most), leastPart))
				req.SessionEpoch, req.IsolationLevel = -1, p.s.isolation()
			}
			bytes := req.MaxBytes
			if st.end == none { // all of them are waited for
				bytes = max(bytes/int32(len(w.streams)), leastPart)
			}
			req.Topics = appendTo(req.Topics, st, min(bytes, int32(p.s.cfg.FetchBytes)))
			st.flying = true
			list = append(list, asked{st: st, next: st.next, fails: st.fails})
		}
	}
	w.turn++
	w.busy = req != nil
	return req, list, false
}

// appendTo adds a stream to the topics of a fetch.
func appendTo(topics []kmsg.FetchRequestTopic, st *stream, bytes int32) []kmsg.FetchRequestTopic {
	if n := len(topics); n == 0 || topics[n-1].Topic != st.topic {
		t := kmsg.NewFetchRequestTopic()
		t.Topic, t.TopicID = st.topic, st.raw
		topics = append(topics, t)
	}
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.CurrentLeaderEpoch, rp.FetchOffset, rp.PartitionMaxBytes = st.num, st.epoch, st.next, bytes
	t := &topics[len(topics)-1]
	t.Partitions = append(t.Partitions, rp)
	return topics
}

// fetch makes a fetch and keeps what it brings. It reports whether there was anything.
func (w *worker) fetch(req *kmsg.FetchRequest, list []asked) (got bool) {
	if failed(list) {
		w.introduce()
	}
	answer, err := w.p.client.Broker(int(w.leader)).Request(w.p.ctx, req)
	resp, ok := answer.(*kmsg.FetchResponse)
	if err == nil && ok {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	for i := range list {
		list[i].err, list[i].end = err, none
	}
	if err == nil && ok {
		w.open(resp, list)
	}
	return w.keep(list)
}

func failed(list []asked) bool {
	for i := range list {
		if list[i].fails > 0 {
			return true
		}
	}
	return false
}

// introduce lets the client learn the brokers' addresses anew. That it fails is seen at the fetch that follows.
func (w *worker) introduce() {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	_, _ = req.RequestWith(w.p.ctx, w.p.client)
}

// open looks through an answer, without the lock.
func (w *worker) open(resp *kmsg.FetchResponse, list []asked) {
	total := 0
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			total += len(resp.Topics[i].Partitions[j].RecordBatches)
		}
	}
	at := 0
	for i := range resp.Topics {
		t := &resp.Topics[i]
		for j := range t.Partitions {
			a := &t.Partitions[j]
			if at = place(list, at, t, a.Partition); at < 0 {
				return
			}
			w.openOne(&list[at], a, total)
			at++
		}
	}
}

// place finds what a part of an answer belongs to: brokers answer in the order of the question, as a rule.
func place(list []asked, at int, t *kmsg.FetchResponseTopic, num int32) int {
	for range 2 {
		for ; at < len(list); at++ {
			if st := list[at].st; st.num == num && (t.TopicID == st.raw && t.TopicID != [16]byte{} || t.Topic == st.topic && t.Topic != "") {
				return at
			}
		}
		at = 0
	}
	return none
}

func (w *worker) openOne(q *asked, a *kmsg.FetchResponseTopicPartition, total int) {
	if q.err = kerr.ErrorForCode(a.ErrorCode); q.err != nil {
		return
	}
	if q.end = a.LastStableOffset; w.p.s.cfg.Uncommitted {
		q.end = a.HighWatermark
	}
	q.floor = a.LogStartOffset
	q.chunk, q.err = scan(a, q.next, !w.p.s.cfg.Uncommitted)
	q.chunk.apart(total)
	w.gauge.weigh(q.chunk)
	if q.err == nil && q.chunk.next == q.next && len(a.RecordBatches) > 0 {
		q.err = errCut
	}
}

var errCut = errors.New("a fetch brings less than one batch")

// keep puts what was brought where it belongs. An answer that is full may leave partitions out; their turn comes.
func (w *worker) keep(list []asked) (got bool) {
	p := w.p
	p.mu.Lock()
	defer p.mu.Unlock()
	w.busy = false
	p.move()
	if p.closed {
		return false
	}
	var left []*stream
	for i := range list {
		q := &list[i]
		st := q.st
		if p.streams[st.partition] != st {
			got = true // another has taken its place meanwhile
			continue
		}
		st.flying = false
		if q.chunk == nil && q.err == nil {
			left = append(left, st)
			continue
		}
		passed := q.chunk != nil && q.chunk.next > q.next
		if passed {
			got = true
			st.chunks, st.next, st.empty = append(st.chunks, q.chunk), q.chunk.next, 0
			p.bytes += q.chunk.size
		}
		st.tell()
		if q.err != nil || q.floor > st.from {
			p.chill(st) // what is not planned yet is gone, or anything else is wrong
			continue
		}
		st.fails, st.end = 0, q.end
		if passed && st.next > st.from {
			p.tell()
		}
		if !passed && st.next < min(st.end, st.stop) {
			if st.empty++; st.empty >= emptyPolls {
				p.chill(st) // compacted away, perhaps: a reader finds out
			}
		}
	}
	if !got { // the broker throttles us: a reader need not wait for that
		for _, st := range left {
			st.tell()
		}
	}
	return got
}
