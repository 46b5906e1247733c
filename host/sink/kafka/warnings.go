package kafka

import (
	"context"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Warning is a setting of the cluster that can break the promise of exactly once.
type Warning struct {
	Place   string // a topic or a broker
	Setting string
	Value   string
	Text    string // what can happen, and what to set
}

func (w Warning) String() string {
	return fmt.Sprintf("%s: %s is %s: %s", w.Place, w.Setting, w.Value, w.Text)
}

const (
	replicationFactor = "replication factor"
	unknownValue      = "unknown"

	keyTxnReplicas = "transaction.state.log.replication.factor"
	keyTxnISR      = "transaction.state.log.min.isr"
	keyMaxTimeout  = "transaction.max.timeout.ms"
)

// Warnings reads the settings of the topics and brokers that the promise rests on. It may be called after Open. What may not
// be read is a warning too.
func (t *Target) Warnings(ctx context.Context) ([]Warning, error) {
	names := t.topics
	if t.exact() && t.query != "" {
		names = append([]string{t.markerTopic()}, names...)
	}
	meta, err := t.admin().Metadata(ctx, names...)
	if err != nil {
		return nil, t.brokerFault("", err)
	}
	var out []Warning
	for _, name := range names {
		if d := meta.Topics[name]; d.Err == nil {
			out = append(out, t.topicWarnings(ctx, d)...)
		}
	}
	if !t.exact() {
		return out, nil
	}
	return append(out, t.brokerWarnings(ctx, meta)...), nil
}

func (t *Target) topicWarnings(ctx context.Context, d kadm.TopicDetail) []Warning {
	var out []Warning
	place := "topic " + d.Topic
	warn := func(setting, value, text string) {
		out = append(out, Warning{Place: place, Setting: setting, Value: value, Text: text})
	}
	replicas := len(d.Partitions[0].Replicas)
	for _, p := range d.Partitions {
		replicas = min(replicas, len(p.Replicas))
	}
	if replicas < goodReplicas {
		warn(replicationFactor, strconv.Itoa(replicas), "what is published is gone with the disks of as many brokers: use three")
	}
	set, err := t.settings(ctx, d.Topic)
	if err != nil {
		warn(keyMinISR, unknownValue, "the topic's settings cannot be read: "+err.Error())
		return out
	}
	if n, err := strconv.Atoi(set[keyMinISR]); err == nil && n < goodISR {
		warn(keyMinISR, set[keyMinISR], "a record is acknowledged when a single broker has it: use 2, with three replicas")
	}
	if set[keyUnclean] == "true" {
		warn(keyUnclean, "true", "a broker that has missed records may become leader, which loses what was acknowledged: use false")
	}
	return out
}

func (t *Target) brokerWarnings(ctx context.Context, meta kadm.Metadata) []Warning {
	if len(meta.Brokers) == 0 {
		return nil
	}
	id := meta.Brokers[0].NodeID
	place := fmt.Sprintf("broker %d", id)
	all, err := t.admin().DescribeBrokerConfigs(ctx, id)
	if err == nil && len(all) == 1 {
		err = all[0].Err
	}
	if err != nil || len(all) != 1 {
		if err == nil {
			err = kerr.UnknownServerError
		}
		return []Warning{{Place: place, Setting: keyTxnReplicas, Value: unknownValue, Text: "the broker's settings cannot be read: " + err.Error()}}
	}
	var out []Warning
	set := values(all[0].Configs)
	for _, c := range []struct {
		key   string
		least int
		text  string
	}{
		{keyTxnReplicas, goodReplicas, "the outcome of a transaction is gone with the disks of as many brokers: use three"},
		{keyTxnISR, goodISR, "the outcome of a transaction is acknowledged when a single broker has it: use 2"},
	} {
		if n, err := strconv.Atoi(set[c.key]); err == nil && n < c.least {
			out = append(out, Warning{Place: place, Setting: c.key, Value: set[c.key], Text: c.text})
		}
	}
	if n, err := strconv.ParseInt(set[keyMaxTimeout], 10, 64); err == nil && n < t.cfg.TransactionTimeout.Milliseconds() {
		out = append(out, Warning{
			Place: place, Setting: keyMaxTimeout, Value: set[keyMaxTimeout],
			Text: fmt.Sprintf("the transaction timeout of %s is longer: lower it", t.cfg.TransactionTimeout),
		})
	}
	return out
}
