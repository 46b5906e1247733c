package job

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// kafkaReader is what a kafka source reads, as far as it is right.
type kafkaReader struct {
	source  string
	brokers []string
	topics  map[string]bool
	pattern *regexp.Regexp // nil: by name
}

// kafkaLoops demands that no source reads a topic that a sink of the job publishes to, the one for dead letters included.
// Two connections reach one cluster when they name a broker alike; that two addresses are one broker is not seen.
func (c *checker) kafkaLoops(j *Job, spec *value) {
	clusters := kafkaBrokers(j)
	readers := kafkaReaders(j, spec, clusters)
	for i, s := range spec.at("sinks").items {
		v := s.at("kafka")
		if j.Sinks[i].Kafka == nil || !v.at("connection").good() {
			continue
		}
		connection := v.at("connection").text
		for _, r := range readers {
			if !slices.ContainsFunc(clusters[connection], func(b string) bool { return slices.Contains(r.brokers, b) }) {
				continue
			}
			for _, t := range append([]*value{v.at("topic")}, v.at("topics").items...) {
				c.kafkaLoop(r, t, j.Sinks[i].Name)
			}
		}
	}
}

func (c *checker) kafkaLoop(r kafkaReader, topic *value, sink string) {
	by := ""
	switch {
	case !topic.good():
		return
	case r.topics[topic.text]:
	case r.pattern != nil && r.pattern.MatchString(topic.text):
		by = " by its pattern"
	default:
		return
	}
	c.wrongAt(topic.path, CodeConflict, fmt.Sprintf("source %s reads topic %s%s, which sink %s publishes to: what the job writes it would read again, and that can go on without end; "+
		"let the sink publish to a topic that the job does not read, or another job read this one", r.source, cut(topic.text), by, sink), "")
}

// kafkaReaders returns what the kafka sources read whose connections can be told.
func kafkaReaders(j *Job, spec *value, clusters map[string][]string) []kafkaReader {
	var readers []kafkaReader
	for i, s := range spec.at("sources").items {
		v := s.at("kafka")
		if j.Sources[i].Kafka == nil || !v.at("connection").good() {
			continue
		}
		r := kafkaReader{source: j.Sources[i].Name, brokers: clusters[v.at("connection").text], topics: map[string]bool{}}
		for _, t := range v.at("topics").items {
			r.topics[t.text] = t.good()
		}
		if p := v.at("pattern"); p.good() {
			r.pattern, _ = topicPattern(p.text) // what is wrong with it was said
		}
		readers = append(readers, r)
	}
	return readers
}

// kafkaBrokers returns what stands for the cluster of each kafka connection: its own name, and its brokers' addresses.
func kafkaBrokers(j *Job) map[string][]string {
	clusters := map[string][]string{}
	for _, conn := range j.Connections {
		if conn.Kind != "kafka" {
			continue
		}
		var settings struct {
			Brokers []string `json:"brokers"`
		}
		names := []string{conn.Name}
		if json.Unmarshal(conn.Settings, &settings) == nil {
			for _, b := range strings.Split(strings.Join(settings.Brokers, ","), ",") {
				if b = strings.ToLower(strings.TrimSpace(b)); strings.Contains(b, ":") {
					names = append(names, b)
				}
			}
		}
		clusters[conn.Name] = names
	}
	return clusters
}

// topicPattern compiles a pattern for whole names of topics, as the source does.
func topicPattern(pattern string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(pattern); err != nil {
		return nil, err
	}
	return regexp.Compile("^(?:" + pattern + ")$")
}
