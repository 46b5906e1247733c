package kafka

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/kafkaconn"
	"github.com/wasmill/wasmill/host/sink"
)

// Compression is how batches of records are compressed.
type Compression string

// The compressions.
const (
	None Compression = "none"
	LZ4  Compression = "lz4"
	Zstd Compression = "zstd"
)

// Config describes a target. What has a default may be left zero.
type Config struct {
	// Connection is the cluster. Its name is the target's id, and part of the transactional.id.
	Connection kafkaconn.Config
	// Sinks are all sinks of the job that publish to this cluster.
	Sinks []Sink
	// Guarantee is sink.ExactlyOnce by default. sink.AtLeastOnce does without transactions and markers.
	Guarantee sink.Guarantee
	// Compression is LZ4 by default.
	Compression Compression
	// MaxMessage is the most bytes that a record, and a batch of records before compression, may have, as Kafka counts
	// them; DefaultMaxMessage by default. A record above it is a misfit, so it belongs to the revision. The topics'
	// max.message.bytes must not be less.
	MaxMessage int32
	// TransactionTimeout is transaction.timeout.ms: a batch that is not published so long after its staging began is
	// lost. The broker refuses more than its transaction.max.timeout.ms.
	TransactionTimeout time.Duration
	// Patience bounds each of: opening the target, learning what became of a commit.
	Patience time.Duration
	// Clock tells the age of what is staged.
	Clock func() time.Time
	// Warn hears of what may go wrong soon. It is called from a goroutine of its own. nil: nobody listens.
	Warn func(error)
}

// Sink is one sink of the job. It has a Topic, or takes each record's from a header.
type Sink struct {
	Name  string
	Topic string
	// TopicHeader is the header that names a record's topic; it is taken off the record. A record without it goes to
	// Topic, or is a misfit when there is none.
	TopicHeader string
	// Topics are those that TopicHeader may name.
	Topics []string
	// Keyed sets aside records without a key: a record takes the place of the earlier one with its key, or, without a
	// value, deletes it.
	Keyed bool
}

// The defaults.
const (
	DefaultMaxMessage         = 1_000_012 // max.message.bytes of a topic whose settings were left alone is 1,048,588
	DefaultTransactionTimeout = time.Minute
	DefaultPatience           = time.Minute
	minTimeout                = 2 * time.Second
	minMessage                = 512
	maxMessage                = 64 << 20
)

func (c *Config) setDefaults() {
	if c.Guarantee == "" {
		c.Guarantee = sink.ExactlyOnce
	}
	if c.Compression == "" {
		c.Compression = LZ4
	}
	if c.MaxMessage == 0 {
		c.MaxMessage = DefaultMaxMessage
	}
	if c.TransactionTimeout == 0 {
		c.TransactionTimeout = DefaultTransactionTimeout
	}
	if c.Patience == 0 {
		c.Patience = DefaultPatience
	}
	if c.Warn == nil {
		c.Warn = func(error) {}
	}
}

// margin is how long before the broker's timeout a staged batch counts as lost, so that a commit does not race with it.
func (c *Config) margin() time.Duration { return c.TransactionTimeout / 10 }

func (c *Config) check() error {
	switch {
	case c.Connection.Name == "" || c.Clock == nil:
		return errors.New("a connection with a name and a clock are needed")
	case len(c.Sinks) == 0:
		return errors.New("no sink publishes to this cluster")
	case c.Guarantee != sink.ExactlyOnce && c.Guarantee != sink.AtLeastOnce:
		return fmt.Errorf("delivery %q is neither %s nor %s", c.Guarantee, sink.ExactlyOnce, sink.AtLeastOnce)
	case c.Compression != None && c.Compression != LZ4 && c.Compression != Zstd:
		return fmt.Errorf("compression %q is none of %s, %s, %s", c.Compression, None, LZ4, Zstd)
	case c.MaxMessage < minMessage || c.MaxMessage > maxMessage:
		return fmt.Errorf("a largest message of %d bytes: %d to %d are possible", c.MaxMessage, minMessage, maxMessage)
	case c.TransactionTimeout < minTimeout || c.TransactionTimeout.Milliseconds() > math.MaxInt32:
		return fmt.Errorf("a transaction timeout of %s: it must be at least %s and fit the broker's transaction.max.timeout.ms", c.TransactionTimeout, minTimeout)
	case c.Patience < 0:
		return fmt.Errorf("a patience of %s", c.Patience)
	}
	for i := range c.Sinks {
		s := &c.Sinks[i]
		if err := s.check(); err != nil {
			return fmt.Errorf("sink %s: %w", s.Name, err)
		}
		if slices.ContainsFunc(c.Sinks[:i], func(o Sink) bool { return o.Name == s.Name }) {
			return fmt.Errorf("two sinks are called %s", s.Name)
		}
	}
	return nil
}

// topicName is Kafka's rule for names of topics. Those that begin with two underscores are the broker's and ours.
var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

func (s *Sink) check() error {
	switch {
	case s.Name == "":
		return errors.New("a name is needed")
	case s.Topic == "" && s.TopicHeader == "":
		return errors.New("a topic, or a header that names it, is needed")
	case s.TopicHeader != "" && len(s.Topics) == 0:
		return errors.New("a header that names the topic needs the list of topics that it may name")
	case s.TopicHeader == "" && len(s.Topics) > 0:
		return errors.New("a list of topics needs the header that names one of them")
	}
	for _, t := range s.topics() {
		if !topicName.MatchString(t) || t == "." || t == ".." {
			return fmt.Errorf("%.300q is no name of a topic", t)
		}
		if len(t) > 1 && t[:2] == "__" {
			return fmt.Errorf("topic %s: names that begin with two underscores are not for output", t)
		}
	}
	return nil
}

// topics lists the sink's topics: Topic first, when there is one.
func (s *Sink) topics() []string {
	var out []string
	if s.Topic != "" {
		out = append(out, s.Topic)
	}
	for _, t := range s.Topics {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// New checks the settings and returns the target. Nothing is reached for before Open.
func New(cfg Config) (*Target, error) {
	cfg.setDefaults()
	cfg.Connection.Use = kafkaconn.Writes
	if err := cfg.check(); err != nil {
		return nil, fault.New(CodeConfig, "connection "+cfg.Connection.Name, err, "correct the sink or the connection in the job file")
	}
	if err := cfg.Connection.Check(); err != nil {
		return nil, err
	}
	p, err := newPress(cfg.Compression)
	if err != nil {
		return nil, fault.New(CodeConfig, "connection "+cfg.Connection.Name, err, "choose another compression")
	}
	t := &Target{cfg: cfg, sinks: map[string]*route{}, press: p, abortPatience: abortPatience}
	for i := range cfg.Sinks {
		s := &cfg.Sinks[i]
		t.sinks[s.Name] = newRoute(s)
		t.topics = append(t.topics, s.topics()...)
	}
	slices.Sort(t.topics)
	t.topics = slices.Compact(t.topics)
	return t, nil
}

// metadataMinAge is how soon topics may be asked for again: the client gives its last answer before. One that has just been
// made must not be waited for longer than that.
const metadataMinAge = 20 * time.Millisecond

// options returns those of each client.
func (c *Config) options() ([]kgo.Opt, error) {
	opts, err := c.Connection.Options()
	if err != nil {
		return nil, err
	}
	return append(opts,
		kgo.MetadataMinAge(metadataMinAge),
		kgo.DisableClientMetrics(), // to push them makes Close wait for a broker that is gone
	), nil
}
