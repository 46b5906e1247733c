package cli

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wasmill/wasmill/host/pipeline"
)

// sourceLags is how far the sources of a job are read, as far as they can say. Series are made when somebody asks for
// them, so that a plan costs nothing however many partitions there are. Labels are those that tools for Kafka use.
type sourceLags struct {
	mu sync.Mutex
	of map[string]*sourceLag

	offset, end, lag *prometheus.Desc
}

// sourceLag is what a source told when the last batch was planned.
type sourceLag struct {
	parts  []pipeline.Lag
	sealed bool
}

func newSourceLags(labels prometheus.Labels) *sourceLags {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("wasmill_source_"+name, help, []string{"source", "topic", "partition"}, labels)
	}
	return &sourceLags{
		of:     map[string]*sourceLag{},
		offset: desc("offset", "Offset of the next record after the last sealed batch."),
		end:    desc("end_offset", "Offset up to which records could be read when the last batch was planned."),
		lag:    desc("lag_records", "Offsets of a partition that are in no sealed batch: end_offset less offset."),
	}
}

// told takes what a source says when a batch is planned.
func (l *sourceLags) told(source string, parts []pipeline.Lag) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of[source] = &sourceLag{parts: parts}
}

// batch says that the batch that was planned last is sealed.
func (l *sourceLags) batch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.of {
		s.sealed = true
	}
}

// offsetOf is the offset after the last sealed batch.
func (s *sourceLag) offsetOf(p *pipeline.Lag) int64 {
	if s.sealed {
		return p.Offset
	}
	return p.From
}

// behind is how many offsets are not in a sealed batch, over all sources. known is false when no source can say.
func (l *sourceLags) behind() (n int64, known bool) {
	if l == nil {
		return 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.of {
		known = known || len(s.parts) > 0
		for i := range s.parts {
			n += max(s.parts[i].End-s.offsetOf(&s.parts[i]), 0)
		}
	}
	return n, known
}

// spark is what Spark's Kafka source says of a batch: the latest offsets when it was planned, and how far its end is from
// them. Both are nil where the source cannot say.
func (l *sourceLags) spark(source string) (latest json.RawMessage, metrics map[string]string) {
	if l == nil {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.of[source]
	if s == nil || len(s.parts) == 0 {
		return nil, nil
	}
	ends := map[string]map[string]int64{}
	least, most, sum := int64(-1), int64(0), int64(0)
	for i := range s.parts {
		p := &s.parts[i]
		if ends[p.Topic] == nil {
			ends[p.Topic] = map[string]int64{}
		}
		ends[p.Topic][strconv.Itoa(int(p.Partition))] = p.End
		n := max(p.End-p.Offset, 0)
		if least < 0 || n < least {
			least = n
		}
		most, sum = max(most, n), sum+n
	}
	latest, err := json.Marshal(ends)
	if err != nil {
		return nil, nil // names and numbers always marshal
	}
	return latest, map[string]string{
		"avgOffsetsBehindLatest": javaDouble(float64(sum) / float64(len(s.parts))),
		"maxOffsetsBehindLatest": strconv.FormatInt(most, 10), "minOffsetsBehindLatest": strconv.FormatInt(least, 10),
	}
}

// javaDouble writes a number that is not negative as Java's Double.toString does.
func javaDouble(v float64) string {
	if v == 0 || v >= 1e-3 && v < 1e7 {
		s := strconv.FormatFloat(v, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'E', -1, 64), "E")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	n, _ := strconv.Atoi(exponent)
	return mantissa + "E" + strconv.Itoa(n)
}

// Describe implements prometheus.Collector.
func (l *sourceLags) Describe(out chan<- *prometheus.Desc) {
	out <- l.offset
	out <- l.end
	out <- l.lag
}

// Collect implements prometheus.Collector.
func (l *sourceLags) Collect(out chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, source := range slices.Sorted(maps.Keys(l.of)) {
		s := l.of[source]
		for i := range s.parts {
			p := &s.parts[i]
			offset := s.offsetOf(p)
			labels := []string{source, p.Topic, strconv.Itoa(int(p.Partition))}
			for _, g := range []struct {
				desc  *prometheus.Desc
				value int64
			}{{l.offset, offset}, {l.end, p.End}, {l.lag, max(p.End-offset, 0)}} {
				out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(g.value), labels...)
			}
		}
	}
}
