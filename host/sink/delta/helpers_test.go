package delta_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"testing"
	"time"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/sink"
	target "github.com/wasmill/wasmill/host/sink/delta"
)

const (
	query      = "0c0ffee0-1111-4222-8333-444455556666"
	otherQuery = "0c0ffee1-1111-4222-8333-444455556667"
)

var start = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)

// clock stands until it is moved.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func newTarget(tb testing.TB, cfg target.Config) *target.Target {
	tb.Helper()
	if cfg.Sink == "" {
		cfg.Sink = "lake"
	}
	if cfg.Files == nil {
		cfg.Files = durable.OS()
	}
	if cfg.Clock == nil {
		cfg.Clock = (&clock{start}).now
	}
	t, err := target.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := t.Close(); err != nil {
			tb.Error(err)
		}
	})
	return t
}

// opened returns a target that is open for a query.
func opened(tb testing.TB, cfg target.Config) *target.Target {
	tb.Helper()
	t := newTarget(tb, cfg)
	if _, err := t.Open(context.Background(), owner(0)); err != nil {
		tb.Fatal(err)
	}
	return t
}

func owner(next checkpoint.BatchID) sink.Owner {
	return sink.Owner{Query: query, Job: "test", Next: next}
}

// digestOf is a stand-in for a batch digest.
func digestOf(n checkpoint.BatchID) string {
	return fmt.Sprintf("%032x", uint64(n)*0x9e3779b97f4a7c15+1)
}

// record is a row, or without a value a deletion.
type record struct {
	key, value string
	bare       bool // has neither
}

func (r record) abi() *abi.Record {
	switch {
	case r.bare:
		return &abi.Record{}
	case r.value != "":
		return &abi.Record{Value: []byte(r.value)}
	}
	return &abi.Record{Key: []byte(r.key)}
}

func valuesOf(values []string) []record {
	out := make([]record, len(values))
	for i, v := range values {
		out[i].value = v
	}
	return out
}

// output makes one batch of two lanes.
func output(t *target.Target, n checkpoint.BatchID, attempt string, records []record) (sink.Output, error) {
	out := sink.Output{Batch: n, Digest: digestOf(n), Attempt: attempt, Sinks: []sink.SinkOutput{{Name: t.ID()}}}
	half := len(records) / 2
	for _, some := range [][]record{records[:half], records[half:]} {
		lane, err := t.NewLane(t.ID())
		if err != nil {
			return out, err
		}
		for _, r := range some {
			if err := lane.Append(r.abi()); err != nil {
				return out, fmt.Errorf("%v: %w", r, err)
			}
		}
		if lane.Rows() > 0 {
			out.Sinks[0].Lanes = append(out.Sinks[0].Lanes, lane)
		}
	}
	return out, nil
}

func stageRecords(t *target.Target, n checkpoint.BatchID, attempt string, records []record) (sink.Staged, error) {
	out, err := output(t, n, attempt, records)
	if err != nil {
		return nil, err
	}
	return t.Stage(context.Background(), out)
}

func publishStaged(t *target.Target, n checkpoint.BatchID, s sink.Staged) error {
	return t.Publish(context.Background(), &checkpoint.Decision{Batch: n, Digest: digestOf(n)}, s)
}

// batch takes one batch through stage, publish and seal.
func batch(t *target.Target, n checkpoint.BatchID, records []record) error {
	s, err := stageRecords(t, n, "0a0b0c0d", records)
	if err == nil {
		err = publishStaged(t, n, s)
	}
	if err == nil {
		err = t.Sealed(context.Background(), n)
	}
	return err
}

func mustBatch(tb testing.TB, t *target.Target, n checkpoint.BatchID, values ...string) {
	tb.Helper()
	if err := batch(t, n, valuesOf(values)); err != nil {
		tb.Fatal(err)
	}
}

// wantFault asserts that an error is a fault with a code and a way out.
func wantFault(tb testing.TB, err error, code string) {
	tb.Helper()
	var f interface {
		error
		Code() string
		Hint() string
	}
	if !errors.As(err, &f) || f.Code() != code || f.Hint() == "" {
		tb.Fatalf("got %v, want a fault %s with a way out", err, code)
	}
}

// rowsOf reads a table as anybody does: its newest version, file by file. Each row is JSON with the columns in order.
func rowsOf(tb testing.TB, files durable.Files, dir string) []string {
	tb.Helper()
	s := snapshot(tb, files, dir)
	if s == nil {
		return nil
	}
	out, err := read(files, dir, s)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func snapshot(tb testing.TB, files durable.Files, dir string) *delta.Snapshot {
	tb.Helper()
	s, err := delta.OpenLog(files, dir, func() time.Time { return start }).Snapshot(context.Background())
	if errors.Is(err, delta.ErrNoTable) {
		return nil
	}
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func read(files durable.Files, dir string, s *delta.Snapshot) ([]string, error) {
	schema, partition, err := s.Schema()
	if err != nil {
		return nil, err
	}
	var out []string
	for a := range s.Files() {
		fixed := map[int]rows.Value{}
		for _, p := range partition {
			c := schema.Index(p)
			if fixed[c], err = delta.PartitionValue(schema.Column(c).Type, a.PartitionValues[p]); err != nil {
				return nil, err
			}
		}
		name, err := a.File()
		if err != nil {
			return nil, err
		}
		table, err := readFile(files, path.Join(dir, name), a.Size, schema, fixed)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for row := range table.Len() {
			line := []byte{}
			for c := range schema.Len() {
				sep := byte(',')
				if c == 0 {
					sep = '{'
				}
				line = append(rows.AppendQuoted(append(line, sep), []byte(schema.Column(c).Name)), ':')
				line = table.Column(c).AppendJSON(line, row)
			}
			out = append(out, string(append(line, '}')))
		}
	}
	return out, nil
}

func readFile(files durable.Files, name string, size int64, schema *rows.Schema, fixed map[int]rows.Value) (*rows.Table, error) {
	f, err := files.Open(filepath.ToSlash(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := parquetfile.OpenReader(f, size, schema, parquetfile.ReadOptions{Fixed: fixed})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	table := rows.NewTable(schema)
	for {
		if _, err := r.Read(table, 1000); err == io.EOF {
			return table, nil
		} else if err != nil {
			return nil, err
		}
	}
}

var osFiles = durable.OS()

func writeFile(files durable.Files, name, content string) error {
	return durable.WriteFile(files, name, []byte(content))
}
