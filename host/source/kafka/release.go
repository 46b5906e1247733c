package kafka

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
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

// closePatience is how long a source that is closed waits for a commit that is under way.
const closePatience = time.Second

// Release lets go of what was held for the batch, and has the offsets of its end committed to the group, now and then:
// they are for lag tools, nothing hangs on them and nothing waits for them. The error is that of an earlier commit.
func (s *Source) Release(ctx context.Context, upTo checkpoint.Position) error {
	pos, err := parsePosition(upTo)
	if err != nil {
		return err
	}
	s.pre.release(pos)
	if s.cfg.Group == "" {
		return ctx.Err()
	}
	now := s.cfg.Clock()
	age := now.Sub(s.committed)
	due := s.committed.IsZero() || age < 0 || age >= s.cfg.Commit
	if due {
		s.committed = now
	}
	return errors.Join(ctx.Err(), s.commits.offer(s, pos, due))
}

// commits commits offsets in the background, one commit at a time. The newest position wins.
type commits struct {
	mu     sync.Mutex
	latest position // not committed yet
	flying position // of the commit that was begun last
	err    error    // of the last commit, not told yet
	cancel context.CancelFunc
	done   chan struct{} // nil: none is under way
}

// offer takes a position; now says that it is time to commit it. It returns the error of an earlier commit.
func (c *commits) offer(s *Source, pos position, now bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latest = pos
	err := c.err
	c.err = nil
	if !now || c.done != nil {
		return err
	}
	c.latest, c.flying = nil, pos
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	c.cancel, c.done = cancel, make(chan struct{})
	go func() {
		defer cancel()
		err := s.commit(ctx, pos)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.err = err
		close(c.done)
		c.done = nil
	}()
	return err
}

// wait waits for the commit that is under way.
func (c *commits) wait() {
	c.mu.Lock()
	done := c.done
	c.mu.Unlock()
	if done != nil {
		<-done
	}
}

// close gives the commit that is under way a moment, and commits what was released last and is not committed.
func (c *commits) close(s *Source) error {
	c.mu.Lock()
	cancel, done := c.cancel, c.done
	c.mu.Unlock()
	if done != nil {
		moment, stop := context.WithTimeout(context.Background(), closePatience)
		defer stop()
		select {
		case <-done:
		case <-moment.Done():
			cancel()
			<-done
		}
	}
	pos, err := c.latest, c.err
	if pos == nil && err != nil {
		pos = c.flying
	}
	c.latest, c.err = nil, nil
	if pos == nil {
		return err
	}
	ctx, stop := context.WithTimeout(context.Background(), commitTimeout)
	defer stop()
	return s.commit(ctx, pos)
}

// commit commits the offsets of a position to the group.
func (s *Source) commit(ctx context.Context, pos position) error {
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
