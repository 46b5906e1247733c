package kafka

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
)

// CodeGroup is the code of a fault about the consumer group that offsets are committed to.
const CodeGroup = "kafka.group"

// commitTimeout bounds one commit of offsets: it is for onlookers and must not hold a batch up.
const commitTimeout = 5 * time.Second

// Release lets go of what was held for the batch, and commits the offsets of its end to the group, now and then: they are
// for lag tools and nothing hangs on them.
func (s *Source) Release(ctx context.Context, upTo checkpoint.Position) error {
	pos, err := parsePosition(upTo)
	if err != nil {
		return err
	}
	s.pre.release(pos)
	if s.cfg.Group == "" {
		return ctx.Err()
	}
	s.released = upTo
	now := s.cfg.Clock()
	if age := now.Sub(s.committed); !s.committed.IsZero() && age >= 0 && age < s.cfg.Commit {
		return ctx.Err()
	}
	s.committed = now
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	return s.commit(ctx)
}

// commit commits what was released last, if it is not yet.
func (s *Source) commit(ctx context.Context) error {
	if s.released.IsZero() {
		return nil
	}
	pos, err := parsePosition(s.released)
	if err != nil {
		return err
	}
	s.released = checkpoint.Position{}
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = s.cfg.Group, -1
	for name, t := range pos {
		rt := kmsg.NewOffsetCommitRequestTopic()
		rt.Topic = name
		if id, err := hex.DecodeString(t.id); err == nil && len(id) == len(rt.TopicID) {
			rt.TopicID = [16]byte(id)
		}
		for num, at := range t.parts {
			rp := kmsg.NewOffsetCommitRequestTopicPartition()
			rp.Partition, rp.Offset, rp.LeaderEpoch = num, at.offset, at.epoch
			rt.Partitions = append(rt.Partitions, rp)
		}
		req.Topics = append(req.Topics, rt)
	}
	resp, err := req.RequestWith(ctx, s.client)
	if err != nil {
		return s.words("group "+s.cfg.Group, fmt.Errorf("commit offsets: %w", err))
	}
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			if err := kerr.ErrorForCode(resp.Topics[i].Partitions[j].ErrorCode); err != nil {
				return s.groupFault(err)
			}
		}
	}
	return nil
}

func (s *Source) groupFault(err error) error {
	if errors.Is(err, kerr.UnknownMemberID) || errors.Is(err, kerr.IllegalGeneration) || errors.Is(err, kerr.RebalanceInProgress) ||
		errors.Is(err, kerr.FencedMemberEpoch) || errors.Is(err, kerr.StaleMemberEpoch) {
		return fault.New(CodeGroup, "group "+s.cfg.Group, fmt.Errorf("the group has consumers of its own: %w", err),
			"give the source a group that nobody else uses; progress does not hang on it")
	}
	return s.words("group "+s.cfg.Group, fmt.Errorf("commit offsets: %w", err))
}
