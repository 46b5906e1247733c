package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmill/wasmill/host/pipeline"
)

// planCluster is a cluster that a job publishes to, as plan prints it.
type planCluster struct {
	Connection string      `json:"connection"`
	Topics     []planTopic `json:"topics"`
	Warnings   []string    `json:"warnings"`
}

type planTopic struct {
	Name       string `json:"name"`
	Partitions int    `json:"partitions"`
	Error      string `json:"error,omitempty"`
}

func showCluster(c *pipeline.Cluster) planCluster {
	out := planCluster{Connection: c.Connection, Topics: []planTopic{}, Warnings: append([]string{}, c.Warnings...)}
	for i := range c.Topics {
		t := planTopic{Name: c.Topics[i].Name, Partitions: c.Topics[i].Partitions}
		if err := c.Topics[i].Err; err != nil {
			t.Error = err.Error()
		}
		out.Topics = append(out.Topics, t)
	}
	return out
}

func (c *planCluster) rows(p *page) {
	p.line("PUBLISHES TO %s", c.Connection)
	for _, t := range c.Topics {
		switch {
		case t.Partitions > 0:
			p.row("topic "+t.Name, plural(int64(t.Partitions), "partition"))
		default:
			p.row("topic "+t.Name, "not there: see above, or records for it are refused")
		}
	}
	for _, w := range c.Warnings {
		p.line("warning: %s", w)
	}
	p.line("")
}

// topicOffsets are the offsets of a position of Kafka: by topic and partition, the next one.
type topicOffsets map[string]map[int32]int64

// topicsOf reads a position's line, and reports whether it is one of Kafka.
func topicsOf(line json.RawMessage) (topicOffsets, bool) {
	var raw map[string]map[string]int64
	if json.Unmarshal(line, &raw) != nil || len(raw) == 0 {
		return nil, false
	}
	out := topicOffsets{}
	for topic, parts := range raw {
		out[topic] = map[int32]int64{}
		for text, offset := range parts {
			num, err := strconv.ParseInt(text, 10, 32)
			if err != nil {
				return nil, false
			}
			out[topic][int32(num)] = offset
		}
	}
	return out, true
}

// mostPartitions is how many partitions of a topic are listed before the rest is summed up.
const mostPartitions = 16

// topicRows shows where the partitions of topics stand, and what is read of each.
func topicRows(p *page, from, to json.RawMessage) {
	end, ok := topicsOf(to)
	if !ok {
		return
	}
	begin, _ := topicsOf(from)
	for _, topic := range slices.Sorted(maps.Keys(end)) {
		parts := slices.Sorted(maps.Keys(end[topic]))
		p.row("  "+topic, plural(int64(len(parts)), "partition"), partitionText(parts, begin[topic], end[topic]))
	}
}

func partitionText(parts []int32, begin, end map[int32]int64) string {
	var words []string
	for _, num := range parts[:min(len(parts), mostPartitions)] {
		was, known := begin[num]
		switch {
		case known && was == end[num]:
			words = append(words, fmt.Sprintf("%d: at %d", num, was))
		case known:
			words = append(words, fmt.Sprintf("%d: %d to %d", num, was, end[num]))
		default:
			words = append(words, fmt.Sprintf("%d: up to %d", num, end[num]))
		}
	}
	if more := len(parts) - mostPartitions; more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(words, ", ")
}
