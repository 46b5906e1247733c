package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/sink"
	deltasink "github.com/wasmill/wasmill/host/sink/delta"
	sqlsink "github.com/wasmill/wasmill/host/sink/sql"
)

// Codes of the faults of sinks that take their schema from their table.
const (
	CodeNoTable = "table.missing" // the sink takes the table's schema, and there is no table
)

// tables are the schemas that sinks take from their tables. What the table was when the job first ran is what rows are made
// by from then on, whoever adds columns to it: a batch that runs again gives the same rows.
type tables struct {
	locked map[string]checkpoint.LockedTable // by sink, as the checkpoint has it
	used   map[string]checkpoint.LockedTable
}

// readTables gives each sink without a schema the one that is locked, or else its table's.
func (p *Program) readTables(ctx context.Context) (err error) {
	p.tables.used = map[string]checkpoint.LockedTable{}
	if !slices.ContainsFunc(p.Job.Sinks, func(s job.Sink) bool { return s.TakesTableSchema() }) {
		return nil
	}
	if p.tables.locked, err = checkpoint.ReadTables(ctx, p.env.Files, p.Job.Checkpoint); err != nil {
		return err
	}
	for i := range p.Job.Sinks {
		s := &p.Job.Sinks[i]
		if !s.TakesTableSchema() {
			continue
		}
		columns, err := p.tableColumns(ctx, s)
		if err != nil {
			return fmt.Errorf("sink %s: %w", s.Name, err)
		}
		t := checkpoint.LockedTable{}
		for _, c := range columns {
			t.Columns = append(t.Columns, checkpoint.LockedColumn{Name: c.Name, Type: c.Type.String()})
		}
		p.tables.used[s.Name] = t
		s.SetColumns(job.ColumnsOf(columns))
	}
	return nil
}

func (p *Program) tableColumns(ctx context.Context, s *job.Sink) ([]rows.Column, error) {
	if t, ok := p.tables.locked[s.Name]; ok && !slices.Contains(p.env.Update, s.Name) {
		columns := make([]rows.Column, 0, len(t.Columns))
		for _, c := range t.Columns {
			parsed, err := rows.ParseType(c.Type)
			if err != nil {
				return nil, fault.New(checkpoint.CodeUnreadable, filepath.Join(p.Job.Checkpoint, "tables.json"), fmt.Errorf("column %s: %w", c.Name, err),
					fmt.Sprintf("take the table's schema anew with `wasmill run --update %s`", s.Name))
			}
			columns = append(columns, rows.Column{Name: c.Name, Type: parsed})
		}
		return columns, nil
	}
	if s.Delta != nil {
		schema, _, err := deltasink.TableSchema(ctx, p.env.Files, s.Delta.Path, p.env.Clock.Now)
		if errors.Is(err, delta.ErrNoTable) {
			return nil, fault.New(CodeNoTable, s.Delta.Path, errors.New("there is no Delta table, and the sink has no schema"), "give the sink a schema: then the table is made; or make the table before")
		}
		if err != nil {
			return nil, err
		}
		return schema.Columns(), nil
	}
	db, limits, err := p.database(p.Job, s.SQL)
	if err != nil {
		return nil, err
	}
	return sqlsink.Columns(ctx, db, limits, s.SQL.Connection, s.SQL.Table, s.SQL.Key)
}

// lockTables writes down which schemas sinks have taken over from their tables.
func (pl *Pipeline) lockTables(ctx context.Context) error {
	t := &pl.program.tables
	now := maps.Clone(t.locked)
	if now == nil {
		now = map[string]checkpoint.LockedTable{}
	}
	maps.Copy(now, t.used)
	if len(now) == 0 || reflect.DeepEqual(now, t.locked) {
		return nil
	}
	if err := pl.log.LockTables(ctx, now); err != nil {
		return err
	}
	t.locked = now
	return nil
}

func (p *Program) deltaTarget(s *job.Sink) (sink.Target, error) {
	schema, err := schemaOf(s.Delta.Schema)
	if err != nil {
		return nil, err
	}
	d := s.Delta
	return deltasink.New(deltasink.Config{
		Sink: s.Name, Dir: d.Path, Schema: schema, PartitionBy: d.PartitionBy, Key: d.Key, AddColumns: d.AddColumns,
		CheckpointInterval: int(d.CheckpointInterval), Codec: parquetfile.Codec(d.Compression), MaxPartRows: d.MaxPartRows, MaxPartBytes: d.MaxPartSize,
		CreatedBy: "wasmill version " + p.env.Version, Engine: "Wasmill/" + p.env.Version,
		Files: p.env.Files, Clock: p.env.Clock.Now, Wait: p.env.Clock.Wait, Warn: p.warn("sink " + s.Name),
	})
}

// sqlTarget adds the target of all sinks that publish to the database of one of them. The job's check has seen that these
// ask for the same guarantee.
func (p *Program) sqlTarget(j *job.Job, one *job.SQLSink, out map[string]sink.Target) error {
	db, limits, err := p.database(j, one)
	if err != nil {
		return err
	}
	cfg := sqlsink.Config{Connection: one.Connection, Database: db, Guarantee: sink.ExactlyOnce, Limits: limits, Clock: p.env.Clock.Now}
	if one.AtLeastOnce {
		cfg.Guarantee = sink.AtLeastOnce
	}
	for i := range j.Sinks {
		q := j.Sinks[i].SQL
		if q == nil || q.Connection != one.Connection {
			continue
		}
		schema, err := schemaOf(q.Schema)
		if err != nil {
			return fmt.Errorf("sink %s: %w", j.Sinks[i].Name, err)
		}
		_, own := p.tables.used[j.Sinks[i].Name]
		cfg.Sinks = append(cfg.Sinks, sqlsink.Sink{
			Name: j.Sinks[i].Name, Table: q.Table, Schema: schema, OwnColumns: own, Key: q.Key, Create: q.Create, Statement: q.Statement,
		})
	}
	t, err := sqlsink.New(cfg)
	if err != nil {
		return err
	}
	for _, s := range cfg.Sinks {
		out[s.Name] = t
	}
	return nil
}
