package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// readPatience is how long the proof waits for the next records of a topic.
const readPatience = 20 * time.Second

// readTopic hands over every committed record of a topic, those of a partition in order. It reads with a client of its own
// up to where the log ends now, control records included: they are the last of each partition.
func readTopic(ctx context.Context, brokers []string, topic string, each func(*kgo.Record)) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableClientMetrics(),
	)
	if err != nil {
		return fmt.Errorf("read topic %s: %w", topic, err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("ask where topic %s ends: %w", topic, err)
	}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	for len(left) > 0 {
		if err := poll(ctx, client, topic, left, each); err != nil {
			return err
		}
	}
	return nil
}

func poll(ctx context.Context, client *kgo.Client, topic string, left map[int32]int64, each func(*kgo.Record)) error {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	fetches := client.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("nothing comes for %s, with records left to read in %d partitions: is a transaction open?", readPatience, len(left))
		}
		return fmt.Errorf("read topic %s: %w", topic, err)
	}
	fetches.EachRecord(func(r *kgo.Record) {
		if !r.Attrs.IsControl() {
			each(r)
		}
		if end, ok := left[r.Partition]; ok && r.Offset >= end-1 {
			delete(left, r.Partition)
		}
	})
	return nil
}
