package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// Database is one database of a PostgreSQL server. It implements sql.Database.
type Database struct {
	config *pgconn.Config
}

// How a URL is written, and a password in it.
const (
	wayOutURL = "write it as postgres://user:password@host:5432/database?sslmode=verify-full"
	encoding  = "special characters of user and password are written as %XX (@ is %40, # %23, / %2F, ? %3F, % %25, a blank %20); " +
		"or leave the password out of it, and give it as it is in the environment variable PGPASSWORD"
)

// New reads the URL of a connection: postgres://user:password@host:port/database?sslmode=verify-full, with the parameters
// that libpq knows; several hosts stand with commas between. What it does not say, libpq's environment variables do. No error
// shows the URL, which may have a password in it.
func New(connection, address string) (*Database, error) {
	wrong := func(why string) error {
		return fault.New(sql.CodeConfig, "connection "+connection, errors.New("the url "+why), wayOutURL)
	}
	u, err := url.Parse(address)
	if err != nil && !strings.Contains(address, ",") {
		return nil, wrong("cannot be read: " + encoding)
	}
	if !strings.HasPrefix(address, "postgres://") && !strings.HasPrefix(address, "postgresql://") {
		return nil, wrong("does not begin with postgres://")
	}
	if strayAt(address) {
		return nil, wrong("cannot be read, as there is an @ besides the one before the host: " + encoding)
	}
	config, err := pgconn.ParseConfig(address)
	if err != nil {
		why := encoding
		if inner := errors.Unwrap(err); inner != nil && u != nil && u.User == nil {
			why = inner.Error()
		}
		return nil, wrong("cannot be read: " + why)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	config.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) {}
	return &Database{config: config}, nil
}

// strayAt tells that a URL has an @ where one that is no mistake is written as %40: what stands before it may be the rest of a
// password that is not, and would be taken for the name of a host or a database, and shown.
func strayAt(address string) bool {
	_, rest, _ := strings.Cut(address, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	path, parameters, _ := strings.Cut(rest[end:], "?")
	if strings.Count(rest[:end], "@") > 1 || strings.Contains(path, "@") {
		return true
	}
	for _, p := range strings.Split(parameters, "&") {
		name, _, _ := strings.Cut(p, "=")
		if strings.Contains(p, "@") && !slices.Contains(takeAt, name) {
			return true
		}
	}
	return false
}

// takeAt are the parameters whose values may have an @.
var takeAt = []string{"user", "password", "host", "application_name", "options", "passfile", "sslcert", "sslkey", "sslrootcert", "sslpassword"}

const connectTimeout = 10 * time.Second

// Kind implements sql.Database.
func (d *Database) Kind() string { return "postgres" }

// Place implements sql.Database.
func (d *Database) Place() string {
	return net.JoinHostPort(d.config.Host, strconv.Itoa(int(d.config.Port))) + "/" + d.config.Database
}

// Conn is one connection. It implements sql.Conn.
type Conn struct {
	db  *Database
	pg  *pgconn.PgConn
	use sql.Use
	// copyBuf is the buffer of the last COPY.
	copyBuf []byte
	bound   int  // statements that were prepared
	marks   bool // markQuery is prepared
}

// Connect implements sql.Database.
func (d *Database) Connect(ctx context.Context, use sql.Use) (sql.Conn, error) {
	config := d.config.Copy()
	if use.Limits.Connect > 0 {
		config.ConnectTimeout = use.Limits.Connect
	}
	config.RuntimeParams["application_name"] = use.Session
	config.RuntimeParams["client_encoding"] = "UTF8"
	pg, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	c := &Conn{db: d, pg: pg, use: use}
	if err := c.settings(ctx); err != nil {
		c.Close(ctx)
		return nil, err
	}
	return c, nil
}

// fixed are settings that change what a text or a time means, or how many digits a number has, whatever the role's defaults are.
const fixed = `set_config('DateStyle', 'ISO', false), set_config('IntervalStyle', 'postgres', false), set_config('TimeZone', 'UTC', false),
	set_config('extra_float_digits', '1', false), set_config('standard_conforming_strings', 'on', false)`

// settings bounds what statements may take, keeps a session that waits for rows, makes values of one form, and commits durable
// that are answered, whatever the role's defaults are.
func (c *Conn) settings(ctx context.Context) error {
	l := c.use.Limits
	_, err := c.Query(ctx, `SELECT set_config('lock_timeout', $1, false), set_config('statement_timeout', $2, false),
	set_config('idle_in_transaction_session_timeout', $3, false), `+fixed+`,
	(SELECT string_agg(set_config(name, '0', false), '') FROM unnest(ARRAY['idle_session_timeout', 'transaction_timeout']) AS s(name) WHERE current_setting(name, true) <> ''),
	set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)`,
		millis(l.Lock), millis(l.Statement), millis(l.Idle))
	if err != nil {
		return fmt.Errorf("set the limits of the session: %w", err)
	}
	return nil
}

func millis(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }

// bounded ends a statement that the server itself does not end: it may be out of reach, or stopped.
func (c *Conn) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.use.Limits.Statement+statementGrace)
}

const statementGrace = 5 * time.Second

// Query implements sql.Conn.
func (c *Conn) Query(ctx context.Context, query string, args ...string) ([][]string, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	return texts(c.pg.ExecParams(ctx, query, values(args), nil, nil, nil))
}

// marking names the prepared markQuery.
const marking = "wasmill_mark"

// queryMark runs markQuery, which is asked at each batch: to plan it takes longer than to run it, so that it is prepared once.
func (c *Conn) queryMark(ctx context.Context, table string) ([][]string, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	if !c.marks {
		if _, err := c.pg.Prepare(ctx, marking, markQuery, nil); err != nil {
			return nil, err
		}
		c.marks = true
	}
	return texts(c.pg.ExecPrepared(ctx, marking, values([]string{table}), nil, nil))
}

func values(args []string) [][]byte {
	out := make([][]byte, len(args))
	for i, a := range args {
		out[i] = []byte(a)
	}
	return out
}

func texts(result *pgconn.ResultReader) ([][]string, error) {
	r := result.Read()
	if r.Err != nil {
		return nil, r.Err
	}
	out := make([][]string, len(r.Rows))
	for i, row := range r.Rows {
		out[i] = make([]string, len(row))
		for j, v := range row {
			out[i][j] = string(v)
		}
	}
	return out, nil
}

// exec runs statements without parameters and returns the last one's tag.
func (c *Conn) exec(ctx context.Context, query string) (pgconn.CommandTag, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	got, err := c.pg.Exec(ctx, query).ReadAll()
	if err != nil || len(got) == 0 {
		return pgconn.CommandTag{}, err
	}
	return got[len(got)-1].CommandTag, nil
}

// Begin implements sql.Conn.
func (c *Conn) Begin(ctx context.Context) error {
	_, err := c.exec(ctx, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
	return err
}

// Check implements sql.Conn.
func (c *Conn) Check(ctx context.Context) error {
	_, err := c.exec(ctx, "SET CONSTRAINTS ALL IMMEDIATE")
	return err
}

const deferrableQuery = `SELECT 1 FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON c.oid = k.conrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE k.condeferrable AND k.conname = $1 AND c.relname = $2 AND n.nspname = $3`

// Waits implements sql.Conn: foreign keys are checked at the end of a statement, and so is what is deferrable.
func (c *Conn) Waits(ctx context.Context, err error) (bool, error) {
	var pg *pgconn.PgError
	switch {
	case !errors.As(err, &pg) || class(pg) != "23":
		return false, nil
	case pg.Code == foreignKey:
		return true, nil
	}
	got, err := c.Query(ctx, deferrableQuery, pg.ConstraintName, pg.TableName, pg.SchemaName)
	return len(got) > 0, err
}

// errRolledBack is the answer of a server that ends a failed transaction when it is to commit.
var errRolledBack = errors.New("the server rolled the transaction back")

// Commit implements sql.Conn.
func (c *Conn) Commit(ctx context.Context) error {
	tag, err := c.exec(ctx, "COMMIT")
	if err == nil && tag.String() != "COMMIT" {
		err = errRolledBack
	}
	return err
}

// Rollback implements sql.Conn.
func (c *Conn) Rollback(ctx context.Context) error {
	_, err := c.exec(ctx, "ROLLBACK")
	return err
}

// Close implements sql.Conn.
func (c *Conn) Close(ctx context.Context) {
	_ = c.pg.Close(ctx) // the server ends what is open; there is nothing to be done about an error
}

// Contend implements sql.Conn: sessions of the same name that f waits for are ended after a while. They are of the same role,
// which every role may end.
func (c *Conn) Contend(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.endOthers(ctx)
	}()
	err := f(ctx)
	cancel()
	<-done
	return err
}

// contendGrace is how long an earlier owner may take to end by itself.
const contendGrace = 300 * time.Millisecond

// endOthers looks again and again for sessions of this name that this one waits for, and ends them.
func (c *Conn) endOthers(ctx context.Context) {
	pid := strconv.FormatUint(uint64(c.pg.PID()), 10)
	for pause(ctx, contendGrace) == nil {
		other, err := c.db.Connect(ctx, sql.Use{Session: c.use.Session + "!", Limits: c.use.Limits})
		if err != nil {
			continue
		}
		_, _ = other.Query(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid = ANY (pg_blocking_pids($1::int)) AND application_name = $2`, pid, c.use.Session) // f's own wait has a bound
		other.Close(context.WithoutCancel(ctx))
	}
}

func pause(ctx context.Context, d time.Duration) error {
	wait, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-wait.Done()
	return ctx.Err()
}
