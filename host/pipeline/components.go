package pipeline

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/sink"
	filesink "github.com/wasmill/wasmill/host/sink/files"
	kafkasink "github.com/wasmill/wasmill/host/sink/kafka"
	"github.com/wasmill/wasmill/host/sink/stdout"
	"github.com/wasmill/wasmill/host/source"
	deltasource "github.com/wasmill/wasmill/host/source/delta"
	filesource "github.com/wasmill/wasmill/host/source/files"
	"github.com/wasmill/wasmill/host/source/generator"
	kafkasource "github.com/wasmill/wasmill/host/source/kafka"
)

// sources builds the job's sources. dir gives each its folder in the checkpoint. readOnly ones write nothing there.
func (p *Program) sources(j *job.Job, dir func(name string) (string, error), readOnly bool) (map[string]source.Source, error) {
	out := map[string]source.Source{}
	for i := range j.Sources {
		s := &j.Sources[i]
		state, err := dir(s.Name)
		if err != nil {
			return nil, err
		}
		if out[s.Name], err = p.source(s, state, readOnly); err != nil {
			return nil, fmt.Errorf("source %s: %w", s.Name, err)
		}
	}
	return out, nil
}

func (p *Program) source(s *job.Source, state string, readOnly bool) (source.Source, error) {
	switch {
	case s.Files != nil:
		return filesource.New(filesource.Config{
			Name: s.Name, Path: s.Files.Path, Format: filesource.Format(s.Files.Format),
			Compression: filesource.Compression(s.Files.Compression),
			CSV:         filesource.CSVOptions{Comma: s.Files.CSV.Delimiter, Columns: s.Files.CSV.Columns, NoHeader: !s.Files.CSV.Header},
			Attach:      s.Attach, Settle: max(s.Files.Settle, 1), State: state, ReadOnly: readOnly,
			SkipLost: s.Files.OnDataLoss == "skip", AllowMoved: p.env.AllowChanges, Warn: p.warn("source " + s.Name),
			Files: p.env.Files, Clock: p.env.Clock.Now,
		})
	case s.Delta != nil:
		return deltasource.New(deltasource.Config{
			Name: s.Name, Dir: s.Delta.Path, Start: deltasource.Start{Snapshot: s.Delta.Snapshot, Latest: s.Delta.Latest, Version: s.Delta.Version},
			OnChange: deltasource.OnChange(s.Delta.OnChange), SkipLost: s.Delta.OnDataLoss == "skip", Attach: s.Attach, Warn: p.warn("source " + s.Name),
			Files: p.env.Files, Clock: p.env.Clock.Now,
		})
	case s.Generator != nil:
		return p.generator(s)
	}
	src, err := p.kafkaSource(s, readOnly)
	if err != nil {
		return nil, err
	}
	return p.decode(src, s.Kafka.Formats, readOnly)
}

func (p *Program) generator(s *job.Source) (source.Source, error) {
	g := s.Generator
	cfg := generator.Config{
		Name: s.Name, Kind: generator.Kind(g.Kind), Seed: g.Seed, Rate: g.Rate, Total: g.Records, Clock: p.env.Clock.Now,
	}
	if n := g.Nexmark; n != nil {
		cfg.Nexmark = generator.Nexmark{EventRate: n.EventRate, BaseMS: n.BaseMS, OutOfOrder: n.OutOfOrder, Only: n.Only, Flat: n.Flat}
	}
	return generator.New(cfg)
}

// lookPatience is how long a command that only looks waits for a cluster that is away.
const lookPatience = 15 * time.Second

func (p *Program) kafkaSource(s *job.Source, readOnly bool) (source.Source, error) {
	k := s.Kafka
	if k == nil {
		return nil, fmt.Errorf("no kind is set")
	}
	cluster, err := p.cluster(p.Job, k.Connection)
	if err != nil {
		return nil, err
	}
	patience := kafkasource.DefaultPatience
	if readOnly {
		patience = lookPatience
	}
	return kafkasource.New(kafkasource.Config{
		Name: s.Name, Cluster: cluster, Topics: k.Topics, Pattern: k.Pattern,
		Start:       kafkasource.Start{Latest: k.Start.Latest, TimestampMS: k.Start.TimeMS, Offsets: k.Start.Offsets},
		Uncommitted: k.Isolation == "read_uncommitted", Group: k.Group, SkipLost: k.OnDataLoss == "skip", Attach: s.Attach, Patience: patience, Replay: p.Job.Retention.Age,
		Warn: p.warn("source " + s.Name), Lag: p.lag(s.Name), Clock: p.env.Clock.Now,
	})
}

// Lag is how far a partition of a topic is read.
type Lag = kafkasource.Lag

func (p *Program) lag(name string) func([]Lag) {
	if p.env.Lag == nil {
		return nil
	}
	return func(parts []Lag) { p.env.Lag(name, parts) }
}

func (p *Program) warn(what string) func(error) {
	if p.env.Log == nil {
		return nil
	}
	return func(err error) {
		if l, ok := errors.AsType[*source.LeftOutError](err); ok && p.env.LeftOut != nil {
			p.env.LeftOut(l)
		}
		attrs := []any{"error", err}
		if f, ok := errors.AsType[*fault.Error](err); ok {
			attrs = append(attrs, "code", f.Code(), "hint", f.Hint())
		}
		p.env.Log.Warn(what, attrs...)
	}
}

// targets builds the job's targets, by sink: those that publish to one cluster share one. They open nothing until the
// engine opens them.
func (p *Program) targets(j *job.Job) (map[string]sink.Target, error) {
	out := map[string]sink.Target{}
	for i := range j.Sinks {
		s := &j.Sinks[i]
		if out[s.Name] != nil {
			continue
		}
		if s.Kafka != nil {
			if err := p.kafkaTarget(j, s.Kafka, out); err != nil {
				return nil, err
			}
			continue
		}
		if s.SQL != nil {
			if err := p.sqlTarget(j, s.SQL, out); err != nil {
				return nil, err
			}
			continue
		}
		t, err := p.target(s)
		if errors.As(err, new(*fault.Error)) {
			return nil, err // it names the sink
		}
		if err != nil {
			return nil, fmt.Errorf("sink %s: %w", s.Name, err)
		}
		out[s.Name] = t
	}
	return out, nil
}

func (p *Program) target(s *job.Sink) (sink.Target, error) {
	switch {
	case s.Files != nil:
		schema, err := schemaOf(s.Files.Schema)
		if err != nil {
			return nil, err
		}
		return filesink.New(filesink.Config{
			Sink: s.Name, Dir: s.Files.Path, Format: filesink.Format(s.Files.Format), Schema: schema,
			Updates: s.Mode == job.ModeChangelog, PartitionBy: s.Files.PartitionBy, Codec: parquetfile.Codec(s.Files.Compression),
			NoHeader: !s.Files.CSV.Header, Delimiter: s.Files.CSV.Delimiter,
			MaxPartRows: s.Files.MaxPartRows, MaxPartBytes: s.Files.MaxPartSize, Retention: s.Files.Retention,
			CreatedBy: "wasmill version " + p.env.Version, Files: p.env.Files, Clock: p.env.Clock.Now,
		})
	case s.Delta != nil:
		return p.deltaTarget(s)
	case s.Stdout != nil:
		return stdout.New(stdout.Config{Sink: s.Name, Out: p.env.Stdout, Mode: stdout.Mode(s.Mode)})
	}
	return nil, fmt.Errorf("no kind is set")
}

// kafkaTarget adds the target of all sinks that publish to the cluster of one of them. The job's check has seen that these
// ask for the same delivery.
func (p *Program) kafkaTarget(j *job.Job, one *job.KafkaSink, out map[string]sink.Target) error {
	conn, err := p.cluster(j, one.Connection)
	if err != nil {
		return err
	}
	cfg := kafkasink.Config{
		Connection: conn, Guarantee: sink.Guarantee(one.Delivery), Compression: kafkasink.Compression(one.Compression),
		MaxMessage: int32(one.MaxMessage), TransactionTimeout: one.TransactionTimeout, Clock: p.env.Clock.Now, Warn: p.warn("publish to " + one.Connection),
	}
	for i := range j.Sinks {
		if k := j.Sinks[i].Kafka; k != nil && k.Connection == one.Connection {
			cfg.Sinks = append(cfg.Sinks, kafkasink.Sink{
				Name: j.Sinks[i].Name, Topic: k.Topic, TopicHeader: k.TopicHeader, Topics: k.Topics, Keyed: j.Sinks[i].Mode == job.ModeUpsert,
			})
		}
	}
	bare, err := kafkasink.New(cfg)
	if err != nil {
		return err
	}
	t, err := p.encode(j, bare, one.Connection)
	if err != nil {
		return err
	}
	for _, s := range cfg.Sinks {
		out[s.Name] = t
	}
	return nil
}

// distinct lists targets once each, in the order of their ids.
func distinct(targets map[string]sink.Target) []sink.Target {
	byID := map[string]sink.Target{}
	for _, t := range targets {
		byID[t.ID()] = t
	}
	var out []sink.Target
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		out = append(out, byID[id])
	}
	return out
}

func schemaOf(columns []job.Column) (*rows.Schema, error) {
	if len(columns) == 0 {
		return nil, nil
	}
	out := make([]rows.Column, 0, len(columns))
	for _, c := range columns {
		t, err := rows.ParseType(c.Type.String())
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.Name, err)
		}
		out = append(out, rows.Column{Name: c.Name, Type: t})
	}
	return rows.NewSchema(out)
}
