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
	found, missing, err := t.existing(ctx, t.topics)
	if err != nil {
		return err
	}
	for i := range t.cfg.Sinks {
		s := &t.cfg.Sinks[i]
		if _, ok := found[s.Topic]; s.Topic != "" && !ok {
			return t.noTopic(s.Topic, missing[s.Topic])
		}
	}
	t.at = layout{topics: found, limits: map[string]int{}}
	t.learnLimits(ctx, t.topics)
	t.shapeLanes()
	return nil
}

// checkTopics sees to it that the topics that a batch is for exist, before a transaction is begun for them, and looks for
// new partitions now and then.
func (t *Target) checkTopics(ctx context.Context, lanes []*lane) error {
	if t.now().Sub(t.looked) > layoutAge {
		if err := t.at.renew(ctx, t.base); err != nil {
			return t.askFault(ctx, t.topics, err)
		}
		t.shapeLanes()
	}
	var ask []string
	for _, l := range lanes {
		for i := range l.topics {
			name := l.route.topics[i]
			if _, known := t.at.topics[name]; l.topics[i].rows > 0 && !known {
				ask = append(ask, name)
			}
		}
	}
	if len(ask) == 0 {
		return nil
	}
	found, missing, err := t.existing(ctx, ask)
	if err != nil {
		return err
	}
	for _, name := range ask {
		if _, ok := found[name]; !ok {
			return t.noTopic(name, missing[name])
		}
	}
	maps.Copy(t.at.topics, found)
	t.learnLimits(ctx, ask)
	t.shapeLanes()
	return nil
}

// learnLimits reads how large a batch the topics take. Where that may not be read, a batch that is too large is refused by
// the broker.
func (t *Target) learnLimits(ctx context.Context, topics []string) {
	all, err := t.admin().DescribeTopicConfigs(ctx, topics...)
	if err != nil {
		return
	}
	for _, rc := range all {
		if n, err := strconv.Atoi(values(rc.Configs)[keyMaxMessage]); rc.Err == nil && err == nil {
			t.at.limits[rc.Name] = n
		}
	}
}

// shapeLanes tells the lanes that start from now on how the topics are.
func (t *Target) shapeLanes() {
	t.looked = t.now()
	for _, r := range t.sinks {
		for i, name := range r.topics {
			r.shapes[i].Store(&shape{partitions: int32(len(t.at.topics[name].leaders)), limit: t.at.limit(name)})
		}
	}
}

// missingPause is how long a topic may be unknown to a broker.
const missingPause = 300 * time.Millisecond

// existing asks which topics there are. It asks twice: a broker may not yet know of a new one, nor the client of what it
// has just been told.
func (t *Target) existing(ctx context.Context, topics []string) (found map[string]topicLayout, missing map[string]error, err error) {
	found, missing, err = lookUp(ctx, t.base, topics)
	if err == nil && len(missing) > 0 && pause(ctx, missingPause) == nil {
		found, missing, err = lookUp(ctx, t.base, topics)
	}
	if err != nil {
		return nil, nil, t.askFault(ctx, topics, err)
	}
	return found, missing, nil
}

// askFault is the fault for an error of a question about topics. One that may not be seen fails the question for all of them,
// and the answer does not say which.
func (t *Target) askFault(ctx context.Context, topics []string, err error) error {
	if !errors.Is(err, kerr.TopicAuthorizationFailed) {
		return t.brokerFault("", fmt.Errorf("ask for topics: %w", err))
	}
	for _, name := range topics {
		if _, one := t.admin().Metadata(ctx, name); errors.Is(one, kerr.TopicAuthorizationFailed) {
			return t.brokerFault("topic "+name, one)
		}
	}
	return t.brokerFault("", fmt.Errorf("ask for topics: %w", err))
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

	keyMaxMessage = "max.message.bytes"

	compact         = "compact"
	goodReplicas    = 3
	goodISR         = 2
	markerSegment   = "16777216" // compaction leaves the newest segment alone: a small one keeps the topic small
	topicPause      = 25 * time.Millisecond
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
	if err := t.checkMarkerTopic(ctx, d); err != nil {
		return err
	}
	t.at.topics[name] = layoutOf(d)
	return nil
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
	if errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed) {
		return kadm.TopicDetail{}, t.brokerFault("topic "+name, fmt.Errorf("make the marker topic: %w", err))
	}
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
