package kafka

import "math"

// stream is what is held in memory of one partition: chunks that follow each other without a gap, and where the next
// fetch goes. It belongs to one topic id, leader and epoch; where these change, or it is to begin elsewhere, another takes
// its place. The prefetcher's lock guards what is below the empty line.
type stream struct {
	partition
	id     string
	raw    [16]byte
	leader int32
	epoch  int32 // of the leader

	chunks []*chunk
	next   int64 // of the next fetch: the end of the last chunk
	from   int64 // where the next batch begins, by the last plan
	kept   int64 // where the last planned batch begins: what lies before may go
	end    int64 // how far the log could be read by the last answer, or none
	stop   int64 // nothing is fetched from here on
	demand int64 // a reader waits for what lies before

	life    life
	fails   int  // since an answer was good
	empty   int  // answers without a batch, of a log that reaches further
	flying  bool // a fetch is under way
	changed chan struct{}
}

// life is how a stream is.
type life uint8

const (
	live   life = iota
	paused      // begins when its pause is over
	cold        // something is wrong; the next plan looks what, and lets it begin anew
)

func newStream(k partition, t *topicInfo, at int64) *stream {
	info := t.parts[k.num]
	return &stream{
		partition: k, id: t.id, raw: t.raw, leader: info.leader, epoch: info.epoch,
		next: at, from: at, kept: at, end: none, stop: math.MaxInt64, demand: at,
	}
}

// tell wakes those who wait for a change.
func (st *stream) tell() {
	if st.changed != nil {
		close(st.changed)
		st.changed = nil
	}
}

// wait returns a channel that is closed at the next change.
func (st *stream) wait() <-chan struct{} {
	if st.changed == nil {
		st.changed = make(chan struct{})
	}
	return st.changed
}

// first is the lowest offset that is held.
func (st *stream) first() int64 {
	if len(st.chunks) == 0 {
		return st.next
	}
	return st.chunks[0].from
}

// holds reports whether an offset is held, or the next to be fetched.
func (st *stream) holds(at int64) bool { return st.first() <= at && at <= st.next }

// chunk returns the chunk that holds an offset, or nil.
func (st *stream) chunk(at int64) *chunk {
	for i := len(st.chunks) - 1; i >= 0; i-- {
		if c := st.chunks[i]; c.from <= at {
			if at < c.next {
				return c
			}
			return nil
		}
	}
	return nil
}

// wants reports whether more is to be fetched.
func (st *stream) wants() bool { return st.life == live && !st.flying && st.next < st.stop }

// behind reports whether there is known to be more than is held.
func (st *stream) behind() bool { return st.next < max(st.end, st.demand) }

// spans calls fn with the stored batches from one offset up to and without another, until it returns false.
func (st *stream) spans(from, to int64, fn func(*span) bool) {
	for _, c := range st.chunks {
		if c.next <= from {
			continue
		}
		for i := c.at(from); i < len(c.spans); i++ {
			if c.spans[i].base >= to || !fn(&c.spans[i]) {
				return
			}
		}
		if c.next >= to {
			return
		}
	}
}

// epochAt is the leader epoch in which an end of a range was an offset of the log, or none.
func (st *stream) epochAt(end int64) int32 {
	epoch := int32(none)
	st.spans(end-1, math.MaxInt64, func(s *span) bool {
		epoch = s.epoch
		return false
	})
	return epoch
}

// drop lets go of chunks that end at an offset or before, and returns how many bytes that were.
func (st *stream) drop(upTo int64) (bytes int) {
	n := 0
	for n < len(st.chunks) && st.chunks[n].next <= upTo {
		bytes += st.chunks[n].size
		n++
	}
	if n > 0 {
		st.chunks = append([]*chunk(nil), st.chunks[n:]...)
	}
	return bytes
}

func (st *stream) size() (bytes int) {
	for _, c := range st.chunks {
		bytes += c.size
	}
	return bytes
}
