package kafka_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/kafkaconn"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/kafka"
)

const query = "6f1e9f0a-0000-4000-8000-000000000001"

// cluster is a broker, in this process or a real one.
type cluster struct {
	fake  *kfake.Cluster // nil for a real one
	addrs []string
	conn  string // the connection's name: another one for each test on a real broker
	query string
}

func newFake(t testing.TB, opts ...kfake.Opt) *cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(4, "out"), kfake.SeedTopics(3, "other")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &cluster{fake: c, addrs: c.ListenAddrs(), conn: "main", query: query}
}

// config is that of a process whose connections go through w; nil is a plain process.
func (c *cluster) config(w *wire) kafka.Config {
	conn := kafkaconn.Config{Name: c.conn, Brokers: c.addrs, RequestTimeout: kafkaconn.Duration(10 * time.Second)}
	if w != nil {
		conn.Dial = w.dial
	}
	return kafka.Config{
		Connection: conn, Clock: time.Now, Compression: kafka.None,
		Sinks: []kafka.Sink{{Name: "orders", Topic: "out"}},
	}
}

func (c *cluster) target(t testing.TB, w *wire, change func(*kafka.Config)) *kafka.Target {
	t.Helper()
	cfg := c.config(w)
	if change != nil {
		change(&cfg)
	}
	target, err := kafka.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = target.Close() })
	return target
}

func (c *cluster) opened(t testing.TB, w *wire) *kafka.Target {
	t.Helper()
	target := c.target(t, w, nil)
	if _, err := target.Open(t.Context(), c.owner()); err != nil {
		t.Fatal(err)
	}
	return target
}

func (c *cluster) owner() sink.Owner { return sink.Owner{Query: c.query, Job: "test"} }

func (c *cluster) client(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.addrs...), kgo.MetadataMinAge(50 * time.Millisecond)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// committed reads a topic as a reader of committed records does, up to what is decided, in order within each partition.
func (c *cluster) committed(t testing.TB, topic string) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cl := c.client(t)
	defer cl.Close()
	adm := kadm.NewClient(cl)
	txn := "wasmill." + c.query + "." + c.conn
	for {
		all, err := adm.DescribeTransactions(ctx, txn)
		if err != nil {
			break // nobody has it yet
		}
		if s := all[txn].State; s != "PrepareCommit" && s != "PrepareAbort" {
			break
		}
	}
	ends, err := adm.ListCommittedOffsets(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := adm.Metadata(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	var out []*kgo.Record
	for p := range int32(len(meta.Topics[topic].Partitions)) {
		end, _ := ends.Lookup(topic, p)
		for pos := int64(0); pos < end.Offset; {
			recs, next := fetch(ctx, t, cl, meta.Topics[topic].ID, meta.Topics[topic].Partitions[p].Leader, topic, p, pos)
			pos, out = next, append(out, recs...)
		}
	}
	return out
}

func fetch(ctx context.Context, t testing.TB, cl *kgo.Client, id [16]byte, leader int32, topic string, p int32, pos int64) ([]*kgo.Record, int64) {
	t.Helper()
	part := kmsg.NewFetchRequestTopicPartition()
	part.Partition, part.FetchOffset, part.PartitionMaxBytes = p, pos, 8<<20
	of := kmsg.NewFetchRequestTopic()
	of.Topic, of.TopicID, of.Partitions = topic, id, append(of.Partitions, part)
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MaxBytes, req.IsolationLevel, req.SessionEpoch, req.Topics = 100, 8<<20, 1, -1, append(req.Topics, of)
	resp, err := cl.Broker(int(leader)).RetriableRequest(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	got, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Offset: pos, Topic: topic, Partition: p, IsolationLevel: kgo.ReadCommitted()},
		&resp.(*kmsg.FetchResponse).Topics[0].Partitions[0], kgo.DefaultDecompressor(), nil)
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	return got.Records, next
}

func values(recs []*kgo.Record) []string {
	out := make([]string, 0, len(recs))
	for _, r := range recs {
		out = append(out, string(r.Value))
	}
	return out
}

func digest(id checkpoint.BatchID) string { return fmt.Sprintf("%032x", id+1) }

func decision(id checkpoint.BatchID) *checkpoint.Decision {
	return &checkpoint.Decision{Batch: id, Digest: digest(id)}
}

// stage stages a batch of records, given by key and value in turn.
func stage(t testing.TB, target *kafka.Target, id checkpoint.BatchID, attempt string, recs ...abi.Record) (sink.Staged, error) {
	t.Helper()
	l, err := target.NewLane("orders")
	if err != nil {
		t.Fatal(err)
	}
	for i := range recs {
		if err := l.Append(&recs[i]); err != nil {
			t.Fatal(err)
		}
	}
	return target.Stage(t.Context(), sink.Output{
		Batch: id, TimeMS: 1_700_000_000_000, Digest: digest(id), Attempt: attempt,
		Sinks: []sink.SinkOutput{{Name: "orders", Lanes: []sink.Lane{l}}},
	})
}

func record(key, value string) abi.Record {
	return abi.Record{Key: []byte(key), Value: []byte(value)}
}

func wantFault(t testing.TB, err error, code string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Code() != code || f.Hint() == "" {
		t.Fatalf("got %v, want a fault %s with a way out", err, code)
	}
}

// codeOf is the code of a fault, or a word for what else an error is.
func codeOf(err error) string {
	var f *fault.Error
	switch {
	case errors.Is(err, sink.ErrLost):
		return "lost"
	case errors.As(err, &f):
		return f.Code()
	}
	return err.Error()
}

// wire is the connections of one process. It sees every request and can cut them, or end the process.
type wire struct {
	mu    sync.Mutex
	conns map[net.Conn]bool
	dead  bool
	// judge says what becomes of a request, called for each in turn; nil lets all pass.
	judge   func(key int16) verdict
	onDeath func()
	seen    []int16
}

type verdict int

const (
	pass     verdict = iota
	cut              // the connection is cut before the request is sent
	cutAfter         // it is sent, the answer is lost
	die              // the process ends before it is sent
	dieAfter         // it is sent, and the process ends
)

var errCut = errors.New("cut by the test")

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	dead := w.dead
	w.mu.Unlock()
	if dead {
		return nil, errCut
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conns == nil {
		w.conns = map[net.Conn]bool{}
	}
	w.conns[c] = true
	return &wired{Conn: c, wire: w}, nil
}

func (w *wire) set(judge func(key int16) verdict) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge = judge
}

// requests are the kinds of requests so far.
func (w *wire) requests() []int16 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

// revive lets connections be made again, as after a cut of the network.
func (w *wire) revive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead, w.judge = false, nil
}

// kill ends the process: nothing it sends arrives any more.
func (w *wire) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = true
	for c := range w.conns {
		_ = c.Close()
	}
	if w.onDeath != nil {
		w.onDeath()
	}
}

type wired struct {
	net.Conn
	wire *wire
	mute atomic.Bool // answers are lost
}

func (c *wired) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.mute.Load() {
		return 0, errCut
	}
	return n, err
}

// What a wire sees of requests, by Kafka's numbers. An EndTxn that aborts has a number of its own.
const (
	keyProduce   int16 = 0
	keyInit      int16 = 22
	keyEndTxn    int16 = 26
	keyTelemetry int16 = 72 // sent when a client is closed
	keyAbort     int16 = 1026
)

func keyOf(b []byte) int16 {
	key := int16(binary.BigEndian.Uint16(b[4:]))
	if key == keyEndTxn && b[len(b)-2] == 0 { // flexible versions end with the flag and no tags
		return keyAbort
	}
	return key
}

func (c *wired) Write(b []byte) (int, error) {
	w := c.wire
	w.mu.Lock()
	if w.dead {
		w.mu.Unlock()
		return 0, errCut
	}
	v := pass
	if len(b) >= 6 {
		key := keyOf(b)
		w.seen = append(w.seen, key)
		if w.judge != nil {
			v = w.judge(key)
		}
	}
	w.dead = w.dead || v == dieAfter
	w.mu.Unlock()
	switch v {
	case cut:
		_ = c.Close()
		return 0, errCut
	case die:
		w.kill()
		return 0, errCut
	}
	c.mute.Store(v == cutAfter || v == dieAfter)
	n, err := c.Conn.Write(b)
	if v == cutAfter || v == dieAfter {
		// The broker must have read it before the connection goes.
		time.AfterFunc(5*time.Millisecond, func() {
			if v == dieAfter {
				w.kill()
			} else {
				_ = c.Close()
			}
		})
	}
	return n, err
}
