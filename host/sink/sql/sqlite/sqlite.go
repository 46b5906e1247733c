package sqlite

import (
	"context"
	dbsql "database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"modernc.org/sqlite"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// Database is one database file. It implements sql.Database.
type Database struct {
	path   string
	driver driver.Driver
}

// New names the file of a connection.
func New(connection, path string) (*Database, error) {
	if path == "" {
		return nil, fault.New(sql.CodeConfig, "connection "+connection, errors.New("the path is empty"), "name the database's file")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("connection %s: find the file: %w", connection, err)
	}
	db, err := dbsql.Open("sqlite", "")
	if err != nil {
		return nil, fmt.Errorf("connection %s: find the driver: %w", connection, err)
	}
	d := &Database{path: path, driver: db.Driver()}
	return d, db.Close()
}

// Kind implements sql.Database.
func (d *Database) Kind() string { return "sqlite" }

// Place implements sql.Database.
func (d *Database) Place() string { return d.path }

// Conn is one connection. It implements sql.Conn.
type Conn struct {
	raw   rawConn
	path  string
	file  fs.FileInfo // of the path when it was opened; nil in memory, where nothing is written
	use   sql.Use
	bound []driver.Stmt
}

// rawConn is what the driver's connection can do.
type rawConn interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.QueryerContext
	driver.ExecerContext
	sqlite.DBStatus
}

// Connect implements sql.Database.
func (d *Database) Connect(ctx context.Context, use sql.Use) (sql.Conn, error) {
	mode := "rw"
	switch info, err := os.Stat(d.path); {
	case err == nil && !info.Mode().IsRegular():
		return nil, &sql.Mismatch{Code: sql.CodeDatabase, Err: errors.New("it is not a file"), WayOut: "give the connection the path of a database's file, or of one that is not there yet"}
	case errors.Is(err, fs.ErrNotExist) && use.Create && !isDir(filepath.Dir(d.path)):
		return nil, errNoDirectory
	case use.Create && use.ReadOnly:
		mode = "memory"
	case use.Create:
		mode = "rwc"
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %s", sql.ErrNoDatabase, d.path)
	}
	name := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: d.path}).EscapedPath(), RawQuery: "mode=" + mode}).String()
	opened, err := d.driver.Open(name)
	if err != nil {
		return nil, err
	}
	raw, ok := opened.(rawConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver of SQLite has a connection of type %T", opened), opened.Close())
	}
	c := &Conn{raw: raw, use: use, path: d.path}
	settings := []string{
		"busy_timeout = " + strconv.FormatInt(max(1, use.Limits.Lock.Milliseconds()), 10),
		"foreign_keys = ON", "synchronous = EXTRA", "cache_spill = OFF", "trusted_schema = OFF",
	}
	if use.ReadOnly {
		settings = append(settings, "query_only = ON")
	}
	for _, s := range settings {
		if _, err := c.Query(ctx, "PRAGMA "+s); err != nil {
			c.Close(ctx)
			return nil, fmt.Errorf("set %s: %w", s, err)
		}
	}
	// A file that is no database is noticed when it is first read.
	if _, err := c.Query(ctx, "SELECT count(*) FROM sqlite_schema"); err != nil {
		c.Close(ctx)
		return nil, err
	}
	if mode == "memory" {
		return c, nil
	}
	if c.file, err = os.Stat(d.path); err != nil {
		c.Close(ctx)
		return nil, errors.Join(errMoved, err)
	}
	return c, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// stays looks whether the file is still the one that the path leads to: rows would go into one that nobody finds.
func (c *Conn) stays() error {
	now, err := os.Stat(c.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look at the file: %w", err)
	}
	if err != nil || !os.SameFile(c.file, now) {
		return errMoved
	}
	return nil
}

func (c *Conn) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.use.Limits.Statement)
}

// Query implements sql.Conn.
func (c *Conn) Query(ctx context.Context, query string, args ...string) (out [][]string, err error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	values := make([]driver.NamedValue, len(args))
	for i, a := range args {
		values[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	got, err := c.raw.QueryContext(ctx, query, values)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, got.Close()) }()
	row := make([]driver.Value, len(got.Columns()))
	for {
		err := got.Next(row)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		texts := make([]string, len(row))
		for i, v := range row {
			texts[i] = textOf(v)
		}
		out = append(out, texts)
	}
}

func textOf(v driver.Value) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []byte:
		return string(v)
	}
	return fmt.Sprint(v)
}

// exec runs a statement without results.
func (c *Conn) exec(ctx context.Context, statement string) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	_, err := c.raw.ExecContext(ctx, statement, nil)
	return err
}

// Contend implements sql.Conn. Nobody can end another process's transaction here; the limit of locks bounds the wait.
func (c *Conn) Contend(ctx context.Context, f func(context.Context) error) error { return f(ctx) }

// Begin implements sql.Conn. Foreign keys are checked at the end, as rows that need each other may be of several statements.
func (c *Conn) Begin(ctx context.Context) error {
	if err := c.stays(); err != nil {
		return err
	}
	if err := c.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	return c.exec(ctx, "PRAGMA defer_foreign_keys = ON")
}

// errForeignKey is what a commit would answer.
var errForeignKey = errors.New("FOREIGN KEY constraint failed")

// Check implements sql.Conn.
func (c *Conn) Check(context.Context) error {
	open, _, err := c.raw.Status(sqlite.DBStatusDeferredFKs, false)
	if err == nil && open != 0 {
		err = errForeignKey
	}
	return err
}

// Waits implements sql.Conn: foreign keys are checked at the end of a statement, or of the transaction.
func (c *Conn) Waits(_ context.Context, err error) (bool, error) {
	return errors.Is(err, errForeignKey) || isForeignKey(err), nil
}

// Commit implements sql.Conn. Readers of a database without WAL may be in the way for longer than they should.
func (c *Conn) Commit(ctx context.Context) error {
	for {
		err := c.exec(ctx, "COMMIT")
		if primary(err) != busy || ctx.Err() != nil {
			return err
		}
	}
}

// Rollback implements sql.Conn. A constraint or a trigger may have rolled back already.
func (c *Conn) Rollback(ctx context.Context) error {
	err := c.exec(ctx, "ROLLBACK")
	if primary(err) == generic && strings.Contains(err.Error(), "no transaction is active") {
		return nil
	}
	return err
}

// Close implements sql.Conn.
func (c *Conn) Close(context.Context) {
	for _, s := range c.bound {
		_ = s.Close() // the connection ends them too
	}
	_ = c.raw.Close() // an open transaction ends without effect
}
