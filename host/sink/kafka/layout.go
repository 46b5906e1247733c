package kafka

import (
	"context"
	"maps"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// layout is where topics are, as the cluster last said.
type layout struct {
	topics map[string]topicLayout
	limits map[string]int // bytes of a batch that topics take, of those that say it
}

// topicLayout is one topic.
type topicLayout struct {
	id      [16]byte
	leaders []int32 // by partition, -1 for none
}

const (
	noLeader = -1
	// layoutAge is after how long new partitions are looked for.
	layoutAge = 30 * time.Second
)

func (l *layout) leader(p place) int32 {
	if t := l.topics[p.topic]; int(p.partition) < len(t.leaders) {
		return t.leaders[p.partition]
	}
	return noLeader
}

// limit is how many bytes a batch for a topic may have.
func (l *layout) limit(topic string) int {
	if n, ok := l.limits[topic]; ok && n > headerSize {
		return n
	}
	return math.MaxInt32
}

// names lists the topics.
func (l *layout) names() []string {
	var out []string
	for name := range l.topics {
		out = append(out, name)
	}
	return out
}

// renew asks for all known topics.
func (l *layout) renew(ctx context.Context, cl *kgo.Client) error {
	found, _, err := lookUp(ctx, cl, l.names())
	maps.Copy(l.topics, found)
	return err
}

// refresh does so where some of a batch may have been sent: it fails when a topic was made anew. Any other error shows when
// more is sent.
func (l *layout) refresh(ctx context.Context, cl *kgo.Client) error {
	found, _, err := lookUp(ctx, cl, l.names())
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	for name, t := range found {
		if l.topics[name].id != t.id {
			return &placeError{place{topic: name}, "the topic was made anew", kerr.UnknownTopicID}
		}
		l.topics[name] = t
	}
	return nil
}

// lookUp asks for topics, and why some are missing. A client that has asked knows all brokers.
func lookUp(ctx context.Context, cl *kgo.Client, names []string) (found map[string]topicLayout, missing map[string]error, err error) {
	meta, err := kadm.NewClient(cl).Metadata(ctx, names...)
	if err != nil {
		return nil, nil, err
	}
	found, missing = map[string]topicLayout{}, map[string]error{}
	for _, name := range names {
		d, listed := meta.Topics[name]
		switch {
		case !listed:
			missing[name] = kerr.UnknownTopicOrPartition
		case d.Err != nil:
			missing[name] = d.Err
		case len(d.Partitions) == 0:
			missing[name] = kerr.LeaderNotAvailable
		default:
			found[name] = layoutOf(d)
		}
	}
	return found, missing, nil
}

func layoutOf(d kadm.TopicDetail) topicLayout {
	t := topicLayout{id: d.ID, leaders: make([]int32, len(d.Partitions))}
	for p := range t.leaders {
		t.leaders[p] = noLeader
		if part, ok := d.Partitions[int32(p)]; ok && part.Err == nil {
			t.leaders[p] = part.Leader
		}
	}
	return t
}
