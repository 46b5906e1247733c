package kafka_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/kafkaconn"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/kafka"
)

// both runs a test on a broker in this process, and on a real one where there is one.
func both(t *testing.T, run func(*testing.T, *cluster)) {
	t.Helper()
	t.Run("fake", func(t *testing.T) { run(t, newFake(t)) })
	t.Run("real", func(t *testing.T) { run(t, realCluster(t)) })
}

// withTopic makes a topic for one test and opens a target for it.
func (c *cluster) withTopic(t *testing.T, partitions int32, set map[string]*string, change func(*kafka.Config)) (*kafka.Target, string) {
	t.Helper()
	name := "topic-" + c.conn
	c.create(t, name, partitions, set)
	target := c.target(t, nil, func(cfg *kafka.Config) {
		cfg.Sinks[0].Topic = name
		if change != nil {
			change(cfg)
		}
	})
	if _, err := target.Open(t.Context(), c.owner()); err != nil {
		t.Fatal(err)
	}
	return target, name
}

func (c *cluster) create(t *testing.T, name string, partitions int32, set map[string]*string) {
	t.Helper()
	cl := c.client(t)
	defer cl.Close()
	if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), partitions, 1, set, name); err != nil {
		t.Fatal(err)
	}
}

func ptr(s string) *string { return &s }

// TestLargeRecord publishes a record of 20 MB between small ones, where topic and sink take it.
func TestLargeRecord(t *testing.T) {
	both(t, func(t *testing.T, c *cluster) {
		target, topic := c.withTopic(t, 1, map[string]*string{"max.message.bytes": ptr("26214400")}, func(cfg *kafka.Config) { cfg.MaxMessage = 24 << 20 })
		large := strings.Repeat("0123456789", 2<<20)
		mustPublish(t, target, 0, record("a", "before"), record("a", large), record("a", "after"))
		if got := values(c.committed(t, topic)); len(got) != 3 || got[0] != "before" || got[1] != large || got[2] != "after" {
			t.Errorf("%d records are there", len(got))
		}
	})
}

// TestSmallTopic: batches of records are cut to what the topic takes, though the sink would take more.
func TestSmallTopic(t *testing.T) {
	both(t, func(t *testing.T, c *cluster) {
		target, topic := c.withTopic(t, 1, map[string]*string{"max.message.bytes": ptr("2000")}, nil)
		var recs []abi.Record
		var want []string
		for i := range 200 {
			want = append(want, strconv.Itoa(i)+strings.Repeat("x", 100))
			recs = append(recs, record("a", want[i]))
		}
		mustPublish(t, target, 0, recs...)
		if diff := cmp.Diff(want, values(c.committed(t, topic))); diff != "" {
			t.Error(diff)
		}
		_, err := stage(t, target, 1, "0000000a", record("a", strings.Repeat("x", 3000)))
		wantFault(t, err, kafka.CodeTooLarge)
		for _, open := range c.openTransactions(t) {
			if strings.HasSuffix(open, "."+c.conn) {
				t.Errorf("%s is left open", open)
			}
		}
		mustPublish(t, target, 1, record("a", "last"))
		if got := values(c.committed(t, topic)); len(got) != len(want)+1 || got[len(want)] != "last" {
			t.Errorf("%d records are there", len(got))
		}
	})
}

// TestTimesOfTheBroker: a topic that stamps records itself takes them.
func TestTimesOfTheBroker(t *testing.T) {
	t.Run("real", func(t *testing.T) { // the broker in this process does not
		c := realCluster(t)
		target, topic := c.withTopic(t, 1, map[string]*string{"message.timestamp.type": ptr("LogAppendTime")}, nil)
		r := record("a", "1")
		r.Flags, r.EventTime = abi.FlagEventTime, 1_000_000
		mustPublish(t, target, 0, r)
		got := c.committed(t, topic)
		if len(got) != 1 || got[0].Timestamp.UnixMilli() == 1000 {
			t.Errorf("%+v", got)
		}
	})
}

// TestNewPartitions: partitions that a topic gets while the job runs are used after a while.
func TestNewPartitions(t *testing.T) {
	both(t, func(t *testing.T, c *cluster) {
		var late atomic.Int64
		target, topic := c.withTopic(t, 1, nil, func(cfg *kafka.Config) {
			cfg.Clock = func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
		})
		mustPublish(t, target, 0, record("abc", "1"))
		cl := c.client(t)
		defer cl.Close()
		if _, err := kadm.NewClient(cl).CreatePartitions(t.Context(), 3, topic); err != nil {
			t.Fatal(err)
		}
		late.Store(int64(time.Minute))
		id := checkpoint.BatchID(1)
		for ; ; id++ { // a broker may say of the new partitions only after a moment
			mustPublish(t, target, id, record("abc", "2"), record("21", "3"), record("foobar", "4"))
			if slices.ContainsFunc(c.committed(t, topic), func(r *kgo.Record) bool { return r.Partition > 0 }) {
				break
			}
			late.Add(int64(time.Minute))
		}
		for _, r := range c.committed(t, topic) {
			if want := javaHashes[string(r.Key)] & 0x7fffffff % 4; r.Partition > 0 && r.Partition != want {
				t.Errorf("key %s is in partition %d, want %d", r.Key, r.Partition, want)
			}
		}
	})
}

// TestTopicMadeAnew: an output topic that is deleted and made anew stops the batch before it is decided, and the next start
// publishes to the new one.
func TestTopicMadeAnew(t *testing.T) {
	both(t, func(t *testing.T, c *cluster) {
		target, topic := c.withTopic(t, 2, nil, func(cfg *kafka.Config) { cfg.TransactionTimeout = 10 * time.Second })
		mustPublish(t, target, 0, record("a", "1"))
		cl := c.client(t)
		defer cl.Close()
		if _, err := kadm.NewClient(cl).DeleteTopic(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), 2, 1, nil, topic); err == nil {
				break
			} else if !errors.Is(err, kerr.TopicAlreadyExists) {
				t.Fatal(err)
			}
			wait(t.Context(), 20)
		}
		_, err := stage(t, target, 1, "0000000a", record("a", "2"))
		if err == nil { // the brokers of version 1 take topics by name
			err = target.Abort(t.Context(), 1)
		} else {
			wantFault(t, err, kafka.CodeTopic)
			_, err = target.Open(t.Context(), c.owner())
		}
		if err != nil {
			t.Fatal(err)
		}
		mustPublish(t, target, 1, record("a", "2"))
		if got := values(c.committed(t, topic)); !slices.Equal(got, []string{"2"}) {
			t.Errorf("a reader sees %q", got)
		}
	})
}

// TestThrottled publishes above a quota of bytes: the brokers make it wait, and nothing else.
func TestThrottled(t *testing.T) {
	c := realCluster(t)
	cl := c.client(t)
	defer cl.Close()
	client := "throttled-" + c.conn
	entity := kadm.ClientQuotaEntity{{Type: "client-id", Name: &client}}
	quota := func(remove bool) {
		if _, err := kadm.NewClient(cl).AlterClientQuotas(context.Background(), []kadm.AlterClientQuotaEntry{{
			Entity: entity, Ops: []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: 500_000, Remove: remove}},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	quota(false)
	defer quota(true)
	target, topic := c.withTopic(t, 2, nil, func(cfg *kafka.Config) { cfg.Connection.ClientID = client })
	want := 0
	for id := range checkpoint.BatchID(4) {
		var recs []abi.Record
		for i := range 100 {
			recs = append(recs, record(strconv.Itoa(i), strings.Repeat("x", 10_000)))
		}
		want += len(recs)
		mustPublish(t, target, id, recs...)
	}
	if got := len(c.committed(t, topic)); got != want {
		t.Errorf("%d records, want %d", got, want)
	}
}

// TestPassingAnswers plays answers to a produce request after which the same records are sent again: once each is there.
func TestPassingAnswers(t *testing.T) {
	for _, e := range []*kerr.Error{
		kerr.NotLeaderForPartition, kerr.LeaderNotAvailable, kerr.KafkaStorageError, kerr.NotEnoughReplicas,
		kerr.NotEnoughReplicasAfterAppend, kerr.RequestTimedOut, kerr.ConcurrentTransactions, kerr.UnknownTopicOrPartition,
		kerr.OperationNotAttempted,
	} {
		t.Run(e.Message, func(t *testing.T) {
			t.Parallel()
			c := newFake(t)
			target := c.opened(t, nil)
			var recs []abi.Record
			var want []string
			for i := range 20 {
				want = append(want, strconv.Itoa(i))
				recs = append(recs, record(want[i], want[i]))
			}
			for id := range checkpoint.BatchID(3) {
				c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "out", Err: e, Count: 2})
				mustPublish(t, target, id, recs...)
			}
			want = slices.Concat(want, want, want)
			got := values(c.committed(t, "out"))
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFullDisk: a partition whose disk is full stays so. The batch fails in time, shows nowhere, and goes through when there
// is room again.
func TestFullDisk(t *testing.T) {
	c := newFake(t)
	target := c.target(t, nil, func(cfg *kafka.Config) { cfg.TransactionTimeout = 2 * time.Second })
	if _, err := target.Open(t.Context(), c.owner()); err != nil {
		t.Fatal(err)
	}
	full := c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "out", Err: kerr.KafkaStorageError, Count: -1})
	_, err := stage(t, target, 0, "0000000a", record("a", "1"), record("b", "2"))
	wantFault(t, err, kafkaconn.CodeBroker)
	full.Remove()
	if got := c.committed(t, "out"); len(got) != 0 {
		t.Errorf("a reader sees %q", values(got))
	}
	mustPublish(t, target, 0, record("a", "1"))
}

// TestForgottenProducer: what the brokers say of a producer that they do not know as it is passes by itself: the next batch
// is sent by a new one.
func TestForgottenProducer(t *testing.T) {
	for _, e := range []*kerr.Error{kerr.InvalidProducerIDMapping, kerr.UnknownProducerID, kerr.OutOfOrderSequenceNumber, kerr.TransactionAbortable} {
		t.Run(e.Message, func(t *testing.T) {
			t.Parallel()
			c := newFake(t)
			target := c.opened(t, nil)
			c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "out", Err: e})
			_, err := stage(t, target, 0, "0000000a", record("a", "1"))
			if !fault.IsPassing(err) {
				t.Fatalf("got %v, want a fault that passes", err)
			}
			mustPublish(t, target, 0, record("a", "1"))
			if got := values(c.committed(t, "out")); !slices.Equal(got, []string{"1"}) {
				t.Errorf("a reader sees %q", got)
			}
		})
	}
}

// TestMovingLeaders moves partitions and the coordinator between brokers while batches are published.
func TestMovingLeaders(t *testing.T) {
	c := newFake(t, kfake.NumBrokers(3))
	target := c.opened(t, nil)
	var want []string
	for id := range checkpoint.BatchID(30) {
		for p := range int32(4) {
			if err := c.fake.MoveTopicPartition("out", p, (p+int32(id))%3); err != nil {
				t.Fatal(err)
			}
		}
		if id%5 == 0 {
			c.fake.RehashCoordinators()
		}
		var recs []abi.Record
		for i := range 8 {
			value := strconv.Itoa(int(id)) + "." + strconv.Itoa(i)
			recs = append(recs, record(strconv.Itoa(i), value))
			want = append(want, value)
		}
		mustPublish(t, target, id, recs...)
	}
	got := values(c.committed(t, "out"))
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestOlderBrokers interrupts processes on a cluster without transactions of version 2: partitions are added by requests.
func TestOlderBrokers(t *testing.T) {
	c := newFake(t, kfake.MaxVersions(kversion.V3_8_0()))
	interrupt(t, c, "out", 40, 20)
}

// TestGivenUpOnOlderBrokers: a batch that is refused leaves no transaction open there either, and shuts out nobody.
func TestGivenUpOnOlderBrokers(t *testing.T) {
	c := newFake(t, kfake.MaxVersions(kversion.V3_8_0()))
	target := c.opened(t, nil)
	for id := range checkpoint.BatchID(3) {
		c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "out", Err: kerr.MessageTooLarge})
		_, err := stage(t, target, id, "0000000a", record("a", "refused"), record("b", "refused"))
		wantFault(t, err, kafka.CodeTooLarge)
		if open := c.openTransactions(t); len(open) != 0 {
			t.Errorf("open transactions are left: %v", open)
		}
		mustPublish(t, target, id, record("a", strconv.Itoa(int(id))))
	}
	if got := values(c.committed(t, "out")); !slices.Equal(got, []string{"0", "1", "2"}) {
		t.Errorf("a reader sees %q", got)
	}
	newer := c.opened(t, nil)
	_, err := stage(t, target, 3, "0000000a", record("a", "refused"))
	wantFault(t, err, kafka.CodeFenced)
	mustPublish(t, newer, 3, record("a", "3"))
}

// TestAlarm: a transaction that is not ended for half of its time is told of; one that is ended is not.
func TestAlarm(t *testing.T) {
	told := make(chan error, 10)
	target := newFake(t).target(t, nil, func(cfg *kafka.Config) {
		cfg.TransactionTimeout, cfg.Warn = 2*time.Second, func(err error) { told <- err }
	})
	if _, err := target.Open(t.Context(), sink.Owner{Query: query}); err != nil {
		t.Fatal(err)
	}
	mustPublish(t, target, 0, record("a", "1"))
	mustStage(t, target, 1, record("a", "2"))
	err := <-told
	wantFault(t, err, kafka.CodeSlow)
	if !strings.Contains(err.Error(), "batch 1") {
		t.Errorf("%v does not name batch 1", err)
	}
	if err := target.Close(); err != nil || len(told) > 0 {
		t.Errorf("%v, %d more warnings", err, len(told))
	}
}

// TestNoHotLoop: a target that finds nobody does not ask thousands of times, whoever opens it how often.
func TestNoHotLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int64
		c := &cluster{addrs: []string{"127.0.0.1:1"}, conn: "main", query: query}
		target := c.target(t, nil, func(cfg *kafka.Config) {
			cfg.Connection.Dial = func(context.Context, string, string) (net.Conn, error) {
				dials.Add(1)
				return nil, errCut
			}
		})
		begin := time.Now()
		for range 10 {
			_, err := target.Open(t.Context(), c.owner())
			wantFault(t, err, kafkaconn.CodeUnreachable)
		}
		if took := time.Since(begin); took < 10*time.Second || dials.Load() > 20*int64(took.Seconds()) {
			t.Errorf("%d connections in %s", dials.Load(), took)
		}
		if err := target.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestAtLeastOnceGoesOn: after an error the next batch gets a producer without the target being opened again.
func TestAtLeastOnceGoesOn(t *testing.T) {
	c := newFake(t)
	target := c.target(t, nil, func(cfg *kafka.Config) { cfg.Guarantee, cfg.TransactionTimeout = sink.AtLeastOnce, 2*time.Second })
	if _, err := target.Open(t.Context(), c.owner()); err != nil {
		t.Fatal(err)
	}
	c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "out", Err: kerr.OutOfOrderSequenceNumber})
	s := mustStage(t, target, 0, record("a", "1"))
	if err := target.Publish(t.Context(), decision(0), s); err == nil {
		t.Fatal("no error")
	}
	mustPublish(t, target, 0, record("a", "1"))
	if got := values(c.committed(t, "out")); !slices.Equal(got, []string{"1"}) {
		t.Errorf("a reader sees %q", got)
	}
}
