package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/wasmill/wasmill/host/fault"
)

// findTopics asks which of the target's topics exist. A sink's fixed topic must; one that a header may name is looked for
// again when a record names it.
func (t *Target) findTopics(ctx context.Context) error {
	known, missing, err := t.existing(ctx, t.topics)
	if err != nil {
		return err
	}
	for i := range t.cfg.Sinks {
		if s := &t.cfg.Sinks[i]; s.Topic != "" && !known[s.Topic] {
			return t.noTopic(s.Topic, missing[s.Topic])
		}
	}
	t.known = known
	return nil
}

// checkTopics sees to it that the topics that a batch is for exist, before a transaction is begun for them.
func (t *Target) checkTopics(ctx context.Context, lanes []*lane) error {
	var ask []string
	for _, l := range lanes {
		for i, used := range l.used {
			if name := l.route.topics[i]; used && !t.known[name] {
				ask = append(ask, name)
			}
		}
	}
	if len(ask) == 0 {
		return nil
	}
	known, missing, err := t.existing(ctx, ask)
	if err != nil {
		return err
	}
	for _, name := range ask {
		if !known[name] {
			return t.noTopic(name, missing[name])
		}
	}
	maps.Copy(t.known, known)
	return nil
}

// existing asks which topics there are. It asks twice: a broker may not yet know of a new one, nor the client of what it
// has just been told.
func (t *Target) existing(ctx context.Context, topics []string) (known map[string]bool, missing map[string]error, err error) {
	if known, missing, err = t.look(ctx, topics); err == nil && len(missing) > 0 && pause(ctx, 2*metadataMinAge) == nil {
		return t.look(ctx, topics)
	}
	return known, missing, err
}

func (t *Target) look(ctx context.Context, topics []string) (known map[string]bool, missing map[string]error, err error) {
	meta, err := t.admin().Metadata(ctx, topics...)
	if err != nil {
		return nil, nil, t.brokerFault("", fmt.Errorf("ask for topics: %w", err))
	}
	known, missing = map[string]bool{}, map[string]error{}
	for _, name := range topics {
		d, listed := meta.Topics[name]
		switch {
		case !listed:
			missing[name] = kerr.UnknownTopicOrPartition
		case d.Err != nil:
			missing[name] = d.Err
		default:
			known[name] = true
		}
	}
	return known, missing, nil
}

func (t *Target) noTopic(name string, err error) error {
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return fault.New(CodeTopic, t.place()+", topic "+name, errors.New("the topic does not exist, or may not be seen by the job's user"), "create the topic, or correct its name in the job file")
	}
	return t.brokerFault("topic "+name, err)
}

// Settings of topics.
const (
	keyCleanup = "cleanup.policy"
	keyMinISR  = "min.insync.replicas"
	keySegment = "segment.bytes"
	keyUnclean = "unclean.leader.election.enable"

	compact         = "compact"
	goodReplicas    = 3
	goodISR         = 2
	markerSegment   = "16777216" // compaction leaves the newest segment alone: a small one keeps the topic small
	topicPause      = 50 * time.Millisecond
	markerPartition = 1
)

// ensureMarkerTopic makes the marker topic when it is missing, and checks it when it is there.
func (t *Target) ensureMarkerTopic(ctx context.Context) error {
	name := t.markerTopic()
	meta, err := t.admin().Metadata(ctx, name)
	if err != nil {
		return t.brokerFault("topic "+name, err)
	}
	d := meta.Topics[name]
	if errors.Is(d.Err, kerr.UnknownTopicOrPartition) {
		if d, err = t.createMarkerTopic(ctx, len(meta.Brokers)); err != nil {
			return err
		}
	}
	if d.Err != nil {
		return t.brokerFault("topic "+name, d.Err)
	}
	return t.checkMarkerTopic(ctx, d)
}

func (t *Target) createMarkerTopic(ctx context.Context, brokers int) (kadm.TopicDetail, error) {
	name := t.markerTopic()
	replicas, isr := min(goodReplicas, brokers), "1"
	if replicas == goodReplicas {
		isr = strconv.Itoa(goodISR)
	}
	policy, segment := compact, markerSegment
	_, err := t.admin().CreateTopic(ctx, markerPartition, int16(replicas), map[string]*string{
		keyCleanup: &policy, keyMinISR: &isr, keySegment: &segment,
	}, name)
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return kadm.TopicDetail{}, fault.New(CodeMarkerTopic, t.place()+", topic "+name, fmt.Errorf("make the marker topic: %w", err),
			"let the job's user create topics, or create it: one partition, cleanup.policy=compact, three replicas, min.insync.replicas=2")
	}
	for {
		meta, err := t.admin().Metadata(ctx, name)
		if d := meta.Topics[name]; err == nil && d.Err == nil && len(d.Partitions) > 0 && d.Partitions[0].Err == nil {
			return d, nil
		}
		if perr := pause(ctx, topicPause); perr != nil {
			return kadm.TopicDetail{}, t.brokerFault("topic "+name, fmt.Errorf("wait for the new topic: %w", errors.Join(perr, err)))
		}
	}
}

// checkMarkerTopic refuses a topic that could lose a marker, or hold it where it is not looked for.
func (t *Target) checkMarkerTopic(ctx context.Context, d kadm.TopicDetail) error {
	bad := func(what, wayOut string) error {
		return fault.New(CodeMarkerTopic, t.place()+", topic "+d.Topic, errors.New(what), wayOut)
	}
	if n := len(d.Partitions); n != markerPartition {
		return bad(fmt.Sprintf("the marker topic has %d partitions, it must have one", n), wayOutFork)
	}
	set, err := t.settings(ctx, d.Topic)
	if errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed) {
		return nil // Warnings says that they cannot be seen
	}
	if err != nil {
		return t.brokerFault("topic "+d.Topic, fmt.Errorf("read the topic's settings: %w", err))
	}
	if p := set[keyCleanup]; p != compact {
		return bad(fmt.Sprintf("%s is %q: markers would be deleted by age", keyCleanup, p), "set cleanup.policy=compact on it")
	}
	return nil
}

// settings reads a topic's settings, defaults included.
func (t *Target) settings(ctx context.Context, topic string) (map[string]string, error) {
	all, err := t.admin().DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return nil, err
	}
	rc, err := all.On(topic, nil)
	if err != nil {
		return nil, err
	}
	if rc.Err != nil {
		return nil, rc.Err
	}
	return values(rc.Configs), nil
}

func values(configs []kadm.Config) map[string]string {
	out := map[string]string{}
	for _, c := range configs {
		if c.Value != nil {
			out[c.Key] = *c.Value
		}
	}
	return out
}
