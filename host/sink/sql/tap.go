package sql

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/host/rows"
)

// Tap calls fn around every step by which the connections of a database change something, so that a build for tests can end
// the process at a point it names: the step and the moment, then the kind of the database, as "commit:before sqlite". The steps
// are create-table, epoch-create, epoch-insert, epoch-claim, epoch-lock, begin, epoch-advance, epoch-note, rows and commit. Those of rows
// also name how the sink writes, as "rows:before sqlite upsert", and are cut in two with "rows:half" between.
func Tap(db Database, fn func(point string)) Database { return &tapped{db, fn} }

type tapped struct {
	Database
	fn func(point string)
}

func (d *tapped) Connect(ctx context.Context, use Use) (Conn, error) {
	c, err := d.Database.Connect(ctx, use)
	if err != nil {
		return nil, err
	}
	return &tappedConn{c, d}, nil
}

// around runs do between two points, the second only where it went well.
func (d *tapped) around(step, mode string, do func() error) error {
	d.fn(d.point(step, "before", mode))
	err := do()
	if err == nil {
		d.fn(d.point(step, "after", mode))
	}
	return err
}

func (d *tapped) point(step, moment, mode string) string {
	return step + ":" + moment + " " + d.Kind() + mode
}

type tappedConn struct {
	Conn
	db *tapped
}

// epochSteps are the statements about the epoch row that change something.
var epochSteps = map[string]string{
	EpochTable: "epoch-create", insertEpoch: "epoch-insert", claimEpoch: "epoch-claim", lockEpoch: "epoch-lock", advanceEpoch: "epoch-advance",
	noteFilled: "epoch-note",
}

func (c *tappedConn) Query(ctx context.Context, query string, args ...string) (out [][]string, err error) {
	step, ok := epochSteps[query]
	if !ok {
		return c.Conn.Query(ctx, query, args...)
	}
	err = c.db.around(step, "", func() (err error) {
		out, err = c.Conn.Query(ctx, query, args...)
		return err
	})
	return out, err
}

func (c *tappedConn) Begin(ctx context.Context) error {
	return c.db.around("begin", "", func() error { return c.Conn.Begin(ctx) })
}

func (c *tappedConn) Commit(ctx context.Context) error {
	return c.db.around("commit", "", func() error { return c.Conn.Commit(ctx) })
}

// tappedBinding knows which sink it is of.
type tappedBinding struct {
	Binding
	sink *Sink
}

func (b *tappedBinding) mode() string {
	switch {
	case b.sink.Statement != "":
		return " statement"
	case len(b.sink.Key) > 0:
		return " upsert"
	}
	return " append"
}

func (c *tappedConn) Bind(ctx context.Context, s *Sink, t *Table) (Binding, error) {
	b, err := c.Conn.Bind(ctx, s, t)
	if err != nil {
		return nil, err
	}
	return &tappedBinding{b, s}, nil
}

func untapped(b Binding) (*tappedBinding, error) {
	own, ok := b.(*tappedBinding)
	if !ok {
		return nil, fmt.Errorf("a binding of another connection: %T", b)
	}
	return own, nil
}

func (c *tappedConn) Hold(ctx context.Context, b Binding) (bool, error) {
	own, err := untapped(b)
	if err != nil {
		return false, err
	}
	return c.Conn.Hold(ctx, own.Binding)
}

func (c *tappedConn) Write(ctx context.Context, b Binding, ch *Changes) error {
	own, err := untapped(b)
	if err != nil {
		return err
	}
	return c.db.around("rows", own.mode(), func() error {
		first, second := ch.halves()
		if err := c.Conn.Write(ctx, own.Binding, &first); err != nil {
			return err
		}
		c.db.fn(c.db.point("rows", "half", own.mode()))
		err := c.Conn.Write(ctx, own.Binding, &second)
		if at := (*RowError)(nil); errors.As(err, &at) {
			if at.Gone {
				at.Row += first.Gone.Len()
			} else {
				at.Row += first.Put.Len()
			}
		}
		return err
	})
}

// halves cuts changes in two, deletions first as they are written.
func (c *Changes) halves() (first, second Changes) {
	half := (c.Gone.Len() + c.Put.Len() + 1) / 2
	gone := min(half, c.Gone.Len())
	put := half - gone
	return Changes{Gone: c.Gone.Slice(0, gone), Put: c.Put.Slice(0, put)},
		Changes{Gone: c.Gone.Slice(gone, c.Gone.Len()), Put: c.Put.Slice(put, c.Put.Len())}
}

func (c *tappedConn) CreateTable(ctx context.Context, name string, schema *rows.Schema, key []string) error {
	return c.db.around("create-table", "", func() error { return c.Conn.CreateTable(ctx, name, schema, key) })
}
