package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	ksasl "github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/kafkaconn"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/host/source/sourcetest"
)

var epoch = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// world is a cluster and what a test does to it.
type world struct {
	t       testing.TB
	fake    *kfake.Cluster // nil: a real broker
	brokers []string
	client  *kgo.Client
	admin   *kadm.Client
	now     time.Time
	memory  bool // plan from memory where that is possible: what was just produced may not be in it yet
	mu      sync.Mutex
	warned  []error
}

func newWorld(t testing.TB, opts ...kfake.Opt) *world {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return connect(t, c, c.ListenAddrs())
}

func connect(t testing.TB, fake *kfake.Cluster, brokers []string) *world {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return &world{t: t, fake: fake, brokers: brokers, client: cl, admin: kadm.NewClient(cl), now: epoch}
}

func (w *world) create(topic string, partitions int32, configs ...string) {
	w.t.Helper()
	conf := map[string]*string{}
	for i := 0; i+1 < len(configs); i += 2 {
		conf[configs[i]] = &configs[i+1]
	}
	resp, err := w.admin.CreateTopic(w.t.Context(), partitions, 1, conf, topic)
	if err := errors.Join(err, resp.Err); err != nil {
		w.t.Fatal(err)
	}
}

// drop deletes a topic, and waits until the broker that has it knows: it goes on answering for a moment.
func (w *world) drop(topic string) {
	w.t.Helper()
	resp, err := w.admin.DeleteTopic(w.t.Context(), topic)
	if err := errors.Join(err, resp.Err); err != nil {
		w.t.Fatal(err)
	}
	for range 500 {
		ends, err := w.admin.ListEndOffsets(w.t.Context(), topic)
		if end, ok := ends.Lookup(topic, 0); err != nil || !ok || end.Err != nil {
			return
		}
		wait(10 * time.Millisecond)
	}
	w.t.Fatal("a topic that was deleted goes on answering")
}

// produce writes values to a partition, a batch a call.
func (w *world) produce(topic string, num int32, values ...string) {
	w.t.Helper()
	w.write(w.client, topic, num, values...)
}

func (w *world) write(cl *kgo.Client, topic string, num int32, values ...string) {
	w.t.Helper()
	var recs []*kgo.Record
	for _, v := range values {
		key, value, keyed := strings.Cut(v, "=")
		r := &kgo.Record{Topic: topic, Partition: num, Value: []byte(v)}
		if keyed {
			r.Key, r.Value = []byte(key), []byte(value)
		}
		recs = append(recs, r)
	}
	if err := cl.ProduceSync(w.t.Context(), recs...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// tx is a transaction of its own producer.
type tx struct {
	w     *world
	cl    *kgo.Client
	topic string // that it has written to
}

func (w *world) begin(id string) *tx {
	w.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.brokers...), kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(cl.Close)
	x := &tx{w: w, cl: cl}
	x.again()
	return x
}

func (x *tx) again() {
	x.w.t.Helper()
	if err := x.cl.BeginTransaction(); err != nil {
		x.w.t.Fatal(err)
	}
}

func (x *tx) produce(topic string, num int32, values ...string) {
	x.w.t.Helper()
	x.topic = topic
	x.w.write(x.cl, topic, num, values...)
}

// end ends a transaction that has written to partition 0, and waits for its marker there: a real broker writes markers
// after it has confirmed the end.
func (x *tx) end(how kgo.TransactionEndTry) {
	x.w.t.Helper()
	before := x.w.high(x.topic)
	if err := x.cl.EndTransaction(x.w.t.Context(), how); err != nil {
		x.w.t.Fatal(err)
	}
	for range 500 {
		if x.w.high(x.topic) > before {
			return
		}
		wait(10 * time.Millisecond)
	}
	x.w.t.Fatal("a transaction has ended and left no marker")
}

// high is the high watermark of partition 0.
func (w *world) high(topic string) int64 {
	w.t.Helper()
	ends, err := w.admin.ListEndOffsets(w.t.Context(), topic)
	if err != nil {
		w.t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, 0)
	return end.Offset
}

// open returns a source of topics; change may alter its settings.
func (w *world) open(change func(*Config), topics ...string) *Source {
	w.t.Helper()
	cfg := Config{
		Name: "in", Cluster: kafkaconn.Config{Name: "main", Brokers: w.brokers}, Topics: topics, Patience: 5 * time.Second,
		Clock: func() time.Time { return w.now },
		Warn: func(err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.warned = append(w.warned, err)
		},
	}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return s
}

func (w *world) latest(s *Source, from checkpoint.Position, limit source.Limit) checkpoint.Position {
	w.t.Helper()
	if !w.memory {
		s.stale.Store(true)
	}
	to, err := s.Latest(w.t.Context(), from, limit)
	if err != nil {
		w.t.Fatalf("latest from %+v: %v", from, err)
	}
	return to
}

// read reads a range and returns "topic-partition@offset value" of each record.
func (w *world) read(s *Source, from, to checkpoint.Position) []string {
	w.t.Helper()
	out, err := tryRead(w.t.Context(), s, from, to)
	if err != nil {
		w.t.Fatalf("read from %s to %s: %v", from.Line, to.Line, err)
	}
	return out
}

func tryRead(ctx context.Context, s *Source, from, to checkpoint.Position) ([]string, error) {
	cut, err := s.Splits(ctx, source.Range{From: from, To: to})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, split := range cut {
		c := sourcetest.Collector{Split: split.Name}
		err = errors.Join(err, s.Read(ctx, split, &c))
		for _, r := range c.Records {
			out = append(out, fmt.Sprintf("%s@%d %s", r.Split, r.Offset, strings.Trim(r.Value, `"`)))
		}
	}
	return out, err
}

// all reads everything that there is after a position.
func (w *world) all(s *Source, from checkpoint.Position) ([]string, checkpoint.Position) {
	w.t.Helper()
	to := w.latest(s, from, source.Limit{})
	return w.read(s, from, to), to
}

func (w *world) want(got []string, want ...string) {
	w.t.Helper()
	if !slices.Equal(got, want) {
		w.t.Errorf("got:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// wantFault asserts an error's code, and words in it.
func wantFault(t testing.TB, err error, code string, words ...string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Code() != code {
		t.Fatalf("got %v (%T), want a fault %s", err, err, code)
	}
	if f.Hint() == "" {
		t.Errorf("%v: no way out", err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
	if changed := new(source.ChangedError); errors.As(err, &changed) != (code == CodeChanged) {
		t.Errorf("%v: a *source.ChangedError goes with code %s", err, CodeChanged)
	}
}

func numbers(prefix string, from, n int) []string {
	var out []string
	for i := from; i < from+n; i++ {
		out = append(out, fmt.Sprintf("%s%d", prefix, i))
	}
	return out
}

func (w *world) tryProduce(topic string, values ...string) error {
	var recs []*kgo.Record
	for _, v := range values {
		recs = append(recs, &kgo.Record{Topic: topic, Value: []byte(v)})
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
	defer cancel()
	return w.client.ProduceSync(ctx, recs...).FirstErr()
}

func plainOf(user, password string) ksasl.Mechanism {
	return plain.Auth{User: user, Pass: password}.AsMechanism()
}
