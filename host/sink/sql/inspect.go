package sql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink"
)

// ErrNoDatabase says that there is no database yet at a place where one can be made.
var ErrNoDatabase = errors.New("there is no database")

// Inspect holds the tables against the sinks as Open does, and reads the epoch row without taking it over. What Open would
// make is not made: no database, no table, no row.
func (t *Target) Inspect(ctx context.Context, o sink.Owner) (sink.Published, error) {
	p := sink.Published{Batch: checkpoint.NoBatch}
	err := t.look(ctx, o.Query, func(ctx context.Context, look *Target) (err error) {
		unfit := look.lookAtTables(ctx)
		if unfit == nil {
			t.places, unfit = look.lookAtPlaces(ctx)
		}
		if !t.exact() || fault.IsPassing(unfit) {
			return unfit
		}
		found, err := look.lookAtEpoch(ctx)
		switch {
		case unfit == nil:
			p = found
			return err
		case err == nil:
			return &sink.UnfitError{Published: found, Err: unfit}
		}
		return unfit
	})
	return p, err
}

// look calls f with a target for a query that only reads, on a connection of its own.
func (t *Target) look(ctx context.Context, query string, f func(context.Context, *Target) error) error {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Patience)
	defer cancel()
	use := Use{ReadOnly: true, Session: "wasmill", Limits: t.cfg.Limits}
	conn, err := t.cfg.Database.Connect(ctx, use)
	if t.toBeMade(err) {
		use.Create = true
		conn, err = t.cfg.Database.Connect(ctx, use)
	}
	if err != nil {
		absent := t.cfg.Database.Explain(err).Absent
		if err = t.fault(t.place(), err); absent {
			err = &sink.UnfitError{Published: sink.Published{Batch: checkpoint.NoBatch}, Err: err}
		}
		return err
	}
	defer conn.Close(ctx)
	return f(ctx, &Target{cfg: t.cfg, query: query, order: t.order, conn: conn})
}

// lookAtTables says what is wrong with a table, and makes none.
func (t *Target) lookAtTables(ctx context.Context) error {
	made := map[string]bool{}
	for _, r := range t.order {
		if err := t.lookAt(ctx, r.sink, made); err != nil {
			return err
		}
	}
	return nil
}

// lookAt says what is wrong with a sink's table. In made are the names of those that opening makes.
func (t *Target) lookAt(ctx context.Context, s *Sink, made map[string]bool) error {
	place := t.tablePlace(s)
	var table *Table
	var err error
	if s.Table != "" {
		if table, err = t.conn.Table(ctx, s.Table); err != nil {
			return t.fault(place, err)
		}
		if table == nil {
			if made[s.Table] {
				return nil
			}
			made[s.Table] = true
			return t.fault(place, t.lookAtNew(ctx, s))
		}
		if err := t.fits(s, table); err != nil {
			return t.sinkFault(s, err)
		}
	}
	_, err = t.conn.Bind(ctx, s, table)
	if err != nil && s.Statement != "" && t.aboutMade(err, made) {
		return nil
	}
	return t.sinkFault(s, err)
}

// aboutMade tells that a statement is refused for a table that is not there yet and that opening makes.
func (t *Target) aboutMade(err error, made map[string]bool) bool {
	if t.cfg.Database.Explain(err).Code != CodeTable {
		return false
	}
	words := strings.FieldsFunc(err.Error(), func(r rune) bool { return strings.ContainsRune(`". `, r) })
	for name := range made {
		if n, err := ParseName(name); err == nil && slices.Contains(words, n.Table) {
			return true
		}
	}
	return false
}

// lookAtNew says why a table that is not there cannot be made.
func (t *Target) lookAtNew(ctx context.Context, s *Sink) error {
	if !s.Create {
		return t.noTable(ctx, s)
	}
	if err := t.checkNew(ctx, s); err != nil {
		return err
	}
	if err := t.conn.MayCreate(ctx, s.Table); err != nil {
		return t.notMade(s, err)
	}
	return nil
}

// lookAtEpoch reads the row of this job, where there is one, and says why it cannot be written.
func (t *Target) lookAtEpoch(ctx context.Context) (sink.Published, error) {
	nothing := sink.Published{Batch: checkpoint.NoBatch}
	table, err := t.conn.Table(ctx, epochTable)
	if err != nil {
		return nothing, t.fault(t.epochPlace(), err)
	}
	if table == nil {
		return nothing, t.epochNotMade(t.conn.MayCreate(ctx, epochTable))
	}
	if err := t.lasts(epochTable, table); err != nil {
		return nothing, t.fault(t.epochPlace(), err)
	}
	e, _, err := t.epochQuery(ctx, readEpoch)
	if err != nil {
		return nothing, err
	}
	return e.Published, t.epochWritable(ctx, table)
}

// epochWritable says why the role cannot take over and advance rows of the table.
func (t *Target) epochWritable(ctx context.Context, table *Table) error {
	if table.Index("query_id") < 0 || table.Index("target") < 0 {
		return nil
	}
	text := rows.Type{Kind: rows.String}
	schema, err := rows.NewSchema([]rows.Column{{Name: "query_id", Type: text}, {Name: "target", Type: text}})
	if err != nil {
		return fmt.Errorf("the key of %s: %w", epochTable, err)
	}
	_, err = t.conn.Bind(ctx, &Sink{Table: epochTable, Schema: schema, Key: []string{"query_id", "target"}}, table)
	if m := (*Mismatch)(nil); errors.As(err, &m) && m.Code == CodePrivilege {
		return fault.New(CodePrivilege, t.epochPlace(), err, wayOutEpochPrivilege)
	}
	return nil // what else is wrong with it is said when it is written to
}

// toBeMade tells that a database is not there yet and that opening makes it.
func (t *Target) toBeMade(err error) bool {
	return errors.Is(err, ErrNoDatabase) && t.creates()
}

// creates tells that opening makes tables that are not there.
func (t *Target) creates() bool {
	return slices.ContainsFunc(t.order, func(r *route) bool { return r.sink.Create })
}
