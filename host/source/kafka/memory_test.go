package kafka

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/source"
)

// drawStream makes a stream with chunks of stored batches of all kinds in it, some records of which are not committed.
func drawStream(t *rapid.T, num int) *stream {
	label := func(s string) string { return fmt.Sprint(s, num) }
	at := rapid.Int64Range(0, 1000).Draw(t, label("start"))
	st := &stream{partition: partition{"t", int32(num)}, id: "x", next: at, from: at, kept: at}
	for range rapid.IntRange(0, 4).Draw(t, label("chunks")) {
		c := &chunk{from: st.next, next: st.next, size: chunkCost}
		for range rapid.IntRange(1, 6).Draw(t, label("spans")) {
			base := c.next + rapid.Int64Range(0, 3).Draw(t, label("gap"))
			s := span{base: base, last: base + rapid.Int64Range(0, 500).Draw(t, label("records")), epoch: int32(st.next % 7)}
			if size := rapid.IntRange(0, 5000).Draw(t, label("bytes")); size > 100 {
				s.raw = make([]byte, batchHeader+size)
				s.unpacked = int64(size * (1 + 9*(size%2))) // compressed, or not
			}
			c.spans, c.next, c.size = append(c.spans, s), s.last+1, c.size+spanCost+len(s.raw)
		}
		st.chunks, st.next = append(st.chunks, c), c.next
	}
	st.end = st.next + rapid.Int64Range(0, 400).Draw(t, label("beyond"))*rapid.Int64Range(0, 1).Draw(t, label("more"))
	st.stop = math.MaxInt64
	return st
}

// TestSharesOfMemory: what is planned from memory is held, keeps to the limits, ends in an epoch of the log, and is
// something where there is something.
func TestSharesOfMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &Source{cfg: Config{Memory: rapid.IntRange(4096, 1<<20).Draw(t, "memory")}}
		p := newPrefetcher(s)
		pos := position{}
		var parts []ahead
		for num := range rapid.IntRange(1, 4).Draw(t, "partitions") {
			st := drawStream(t, num)
			p.streams[st.partition] = st
			from := rapid.Int64Range(st.first(), st.next).Draw(t, fmt.Sprint("from", num))
			pos.set(st.partition, "x", partPos{offset: from, epoch: none, start: none})
			a, ok := st.ahead(pos)
			if !ok {
				t.Fatal("what is held cannot be planned")
			}
			parts = append(parts, a)
		}
		limit := source.Limit{Records: rapid.Int64Range(0, 3000).Draw(t, "records"), Bytes: rapid.Int64Range(0, 30_000).Draw(t, "limit")}
		all := rapid.Bool().Draw(t, "all")
		if !p.share(parts, limit, all) {
			if all {
				t.Fatal("what is there is not shared out")
			}
			return
		}
		var taken, bytes, lag, largest int64
		for i := range parts {
			a := &parts[i]
			st := p.streams[a.partition]
			if a.take < 0 || a.start+a.take > st.next {
				t.Fatalf("%d offsets are taken of %d", a.take, st.next-a.start)
			}
			taken, lag = taken+a.take, lag+st.next-a.start
			bytes += st.weigh(a.start, a.start+a.take, math.MaxInt64).bytes
			st.spans(a.start, st.next, func(s *span) bool { largest = max(largest, s.unpacked); return true })
			if a.take > 0 && a.end.epoch == none {
				t.Fatal("no epoch is known of the end")
			}
		}
		if limit.Records > 0 && taken > limit.Records {
			t.Fatalf("%d records, the limit is %d", taken, limit.Records)
		}
		if limit.Bytes > 0 && taken > 1 && bytes > limit.Bytes+int64(len(parts))*largest {
			t.Fatalf("%d bytes, the limit is %d", bytes, limit.Bytes)
		}
		if lag > 0 && taken == 0 {
			t.Fatal("nothing is taken of what there is")
		}
	})
}

// TestWeigh counts what lies between offsets, in whole stored batches and in parts of them.
func TestWeigh(t *testing.T) {
	raw := make([]byte, batchHeader+1000)
	st := &stream{next: 30, chunks: []*chunk{
		{from: 0, next: 20, spans: []span{{base: 0, last: 9, raw: raw, unpacked: 1000}, {base: 10, last: 19}}},
		{from: 20, next: 30, spans: []span{{base: 20, last: 29, raw: raw, unpacked: 1000}}},
	}}
	for _, c := range []struct{ from, to, most, offsets, bytes int64 }{
		{0, 30, math.MaxInt64, 30, 2000},
		{0, 99, math.MaxInt64, 30, 2000},
		{5, 25, math.MaxInt64, 20, 1000},
		{0, 30, 1500, 20, 1000}, // up to a stored batch
		{0, 30, 300, 3, 0},      // within the first
		{10, 30, 100, 11, 0},    // nothing lies in the second
		{20, 30, 0, 0, 0},
		{30, 30, math.MaxInt64, 0, 0},
	} {
		w := st.weigh(c.from, c.to, c.most)
		if w.offsets != c.offsets || w.bytes != c.bytes {
			t.Errorf("from %d to %d, at most %d: %d offsets, %d bytes; want %d, %d", c.from, c.to, c.most, w.offsets, w.bytes, c.offsets, c.bytes)
		}
	}
}

// TestGather waits for what is on its way, wakes at an answer, and takes what there is when it is late or nothing comes.
func TestGather(t *testing.T) {
	p := newPrefetcher(&Source{cfg: Config{Memory: 1 << 20}})
	k := partition{"t", 0}
	st := &stream{partition: k, next: 10, end: none, stop: math.MaxInt64}
	p.streams[k] = st
	plan := func(late bool) (int64, <-chan struct{}) {
		parts := []ahead{{partition: k, start: 10, end: logEnd{40, none}}}
		wait := p.gather(parts, source.Limit{Bytes: 1000}, late)
		return parts[0].take, wait
	}
	n, wait := plan(false)
	if n != 0 || wait == nil || st.demand != 11 {
		t.Fatalf("%d offsets are taken of nothing, demand %d", n, st.demand)
	}
	if n, wait := plan(true); n != 0 || wait != nil {
		t.Errorf("late: %d offsets of nothing", n)
	}
	raw := make([]byte, batchHeader+100)
	st.chunks, st.next = []*chunk{{from: 10, next: 20, spans: []span{{base: 10, last: 19, raw: raw, unpacked: 100}}}}, 20
	p.move()
	<-wait
	if n, wait := plan(false); n != 0 || wait == nil {
		t.Errorf("%d offsets, and more is coming", n)
	}
	if n, wait := plan(true); n != 10 || wait != nil {
		t.Errorf("late: %d offsets of 10", n)
	}
	st.life = cold
	if n, wait := plan(false); n != 10 || wait != nil {
		t.Errorf("nothing comes any more: %d offsets of 10", n)
	}
}
