package sql_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// raced is a database in which somebody else makes a table at the moment that the job makes it.
type raced struct{ sql.Database }

func (r raced) Connect(ctx context.Context, use sql.Use) (sql.Conn, error) {
	c, err := r.Database.Connect(ctx, use)
	return racedConn{c}, err
}

type racedConn struct{ sql.Conn }

func (c racedConn) CreateTable(ctx context.Context, name string, schema *rows.Schema, key []string) error {
	return errors.Join(c.Conn.CreateTable(ctx, name, schema, key), errors.New("a name is taken"))
}

// TestTableMadeMeanwhile: a table that another job makes at the same time is like one that is there.
func TestTableMadeMeanwhile(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		s := sql.Sink{Table: "x", Schema: schema(t, "a: int32"), Create: true}
		w.run(t, "SELECT 1")
		w.db = raced{w.db}
		publish(t, w.open(t, s), 0, values(`{"a":1}`))
		if got := w.texts(t, "SELECT a FROM x"); len(got) != 1 || got[0] != "1" {
			t.Errorf("rows %v", got)
		}
	})
}

// TestTablesThatAreNoTarget: tables that are ours, and those that are gone when the connection ends, take no rows.
func TestTablesThatAreNoTarget(t *testing.T) {
	w := newWorld(t, "sqlite")
	w.run(t, "SELECT 1")
	for _, name := range []string{"wasmill_epoch", "main.Wasmill_Epoch"} {
		_, err := sql.New(sql.Config{
			Connection: "db", Database: w.db, Clock: time.Now, Sinks: []sql.Sink{{Name: "rows", Table: name, Schema: schema(t, "a: int32")}},
		})
		wantFault(t, err, sql.CodeConfig, "says what is published")
	}
	for _, name := range []string{"temp.x", "Temp.x"} {
		target := w.target(t, sql.Sink{Table: name, Schema: schema(t, "a: int32"), Create: true})
		_, err := target.Inspect(t.Context(), owner())
		wantFault(t, err, sql.CodeTable, "gone when the job ends")
		_, err = target.Open(t.Context(), owner())
		wantFault(t, err, sql.CodeTable, "gone when the job ends")
	}
}
