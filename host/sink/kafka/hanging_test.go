package kafka_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
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
