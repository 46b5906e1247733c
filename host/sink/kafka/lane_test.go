package kafka_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/kafka"
)

func TestConfig(t *testing.T) {
	for _, test := range []struct {
		name, says string
		change     func(*kafka.Config)
	}{
		{"no sinks", "no sink", func(c *kafka.Config) { c.Sinks = nil }},
		{"no clock", "clock", func(c *kafka.Config) { c.Clock = nil }},
		{"no name", "name", func(c *kafka.Config) { c.Connection.Name = "" }},
		{"no topic", "topic", func(c *kafka.Config) { c.Sinks[0].Topic = "" }},
		{"a bad topic", "no name of a topic", func(c *kafka.Config) { c.Sinks[0].Topic = "a b" }},
		{"dots", "no name of a topic", func(c *kafka.Config) { c.Sinks[0].Topic = ".." }},
		{"our own topics", "underscores", func(c *kafka.Config) { c.Sinks[0].Topic = "__consumer_offsets" }},
		{"a header without a list", "list", func(c *kafka.Config) { c.Sinks[0].TopicHeader = "to" }},
		{"a list without a header", "header", func(c *kafka.Config) { c.Sinks[0].Topics = []string{"a"} }},
		{"twice", "two sinks", func(c *kafka.Config) { c.Sinks = append(c.Sinks, c.Sinks[0]) }},
		{"compression", "compression", func(c *kafka.Config) { c.Compression = "snappy" }},
		{"delivery", "delivery", func(c *kafka.Config) { c.Guarantee = "at-most-once" }},
		{"a small message", "message", func(c *kafka.Config) { c.MaxMessage = 1 }},
		{"a short timeout", "timeout", func(c *kafka.Config) { c.TransactionTimeout = time.Millisecond }},
		{"no patience", "patience", func(c *kafka.Config) { c.Patience = -1 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := (&cluster{addrs: []string{"127.0.0.1:9092"}, conn: "main"}).config(nil)
			test.change(&cfg)
			_, err := kafka.New(cfg)
			wantFault(t, err, kafka.CodeConfig)
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("%q does not say %q", err, test.says)
			}
		})
	}
}

func TestMisfits(t *testing.T) {
	c := &cluster{addrs: []string{"127.0.0.1:9092"}, conn: "main"}
	target := c.target(t, nil, func(cfg *kafka.Config) {
		cfg.MaxMessage = 600
		cfg.Sinks = []kafka.Sink{{Name: "orders", TopicHeader: "to", Topics: []string{"out", "other"}}}
	})
	l, err := target.NewLane("orders")
	if err != nil {
		t.Fatal(err)
	}
	to := func(topic string) []abi.Header { return []abi.Header{{Name: []byte("to"), Value: []byte(topic)}} }
	for _, test := range []struct {
		name, code string
		r          abi.Record
	}{
		{"no topic", "missing", abi.Record{Value: []byte("x")}},
		{"a topic that is not allowed", "range", abi.Record{Headers: to("secret")}},
		{"an empty topic", "range", abi.Record{Headers: to("")}},
		{"before 1970", "range", abi.Record{Headers: to("out"), EventTime: -1000, Flags: abi.FlagEventTime}},
		{"a large value", "length", abi.Record{Headers: to("out"), Value: make([]byte, 600)}},
		{"a large key", "length", abi.Record{Headers: to("out"), Key: make([]byte, 600)}},
		{"a large header", "length", abi.Record{Headers: append(to("out"), abi.Header{Name: []byte("h"), Value: make([]byte, 600)})}},
	} {
		var m *sink.Misfit
		if err := l.Append(&test.r); !errors.As(err, &m) || m.Code != test.code || m.Reason == "" {
			t.Errorf("%s: %v, want a misfit %s", test.name, err, test.code)
		}
	}
	if l.Rows() != 0 || l.Bytes() != 0 {
		t.Errorf("misfits are kept: %d rows of %d bytes", l.Rows(), l.Bytes())
	}
	if err := l.Append(&abi.Record{Headers: to("other"), Value: make([]byte, 400)}); err != nil {
		t.Error(err)
	}
}

// TestKeyedSinks: an upsert needs a key; without a value it is a tombstone.
func TestKeyedSinks(t *testing.T) {
	c := &cluster{addrs: []string{"127.0.0.1:9092"}, conn: "main"}
	target := c.target(t, nil, func(cfg *kafka.Config) { cfg.Sinks = []kafka.Sink{{Name: "orders", Topic: "out", Keyed: true}} })
	l, err := target.NewLane("orders")
	if err != nil {
		t.Fatal(err)
	}
	var m *sink.Misfit
	if err := l.Append(&abi.Record{Value: []byte("x")}); !errors.As(err, &m) || m.Code != "missing" || m.Column != "key" || l.Rows() != 0 {
		t.Errorf("without a key: %v, %d rows", err, l.Rows())
	}
	for _, r := range []abi.Record{{Key: []byte("k"), Value: []byte("x")}, {Key: []byte{}, Value: []byte("x")}, {Key: []byte("k")}} {
		if err := l.Append(&r); err != nil {
			t.Errorf("key %q, value %q: %v", r.Key, r.Value, err)
		}
	}
	if l.Rows() != 3 {
		t.Errorf("%d rows", l.Rows())
	}
}

// TestRecordsArriveWhole publishes keys, values, headers and times of every kind, null and empty told apart.
func TestRecordsArriveWhole(t *testing.T) {
	c := newFake(t)
	target := c.opened(t, nil)
	batch := time.UnixMilli(1_700_000_000_000)
	recs := []abi.Record{
		{Key: []byte("k"), Value: []byte("v"), EventTime: 1_600_000_000_123_000, Flags: abi.FlagEventTime},
		{Key: []byte("k"), Value: nil},
		{Key: []byte("k"), Value: []byte{}},
		{Key: []byte{}, Value: []byte("empty key")},
		{Key: []byte("k"), Value: []byte("h"), Headers: []abi.Header{
			{Name: []byte("a"), Value: []byte("1")},
			{Name: []byte("a"), Value: nil},
			{Name: []byte(""), Value: []byte{}},
		}},
		{Value: []byte("no key")},
	}
	want := []*kgo.Record{
		{Key: []byte("k"), Value: []byte("v"), Timestamp: time.UnixMilli(1_600_000_000_123)},
		{Key: []byte("k"), Timestamp: batch},
		{Key: []byte("k"), Value: []byte{}, Timestamp: batch},
		{Key: []byte{}, Value: []byte("empty key"), Timestamp: batch},
		{Key: []byte("k"), Value: []byte("h"), Timestamp: batch, Headers: []kgo.RecordHeader{
			{Key: "a", Value: []byte("1")}, {Key: "a"}, {Key: "", Value: []byte{}},
		}},
		{Value: []byte("no key"), Timestamp: batch},
	}
	mustPublish(t, target, 0, recs...)
	show := func(r *kgo.Record) string {
		return fmt.Sprintf("%#v %#v %#v %d", r.Key, r.Value, r.Headers, r.Timestamp.UnixMilli())
	}
	var gotText, wantText []string
	for _, r := range c.committed(t, "out") {
		if len(r.Headers) == 0 {
			r.Headers = nil
		}
		gotText = append(gotText, show(r))
	}
	for _, r := range want {
		wantText = append(wantText, show(r))
	}
	slices.Sort(gotText)
	slices.Sort(wantText)
	if diff := cmp.Diff(wantText, gotText); diff != "" {
		t.Error(diff)
	}
}

// javaHashes are the murmur2 hashes in the UtilsTest of Kafka's own clients. A partition is a hash without its sign bit,
// modulo the number of partitions.
var javaHashes = map[string]int32{
	"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536, "a-little-bit-longer-string": -1486304829,
	"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971, "abc": 479470107,
}

// TestPartitions: keys go where the Java client sends them. Records without one go around in runs, the same way again: a
// small batch to one partition, which is another one for the next batch.
func TestPartitions(t *testing.T) {
	c := newFake(t)
	target := c.opened(t, nil)
	var keyed, few, many []abi.Record
	for _, key := range slices.Sorted(maps.Keys(javaHashes)) {
		keyed = append(keyed, record(key, key))
	}
	for i := range 9 {
		few = append(few, abi.Record{Value: []byte("few " + strconv.Itoa(i))})
	}
	for range 36 {
		many = append(many, abi.Record{Value: append([]byte("many "), make([]byte, 100_000)...)})
	}
	mustPublish(t, target, 0, keyed...)
	mustStage(t, target, 1, few...)
	if err := target.Abort(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	mustPublish(t, target, 1, few...)
	mustPublish(t, target, 2, many...)
	got := map[string][]int{}
	for _, r := range c.committed(t, "out") {
		if r.Key == nil {
			kind, _, _ := strings.Cut(string(r.Value), " ")
			if got[kind] == nil {
				got[kind] = make([]int, 4)
			}
			got[kind][r.Partition]++
			continue
		}
		seen := "keyed"
		if got[seen] == nil {
			got[seen] = make([]int, 4)
		}
		got[seen][0]++
		if want := javaHashes[string(r.Key)] & 0x7fffffff % 4; r.Partition != want {
			t.Errorf("key %s is in partition %d, want %d", r.Key, r.Partition, want)
		}
	}
	want := map[string][]int{"keyed": {len(keyed), 0, 0, 0}, "few": {0, 9, 0, 0}, "many": {9, 9, 9, 9}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestLanesKeepOrder publishes several lanes of two sinks in random sizes: each partition has them in order.
func TestLanesKeepOrder(t *testing.T) {
	c := newFake(t)
	target := c.target(t, nil, func(cfg *kafka.Config) {
		cfg.Compression = kafka.Zstd
		cfg.Sinks = append(cfg.Sinks, kafka.Sink{Name: "more", Topic: "other"})
	})
	if _, err := target.Open(t.Context(), c.owner()); err != nil {
		t.Fatal(err)
	}
	lanes := map[string][]sink.Lane{}
	for _, name := range []string{"orders", "more"} {
		for range 3 {
			l, err := target.NewLane(name)
			if err != nil {
				t.Fatal(err)
			}
			lanes[name] = append(lanes[name], l)
		}
	}
	id, next := checkpoint.BatchID(0), 0
	want := map[string]map[string][]string{"out": {}, "other": {}}
	rapid.Check(t, func(rt *rapid.T) {
		out := sink.Output{Batch: id, TimeMS: 1, Digest: digest(id), Attempt: "0000000a"}
		for name, topic := range map[string]string{"orders": "out", "more": "other"} {
			so := sink.SinkOutput{Name: name}
			for _, l := range lanes[name] {
				l.Reset()
				for range rapid.IntRange(0, 20).Draw(rt, "rows") {
					key, value := "k"+strconv.Itoa(next%5), strconv.Itoa(next)
					next++
					r := record(key, value)
					if err := l.Append(&r); err != nil {
						rt.Fatal(err)
					}
					want[topic][key] = append(want[topic][key], value)
				}
				so.Lanes = append(so.Lanes, l)
			}
			out.Sinks = append(out.Sinks, so)
		}
		s, err := target.Stage(t.Context(), out)
		if err != nil {
			rt.Fatal(err)
		}
		if err := target.Publish(t.Context(), decision(id), s); err != nil {
			rt.Fatal(err)
		}
		id++
	})
	for topic, keys := range want {
		got := map[string][]string{}
		for _, r := range c.committed(t, topic) {
			got[string(r.Key)] = append(got[string(r.Key)], string(r.Value))
		}
		if diff := cmp.Diff(keys, got); diff != "" {
			t.Errorf("topic %s (-want +got):\n%s", topic, diff)
		}
	}
}

// TestLaneOfSomethingElse is refused.
func TestLaneOfSomethingElse(t *testing.T) {
	c := newFake(t)
	target, other := c.opened(t, nil), c.target(t, nil, nil)
	l, err := other.NewLane("orders")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.Stage(t.Context(), sink.Output{Sinks: []sink.SinkOutput{{Name: "orders", Lanes: []sink.Lane{l}}}}); err == nil {
		t.Error("a lane of another target is taken")
	}
}

// TestAtLeastOnce publishes without transactions, once more after an error, and says so.
func TestAtLeastOnce(t *testing.T) {
	c := newFake(t)
	w := &wire{}
	target := c.target(t, w, func(cfg *kafka.Config) { cfg.Guarantee, cfg.TransactionTimeout = sink.AtLeastOnce, 2*time.Second })
	if tr := target.Traits(); tr.Guarantee != sink.AtLeastOnce || !tr.Volatile || tr.Why == "" {
		t.Errorf("the traits are %+v", tr)
	}
	if p, err := target.Open(t.Context(), c.owner()); err != nil || p.Batch != checkpoint.NoBatch {
		t.Fatalf("%+v, %v", p, err)
	}
	s := mustStage(t, target, 0, record("a", "1"))
	if got := c.committed(t, "out"); len(got) != 0 {
		t.Fatalf("staged records show: %q", values(got))
	}
	for range 2 {
		if err := target.Publish(t.Context(), decision(0), s); err != nil {
			t.Fatal(err)
		}
	}
	s = mustStage(t, target, 1, record("a", "2"))
	w.set(func(key int16) verdict {
		if key == keyProduce {
			return cutAfter
		}
		return pass
	})
	err := target.Publish(t.Context(), decision(1), s)
	w.set(nil)
	if err == nil || errors.Is(err, sink.ErrLost) {
		t.Fatalf("got %v, want an error", err)
	}
	if err := target.Publish(t.Context(), decision(1), s); !errors.Is(err, sink.ErrLost) {
		t.Fatalf("got %v, want ErrLost", err)
	}
	if _, err := target.Open(t.Context(), c.owner()); err != nil {
		t.Fatal(err)
	}
	mustPublish(t, target, 1, record("a", "2"))
	got := slices.Compact(values(c.committed(t, "out")))
	if !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("a reader sees %q", got)
	}
	if slices.Contains(w.seen, keyInit) && slices.Contains(w.seen, keyEndTxn) {
		t.Error("a transaction was used")
	}
}
