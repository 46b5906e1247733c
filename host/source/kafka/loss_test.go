package kafka

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/source"
)

func skip(c *Config) { c.SkipLost = true }

// failLatest asserts that planning on from a position ends in a fault.
func (w *world) failLatest(s *Source, from checkpoint.Position, code string, words ...string) {
	w.t.Helper()
	_, err := s.Latest(w.t.Context(), from, source.Limit{})
	wantFault(w.t, err, code, words...)
}

func (w *world) wantWarned(words ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.warned) == 0 {
		w.t.Fatal("a loss is skipped without a word")
	}
	wantFault(w.t, w.warned[0], CodeChanged, words...)
	if f, _ := errors.AsType[*fault.Error](w.warned[0]); strings.Contains(f.Hint(), "onDataLoss") {
		w.t.Errorf("the warning says to do what is done: %s", f.Hint())
	}
}

// deleteRecords moves the start of partition 0 up.
func (w *world) deleteRecords(topic string, to int64) {
	w.t.Helper()
	var off kadm.Offsets
	off.Add(kadm.Offset{Topic: topic, At: to})
	resp, err := w.admin.DeleteRecords(w.t.Context(), off)
	if err := errors.Join(err, resp.Error()); err != nil {
		w.t.Fatal(err)
	}
}

// TestExpired: retention, or a user, deletes what was not read, before and after it is planned.
func TestExpired(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		topic := w.unique("expired")
		w.create(topic, 1)
		w.produce(topic, 0, "v-0", "v-1", "v-2", "v-3")
		w.produce(topic, 0, "v-4", "v-5")
		at := w.latest(w.open(nil, topic), checkpoint.Position{}, source.Limit{Records: 2})
		planned := w.latest(w.open(nil, topic), at, source.Limit{})
		w.deleteRecords(topic, 5)

		w.failLatest(w.open(nil, topic), at, CodeChanged, topic+"-0", "offsets 2 to 4", "begins at 5")
		s := w.open(nil, topic)
		got, err := tryRead(t.Context(), s, at, planned)
		wantFault(t, err, CodeChanged, topic+"-0", "offsets 2 to 4", "begins at 5")
		w.want(got)

		s = w.open(skip, topic)
		got, to := w.all(s, at)
		w.want(got, topic+"-0@5 v-5")
		w.wantWarned("offsets 2 to 4")
		w.want(w.read(w.open(nil, topic), at, to), topic+"-0@5 v-5") // the plan says where it begins
		if again := w.latest(s, to, source.Limit{}); again != to {
			t.Errorf("something is planned after it: %s", again.Line)
		}
		w.produce(topic, 0, "v-6")
		got, _ = w.all(s, to)
		w.want(got, topic+"-0@6 v-6")
	})
}

// TestPlannedAnew: what a read has found to be lost is left out by the plan that is made instead, at once.
func TestPlannedAnew(t *testing.T) {
	w := newWorld(t)
	w.create("anew", 1)
	w.produce("anew", 0, "v-0", "v-1", "v-2")
	w.produce("anew", 0, "v-3")
	s := w.open(skip, "anew")
	at := w.latest(s, checkpoint.Position{}, source.Limit{Records: 1})
	planned := w.latest(s, at, source.Limit{})
	w.deleteRecords("anew", 3)
	s.pre.forget()
	_, err := tryRead(t.Context(), s, at, planned)
	wantFault(t, err, CodeChanged, "offsets 1 to 2")
	got, _ := w.all(s, at)
	w.want(got, "anew-0@3 v-3")
}

// TestExpiredWhole: nothing of a log is left but its offsets.
func TestExpiredWhole(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		topic := w.unique("emptied")
		w.create(topic, 1)
		w.produce(topic, 0, "v-0", "v-1")
		all := w.latest(w.open(nil, topic), checkpoint.Position{}, source.Limit{})
		some := w.latest(w.open(nil, topic), checkpoint.Position{}, source.Limit{Records: 1})
		w.deleteRecords(topic, 2)
		s := w.open(nil, topic)
		if again := w.latest(s, all, source.Limit{}); again != all {
			t.Errorf("something is planned in a log that was read before it was emptied: %s", again.Line)
		}
		w.failLatest(s, some, CodeChanged, "offsets 1 to 1")
		if to := w.latest(s, checkpoint.Position{}, source.Limit{}); !to.IsZero() {
			t.Errorf("something is planned in an empty log: %s", to.Line)
		}
		w.produce(topic, 0, "v-2")
		got, _ := w.all(s, checkpoint.Position{})
		w.want(got, topic+"-0@2 v-2")
	})
}

func TestDeletedTopic(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		stays, goes := w.unique("stays"), w.unique("goes")
		w.create(stays, 1)
		w.create(goes, 1)
		w.produce(stays, 0, "s-0")
		w.produce(goes, 0, "g-0", "g-1")
		running := w.open(nil, stays, goes)
		at := w.latest(running, checkpoint.Position{}, source.Limit{Records: 2})
		planned := w.latest(running, at, source.Limit{})
		w.drop(goes)
		w.produce(stays, 0, "s-1")

		w.failLatest(running, at, CodeChanged, goes+"-0", "gone")
		w.failLatest(w.open(nil, stays, goes), at, CodeChanged, goes+"-0", "gone", "after offset 1")
		w.failLatest(w.open(func(c *Config) { c.Pattern = stays + "|" + goes }), at, CodeChanged, goes+"-0", "gone")
		_, err := tryRead(t.Context(), w.open(nil, stays, goes), at, planned)
		wantFault(t, err, CodeChanged, goes+"-0", "gone", "offsets 1 to 1")

		s := w.open(skip, stays, goes)
		got, to := w.all(s, at)
		w.want(got, stays+"-0@1 s-1")
		w.wantWarned(goes+"-0", "gone")
		if again := w.latest(s, to, source.Limit{}); again != to {
			t.Errorf("something is planned after it: %s", again.Line)
		}
	})
}

func TestRecreatedTopic(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		topic := w.unique("again")
		w.create(topic, 1)
		w.produce(topic, 0, "old-0", "old-1", "old-2")
		running := w.open(nil, topic)
		at := w.latest(running, checkpoint.Position{}, source.Limit{Records: 1})
		planned := w.latest(running, at, source.Limit{})
		w.drop(topic)
		for range 50 {
			if resp, err := w.admin.CreateTopic(t.Context(), 1, 1, nil, topic); err == nil && resp.Err == nil {
				break
			}
			wait(100 * time.Millisecond)
		}
		for range 50 { // a producer pins the id of a topic
			other := connect(t, w.fake, w.brokers)
			if err := other.tryProduce(topic, "new-0", "new-1", "new-2", "new-3"); err == nil {
				break
			}
			wait(100 * time.Millisecond)
		}

		running.pre.forget() // what is in memory was read of the old one
		_, err := tryRead(t.Context(), running, at, planned)
		wantFault(t, err, CodeChanged, topic+"-0", "made anew", "offsets 1 to 2")
		_, err = tryRead(t.Context(), w.open(nil, topic), at, planned)
		wantFault(t, err, CodeChanged, topic+"-0", "made anew")
		w.failLatest(w.open(nil, topic), at, CodeChanged, topic+"-0", "made anew")
		w.now = w.now.Add(time.Minute)
		w.failLatest(running, at, CodeChanged, topic+"-0", "made anew")

		s := w.open(skip, topic)
		got, to := w.all(s, at)
		n := topic + "-0@"
		w.want(got, n+"0 new-0", n+"1 new-1", n+"2 new-2", n+"3 new-3")
		w.want(w.read(w.open(nil, topic), at, to), got...)
	})
}

// TestRecreatedBetweenLooks: offsets of a topic that was made anew are not taken for those of the one that was looked up
// some seconds ago.
func TestRecreatedBetweenLooks(t *testing.T) {
	w := newWorld(t)
	w.create("wiped", 1)
	w.produce("wiped", 0, numbers("old-", 0, 10)...)
	w.memory = true
	running := w.open(nil, "wiped")
	at := w.latest(running, checkpoint.Position{}, source.Limit{})
	w.drop("wiped")
	w.create("wiped", 1)
	connect(t, w.fake, w.brokers).produce("wiped", 0, "new-0", "new-1")
	running.pre.forget()
	running.stale.Store(false)
	if running.due() {
		t.Fatal("the topics are looked up anew in any case")
	}
	w.failLatest(running, at, CodeChanged, "wiped-0", "made anew")
	if err := w.fake.DeleteRecords("wiped", 0, 1); err != nil {
		t.Fatal(err)
	}
	got, _ := w.all(w.open(skip, "wiped"), at)
	w.want(got, "wiped-0@1 new-1")
}

// TestTruncated: a leader of another epoch does not have what was read.
func TestTruncated(t *testing.T) {
	w := newWorld(t, kfake.NumBrokers(2))
	w.create("cut", 1)
	w.produce("cut", 0, "v-0", "v-1", "v-2", "v-3")
	before := w.latest(w.open(nil, "cut"), checkpoint.Position{}, source.Limit{Records: 1})
	at := w.latest(w.open(nil, "cut"), before, source.Limit{})
	move(t, w, "cut")
	w.produce("cut", 0, "v-4", "v-5")
	w.fake.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		w.fake.KeepControl()
		req := r.(*kmsg.OffsetForLeaderEpochRequest)
		resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
		topic := kmsg.NewOffsetForLeaderEpochResponseTopic()
		topic.Topic = "cut"
		p := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
		p.LeaderEpoch, p.EndOffset = 0, 2
		topic.Partitions = append(topic.Partitions, p)
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
	w.failLatest(w.open(nil, "cut"), at, CodeChanged, "cut-0", "cut at offset 2", "read up to 4")
	_, err := tryRead(t.Context(), w.open(nil, "cut"), before, at)
	wantFault(t, err, CodeChanged, "cut-0", "cut at offset 2", "planned up to 4")

	s := w.open(skip, "cut")
	got, to := w.all(s, at)
	w.want(got, "cut-0@2 v-2", "cut-0@3 v-3", "cut-0@4 v-4", "cut-0@5 v-5")
	w.wantWarned("cut at offset 2")
	w.want(w.read(s, at, to), got...)
}

// TestShorterLog: the log ends before what was read, and goes on doing so.
func TestShorterLog(t *testing.T) {
	w := newWorld(t)
	w.create("short", 1)
	w.produce("short", 0, "v-0", "v-1")
	at := w.latest(w.open(nil, "short"), checkpoint.Position{}, source.Limit{})
	p, err := parsePosition(at)
	if err != nil {
		t.Fatal(err)
	}
	p.set(partition{"short", 0}, p["short"].id, partPos{offset: 5, epoch: 0, start: none})
	at, err = p.format()
	if err != nil {
		t.Fatal(err)
	}
	quick := func(c *Config) { c.Patience = time.Second }
	w.failLatest(w.open(quick, "short"), at, CodeChanged, "short-0", "cut at offset 2", "read up to 5")
	s := w.open(func(c *Config) { quick(c); skip(c) }, "short")
	if got, _ := w.all(s, at); len(got) > 0 {
		t.Errorf("records were made up: %v", got)
	}
}

// TestLateEnd: an end that lies before what was read may be an error of the moment.
func TestLateEnd(t *testing.T) {
	w := newWorld(t)
	w.create("late", 1)
	w.produce("late", 0, "v-0", "v-1")
	s := w.open(nil, "late")
	at := w.latest(s, checkpoint.Position{}, source.Limit{})
	w.produce("late", 0, "v-2")
	n := 0
	w.fake.ControlKey(int16(kmsg.ListOffsets), func(r kmsg.Request) (kmsg.Response, error, bool) {
		req := r.(*kmsg.ListOffsetsRequest)
		w.fake.KeepControl()
		if req.Topics[0].Partitions[0].Timestamp != atEnd {
			return nil, nil, false
		}
		if n++; n > 3 {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
		topic := kmsg.NewListOffsetsResponseTopic()
		topic.Topic = "late"
		p := kmsg.NewListOffsetsResponseTopicPartition()
		p.Offset, p.LeaderEpoch = 1, 0
		topic.Partitions = append(topic.Partitions, p)
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
	got, _ := w.all(s, at)
	w.want(got, "late-0@2 v-2")
	if n < 4 {
		t.Errorf("the end was asked for %d times", n)
	}
}

// TestNewPartitionWithoutItsBeginning: what a new partition held is gone before it was seen.
func TestNewPartitionWithoutItsBeginning(t *testing.T) {
	w := newWorld(t)
	w.create("grows", 1)
	w.produce("grows", 0, "v-0")
	at := w.latest(w.open(nil, "grows"), checkpoint.Position{}, source.Limit{})
	if _, err := w.admin.CreatePartitions(t.Context(), 1, "grows"); err != nil {
		t.Fatal(err)
	}
	other := connect(t, w.fake, w.brokers)
	other.produce("grows", 1, "n-0", "n-1")
	if err := w.fake.DeleteRecords("grows", 1, 1); err != nil {
		t.Fatal(err)
	}
	w.failLatest(w.open(nil, "grows"), at, CodeChanged, "grows-1", "begins at offset 1")
	got, _ := w.all(w.open(skip, "grows"), at)
	w.want(got, "grows-1@1 n-1")
}

// TestCompactedAway: a log that reaches to the end of a range and holds nothing before it. What it holds next tells.
func TestCompactedAway(t *testing.T) {
	w := newWorld(t)
	w.create("away", 1)
	for _, v := range numbers("v-", 0, 4) {
		w.produce("away", 0, v)
	}
	fetches, next := 0, int64(3)
	w.fake.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		w.fake.KeepControl()
		req := r.(*kmsg.FetchRequest)
		if fetches++; req.IsolationLevel == readCommitted {
			return emptyAnswer(req, 3), nil, true
		}
		req.Topics[0].Partitions[0].FetchOffset = next
		return nil, nil, false
	})
	s := w.open(nil, "away")
	w.want(w.part(s, "away", 0, 3))
	if fetches != emptyFetches+1 {
		t.Errorf("%d fetches, want %d", fetches, emptyFetches+1)
	}
	quick := w.open(func(c *Config) { c.Patience = time.Second }, "away")
	read := func(to int64, words ...string) {
		t.Helper()
		fetches = 0
		detail := fmt.Appendf(nil, `{"topic":"away","partition":0,"from":0,"to":%d,"epoch":-1}`, to)
		err := quick.Read(t.Context(), source.Split{Name: "away-0", Detail: detail}, nobody{})
		wantFault(t, err, CodeStalled, append(words, "away-0")...)
		if fetches > 20 {
			t.Errorf("%d fetches in a second: a hot loop", fetches)
		}
	}
	read(4, "ends at offset 3", "range at 4")
	for next = range int64(3) { // the broker does not give what it holds
		read(3, "at offset 0 brings nothing", "ends at 3")
	}
}

func emptyAnswer(req *kmsg.FetchRequest, end int64) *kmsg.FetchResponse {
	resp := req.ResponseKind().(*kmsg.FetchResponse)
	topic := kmsg.NewFetchResponseTopic()
	topic.Topic, topic.TopicID = req.Topics[0].Topic, req.Topics[0].TopicID
	p := kmsg.NewFetchResponseTopicPartition()
	p.HighWatermark, p.LastStableOffset, p.LogStartOffset = end, end, 0
	topic.Partitions = append(topic.Partitions, p)
	resp.Topics = append(resp.Topics, topic)
	return resp
}

// TestErrorsThatGoBy: a leader that moves, and answers that ask for another try, cost time and nothing else.
func TestErrorsThatGoBy(t *testing.T) {
	w := newWorld(t, kfake.NumBrokers(3))
	w.create("moves", 1)
	var want []string
	for i := range 20 {
		w.produce("moves", 0, numbers("v-", i*5, 5)...)
		for j := range 5 {
			want = append(want, fmt.Sprintf("moves-0@%d v-%d", i*5+j, i*5+j))
		}
		move(t, w, "moves")
	}
	s := w.open(func(c *Config) { c.FetchBytes = 1 }, "moves")
	at := w.latest(s, checkpoint.Position{}, source.Limit{})
	w.fake.Fault(
		kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.NotLeaderForPartition, Count: 2},
		kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.FencedLeaderEpoch},
		kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.OffsetOutOfRange, Count: outOfRange - 1},
		kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Err: kerr.LeaderNotAvailable},
		kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.KafkaStorageError},
	)
	w.want(w.read(s, checkpoint.Position{}, at), want...)
	move(t, w, "moves")
	w.want(w.read(s, checkpoint.Position{}, at), want...)
}

func move(t *testing.T, w *world, topic string) {
	t.Helper()
	addrs := len(w.fake.ListenAddrs())
	if err := w.fake.MoveTopicPartition(topic, 0, (w.fake.LeaderFor(topic, 0)+1)%int32(addrs)); err != nil {
		t.Fatal(err)
	}
}
