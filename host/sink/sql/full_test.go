package sql_test

import (
	"context"
	"errors"
	"testing"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// fullAtCommit is a database that has no room for one commit.
type fullAtCommit struct {
	sql.Database
	full bool
}

var errFull = errors.New("database or disk is full (13)")

func (d *fullAtCommit) Explain(err error) sql.Problem {
	if errors.Is(err, errFull) {
		return sql.Problem{Code: sql.CodeFull, Passing: true, Broken: true, WayOut: "make room on the disk"}
	}
	return d.Database.Explain(err)
}

func (d *fullAtCommit) Connect(ctx context.Context, use sql.Use) (sql.Conn, error) {
	c, err := d.Database.Connect(ctx, use)
	return &fullConn{c, d}, err
}

type fullConn struct {
	sql.Conn
	db *fullAtCommit
}

func (c *fullConn) Commit(ctx context.Context) error {
	if !c.db.full {
		return c.Conn.Commit(ctx)
	}
	return errors.Join(errFull, c.Conn.Rollback(ctx))
}

// TestFullAtCommit: a commit that the database refuses says why, beside that the batch has to run again.
func TestFullAtCommit(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		db := &fullAtCommit{Database: w.db}
		target := w.open(t, sql.Sink{Name: "rows", Table: "x", Schema: schema(t, "a: int32"), Create: true}, func(c *sql.Config) { c.Database = db })
		publish(t, target, 0, values(`{"a":1}`))
		db.full = true
		staged, err := target.Stage(t.Context(), output(1, "rows", laneOf(t, target, "rows", values(`{"a":2}`))))
		must(t, err)
		err = target.Publish(t.Context(), decision(1), staged)
		if !errors.Is(err, sink.ErrLost) || !fault.IsPassing(err) {
			t.Errorf("%v, want ErrLost that passes", err)
		}
		wantFault(t, err, sql.CodeFull, "make room on the disk")
		db.full = false
		publish(t, target, 1, values(`{"a":2}`))
		if n := w.texts(t, "SELECT count(*) FROM x")[0]; n != "2" {
			t.Errorf("%s rows", n)
		}
	})
}
