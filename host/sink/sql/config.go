package sql

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink"
)

// Config describes a target. What has a default may be left zero.
type Config struct {
	// Connection is the connection's name: the target's id, and part of the epoch row's key.
	Connection string
	// Database is what the connection leads to.
	Database Database
	// Sinks are all sinks of the job that publish to it.
	Sinks []Sink
	// Guarantee is sink.ExactlyOnce by default. sink.AtLeastOnce does without the epoch row.
	Guarantee sink.Guarantee
	// Patience bounds each of: opening the target, committing, learning what became of a commit. It is a minute, or what
	// connecting and one lock may take if that is longer.
	Patience time.Duration
	// Limits bound what the database may take its time for.
	Limits Limits
	// Clock tells the age of what is staged.
	Clock func() time.Time
}

// Sink is one sink of the job.
type Sink struct {
	Name string
	// Table is the table's name, or schema.name; each part may stand in double quotes. Needed but for a Statement without Key.
	Table string
	// Schema gives the columns; see Columns for a table's own.
	Schema *rows.Schema
	// Key are the columns that tell rows apart: a row takes the place of the one with its key, a record without a value
	// deletes that. Without it rows are added.
	Key []string
	// Create makes the table when it is not there.
	Create bool
	// OwnColumns: Schema is the table's own, as it was when the job first ran.
	OwnColumns bool
	// Statement is carried out for each row instead of an INSERT, with :column for the value of a column.
	Statement string
}

// The defaults.
const (
	DefaultPatience  = time.Minute
	DefaultLock      = 30 * time.Second
	DefaultStatement = 5 * time.Minute
	DefaultIdle      = 5 * time.Minute
	minLimit         = 10 * time.Millisecond
)

func (c *Config) setDefaults() {
	if c.Guarantee == "" {
		c.Guarantee = sink.ExactlyOnce
	}
	for _, d := range []struct {
		at *time.Duration
		is time.Duration
	}{
		{&c.Patience, max(DefaultPatience, c.Limits.Connect+c.Limits.Lock)},
		{&c.Limits.Lock, DefaultLock},
		{&c.Limits.Statement, DefaultStatement},
		{&c.Limits.Idle, DefaultIdle},
	} {
		if *d.at == 0 {
			*d.at = d.is
		}
	}
}

func (c *Config) check() error {
	switch {
	case c.Connection == "" || c.Database == nil || c.Clock == nil:
		return errors.New("a connection with a name, a database and a clock are needed")
	case len(c.Connection) > maxTarget:
		return fmt.Errorf("the connection's name has %d bytes; %d are possible", len(c.Connection), maxTarget)
	case len(c.Sinks) == 0:
		return errors.New("no sink publishes to this database")
	case c.Guarantee != sink.ExactlyOnce && c.Guarantee != sink.AtLeastOnce:
		return fmt.Errorf("guarantee %q is neither %s nor %s", c.Guarantee, sink.ExactlyOnce, sink.AtLeastOnce)
	}
	for _, d := range []time.Duration{c.Patience, c.Limits.Lock, c.Limits.Statement, c.Limits.Idle} {
		if d < minLimit {
			return fmt.Errorf("a limit of %s: it must be at least %s", d, minLimit)
		}
	}
	for i := range c.Sinks {
		s := &c.Sinks[i]
		if err := s.check(c.Database.Kind()); err != nil {
			return fmt.Errorf("sink %s: %w", s.Name, err)
		}
		if slices.ContainsFunc(c.Sinks[:i], func(o Sink) bool { return o.Name == s.Name }) {
			return fmt.Errorf("two sinks are called %s", s.Name)
		}
	}
	return nil
}

const maxTarget = 255 // bytes

func (s *Sink) check(kind string) error {
	switch {
	case s.Name == "":
		return errors.New("a name is needed")
	case s.Schema == nil:
		return errors.New("a schema is needed")
	case s.Table == "" && (s.Statement == "" || len(s.Key) > 0 || s.Create):
		return errors.New("a table is needed")
	}
	if s.Table != "" {
		name, err := ParseName(s.Table)
		if err != nil {
			return err
		}
		if strings.EqualFold(name.Table, epochTable) {
			return fmt.Errorf("table %s says what is published; rows cannot go there", epochTable)
		}
	}
	for i, k := range s.Key {
		at := s.Schema.Index(k)
		if at < 0 {
			return fmt.Errorf("key: the schema has no column %q", k)
		}
		if kind := s.Schema.Column(at).Type.Kind; !keyKinds[kind] {
			return fmt.Errorf("key: column %q is a %s, which is no key", k, kind)
		}
		if slices.Contains(s.Key[:i], k) {
			return fmt.Errorf("key names column %q twice", k)
		}
	}
	if s.Statement == "" {
		return nil
	}
	_, err := ParseStatement(kind, s.Statement, s.Schema)
	return err
}

// keyKinds are the kinds of which two values that the database takes for equal are equal byte by byte.
var keyKinds = map[rows.Kind]bool{
	rows.String: true, rows.Boolean: true, rows.Int8: true, rows.Int16: true, rows.Int32: true, rows.Int64: true, rows.Decimal: true,
	rows.Timestamp: true, rows.TimestampNTZ: true, rows.Date: true,
}

// New checks the settings and returns the target. Nothing is reached for before Open.
func New(cfg Config) (*Target, error) {
	cfg.setDefaults()
	if err := cfg.check(); err != nil {
		return nil, fault.New(CodeConfig, "connection "+cfg.Connection, err, "correct the sink or the connection in the job file")
	}
	t := &Target{cfg: cfg, routes: map[string]*route{}}
	t.cfg.Sinks = slices.Clone(cfg.Sinks)
	for i := range t.cfg.Sinks {
		r, err := newRoute(&t.cfg.Sinks[i], cfg.Database)
		if err != nil {
			return nil, fmt.Errorf("sink %s: %w", t.cfg.Sinks[i].Name, err)
		}
		t.routes[r.sink.Name] = r
		t.order = append(t.order, r)
	}
	return t, nil
}
