package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/wasmill/wasmill/host/sink"
)

// Survey is how a cluster looks to a target that has taken nothing over.
type Survey struct {
	Topics   []SurveyedTopic
	Warnings []Warning
}

// SurveyedTopic is a topic that may be published to.
type SurveyedTopic struct {
	Name       string
	Partitions int // 0 when it does not exist
	// Err is why Open or a record for the topic would be refused, nil when it would not.
	Err error
}

// Survey looks at the topics and at the settings that the promise rests on. The owner's query may be "": then there is no
// marker topic yet. It takes nothing over and makes nothing.
func (t *Target) Survey(ctx context.Context, o sink.Owner) (Survey, error) {
	look := &Target{cfg: t.cfg, query: o.Query, topics: t.topics}
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Patience)
	defer cancel()
	if err := look.reach(); err != nil {
		return Survey{}, err
	}
	defer look.base.Close()
	var s Survey
	refused := false
	for _, name := range t.topics {
		one, err := look.survey(ctx, name)
		if err != nil {
			return Survey{}, err
		}
		refused = refused || errors.Is(one.Err, kerr.TopicAuthorizationFailed)
		s.Topics = append(s.Topics, one)
	}
	if refused {
		return s, nil // the others' settings are asked for in one request with it
	}
	var err error
	s.Warnings, err = look.Warnings(ctx)
	return s, err
}

// survey looks at one topic, alone: a topic that may not be seen fails the request for all.
func (t *Target) survey(ctx context.Context, name string) (SurveyedTopic, error) {
	s := SurveyedTopic{Name: name}
	meta, err := t.admin().Metadata(ctx, name)
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		s.Err = t.brokerFault("topic "+name, err)
		return s, nil
	}
	if err != nil {
		return s, t.brokerFault("", fmt.Errorf("ask for topics: %w", err))
	}
	d, listed := meta.Topics[name]
	switch {
	case !listed:
		s.Err = t.noTopic(name, kerr.UnknownTopicOrPartition)
	case d.Err != nil:
		s.Err = t.noTopic(name, d.Err)
	default:
		s.Partitions = len(d.Partitions)
	}
	return s, nil
}
