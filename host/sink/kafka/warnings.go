package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
)

// Warning is a setting of the cluster that can break the promise of exactly once.
type Warning struct {
	Place   string // topics, a broker or the cluster
	Setting string
	Value   string
	Text    string // what can happen, and what to set
}

func (w Warning) String() string {
	return fmt.Sprintf("%s: %s is %s: %s", w.Place, w.Setting, w.Value, w.Text)
}

const (
	brokerCount       = "number of brokers"
	replicationFactor = "replication factor"
	unknownValue      = "unknown"

	keyTxnReplicas = "transaction.state.log.replication.factor"
	keyTxnISR      = "transaction.state.log.min.isr"
	keyMaxTimeout  = "transaction.max.timeout.ms"
)

// Warnings reads the settings of the topics and brokers that the promise rests on. It may be called after Open. What may not
// be read is a warning too. A cluster that is too small for any of them to be right gets one warning.
func (t *Target) Warnings(ctx context.Context) ([]Warning, error) {
	names := t.topics
	if t.exact() && t.query != "" {
		names = append([]string{t.markerTopic()}, names...)
	}
	meta, err := t.admin().Metadata(ctx, names...)
	if err != nil {
		return nil, t.brokerFault("", err)
	}
	var w warner
	if w.small = len(meta.Brokers) < goodReplicas; w.small {
		w.add("the cluster", brokerCount, strconv.Itoa(len(meta.Brokers)),
			"if a disk fails, what is published is gone; fine for a trial, else use three brokers, three replicas of each topic and min.insync.replicas=2")
	}
	all, err := t.admin().DescribeTopicConfigs(ctx, names...)
	for _, name := range names {
		d := meta.Topics[name]
		if d.Err != nil {
			continue
		}
		rc, rerr := all.On(name, nil)
		if rerr = errors.Join(err, rerr, rc.Err); rerr != nil {
			w.add("topic "+name, keyMinISR, unknownValue, "the topic's settings cannot be read: "+rerr.Error())
			continue
		}
		w.topic(d, values(rc.Configs), t.cfg.MaxMessage, name == t.markerTopic())
	}
	if t.exact() && len(meta.Brokers) > 0 {
		t.brokerWarnings(ctx, meta.Brokers[0].NodeID, &w)
	}
	return w.all(), nil
}

// warner gathers warnings, one for all topics that share it.
type warner struct {
	small  bool // fewer brokers than replicas are needed
	found  []Warning
	places [][]string
}

func (w *warner) add(place, setting, value, text string) {
	for i := range w.found {
		if f := &w.found[i]; f.Setting == setting && f.Value == value && f.Text == text {
			w.places[i] = append(w.places[i], place)
			return
		}
	}
	w.found = append(w.found, Warning{Setting: setting, Value: value, Text: text})
	w.places = append(w.places, []string{place})
}

// namedPlaces is how many places a warning names.
const namedPlaces = 3

func (w *warner) all() []Warning {
	for i, p := range w.places {
		if more := len(p) - namedPlaces; more > 0 {
			p = append(p[:namedPlaces:namedPlaces], fmt.Sprintf("%d more", more))
		}
		w.found[i].Place = strings.Join(p, ", ")
	}
	return w.found
}

func (w *warner) topic(d kadm.TopicDetail, set map[string]string, maxMessage int32, marker bool) {
	place := "topic " + d.Topic
	replicas := len(d.Partitions[0].Replicas)
	for _, p := range d.Partitions {
		replicas = min(replicas, len(p.Replicas))
	}
	isr, err := strconv.Atoi(set[keyMinISR])
	switch {
	case err != nil:
	case isr > replicas:
		w.add(place, keyMinISR, set[keyMinISR], fmt.Sprintf("more than the topic has replicas (%d): brokers may refuse what is published to it; add replicas, or set it to at most as many", replicas))
	case isr < goodISR && !w.small:
		w.add(place, keyMinISR, set[keyMinISR], "a record is acknowledged when a single broker has it: use 2, with three replicas")
	}
	if replicas < goodReplicas && !w.small {
		w.add(place, replicationFactor, strconv.Itoa(replicas), "what is published is gone with the disks of as many brokers: use three")
	}
	if set[keyUnclean] == "true" {
		w.add(place, keyUnclean, "true", "a broker that has missed records may become leader, which loses what was acknowledged: use false")
	}
	if n, err := strconv.ParseInt(set[keyMaxMessage], 10, 64); err == nil && n < int64(maxMessage) && !marker {
		w.add(place, keyMaxMessage, set[keyMaxMessage],
			fmt.Sprintf("a record between this and the sink's `maxMessage` of %d bytes stops the job: lower maxMessage, so that it is set aside, or raise the setting", maxMessage))
	}
}

func (t *Target) brokerWarnings(ctx context.Context, id int32, w *warner) {
	place := fmt.Sprintf("broker %d", id)
	all, err := t.admin().DescribeBrokerConfigs(ctx, id)
	if err == nil && len(all) == 1 {
		err = all[0].Err
	}
	if err != nil || len(all) != 1 {
		w.add(place, keyTxnReplicas, unknownValue, fmt.Sprintf("the broker's settings cannot be read: %v", err))
		return
	}
	set := values(all[0].Configs)
	for _, c := range []struct {
		key   string
		least int
		text  string
	}{
		{keyTxnReplicas, goodReplicas, "the outcome of a transaction is gone with the disks of as many brokers: use three"},
		{keyTxnISR, goodISR, "the outcome of a transaction is acknowledged when a single broker has it: use 2"},
	} {
		if n, err := strconv.Atoi(set[c.key]); err == nil && n < c.least && !w.small {
			w.add(place, c.key, set[c.key], c.text)
		}
	}
	if n, err := strconv.ParseInt(set[keyMaxTimeout], 10, 64); err == nil && n < t.cfg.TransactionTimeout.Milliseconds() {
		w.add(place, keyMaxTimeout, set[keyMaxTimeout], fmt.Sprintf("the transaction timeout of %s is longer: lower it", t.cfg.TransactionTimeout))
	}
}
