package sql

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink"
)

// Target is one database that a job publishes to. It implements sink.Target.
type Target struct {
	cfg    Config
	routes map[string]*route
	order  []*route // as in Config

	query, job string
	conn       Conn   // nil after an error: what was staged is lost
	owner      string // as the epoch row has it
	newest     sink.Published
	fencedBy   error // another owner has it, or the row is not what it was: only Open may take it over
	staged     *staged
	places     map[*route]string // of tables, by the server's own names; nil until they are looked at
}

var (
	_ sink.Target    = (*Target)(nil)
	_ sink.Inspector = (*Target)(nil)
)

// ID returns the connection's name.
func (t *Target) ID() string { return t.cfg.Connection }

// Traits returns what the target promises.
func (t *Target) Traits() sink.Traits {
	if !t.exact() {
		return sink.Traits{
			Guarantee: sink.AtLeastOnce, Volatile: true, Chosen: true,
			Why: "asked for by `idempotence: none`: the database does not say which batch it has, so one whose commit was cut off is written again",
		}
	}
	return sink.Traits{
		Guarantee: sink.ExactlyOnce, Volatile: true, Chosen: true,
		Why:     "each batch is one transaction over all tables of the connection, with the batch's number in " + epochTable,
		PutBack: "put the database back that has the rows and the job's row in " + epochTable + ", or its place in the connection",
	}
}

// NewLane returns an empty lane.
func (t *Target) NewLane(name string) (sink.Lane, error) {
	r, ok := t.routes[name]
	if !ok {
		return nil, fmt.Errorf("target %s has no sink %q", t.ID(), name)
	}
	return newLane(r), nil
}

func (t *Target) exact() bool { return t.cfg.Guarantee == sink.ExactlyOnce }

// session names the connections of a query to this target: at most 53 bytes, as PostgreSQL cuts a name at 63.
func (t *Target) session() string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(t.ID()))
	return fmt.Sprintf("wasmill %.36s %08x", t.query, h.Sum32())
}

// Open connects, looks at the tables, takes the epoch row over and reads it. A database that is away is tried again for
// about a second.
func (t *Target) Open(ctx context.Context, o sink.Owner) (sink.Published, error) {
	nothing := sink.Published{Batch: checkpoint.NoBatch}
	if o.Query == "" {
		return nothing, fmt.Errorf("open target %s: no query id", t.ID())
	}
	t.drop(ctx)
	t.query, t.job, t.fencedBy, t.newest = o.Query, o.Job, nil, nothing
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Patience)
	defer cancel()
	err := t.patiently(ctx, longestOpenPause, func() error {
		if err := t.connect(ctx); err != nil {
			return err
		}
		if !t.exact() {
			return nil
		}
		return t.claim(ctx)
	})
	if err != nil {
		t.drop(ctx)
		return nothing, err
	}
	return t.newest, nil
}

const (
	retryPause       = 20 * time.Millisecond
	longestPause     = 2 * time.Second
	longestOpenPause = 640 * time.Millisecond
)

// patiently calls f again while it fails by what may pass, with growing pauses up to the longest.
func (t *Target) patiently(ctx context.Context, longest time.Duration, f func() error) error {
	for wait := retryPause; ; wait *= 2 {
		err := f()
		if err == nil || !fault.IsPassing(err) || wait > longest || pause(ctx, wait) != nil {
			return err
		}
		t.drop(ctx)
	}
}

// connect makes a connection and binds the sinks to their tables. What is not there is made once nothing is found that refuses it.
func (t *Target) connect(ctx context.Context) error {
	use := Use{Session: t.session(), Limits: t.cfg.Limits}
	conn, err := t.cfg.Database.Connect(ctx, use)
	if t.toBeMade(err) {
		if _, err := t.Inspect(ctx, sink.Owner{Query: t.query}); err != nil {
			return err
		}
		use.Create = true
		conn, err = t.cfg.Database.Connect(ctx, use)
	}
	if err != nil {
		return t.fault(t.place(), err)
	}
	t.conn = conn
	if t.creates() {
		if err := t.lookAtTables(ctx); err != nil {
			return err
		}
	}
	for _, r := range t.order {
		r.filled = false
		if err := t.bind(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// bind looks at a sink's table, or makes it, and finds out how rows are written there.
func (t *Target) bind(ctx context.Context, r *route) error {
	table, err := t.table(ctx, r)
	if err != nil {
		return t.fault(t.tablePlace(r.sink), err)
	}
	if table != nil {
		if err := t.fits(r.sink, table); err != nil {
			return t.sinkFault(r.sink, err)
		}
	}
	b, err := t.conn.Bind(ctx, r.sink, table)
	if err != nil {
		return t.sinkFault(r.sink, err)
	}
	r.bound(b, table)
	return nil
}

// table describes a sink's table, after making it where that is asked for.
func (t *Target) table(ctx context.Context, r *route) (*Table, error) {
	s := r.sink
	if s.Table == "" {
		return nil, nil
	}
	table, err := t.conn.Table(ctx, s.Table)
	if err != nil || table != nil {
		return table, err
	}
	if !s.Create {
		return nil, t.noTable(ctx, s)
	}
	if err := t.mayMake(ctx, r); err != nil {
		return nil, err
	}
	if err := t.conn.CreateTable(ctx, s.Table, s.Schema, s.Key); err != nil {
		// Somebody else may have made it at the same time, which some databases answer with an error.
		if table, again := t.conn.Table(ctx, s.Table); again == nil && table != nil {
			return table, nil
		}
		return nil, t.notMade(s, err)
	}
	if table, err = t.conn.Table(ctx, s.Table); table == nil && err == nil {
		err = t.noTable(ctx, s)
	}
	return table, err
}

// noTable also looks for the name as databases fold it.
func (t *Target) noTable(ctx context.Context, s *Sink) error {
	m := &Mismatch{Code: CodeTable, Err: errors.New("there is no such table"), WayOut: "create the table, or let it be made: `createTable: true`"}
	if s.Schema == nil {
		m.WayOut = "create the table, or give the sink a schema and let it be made: `createTable: true`"
	}
	if lower := strings.ToLower(s.Table); lower != s.Table {
		if other, err := t.conn.Table(ctx, lower); err == nil && other != nil {
			m.WayOut = "there is one called " + lower + ": write the name as the database has it"
		}
	}
	return m
}

// Columns returns the columns of a table as a sink without a schema of its own has them: all that can be written and do not
// get a value by themselves, and those of its key.
func Columns(ctx context.Context, db Database, limits Limits, connection, table string, key []string) ([]rows.Column, error) {
	t := &Target{cfg: Config{Connection: connection, Database: db, Limits: limits}}
	t.cfg.setDefaults()
	s := &Sink{Table: table}
	place := t.tablePlace(s)
	if _, err := ParseName(table); err != nil {
		return nil, fault.New(CodeConfig, place, err, "correct the sink in the job file")
	}
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Patience)
	defer cancel()
	conn, err := db.Connect(ctx, Use{ReadOnly: true, Session: "wasmill", Limits: t.cfg.Limits})
	if err != nil {
		return nil, t.fault(t.place(), err)
	}
	defer conn.Close(ctx)
	t.conn = conn
	found, err := t.table(ctx, &route{sink: s})
	if err != nil {
		return nil, t.fault(place, err)
	}
	columns, err := found.ownColumns(key)
	return columns, t.fault(place, err)
}

// Abort ends the transaction of a batch without effect.
func (t *Target) Abort(ctx context.Context, batch checkpoint.BatchID) error {
	if t.staged == nil || t.staged.batch != batch {
		return nil
	}
	return t.abandon(ctx)
}

// abandon ends the open transaction without effect.
func (t *Target) abandon(ctx context.Context) error {
	t.staged = nil
	if t.conn == nil {
		return nil
	}
	if err := t.conn.Rollback(ctx); err != nil {
		t.drop(ctx) // the transaction ends with its connection
	}
	return nil
}

// drop gives the connection up, and with it an open transaction.
func (t *Target) drop(ctx context.Context) {
	t.staged = nil
	if t.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
	defer cancel()
	t.conn.Close(ctx)
	t.conn = nil
}

const closePatience = time.Second

// Sealed has nothing to tidy.
func (t *Target) Sealed(context.Context, checkpoint.BatchID) error { return nil }

// Close ends an open transaction without effect, and the connection.
func (t *Target) Close() error {
	t.drop(context.Background())
	return nil
}

// pause waits, or returns the context's error.
func pause(ctx context.Context, d time.Duration) error {
	wait, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-wait.Done()
	return ctx.Err()
}
