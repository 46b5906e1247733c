package demo

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/host/fault"
)

// onlooker reads both topics as any consumer of committed records would, and counts. It has no part in the proof.
type onlooker struct {
	client *kgo.Client
	mu     sync.Mutex
	// offsets are those of the committed records, by topic and partition, in order.
	offsets map[string]*[partitions][]int64
}

func newOnlooker(brokers []string) (*onlooker, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topicOrders, topicConverted), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableClientMetrics(),
	)
	if err != nil {
		return nil, fault.New(CodeBroker, brokers[0], fmt.Errorf("connect to the in-process broker: %w", err), "")
	}
	return &onlooker{client: client, offsets: map[string]*[partitions][]int64{topicOrders: {}, topicConverted: {}}}, nil
}

// run reads until the onlooker is closed.
func (o *onlooker) run(ctx context.Context) {
	for {
		f := o.client.PollFetches(ctx)
		if f.IsClientClosed() || ctx.Err() != nil {
			return
		}
		o.mu.Lock()
		f.EachRecord(func(r *kgo.Record) {
			if p := o.offsets[r.Topic]; p != nil && r.Partition < partitions {
				p[r.Partition] = append(p[r.Partition], r.Offset)
			}
		})
		o.mu.Unlock()
	}
}

func (o *onlooker) close() { o.client.Close() }

// records is how many committed records a topic holds, as far as they have been seen.
func (o *onlooker) records(topic string) (n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.offsets[topic] {
		n += int64(len(p))
	}
	return n
}

// lag is how many records of a topic lie at or behind a job's position: the offset to be read next, by partition.
func (o *onlooker) lag(topic string, at map[int32]int64) (n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for num, p := range o.offsets[topic] {
		first, _ := slices.BinarySearch(p, at[int32(num)])
		n += int64(len(p) - first)
	}
	return n
}
