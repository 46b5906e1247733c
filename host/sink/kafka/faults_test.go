package kafka_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/kafkaconn"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/kafka"
)

func mustStage(t *testing.T, target *kafka.Target, id checkpoint.BatchID, recs ...abi.Record) sink.Staged {
	t.Helper()
	s, err := stage(t, target, id, "0000000a", recs...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustPublish(t *testing.T, target *kafka.Target, id checkpoint.BatchID, recs ...abi.Record) {
	t.Helper()
	s := mustStage(t, target, id, recs...)
	if err := target.Publish(t.Context(), decision(id), s); err != nil {
		t.Fatal(err)
	}
}

// TestDataFaults are found while staging, leave nothing behind, and do not hold up readers.
func TestDataFaults(t *testing.T) {
	for _, test := range []struct {
		err  *kerr.Error
		code string
	}{
		{kerr.MessageTooLarge, kafka.CodeTooLarge},
		{kerr.InvalidTimestamp, kafka.CodeRefused},
		{kerr.InvalidRecord, kafka.CodeRefused},
		{kerr.PolicyViolation, kafka.CodeRefused},
		{kerr.TopicAuthorizationFailed, kafkaconn.CodeDenied},
		{kerr.InvalidProducerEpoch, kafka.CodeFenced},
	} {
		t.Run(test.err.Message, func(t *testing.T) {
			t.Parallel()
			c := newFake(t)
			target := c.opened(t, nil)
			mustPublish(t, target, 0, record("a", "1"))
			c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "out", Err: test.err})
			_, err := stage(t, target, 1, "0000000a", record("a", "2"), record("b", "3"))
			wantFault(t, err, test.code)
			if test.code == kafka.CodeFenced {
				_, err := stage(t, target, 1, "0000000a", record("a", "2"))
				wantFault(t, err, kafka.CodeFenced)
				if _, err := target.Open(t.Context(), c.owner()); err != nil {
					t.Fatal(err)
				}
			}
			if open := c.openTransactions(t); len(open) != 0 {
				t.Errorf("open transactions are left: %v", open)
			}
			mustPublish(t, target, 1, record("a", "4"))
			if got := values(c.committed(t, "out")); !slices.Equal(got, []string{"1", "4"}) {
				t.Errorf("a reader sees %q", got)
			}
		})
	}
}

func (c *cluster) openTransactions(t *testing.T) []string {
	t.Helper()
	cl := c.client(t)
	defer cl.Close()
	all, err := kadm.NewClient(cl).ListTransactions(t.Context(), nil, []string{"Ongoing"})
	if err != nil {
		t.Fatal(err)
	}
	return all.TransactionalIDs()
}

// TestTooLargeForTheTopic is refused by the broker, not by the lane.
func TestTooLargeForTheTopic(t *testing.T) {
	c := newFake(t)
	cl := c.client(t)
	defer cl.Close()
	small := "2000"
	if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), 1, 1, map[string]*string{"max.message.bytes": &small}, "small"); err != nil {
		t.Fatal(err)
	}
	target := c.target(t, nil, func(cfg *kafka.Config) { cfg.Sinks[0].Topic = "small" })
	if _, err := target.Open(t.Context(), c.owner()); err != nil {
		t.Fatal(err)
	}
	_, err := stage(t, target, 0, "0000000a", record("a", strings.Repeat("x", 3000)))
	wantFault(t, err, kafka.CodeTooLarge)
	mustPublish(t, target, 0, record("a", "y"))
}

// TestCommitAnswers plays what a broker may say to a commit.
func TestCommitAnswers(t *testing.T) {
	for _, test := range []struct {
		name string
		err  *kerr.Error
		lost bool
		code string
	}{
		{"fenced", kerr.ProducerFenced, false, kafka.CodeFenced},
		{"old epoch", kerr.InvalidProducerEpoch, false, kafka.CodeFenced},
		{"unknown producer", kerr.InvalidProducerIDMapping, true, ""},
		{"to be aborted", kerr.TransactionAbortable, true, ""},
		{"unknown", kerr.UnknownServerError, true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newFake(t)
			target := c.opened(t, nil)
			s := mustStage(t, target, 0, record("a", "1"))
			// A fenced answer comes with the transaction decided, by whoever fenced.
			if test.code == kafka.CodeFenced {
				if _, err := c.target(t, nil, nil).Open(t.Context(), c.owner()); err != nil {
					t.Fatal(err)
				}
			}
			c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Err: test.err})
			err := target.Publish(t.Context(), decision(0), s)
			if errors.Is(err, sink.ErrLost) != test.lost {
				t.Errorf("%v, lost is %t", err, test.lost)
			}
			if test.code != "" {
				wantFault(t, err, test.code)
				_, err := stage(t, target, 0, "0000000b", record("a", "1"))
				wantFault(t, err, test.code)
				return
			}
			mustPublish(t, target, 0, record("a", "1"))
			if got := values(c.committed(t, "out")); !slices.Equal(got, []string{"1"}) {
				t.Errorf("a reader sees %q", got)
			}
		})
	}
}

// TestLostAnswerOfACommit: the commit is carried out, its answer is lost. The marker tells.
func TestLostAnswerOfACommit(t *testing.T) {
	c := newFake(t)
	w := &wire{}
	cfg := func(cfg *kafka.Config) { cfg.Connection.RequestTimeout = kafkaconn.Duration(500 * time.Millisecond) }
	target := c.target(t, w, cfg)
	if _, err := target.Open(t.Context(), c.owner()); err != nil {
		t.Fatal(err)
	}
	s := mustStage(t, target, 0, record("a", "1"))
	lost := 0
	w.set(func(key int16) verdict {
		if key != keyEndTxn {
			return pass
		}
		lost++
		return cutAfter
	})
	if err := target.Publish(t.Context(), decision(0), s); err != nil {
		t.Fatal(err)
	}
	w.set(nil)
	if lost == 0 {
		t.Error("no answer was lost")
	}
	mustPublish(t, target, 1, record("a", "2"))
	if got := values(c.committed(t, "out")); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("a reader sees %q", got)
	}
}

// TestCommitThatNeverArrives is not committed, and said to be lost, once the marker was read.
func TestCommitThatNeverArrives(t *testing.T) {
	c := newFake(t)
	w := &wire{}
	target := c.target(t, w, func(cfg *kafka.Config) { cfg.Connection.RequestTimeout = kafkaconn.Duration(500 * time.Millisecond) })
	if _, err := target.Open(t.Context(), c.owner()); err != nil {
		t.Fatal(err)
	}
	s := mustStage(t, target, 0, record("a", "1"))
	w.set(func(key int16) verdict {
		if key == keyEndTxn {
			return cut
		}
		return pass
	})
	err := target.Publish(t.Context(), decision(0), s)
	if w.set(nil); !errors.Is(err, sink.ErrLost) {
		t.Fatalf("got %v, want ErrLost", err)
	}
	mustPublish(t, target, 0, record("a", "1"))
	if got := values(c.committed(t, "out")); !slices.Equal(got, []string{"1"}) {
		t.Errorf("a reader sees %q", got)
	}
}

// TestOutcomeNotKnown: the brokers are gone when a commit is sent. Nothing is said of the outcome until they are back.
func TestOutcomeNotKnown(t *testing.T) {
	c := newFake(t)
	w := &wire{}
	target := c.target(t, w, func(cfg *kafka.Config) {
		cfg.Connection.RequestTimeout, cfg.Patience = kafkaconn.Duration(300*time.Millisecond), time.Second
	})
	if _, err := target.Open(t.Context(), c.owner()); err != nil {
		t.Fatal(err)
	}
	s := mustStage(t, target, 0, record("a", "1"))
	w.set(func(key int16) verdict {
		if key == keyEndTxn {
			return dieAfter
		}
		return pass
	})
	err := target.Publish(t.Context(), decision(0), s)
	if err == nil || errors.Is(err, sink.ErrLost) {
		t.Fatalf("got %v, want an error that is not ErrLost", err)
	}
	wantFault(t, err, kafkaconn.CodeUnreachable)
	if p, err := c.target(t, nil, nil).Open(t.Context(), c.owner()); err != nil || p.Digest != digest(0) {
		t.Fatalf("%+v, %v, want batch 0", p, err)
	}
	w.revive()
	if err := target.Publish(t.Context(), decision(0), s); err != nil {
		t.Fatalf("asked again: %v", err)
	}
}

// TestTimeout: what was staged long ago is lost, by our own clock, before the broker says so.
func TestTimeout(t *testing.T) {
	c := newFake(t)
	now := time.Now()
	target := c.target(t, nil, func(cfg *kafka.Config) { cfg.Clock = func() time.Time { return now } })
	if _, err := target.Open(t.Context(), c.owner()); err != nil {
		t.Fatal(err)
	}
	s := mustStage(t, target, 0, record("a", "1"))
	now = now.Add(54 * time.Second)
	if err := target.Publish(t.Context(), decision(0), s); !errors.Is(err, sink.ErrLost) {
		t.Fatalf("got %v, want ErrLost", err)
	}
	if open := c.openTransactions(t); len(open) != 0 {
		t.Errorf("open transactions are left: %v", open)
	}
	mustPublish(t, target, 0, record("a", "2"))
	if got := values(c.committed(t, "out")); !slices.Equal(got, []string{"2"}) {
		t.Errorf("a reader sees %q", got)
	}
}

// TestAttemptsAreToldApart: a decision of one attempt does not publish the transaction of another.
func TestAttemptsAreToldApart(t *testing.T) {
	target := newFake(t).opened(t, nil)
	s := mustStage(t, target, 0, record("a", "1"))
	if _, err := stage(t, target, 0, "0000000b", record("a", "2")); err != nil {
		t.Fatal(err)
	}
	if err := target.Publish(t.Context(), decision(0), s); !errors.Is(err, sink.ErrLost) {
		t.Fatalf("got %v, want ErrLost", err)
	}
}

// TestUnreachable has no broker to talk to.
func TestUnreachable(t *testing.T) {
	c := &cluster{addrs: []string{"127.0.0.1:1"}, conn: "main", query: query}
	target := c.target(t, nil, func(cfg *kafka.Config) { cfg.Patience = 300 * time.Millisecond })
	_, err := target.Open(t.Context(), c.owner())
	wantFault(t, err, kafkaconn.CodeUnreachable)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := target.Open(ctx, c.owner()); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want a cancelled context", err)
	}
}

// TestTimeoutThatTheBrokerRefuses has a code of its own.
func TestTimeoutThatTheBrokerRefuses(t *testing.T) {
	c := newFake(t)
	_, err := c.target(t, nil, func(cfg *kafka.Config) { cfg.TransactionTimeout = time.Hour }).Open(t.Context(), c.owner())
	wantFault(t, err, kafka.CodeTimeout)
}

// TestTheBrokersTimeout: the broker ends the transaction between stage and publish, unseen by our clock, which stood still.
func TestTheBrokersTimeout(t *testing.T) {
	c := newFake(t)
	begin := time.Now()
	now := begin
	target := c.target(t, nil, func(cfg *kafka.Config) {
		cfg.TransactionTimeout, cfg.Clock = 2*time.Second, func() time.Time { return now }
	})
	for _, test := range []struct {
		name string
		age  time.Duration
		want func(error) bool
	}{
		{"the clock stood still", 0, func(err error) bool { return codeOf(err) == kafka.CodeFenced }},
		{"the clock was slow", time.Second, func(err error) bool { return errors.Is(err, sink.ErrLost) }},
	} {
		if _, err := target.Open(t.Context(), c.owner()); err != nil {
			t.Fatal(err)
		}
		s := mustStage(t, target, 0, record("a", "1"))
		for len(c.openTransactions(t)) > 0 {
			wait(t.Context(), 20)
		}
		now = now.Add(test.age)
		if err := target.Publish(t.Context(), decision(0), s); !test.want(err) {
			t.Errorf("%s: %v", test.name, err)
		}
		if got := c.committed(t, "out"); len(got) != 0 {
			t.Errorf("%s: a reader sees %q", test.name, values(got))
		}
	}
	now = begin
	mustPublish(t, target, 0, record("a", "1"))
}
