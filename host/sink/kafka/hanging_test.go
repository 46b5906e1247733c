package kafka_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/kafka"
)

func (c *cluster) txn() string { return "wasmill." + c.query + "." + c.conn }

// transaction is what the coordinator says of the target's transactional id.
func (c *cluster) transaction(t *testing.T) kadm.DescribedTransaction {
	t.Helper()
	cl := c.client(t)
	defer cl.Close()
	for {
		all, err := kadm.NewClient(cl).DescribeTransactions(t.Context(), c.txn())
		if err != nil {
			t.Fatal(err)
		}
		if d := all[c.txn()]; !strings.HasPrefix(d.State, "Prepare") {
			return d
		}
	}
}

// leave leaves a record of the last transaction hanging in a partition.
func (c *cluster) leave(t *testing.T, topic string, partition int32, key, value string) {
	t.Helper()
	d := c.transaction(t)
	if err := kafka.Leave(t.Context(), []kgo.Opt{kgo.SeedBrokers(c.addrs...)}, c.txn(), d.ProducerID, d.ProducerEpoch, topic, partition, key, value); err != nil {
		t.Fatal(err)
	}
}

// unverified lets a real broker take records whose transaction does not know their partition.
func (c *cluster) unverified(t *testing.T) {
	t.Helper()
	adm := kadm.NewClient(c.client(t))
	t.Cleanup(adm.Close)
	set := func(ctx context.Context, op kadm.IncrementalOp) {
		all, err := adm.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Op: op, Name: "transaction.partition.verification.enable", Value: kadm.StringPtr("false")}})
		if _, err2 := all.On("", nil); err != nil || err2 != nil {
			t.Error(err, err2)
		}
	}
	set(t.Context(), kadm.SetConfig)
	t.Cleanup(func() { set(context.Background(), kadm.DeleteConfig) })
}

// TestHanging: what a coordinator has left without a marker is ended as its transaction was, before anything else is written.
func TestHanging(t *testing.T) {
	realAddress(t)
	for name, leave := range map[string]func(t *testing.T, c *cluster, target *kafka.Target, topic string) (published checkpoint.BatchID, seen []string){
		"committed": func(t *testing.T, c *cluster, _ *kafka.Target, topic string) (checkpoint.BatchID, []string) {
			c.leave(t, topic, 0, "x", "left 0")
			c.leave(t, topic, 2, "y", "left 2")
			return 0, []string{"left 0", "left 2"}
		},
		"committed, its marker too": func(t *testing.T, c *cluster, _ *kafka.Target, topic string) (checkpoint.BatchID, []string) {
			c.leave(t, topic, 1, "x", "left 1")
			c.leave(t, "__wasmill."+c.query, 0, c.conn, fmt.Sprintf(`{"version":1,"query":%q,"batch":1,"digest":%q,"attempt":"a"}`, c.query, digest(1)))
			return 1, []string{"left 1"}
		},
		"aborted": func(t *testing.T, c *cluster, target *kafka.Target, topic string) (checkpoint.BatchID, []string) {
			mustStage(t, target, 1, record("a", "1.a first"))
			if err := target.Abort(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			for p := range int32(3) {
				c.leave(t, topic, p, "a", "aborted")
			}
			return 0, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := realCluster(t)
			c.unverified(t)
			target, topic := c.withTopic(t, 3, nil, nil)
			mustPublish(t, target, 0, record("a", "0.a"), record("b", "0.b"))
			last, want := leave(t, c, target, topic)
			target.Kill()
			next := c.target(t, nil, func(cfg *kafka.Config) { cfg.Sinks[0].Topic = topic })
			for _, look := range []func(context.Context, sink.Owner) (sink.Published, error){next.Inspect, next.Open} {
				if p, err := look(t.Context(), c.owner()); err != nil || p.Batch != last {
					t.Fatalf("%+v is published, want batch %d: %v", p, last, err)
				}
			}
			recs := []abi.Record{record("a", "next"), record("b", "next"), record("c", "next"), record("d", "next")}
			if want != nil { // the producer's next markers say the opposite
				mustStage(t, next, last+1, recs...)
				if err := next.Abort(t.Context(), last+1); err != nil {
					t.Fatal(err)
				}
			}
			mustPublish(t, next, last+1, recs...)
			got := values(c.committed(t, topic))
			want = append(want, "0.a", "0.b", "next", "next", "next", "next")
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("readers see %q, want %q", got, want)
			}
		})
	}
}

// forgetful is a cluster in this process whose coordinator tells what a test wants, and which requests it got.
type forgetful struct {
	*cluster
	mu    sync.Mutex
	state string   // of the transaction
	bumps int16    // how far its epoch is beyond that of what hangs
	pid   int64    // of the producer
	epoch int16    // of what hangs
	hangs []string // where it has a transaction open
	deny  bool     // nobody may list producers
	added []string // partitions that were added by a request
	ends  []bool   // of transactions that had partitions added: whether to commit
}

func newForgetful(t *testing.T) *forgetful {
	f := &forgetful{cluster: newFake(t)}
	control := func(key kmsg.Key, answer func(req kmsg.Request) kmsg.Response) {
		f.fake.ControlKey(int16(key), func(req kmsg.Request) (kmsg.Response, error, bool) {
			f.fake.KeepControl()
			f.mu.Lock()
			defer f.mu.Unlock()
			resp := answer(req)
			return resp, nil, resp != nil
		})
	}
	control(kmsg.DescribeTransactions, func(req kmsg.Request) kmsg.Response {
		if f.state == "" {
			return nil
		}
		resp := req.ResponseKind().(*kmsg.DescribeTransactionsResponse)
		st := kmsg.NewDescribeTransactionsResponseTransactionState()
		st.TransactionalID, st.State, st.ProducerEpoch = f.txn(), f.state, f.epoch+f.bumps
		resp.TransactionStates = append(resp.TransactionStates, st)
		return resp
	})
	control(kmsg.DescribeProducers, func(req kmsg.Request) kmsg.Response {
		return f.producers(req.(*kmsg.DescribeProducersRequest))
	})
	control(kmsg.AddPartitionsToTxn, func(req kmsg.Request) kmsg.Response {
		for _, topic := range req.(*kmsg.AddPartitionsToTxnRequest).Topics {
			for _, p := range topic.Partitions {
				f.added = append(f.added, fmt.Sprintf("%s-%d", topic.Topic, p))
			}
		}
		return nil
	})
	control(kmsg.EndTxn, func(req kmsg.Request) kmsg.Response {
		if len(f.added) > 0 && f.ends == nil {
			f.ends = append(f.ends, req.(*kmsg.EndTxnRequest).Commit)
			f.hangs = nil
		}
		return nil
	})
	return f
}

func (f *forgetful) producers(req *kmsg.DescribeProducersRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeProducersResponse)
	for _, topic := range req.Topics {
		rt := kmsg.NewDescribeProducersResponseTopic()
		rt.Topic = topic.Topic
		for _, p := range topic.Partitions {
			rp := kmsg.NewDescribeProducersResponseTopicPartition()
			if rp.Partition = p; f.deny {
				rp.ErrorCode = kerr.TopicAuthorizationFailed.Code
			} else if slices.Contains(f.hangs, fmt.Sprintf("%s-%d", topic.Topic, p)) {
				a := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
				a.ProducerID, a.ProducerEpoch, a.CurrentTxnStartOffset = f.pid, int32(f.epoch), 7
				rp.ActiveProducers = append(rp.ActiveProducers, a)
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func (f *forgetful) says(state string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = state
}

// TestMissingMarkers: which markers are written, by what the cluster tells.
func TestMissingMarkers(t *testing.T) {
	for name, test := range map[string]struct {
		state string
		hangs []string
		bumps int16
		later bool // than the target's: another process has taken over since
		deny  bool
		open  bool // another producer's transaction, in out-2
		added []string
		ends  []bool
		code  string
	}{
		"nothing":               {state: "CompleteCommit"},
		"committed":             {state: "CompleteCommit", hangs: []string{"out-1", "out-3"}, added: []string{"out-1", "out-3"}, ends: []bool{true}},
		"being committed":       {state: "PrepareCommit", hangs: []string{"out-0"}, added: []string{"out-0"}, ends: []bool{true}},
		"aborted":               {state: "CompleteAbort", hangs: []string{"out-1"}, added: []string{"out-1"}, ends: []bool{false}},
		"open":                  {state: "Ongoing", hangs: []string{"out-1"}, added: []string{"out-1"}, ends: []bool{false}},
		"forgotten":             {state: "Empty", hangs: []string{"out-1"}, code: kafka.CodeHanging},
		"the one before":        {state: "CompleteCommit", bumps: 1, hangs: []string{"out-1"}, added: []string{"out-1"}, ends: []bool{true}},
		"an earlier one":        {state: "CompleteAbort", bumps: 2, hangs: []string{"out-1"}, code: kafka.CodeHanging},
		"a later owner's":       {state: "Empty", hangs: []string{"out-1"}, later: true},
		"others do not count":   {state: "CompleteCommit", open: true},
		"not told, all decided": {state: "CompleteCommit", deny: true},
		"not told, committed":   {state: "CompleteCommit", deny: true, open: true, added: []string{"out-2"}, ends: []bool{true}},
		"not told, aborted":     {state: "CompleteAbort", deny: true, open: true, added: []string{"out-2"}, ends: []bool{false}},
		"not told, forgotten":   {state: "Empty", deny: true, open: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForgetful(t)
			target := f.opened(t, nil)
			mustPublish(t, target, 0, record("a", "0.a"))
			target.Kill()
			if test.open {
				f.openElsewhere(t, "out", 2)
			}
			pid := f.transaction(t).ProducerID
			f.mu.Lock()
			f.pid, f.state, f.hangs, f.deny, f.added, f.ends = pid, test.state, test.hangs, test.deny, nil, nil
			if f.bumps = test.bumps; test.later {
				f.epoch = math.MaxInt16
			}
			f.mu.Unlock()
			var told []error
			next := f.target(t, nil, func(cfg *kafka.Config) { cfg.Warn = func(err error) { told = append(told, err) } })
			_, err := next.Open(t.Context(), f.owner())
			if test.code != "" {
				wantFault(t, err, test.code)
			} else if err != nil {
				t.Fatal(err)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if !slices.Equal(f.added, test.added) || !slices.Equal(f.ends, test.ends) {
				t.Errorf("partitions %q were added and ended by %v, want %q and %v", f.added, f.ends, test.added, test.ends)
			}
			if want := len(test.ends) > 0 && !test.deny; (len(told) == 1) != want {
				t.Errorf("warnings: %v", told)
			}
		})
	}
}

// openElsewhere leaves another producer's transaction open.
func (c *cluster) openElsewhere(t *testing.T, topic string, partition int32) {
	t.Helper()
	cl := c.client(t, kgo.TransactionalID("another"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	t.Cleanup(cl.Close)
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Partition: partition, Value: []byte("open")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// TestDoubtBefore: a producer that lost a connection before its last transaction was known to be written everywhere is not
// used again, and aborts nothing.
func TestDoubtBefore(t *testing.T) {
	c, w := newFake(t), &wire{}
	target := c.opened(t, w)
	s := mustStage(t, target, 0, record("a", "0.a"))
	w.set(func(key int16) verdict {
		if key == int16(kmsg.DescribeTransactions) {
			return cut
		}
		return pass
	})
	if err := target.Publish(t.Context(), decision(0), s); err != nil {
		t.Fatal(err)
	}
	target.Settled()
	w.set(nil)
	before := len(w.requests())
	mustPublish(t, target, 1, record("a", "1.a"))
	seen := w.requests()[before:]
	taken := slices.Index(seen, keyInit)
	if taken < 0 || slices.ContainsFunc(seen[:max(taken, 0)], func(key int16) bool { return key == keyProduce || key == keyAbort }) {
		t.Errorf("the id is taken over at %d of the requests %v", taken, seen)
	}
	if got := values(c.committed(t, "out")); len(got) != 2 {
		t.Errorf("readers see %q", got)
	}
}

// TestDoubtWhileProducing: the same where a connection breaks under the first records of the next transaction, before them,
// or while they wait for the end of the one before: they are not sent again.
func TestDoubtWhileProducing(t *testing.T) {
	for name, test := range map[string]breaking{
		"the leader's":                   {key: keyProduce, after: 1, most: 2}, // the client repeats it, at once, where its connection is dead
		"the coordinator's, before":      {key: int16(kmsg.DescribeTransactions)},
		"the coordinator's, in the wait": {key: int16(kmsg.DescribeTransactions), after: 1, most: 1, wait: true},
	} {
		t.Run(name, func(t *testing.T) { doubtWhileProducing(t, test) })
	}
}

// breaking says which requests have their connections cut.
type breaking struct {
	key   int16
	after int  // so many requests to produce, the present one included
	most  int  // requests to produce that there may be
	wait  bool // the first is told to wait
}

func doubtWhileProducing(t *testing.T, test breaking) {
	f, w := newForgetful(t), &wire{}
	target := f.opened(t, w)
	f.says("PrepareCommit")
	mustPublish(t, target, 0, record("a", "0.a"))
	target.Settled()
	if test.wait {
		f.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.ConcurrentTransactions, Count: 1})
	}
	before, produced := len(w.requests()), 0
	w.set(func(key int16) verdict { // one at a time
		if key == keyProduce {
			produced++
		}
		if key == test.key && produced >= test.after {
			return cut
		}
		return pass
	})
	_, err := stage(t, target, 1, "a", record("a", "1.a"))
	if !fault.IsPassing(err) {
		t.Errorf("stage: %v", err)
	}
	for _, key := range w.requests()[before:] {
		if key == keyAbort || key == keyInit {
			t.Errorf("it goes on with request %d", key)
		}
	}
	if produced < test.after || produced > test.most {
		t.Errorf("%d requests to produce, want %d to %d", produced, test.after, test.most)
	}
	w.set(nil)
	f.says("")
	if _, err := target.Open(t.Context(), f.owner()); err != nil {
		t.Fatal(err)
	}
	mustPublish(t, target, 1, record("a", "1.a"))
	if got := values(f.committed(t, "out")); len(got) != 2 {
		t.Errorf("readers see %q", got)
	}
}
