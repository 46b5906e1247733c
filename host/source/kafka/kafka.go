// Package kafka is a source that reads topics of a Kafka cluster.
//
// A plan holds, for each partition, the offset that the batch ends at, beside the topic's id and the leader epoch that the
// offset was seen in. A partition's share of a batch is read by position: the range ends where the log's own batches have
// passed its end, whatever they hold. Control records, records of aborted transactions and offsets that compaction has
// emptied count as passed and give no records, at the start of a range, in it and at its end.
//
// Rules that a user can rely on:
//   - read_committed is the default: nothing of an open or aborted transaction is read, and no range ends behind an open one.
//   - The start that is configured holds for the first batch alone. Topics and partitions that come later begin at their
//     start. Progress stands in the checkpoint; offsets of a consumer group are for lag tools and are never read back.
//   - A topic that is gone or was made anew under its name, a log that was cut behind what was read, and offsets that
//     retention took before they were read are a *source.ChangedError that says what is lost. With SkipLost reading goes
//     on at the next offset that there is, and the plan says so.
//   - Offsets are shared out by lag, with a floor for partitions of little lag, so that a large backlog starves none.
//   - A limit of bytes counts what the records of stored batches unpack to: keys, values, headers and about ten bytes a
//     record. With one, a plan is made of what has been fetched and weighed alone, so that nothing is guessed. It is kept to
//     but for one record; where it ends within a stored batch, that one's records count as of one size.
//   - What comes after a batch is fetched while that one runs, into a memory of a fixed size. From it the next batch is
//     planned and read without a question to the cluster; what it holds is never more than a copy of the log. A batch without
//     a limit of bytes may reach further than the memory: the rest is then fetched while it is read.
//
// The package knows nothing of batches, sinks or event time. It must not read beyond what a position names, and writes
// nothing but offsets of its group.
package kafka

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/kafkaconn"
	"github.com/wasmill/wasmill/host/source"
)

// Defaults of Config.
const (
	DefaultFetchBytes = 4 << 20
	DefaultMaxRecord  = abi.MaxRecord
	DefaultMaxBatch   = 256 << 20
	DefaultMemory     = 16 << 20
	DefaultPatience   = 60 * time.Second
	DefaultDiscovery  = 10 * time.Second
	DefaultCommit     = 5 * time.Second
)

// Start says where a partition begins that is read for the first time by a job without progress.
type Start struct {
	// Latest: at its end; else at its start.
	Latest bool
	// TimestampMS: at the first record that is not older, milliseconds since 1970; 0 means unset.
	TimestampMS int64
	// Offsets begin partitions of topics at given offsets; those that are not named, at their start. -1 is the end, -2 the
	// start, as in Spark.
	Offsets map[string]map[int32]int64
}

// Lag is how far a partition is read.
type Lag struct {
	Topic     string
	Partition int32
	// The batch that is planned reads From up to and without Offset, where the next one begins; End is how far the
	// partition can be read by now.
	From, Offset, End int64
}

// Config says what a source reads.
type Config struct {
	Name    string // of the source, for messages
	Cluster kafkaconn.Config
	// Topics are read by name, or Pattern all those whose whole name it matches, but for internal topics and the marker topics
	// of jobs. Give one of the two.
	Topics  []string
	Pattern string
	Start   Start
	// Uncommitted reads records of open and aborted transactions too.
	Uncommitted bool
	// Group is the consumer group that Release commits offsets to; "" commits none.
	Group string
	// SkipLost goes on where planned or unread data is gone; each loss is handed to Warn.
	SkipLost bool
	// Attach lists what each record gets as a header: "topic", "partition".
	Attach []string
	// FetchBytes is about how much one fetch of a partition brings; MaxRecord the largest record in bytes, a larger one is
	// rejected as too_large; MaxBatch what a stored batch may unpack to. 0 means the defaults.
	FetchBytes, MaxRecord, MaxBatch int
	// Memory is about how many bytes of stored batches are held of all partitions together: those of the batch that runs and
	// those fetched for the next. One stored batch and one fetch of each leader may come on top. 0 means the default.
	Memory int
	// Patience is how long a partition may stand still for errors that go by; Discovery how often topics and partitions
	// are looked up; Commit how often offsets are committed at most. 0 means the defaults.
	Patience, Discovery, Commit time.Duration
	// Replay is how long batches are kept to be run again; topics that are compacted sooner get a warning. 0 gives none.
	Replay time.Duration
	// Warn takes what is worth a word and does not stop the source, also from other goroutines; Lag how far partitions are
	// read, at each plan. Both may be nil.
	Warn  func(error)
	Lag   func([]Lag)
	Clock func() time.Time
	// Options are further options of the client, for tests.
	Options []kgo.Opt
}

// Source reads topics. It implements source.Source and source.Notifier.
type Source struct {
	cfg     Config
	pattern *regexp.Regexp // nil: by name
	client  *kgo.Client
	reached atomic.Bool // the cluster has answered
	dials   dialWatch
	stale   atomic.Bool // a read has found that the cluster is not what it was
	meta    topicCache
	sizes   sizes
	pre     *prefetcher
	commits commits
	opts    []kgo.Opt // of clients
	pool    sync.Pool // of *decoder

	// Owned by the goroutine that calls Latest, Release and Freeze.
	frozen    map[partition]int64 // nil: not frozen
	begun     map[partition]int64 // starts of a job without progress, resolved once
	validated map[partition]int32 // leader epochs in which the position was found sound
	floors    map[partition]int64 // starts of partitions, as of floorsAt
	floorsAt  time.Time
	doubted   map[string]bool // topics whose settings were looked at
	committed time.Time       // when offsets were last committed
	plan      struct {        // the last one
		at     checkpoint.Position
		behind []string
	}
}

// partition names one partition.
type partition struct {
	topic string
	num   int32
}

func (p partition) String() string { return fmt.Sprintf("%s-%d", p.topic, p.num) }

func comparePartitions(a, b partition) int {
	return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.num, b.num))
}

var (
	_ source.Source   = (*Source)(nil)
	_ source.Notifier = (*Source)(nil)
)

// New returns a source. It reaches for no broker.
func New(cfg Config) (*Source, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Source{cfg: cfg, begun: map[partition]int64{}, validated: map[partition]int32{}, doubted: map[string]bool{}}
	s.pool.New = func() any { return newDecoder(cfg.MaxBatch) }
	if cfg.Pattern != "" {
		re, err := regexp.Compile("^(?:" + cfg.Pattern + ")$")
		if err != nil {
			return nil, configFault(cfg.Name, "pattern: "+err.Error())
		}
		s.pattern = re
	}
	s.cfg.Cluster.Use = kafkaconn.Reads
	opts, err := s.cfg.Cluster.Options()
	if err != nil {
		return nil, err
	}
	s.opts = append(append(opts, kgo.WithHooks(&s.dials)), cfg.Options...)
	if s.client, err = kgo.NewClient(s.opts...); err != nil {
		return nil, configFault(cfg.Name, err.Error())
	}
	s.pre = newPrefetcher(s)
	return s, nil
}

func (c *Config) complete() error {
	c.FetchBytes = cmp.Or(max(c.FetchBytes, 0), DefaultFetchBytes)
	c.MaxRecord = cmp.Or(max(c.MaxRecord, 0), DefaultMaxRecord)
	c.MaxBatch = cmp.Or(max(c.MaxBatch, 0), DefaultMaxBatch)
	c.Memory = cmp.Or(max(c.Memory, 0), DefaultMemory)
	c.Patience = cmp.Or(max(c.Patience, 0), DefaultPatience)
	c.Discovery = cmp.Or(max(c.Discovery, 0), DefaultDiscovery)
	c.Commit = cmp.Or(max(c.Commit, 0), DefaultCommit)
	if c.Warn == nil {
		c.Warn = func(error) {}
	}
	if c.Lag == nil {
		c.Lag = func([]Lag) {}
	}
	c.Topics = slices.Compact(slices.Sorted(slices.Values(c.Topics)))
	switch {
	case (len(c.Topics) == 0) == (c.Pattern == ""):
		return configFault(c.Name, "give either topics or a pattern")
	case slices.Contains(c.Topics, ""):
		return configFault(c.Name, "a topic without a name")
	case c.FetchBytes > maxFetch:
		return configFault(c.Name, fmt.Sprintf("a fetch brings at most %d bytes", maxFetch))
	case c.Memory > maxMemory:
		return configFault(c.Name, fmt.Sprintf("at most %d bytes are held", maxMemory))
	case c.Clock == nil:
		return configFault(c.Name, "no clock")
	}
	for _, a := range c.Attach {
		if a != "topic" && a != "partition" {
			return configFault(c.Name, "attach: a record of Kafka has a topic and a partition, and no "+a)
		}
	}
	return c.Start.check(c.Name)
}

func (s *Start) check(name string) error {
	ways := 0
	for _, set := range []bool{s.Latest, s.TimestampMS != 0, len(s.Offsets) > 0} {
		if set {
			ways++
		}
	}
	if ways > 1 || s.TimestampMS < 0 {
		return configFault(name, "give one place to start from")
	}
	for t, parts := range s.Offsets {
		for p, off := range parts {
			if p < 0 || off < atStart {
				return configFault(name, fmt.Sprintf("no partition %d of topic %s starts at offset %d", p, t, off))
			}
		}
	}
	return nil
}

// reads reports whether a topic is one of the source's. A pattern matches no marker topic, as it matches no internal one:
// each batch writes a marker, which would be the next one's input, for ever.
func (s *Source) reads(topic string) bool {
	if s.pattern != nil {
		return !strings.HasPrefix(topic, kafkaconn.MarkerPrefix) && s.pattern.MatchString(topic)
	}
	_, ok := slices.BinarySearch(s.cfg.Topics, topic)
	return ok
}

// Isolation levels of requests.
const (
	readUncommitted = 0
	readCommitted   = 1
)

func (s *Source) isolation() int8 {
	if s.cfg.Uncommitted {
		return readUncommitted
	}
	return readCommitted
}

// Freeze makes the ends of the partitions that exist now the end of the input.
func (s *Source) Freeze(ctx context.Context) error {
	topics, err := s.subscribed(ctx, true)
	if err != nil {
		return err
	}
	ends, err := s.offsets(ctx, all(topics), atEnd)
	if err != nil {
		return err
	}
	s.frozen = map[partition]int64{}
	for p, e := range ends {
		s.frozen[p] = e.offset
	}
	return nil
}

// all lists the partitions of topics.
func all(topics map[string]*topicInfo) []partition {
	var out []partition
	for name, t := range topics {
		for num := range t.parts {
			out = append(out, partition{name, num})
		}
	}
	slices.SortFunc(out, comparePartitions)
	return out
}

// News tells of records that have been fetched and are not planned, of trouble that the next plan will find, and now and
// then that it is time to look for new partitions.
func (s *Source) News() <-chan struct{} { return s.pre.news }

// Close commits what was released last and gives the connections up. Fetches that are under way are broken off.
func (s *Source) Close() error {
	s.pre.close()
	if err := s.commits.close(s); err != nil {
		s.cfg.Warn(err)
	}
	s.client.Close()
	return nil
}
