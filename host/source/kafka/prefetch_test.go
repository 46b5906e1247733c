package kafka

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

// TestReadFromMemory: small batches are planned and read from what one fetch has brought, and the cluster is asked for
// nothing more.
func TestReadFromMemory(t *testing.T) {
	w := newWorld(t)
	w.create("held", 1)
	var want []string
	for i := range 10 {
		w.produce("held", 0, numbers("v-", 10*i, 10)...)
	}
	for i := range 100 {
		want = append(want, fmt.Sprintf("held-0@%d v-%d", i, i))
	}
	ends := w.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Count: -1, Observe: true})
	fetches := w.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Count: -1, Observe: true})
	w.memory = true
	s := w.open(nil, "held")
	var got []string
	var at checkpoint.Position
	for range 15 {
		to := w.latest(s, at, source.Limit{Records: 7})
		got = append(got, w.read(s, at, to)...)
		if err := s.Release(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		at = to
	}
	w.want(got, want...)
	if n := fetches.Hits(); n > 3 { // one with data, and those that wait for more
		t.Errorf("%d fetches for 15 ranges of one answer", n)
	}
	if n := ends.Hits(); n > 3 { // both ends of the log for the first plan
		t.Errorf("%d times the ends were asked for", n)
	}
	if s.pre.bytes != 0 {
		t.Errorf("%d bytes are held of a log that is read to its end", s.pre.bytes)
	}
}

// run is a job over a source as the engine drives it: plan from memory, read, release, wait for news.
type run struct {
	w     *world
	s     *Source
	at    checkpoint.Position
	limit source.Limit
	got   []string
	// patience is how long news may take, 30 s when it is 0.
	patience time.Duration
}

// until runs batches until so many records are read, or fails when nothing comes for a while.
func (r *run) until(n int) {
	r.w.t.Helper()
	ctx, cancel := context.WithTimeout(r.w.t.Context(), cmp.Or(r.patience, 30*time.Second))
	defer cancel()
	for len(r.got) < n {
		if r.batch() {
			continue
		}
		select {
		case <-r.s.News():
		case <-ctx.Done():
			r.w.t.Fatalf("%d records, want %d, and no news", len(r.got), n)
		}
	}
}

// batch runs one batch, and reports whether there was one.
func (r *run) batch() bool {
	r.w.t.Helper()
	to := r.w.latest(r.s, r.at, r.limit)
	if to == r.at {
		return false
	}
	r.got = append(r.got, r.w.read(r.s, r.at, to)...)
	if err := r.s.Release(r.w.t.Context(), to); err != nil {
		r.w.t.Fatal(err)
	}
	r.at = to
	return true
}

// streaming opens a source that plans from memory.
func (w *world) streaming(change func(*Config), topics ...string) *run {
	w.t.Helper()
	w.memory = true
	return &run{w: w, s: w.open(change, topics...)}
}

// held is how many bytes are held, and how many by the streams' own count.
func (p *prefetcher) held() (bytes, counted int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, st := range p.streams {
		counted += st.size()
	}
	return p.bytes, counted
}

// forget drops all that is held.
func (p *prefetcher) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, st := range p.streams {
		p.remove(st)
	}
}

// ofPartitions gives records in order of their partitions, which is all the order that there is between batches.
func ofPartitions(list []string) []string {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b string) int {
		a, _, _ = strings.Cut(a, "@")
		b, _, _ = strings.Cut(b, "@")
		return strings.Compare(a, b)
	})
	return list
}

// TestMemoryIsBounded reads a backlog that is many times as large as the memory, in batches that fit and in one that does
// not, twice over: each time all records, and never much more in memory than is allowed.
func TestMemoryIsBounded(t *testing.T) {
	const memory, parts, each = 64 << 10, 4, 100
	w := newWorld(t)
	w.create("large", parts)
	var want []string
	for num := range int32(parts) {
		for i := range each {
			value := fmt.Sprintf("%s-%d", strings.Repeat("v", 2000), i)
			w.produce("large", num, value, value)
			want = append(want, fmt.Sprintf("large-%d@%d %s", num, 2*i, value), fmt.Sprintf("large-%d@%d %s", num, 2*i+1, value))
		}
	}
	for name, limit := range map[string]source.Limit{"small": {Records: 20}, "bytes": {Bytes: 30_000}, "half": {Records: 400}, "all": {}} {
		r := w.streaming(func(c *Config) { c.Memory = memory }, "large")
		r.limit = limit
		check := func() {
			t.Helper()
			bytes, counted := r.s.pre.held()
			if bytes != counted || bytes > memory+memory/pollShare+leastPart+5000 {
				t.Fatalf("%s: %d bytes are held, by count %d", name, bytes, counted)
			}
		}
		for len(r.got) < len(want) {
			from := r.at
			if !r.batch() {
				<-r.s.News()
				continue
			}
			check()
			if again := w.read(r.s, from, r.at); !slices.Equal(again, r.got[len(r.got)-len(again):]) {
				t.Fatalf("%s: a second reading gives something else", name)
			}
			check()
		}
		if got := ofPartitions(r.got); !slices.Equal(got, want) {
			t.Errorf("%s: %d records, want %d", name, len(got), len(want))
		}
		if bytes, counted := r.s.pre.held(); bytes != counted {
			t.Errorf("%s: %d bytes are counted of %d", name, bytes, counted)
		}
	}
}

// TestTroubleWhileStreaming: errors of fetches, leaders that move and connections that break cost time and nothing else,
// and are not asked about in a hot loop. A fresh source plans on from every position: no loss is seen where there is none.
func TestTroubleWhileStreaming(t *testing.T) {
	for name, limit := range map[string]source.Limit{"no limit": {}, "a limit of bytes": {Bytes: 1 << 20}} {
		t.Run(name, func(t *testing.T) { troubleWhileStreaming(t, limit) })
	}
}

func troubleWhileStreaming(t *testing.T, limit source.Limit) {
	w := newWorld(t, kfake.NumBrokers(3))
	w.create("moves", 1)
	fetches := w.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Count: -1, Observe: true})
	r := w.streaming(nil, "moves")
	r.limit = limit
	var want []string
	trouble := []error{
		nil, kerr.NotLeaderForPartition, kerr.FencedLeaderEpoch, kerr.UnknownLeaderEpoch, kerr.KafkaStorageError, kerr.OffsetOutOfRange,
		kerr.UnknownTopicID, kerr.UnknownTopicOrPartition, kerr.LeaderNotAvailable,
	}
	for i, err := range trouble {
		if kerr, ok := err.(*kerr.Error); ok {
			w.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr, Count: 2})
		}
		if i%3 == 2 {
			move(t, w, "moves")
		}
		w.produce("moves", 0, numbers("v-", 3*i, 3)...)
		for j := range 3 {
			want = append(want, fmt.Sprintf("moves-0@%d v-%d", 3*i+j, 3*i+j))
		}
		r.until(len(want))
		w.latest(w.open(nil, "moves"), r.at, limit)
	}
	w.want(r.got, want...)
	if n := fetches.Hits(); n > 200 {
		t.Errorf("%d fetches", n)
	}
}

// TestLossIsSeenWhileStreaming: what is gone is found also by a source that plans from memory.
func TestLossIsSeenWhileStreaming(t *testing.T) {
	for name, lose := range map[string]func(*world){
		"deleted": func(w *world) { w.drop("lost") },
		"made new": func(w *world) {
			w.drop("lost")
			w.create("lost", 1)
			connect(w.t, w.fake, w.brokers).produce("lost", 0, numbers("n-", 0, 50)...)
		},
		"expired": func(w *world) {
			w.produce("lost", 0, numbers("v-", 10, 10)...)
			w.deleteRecords("lost", 15)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create("lost", 1)
			w.produce("lost", 0, numbers("v-", 0, 10)...)
			r := w.streaming(nil, "lost")
			r.until(10)
			r.batch()
			lose(w)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			for {
				to, err := r.s.Latest(ctx, r.at, source.Limit{Records: 2})
				if err != nil {
					wantFault(t, err, CodeChanged, "lost")
					return
				}
				if to != r.at && name != "expired" {
					t.Fatalf("something is planned of a topic that is gone: %s", to.Line)
				}
				select {
				case <-r.s.News():
				case <-ctx.Done():
					t.Fatal("a loss is not seen")
				}
			}
		})
	}
}

// TestOpenTransaction: what is not committed is no news and costs no more fetches than an idle topic does.
func TestOpenTransaction(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		topic := w.unique("open")
		w.create(topic, 1)
		w.produce(topic, 0, "before")
		r := w.streaming(nil, topic)
		r.until(1)
		var fetches *kfake.FaultHandle
		if w.fake != nil {
			fetches = w.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Count: -1, Observe: true})
		}
		a, b := w.begin(topic+"-a"), w.begin(topic+"-b")
		a.produce(topic, 0, "a-0", "a-1") // 1 2
		b.produce(topic, 0, "b-0")        // 3
		w.produce(topic, 0, "plain")      // 4
		b.end(kgo.TryAbort)               // 5
		wait(1200 * time.Millisecond)
		if r.batch() {
			t.Fatalf("something is planned behind an open transaction: %v", r.got)
		}
		if fetches != nil && fetches.Hits() > 40 {
			t.Errorf("%d fetches in a second of waiting", fetches.Hits())
		}
		a.end(kgo.TryCommit) // 6
		r.until(4)
		n := topic + "-0@"
		w.want(r.got, n+"0 before", n+"1 a-0", n+"2 a-1", n+"4 plain")
	})
}

// TestIdle: a topic where nothing happens costs two fetches a second.
func TestIdle(t *testing.T) {
	w := newWorld(t)
	w.create("idle", 3)
	w.produce("idle", 0, "v")
	fetches := w.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Count: -1, Observe: true})
	asked := w.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets, kmsg.Metadata}, Count: -1, Observe: true})
	r := w.streaming(nil, "idle")
	r.until(1)
	before := asked.Hits()
	wait(1200 * time.Millisecond)
	r.batch()
	if n := fetches.Hits(); n > 8 {
		t.Errorf("%d fetches", n)
	}
	if n := asked.Hits() - before; n > 2 {
		t.Errorf("%d questions beside", n)
	}
}

// TestFrozenStream: nothing is fetched beyond the end of a frozen input.
func TestFrozenStream(t *testing.T) {
	w := newWorld(t)
	w.create("frozen", 1)
	w.produce("frozen", 0, numbers("v-", 0, 5)...)
	r := w.streaming(nil, "frozen")
	if err := r.s.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.produce("frozen", 0, numbers("v-", 5, 5)...)
	r.limit.Records = 2
	for r.batch() {
	}
	w.want(r.got, "frozen-0@0 v-0", "frozen-0@1 v-1", "frozen-0@2 v-2", "frozen-0@3 v-3", "frozen-0@4 v-4")
}

// TestDamageWhileStreaming: damaged bytes are fetched again, and bytes that stay damaged end in a fault.
func TestDamageWhileStreaming(t *testing.T) {
	for _, times := range []int{1, 1 << 30} {
		w := newWorld(t)
		w.create("broken", 1)
		w.produce("broken", 0, "v-0")
		r := w.streaming(nil, "broken")
		r.until(1)
		var left atomic.Int64
		left.Store(int64(times))
		w.fake.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
			w.fake.KeepControl()
			req := kreq.(*kmsg.FetchRequest)
			if at := req.Topics[0].Partitions[0].FetchOffset; at != 1 || left.Add(-1) < 0 {
				return nil, nil, false
			}
			resp := emptyAnswer(req, 2)
			raw := stored(1, 1, 0, 1, record(0, "k", "v-1"))
			raw[len(raw)-2] ^= 1
			resp.Topics[0].Partitions[0].RecordBatches = raw
			return resp, nil, true
		})
		w.produce("broken", 0, "v-1")
		if times == 1 {
			r.until(2)
			w.want(r.got, "broken-0@0 v-0", "broken-0@1 v-1")
			continue
		}
		for {
			to := w.latest(r.s, r.at, source.Limit{})
			if to == r.at {
				<-r.s.News()
				continue
			}
			_, err := tryRead(t.Context(), r.s, r.at, to)
			wantFault(t, err, CodeCorrupt, "broken-0", "checksum")
			break
		}
	}
}

// TestCompactedTooSoon: a topic that is compacted before the job gives its batches up gets a warning, once.
func TestCompactedTooSoon(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		soon, late, not := w.unique("soon"), w.unique("late"), w.unique("not")
		w.create(soon, 1, "cleanup.policy", "compact,delete", "min.compaction.lag.ms", "60000")
		w.create(late, 1, "cleanup.policy", "compact", "min.compaction.lag.ms", "3600000")
		w.create(not, 1)
		s := w.open(func(c *Config) { c.Replay = time.Hour }, soon, late, not)
		for range 3 {
			w.latest(s, checkpoint.Position{}, source.Limit{})
		}
		for range 500 {
			w.mu.Lock()
			n := len(w.warned)
			w.mu.Unlock()
			if n > 0 {
				break
			}
			wait(10 * time.Millisecond)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.warned) != 1 {
			t.Fatalf("warned: %v", w.warned)
		}
		wantFault(t, w.warned[0], CodeCompaction, "topic "+soon, "1m0s after", "1h0m0s")
	})
}

// reads counts the bytes of answers to fetches.
type reads struct{ bytes atomic.Int64 }

// OnBrokerRead implements kgo.HookBrokerRead.
func (r *reads) OnBrokerRead(_ kgo.BrokerMetadata, key int16, n int, _, _ time.Duration, _ error) {
	if key == int16(kmsg.Fetch) {
		r.bytes.Add(int64(n))
	}
}

// TestFetchedOnce: whatever the size of batches, little more is fetched than there is.
func TestFetchedOnce(t *testing.T) {
	const memory = 1 << 20
	w := newWorld(t)
	w.create("once", 4)
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	value := strings.Repeat("v", 200)
	records, bytes := 0, 0
	for i := range 256 { // stored batches of about 16 KiB
		var values []string
		for range 75 {
			values = append(values, value)
			records++
			bytes += len(value)
		}
		w.write(cl, "once", int32(i%4), values...)
	}
	for _, limit := range []int64{100, 500, 2000, 5000, 0} {
		var fetched reads
		r := w.streaming(func(c *Config) { c.Memory, c.Options = memory, []kgo.Opt{kgo.WithHooks(&fetched)} }, "once")
		r.limit = source.Limit{Records: limit, Bytes: 64 << 20}
		r.until(records)
		share := float64(fetched.bytes.Load()) / float64(bytes)
		t.Logf("batches of %d: %.2f of the topic is fetched", limit, share)
		if share > 1.25 { // 7 bytes a record are beside its value
			t.Errorf("batches of %d: %.2f of the topic is fetched", limit, share)
		}
	}
}

// TestCloseWakesReaders: a reader that waits for a fetch does not wait for ever.
func TestCloseWakesReaders(t *testing.T) {
	w := newWorld(t)
	w.create("closed", 1)
	w.produce("closed", 0, "v-0")
	r := w.streaming(nil, "closed")
	r.until(1)
	failed := make(chan error, 1)
	id := r.s.meta.get("closed").id
	go func() {
		detail := fmt.Appendf(nil, `{"topic":"closed","id":%q,"partition":0,"from":1,"to":5,"epoch":-1}`, id)
		failed <- r.s.Read(context.Background(), source.Split{Name: "closed-0", Detail: detail}, nobody{})
	}()
	waits := func() bool {
		r.s.pre.mu.Lock()
		defer r.s.pre.mu.Unlock()
		return r.s.pre.streams[partition{"closed", 0}].demand == 5
	}
	for !waits() && len(failed) == 0 {
		wait(time.Millisecond)
	}
	if err := r.s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Error("a read beyond the end of a log ends well")
	}
}
