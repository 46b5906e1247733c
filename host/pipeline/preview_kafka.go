package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
	kafkasink "github.com/wasmill/wasmill/host/sink/kafka"
)

// Cluster is what a job publishes to on a cluster.
type Cluster struct {
	Connection string
	Topics     []kafkasink.SurveyedTopic
	// Warnings are settings that can break the promise.
	Warnings []string
}

// surveyor is a target that can say what it publishes to, without taking it over.
type surveyor interface {
	Survey(ctx context.Context, o sink.Owner) (kafkasink.Survey, error)
}

// clusters looks at the clusters that the job publishes to. A topic without which the next start is refused is a finding.
func (v *Preview) clusters(ctx context.Context, p *Program) (err error) {
	targets, err := p.targets(p.Job)
	if err != nil {
		return err
	}
	for _, t := range distinct(targets) {
		k, ok := t.(surveyor)
		if !ok {
			continue
		}
		s, err := k.Survey(ctx, sink.Owner{Query: v.QueryID, Job: p.Job.Name, Next: v.Batch})
		if err != nil {
			return fmt.Errorf("look at target %s: %w", t.ID(), err)
		}
		c := Cluster{Connection: t.ID(), Topics: s.Topics}
		for _, w := range s.Warnings {
			c.Warnings = append(c.Warnings, w.String())
		}
		v.Clusters = append(v.Clusters, c)
		for i := range s.Topics {
			if one := &s.Topics[i]; one.Err != nil && p.fixed(one.Name) {
				v.Findings = append(v.Findings, findingOf(one.Err))
			}
		}
	}
	return nil
}

// fixed tells that a sink of the job publishes to a topic whatever its records say: it must be there at the start.
func (p *Program) fixed(topic string) bool {
	for i := range p.Job.Sinks {
		if k := p.Job.Sinks[i].Kafka; k != nil && k.Topic == topic {
			return true
		}
	}
	return false
}

// findingOf puts what a start is refused for into the form of a finding.
func findingOf(err error) checkpoint.Finding {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return checkpoint.Finding{Message: err.Error()}
	}
	return checkpoint.Finding{Code: f.Code(), File: f.Place, Message: f.Err.Error(), WayOut: f.Hint()}
}
