package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Timestamps of ListOffsets that stand for the ends of a log.
const (
	atEnd   = -1
	atStart = -2
)

// logEnd is an offset of a log with the leader epoch that it was told in, or none.
type logEnd struct {
	offset int64
	epoch  int32
}

// offsets asks for an offset of each partition: atEnd is the last stable offset, or the high watermark when uncommitted
// records are read; a timestamp gives the first record that is not older, none when there is none. Partitions that do not
// exist any more are left out.
func (s *Source) offsets(ctx context.Context, parts []partition, timestamp int64) (map[partition]logEnd, error) {
	out := map[partition]logEnd{}
	if len(parts) == 0 {
		return out, nil
	}
	left, gone := parts, false
	err := s.try(ctx, s.cfg.Patience, func(ctx context.Context) error {
		err := s.offsetsOnce(ctx, left, timestamp, out)
		if err == nil {
			return nil
		}
		left = slices.DeleteFunc(slices.Clone(parts), func(p partition) bool { _, ok := out[p]; return ok })
		if !errors.Is(err, kerr.UnknownTopicOrPartition) && !errors.Is(err, kerr.UnknownTopicID) {
			return err
		}
		for _, p := range left {
			t, err := s.topic(ctx, p.topic, true)
			if err != nil {
				return err
			}
			if t == nil || !t.has(p.num) {
				gone = true
				return nil
			}
		}
		return err
	})
	if gone {
		return out, nil
	}
	return out, s.words("", err)
}

func (s *Source) offsetsOnce(ctx context.Context, parts []partition, timestamp int64, out map[partition]logEnd) error {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	req.IsolationLevel = s.isolation()
	for _, p := range parts {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != p.topic {
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = p.topic
			req.Topics = append(req.Topics, t)
		}
		t := &req.Topics[len(req.Topics)-1]
		tp := kmsg.NewListOffsetsRequestTopicPartition()
		tp.Partition, tp.Timestamp = p.num, timestamp
		t.Partitions = append(t.Partitions, tp)
	}
	resp, err := req.RequestWith(ctx, s.client)
	if err != nil {
		return err
	}
	answered := 0
	for i := range resp.Topics {
		t := &resp.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			answered++
			switch e := kerr.ErrorForCode(p.ErrorCode); {
			case e == nil:
				out[partition{t.Topic, p.Partition}] = logEnd{p.Offset, p.LeaderEpoch}
			case errors.Is(e, kerr.TopicAuthorizationFailed):
				return s.words("topic "+t.Topic, e)
			default:
				err = fmt.Errorf("offsets of %s-%d: %w", t.Topic, p.Partition, e)
			}
		}
	}
	if err == nil && answered < len(parts) {
		return fmt.Errorf("offsets of %d partitions: %d were answered: %w", len(parts), answered, kerr.LeaderNotAvailable)
	}
	return err
}

// epochEnd asks where the log of a partition left a leader epoch: the end of the last epoch up to it, none when the log
// knows nothing so old.
func (s *Source) epochEnd(ctx context.Context, k partition, epoch int32) (end int64, err error) {
	err = s.try(ctx, s.cfg.Patience, func(ctx context.Context) (err error) {
		end, err = s.epochEndOnce(ctx, k, epoch)
		return err
	})
	return end, s.words("partition "+k.String(), err)
}

func (s *Source) epochEndOnce(ctx context.Context, k partition, epoch int32) (int64, error) {
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.ReplicaID = -1
	t := kmsg.NewOffsetForLeaderEpochRequestTopic()
	t.Topic = k.topic
	p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	p.Partition, p.CurrentLeaderEpoch, p.LeaderEpoch = k.num, none, epoch
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, s.client)
	if err != nil {
		return none, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return none, fmt.Errorf("end of a leader epoch of %s: %w", k, kerr.LeaderNotAvailable)
	}
	answer := &resp.Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
		return none, fmt.Errorf("end of a leader epoch of %s: %w", k, err)
	}
	return answer.EndOffset, nil
}
