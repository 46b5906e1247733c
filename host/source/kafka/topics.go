package kafka

import (
	"context"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// gonePatience is how long a topic must stay unknown before it counts as gone: a broker that has just started may not
// know it yet.
const gonePatience = time.Second

// topicInfo is what the cluster says of a topic. It is not changed once it is in the cache.
type topicInfo struct {
	id    string // 32 hex digits, "" before Kafka 2.8
	raw   [16]byte
	parts map[int32]partInfo
}

func (t *topicInfo) has(num int32) bool {
	_, ok := t.parts[num]
	return ok
}

type partInfo struct {
	leader int32 // none: it has none
	epoch  int32
}

// topicCache holds what is known of topics. Reads in parallel share it.
type topicCache struct {
	mu     sync.Mutex
	topics map[string]*topicInfo
	at     time.Time // when all subscribed topics were looked up, zero never
}

func (c *topicCache) get(name string) *topicInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.topics[name]
}

func (c *topicCache) put(name string, t *topicInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.topics == nil {
		c.topics = map[string]*topicInfo{}
	}
	c.topics[name] = t
}

// subscribed returns the topics that are read, by name: those of the last look, when it is not too old and not fresh.
// A topic that is read by name and is not there, or not any more, is left out.
func (s *Source) subscribed(ctx context.Context, fresh bool) (map[string]*topicInfo, error) {
	if fresh || s.due() {
		now := s.cfg.Clock()
		if err := s.discover(ctx); err != nil {
			return nil, err
		}
		s.meta.at = now
	}
	out := map[string]*topicInfo{}
	s.meta.mu.Lock()
	defer s.meta.mu.Unlock()
	for name, t := range s.meta.topics {
		if t != nil && s.reads(name) {
			out[name] = t
		}
	}
	return out, nil
}

// due reports whether the last look at all subscribed topics is too old.
func (s *Source) due() bool {
	age := s.cfg.Clock().Sub(s.meta.at)
	return s.meta.at.IsZero() || age < 0 || age >= s.cfg.Discovery
}

// discover looks up all subscribed topics. One that was known and is not found is looked up again for a while.
func (s *Source) discover(ctx context.Context) error {
	var names []string
	if s.pattern == nil {
		names = s.cfg.Topics
	}
	found, err := s.lookup(ctx, names)
	if err != nil {
		return err
	}
	s.meta.mu.Lock()
	known := s.meta.topics
	s.meta.topics = found
	s.meta.mu.Unlock()
	missing := map[string]bool{}
	for _, name := range s.cfg.Topics {
		missing[name] = found[name] == nil
	}
	for name := range known {
		missing[name] = found[name] == nil && s.reads(name)
	}
	for name, yes := range missing {
		if !yes {
			continue
		}
		if _, err := s.topic(ctx, name, true); err != nil {
			return err
		}
	}
	return nil
}

// topic returns a topic, from the cache unless fresh; nil when the cluster goes on not to know it.
func (s *Source) topic(ctx context.Context, name string, fresh bool) (*topicInfo, error) {
	if t := s.meta.get(name); t != nil && !fresh {
		return t, nil
	}
	var b backoff
	for {
		found, err := s.lookup(ctx, []string{name})
		if err != nil {
			return nil, err
		}
		if t := found[name]; t != nil {
			s.meta.put(name, t)
			return t, nil
		}
		if again, err := b.wait(ctx, gonePatience); !again || err != nil {
			s.meta.put(name, nil)
			return nil, err
		}
	}
}

// lookup asks the cluster for topics, nil for all. Errors that go by are waited for.
func (s *Source) lookup(ctx context.Context, names []string) (found map[string]*topicInfo, err error) {
	err = s.try(ctx, s.cfg.Patience, func(ctx context.Context) (err error) {
		found, err = s.lookupOnce(ctx, names)
		return err
	})
	return found, s.words("", err)
}

// words puts an error of the client into a fault.
func (s *Source) words(place string, err error) error { return s.cfg.Cluster.Fault(place, err) }

func (s *Source) lookupOnce(ctx context.Context, names []string) (map[string]*topicInfo, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = false
	for i := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &names[i]
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, s.client)
	if err != nil {
		return nil, err
	}
	s.reached.Store(true)
	out := map[string]*topicInfo{}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if t.Topic == nil || names == nil && (t.IsInternal || !s.reads(*t.Topic)) {
			continue
		}
		info, err := newTopicInfo(t)
		switch {
		case err == kerr.UnknownTopicOrPartition || err == kerr.UnknownTopicID:
			continue
		case err == kerr.TopicAuthorizationFailed:
			return nil, s.words("topic "+*t.Topic, err)
		case err == kerr.InvalidTopicException:
			return nil, configFault(s.cfg.Name, fmt.Sprintf("%.300q cannot be the name of a topic", *t.Topic))
		case err != nil:
			return nil, fmt.Errorf("topic %s: %w", *t.Topic, err)
		}
		out[*t.Topic] = info
	}
	return out, nil
}

func newTopicInfo(t *kmsg.MetadataResponseTopic) (*topicInfo, error) {
	if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
		return nil, err
	}
	if len(t.Partitions) == 0 {
		return nil, kerr.LeaderNotAvailable // a topic has partitions: the broker does not know them yet
	}
	info := &topicInfo{raw: t.TopicID, parts: map[int32]partInfo{}}
	if t.TopicID != ([16]byte{}) {
		info.id = hex.EncodeToString(t.TopicID[:])
	}
	for i := range t.Partitions {
		p := &t.Partitions[i]
		info.parts[p.Partition] = partInfo{leader: p.Leader, epoch: p.LeaderEpoch}
	}
	return info, nil
}

// demand is a fault that names topics that were never there. Where losses are skipped a job with progress goes on.
func (s *Source) demand(topics map[string]*topicInfo, pos position, fresh bool) error {
	if s.cfg.SkipLost && !fresh {
		return nil
	}
	var missing []string
	for _, name := range s.cfg.Topics {
		if topics[name] == nil && pos[name] == nil {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return unknownTopics("connection "+s.cfg.Cluster.Name, missing...)
}
