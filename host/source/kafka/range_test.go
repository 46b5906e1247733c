package kafka

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/host/source/sourcetest"
)

// everywhere runs a test against the fake broker, and against a real one when WASMILL_KAFKA has its address.
func everywhere(t *testing.T, test func(*testing.T, *world)) {
	t.Run("fake", func(t *testing.T) { test(t, newWorld(t)) })
	t.Run("real", func(t *testing.T) {
		addr := os.Getenv("WASMILL_KAFKA")
		if addr == "" {
			t.Skip("WASMILL_KAFKA names no broker")
		}
		test(t, connect(t, nil, []string{addr}))
	})
}

func TestConformanceReal(t *testing.T) {
	addr := os.Getenv("WASMILL_KAFKA")
	if addr == "" {
		t.Skip("WASMILL_KAFKA names no broker")
	}
	conform(t, connect(t, nil, []string{addr}))
}

// part reads offsets from up to to of partition 0 by a split of its own.
func (w *world) part(s *Source, topic string, from, to int64) []string {
	w.t.Helper()
	detail, err := json.Marshal(part{Topic: topic, From: from, To: to, Epoch: none})
	if err != nil {
		w.t.Fatal(err)
	}
	var c sourcetest.Collector
	if err := s.Read(w.t.Context(), source.Split{Name: topic + "-0", Detail: detail}, &c); err != nil {
		w.t.Fatalf("read from %d to %d: %v", from, to, err)
	}
	var out []string
	for _, r := range c.Records {
		out = append(out, fmt.Sprintf("%d %s", r.Offset, strings.Trim(r.Value, `"`)))
	}
	return out
}

// everyRange reads every range of partition 0 and compares it with the records that lie in it.
func (w *world) everyRange(s *Source, topic string, end int64, want map[int64]string) {
	w.t.Helper()
	for from := range end {
		for to := from + 1; to <= end; to++ {
			var in []string
			for off := from; off < to; off++ {
				if v, ok := want[off]; ok {
					in = append(in, fmt.Sprintf("%d %s", off, v))
				}
			}
			w.want(w.part(s, topic, from, to), in...)
			if w.t.Failed() {
				w.t.Fatalf("in the range from %d to %d", from, to)
			}
		}
	}
}

// TestTransactions has control records and aborted ones at the start, in the middle and at the end of ranges, and an open
// transaction before which the log ends.
func TestTransactions(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		topic := w.unique("tx")
		w.create(topic, 1)
		a, b, open := w.begin(topic+"-a"), w.begin(topic+"-b"), w.begin(topic+"-open")
		a.produce(topic, 0, "no-0", "no-1") // 0 1
		a.end(kgo.TryAbort)                 // 2
		a.again()
		w.produce(topic, 0, "p-3")          // 3
		a.produce(topic, 0, "a-4", "a-5")   // 4 5
		b.produce(topic, 0, "no-6")         // 6
		w.produce(topic, 0, "p-7", "p-8")   // 7 8
		a.end(kgo.TryCommit)                // 9
		b.produce(topic, 0, "no-10")        // 10
		b.end(kgo.TryAbort)                 // 11
		b.again()                           //
		b.produce(topic, 0, "b-12")         // 12
		b.end(kgo.TryCommit)                // 13
		a.again()                           //
		a.produce(topic, 0, "no-14")        // 14
		open.produce(topic, 0, "open-15")   // 15
		a.end(kgo.TryAbort)                 // 16: behind the open one
		w.produce(topic, 0, "p-17", "p-18") // 17 18
		want := map[int64]string{3: "p-3", 4: "a-4", 5: "a-5", 7: "p-7", 8: "p-8", 12: "b-12"}

		s := w.open(nil, topic)
		got, at := w.upTo(s, checkpoint.Position{}, topic, 15)
		n := topic + "-0@"
		w.want(got, n+"3 p-3", n+"4 a-4", n+"5 a-5", n+"7 p-7", n+"8 p-8", n+"12 b-12")
		if again := w.latest(s, at, source.Limit{}); again != at {
			t.Errorf("something is planned behind an open transaction: %s", again.Line)
		}
		w.everyRange(s, topic, 15, want)

		open.end(kgo.TryAbort) // 19
		got, at = w.upTo(s, at, topic, 20)
		w.want(got, n+"17 p-17", n+"18 p-18")
		if again := w.latest(s, at, source.Limit{}); again != at {
			t.Errorf("something is planned where nothing is: %s", again.Line)
		}
		want[17], want[18] = "p-17", "p-18"
		w.everyRange(s, topic, 20, want)

		for i := range 10 { // nothing but markers and aborted records
			a.again()
			a.produce(topic, 0, fmt.Sprint("no-", i))
			a.end(kgo.TryAbort)
		}
		got, _ = w.upTo(s, at, topic, 40)
		w.want(got)
	})
}

func TestUncommitted(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		topic := w.unique("dirty")
		w.create(topic, 1)
		a, open := w.begin(topic+"-a"), w.begin(topic+"-open")
		a.produce(topic, 0, "aborted") // 0
		a.end(kgo.TryAbort)            // 1
		open.produce(topic, 0, "open") // 2
		w.produce(topic, 0, "plain")   // 3
		s := w.open(func(c *Config) { c.Uncommitted = true }, topic)
		got, _ := w.all(s, checkpoint.Position{})
		n := topic + "-0@"
		w.want(got, n+"0 aborted", n+"2 open", n+"3 plain")
		w.everyRange(s, topic, 4, map[int64]string{0: "aborted", 2: "open", 3: "plain"})
	})
}

// TestCompacted has gaps at the start, in the middle and at the end of ranges.
func TestCompacted(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		topic := w.unique("compacted")
		w.create(topic, 1, "cleanup.policy", "compact", "segment.ms", "100", "min.cleanable.dirty.ratio", "0.001",
			"min.compaction.lag.ms", "0", "max.compaction.lag.ms", "100", "delete.retention.ms", "0")
		last := map[string]int64{}
		off := int64(0)
		put := func(keys ...string) {
			var values []string
			for _, k := range keys {
				values = append(values, fmt.Sprintf("%s=%d", k, off))
				last[k] = off
				off++
			}
			w.produce(topic, 0, values...)
		}
		put("a", "b", "c", "a")
		put("b")
		put("a", "d")
		put("a")
		put("e", "f", "e", "f", "a")
		put("end") // of its own segment, which is never compacted
		w.roll(topic, put)
		want := map[int64]string{}
		for _, o := range last {
			want[o] = fmt.Sprint(o)
		}
		s := w.open(nil, topic)
		w.compacted(s, topic, off, len(want))
		w.everyRange(s, topic, off, want)
	})
}

// roll makes a real broker close the segment that holds what was written.
func (w *world) roll(topic string, put func(...string)) {
	if w.fake != nil {
		return
	}
	for i := range 3 {
		wait(150 * time.Millisecond)
		put(fmt.Sprint("end-", i))
	}
}

// compacted waits until the log holds so few records.
func (w *world) compacted(s *Source, topic string, end int64, records int) {
	w.t.Helper()
	if w.fake != nil {
		w.fake.Compact()
		return
	}
	for range 120 {
		if len(w.part(s, topic, 0, end)) == records {
			return
		}
		wait(500 * time.Millisecond)
	}
	w.t.Fatalf("not compacted: %v", w.part(s, topic, 0, end))
}

// upTo reads all after a position once partition 0 can be read up to end, and no further: markers of a transaction are
// written after its end has been confirmed.
func (w *world) upTo(s *Source, from checkpoint.Position, topic string, end int64) ([]string, checkpoint.Position) {
	w.t.Helper()
	line := fmt.Sprintf(`{%q:{"0":%d}}`, topic, end)
	var to checkpoint.Position
	for range 100 {
		if to = w.latest(s, from, source.Limit{}); to.Line == line {
			return w.read(s, from, to), to
		}
		wait(20 * time.Millisecond)
	}
	w.t.Fatalf("planned up to %s, want %s", to.Line, line)
	return nil, to
}

func wait(d time.Duration) { <-time.After(d) }
