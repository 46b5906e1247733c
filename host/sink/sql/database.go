package sql

import (
	"context"
	"time"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink"
)

// Use is what a connection is made for.
type Use struct {
	// ReadOnly connections look and change nothing.
	ReadOnly bool
	// Create lets a database be made that is a file and not there yet; with ReadOnly it is an empty one in memory, to see what
	// making it would come to.
	Create bool
	// Session names who connects, so that connections of an earlier owner can be told from those of others.
	Session string
	Limits  Limits
}

// Limits bound what a database may take its time for.
type Limits struct {
	// Connect is the longest that it may take to reach a server; 0 is what its address says, or else the driver's default.
	Connect time.Duration
	// Lock is the longest wait for a lock of somebody else.
	Lock time.Duration
	// Statement is the longest that one statement may take.
	Statement time.Duration
	// Idle is how long a transaction may wait for its commit before the database ends it.
	Idle time.Duration
}

// Database is what a connection of the job leads to.
type Database interface {
	// Kind is the kind's name in a job file.
	Kind() string
	// Place says where the database is, without any secret.
	Place() string
	// Rules are what every database of the kind asks of values beyond the types of a schema.
	Rules(schema *rows.Schema) []Rule
	// Connect makes a connection.
	Connect(ctx context.Context, use Use) (Conn, error)
	// Explain puts an error of the database into a class.
	Explain(err error) Problem
}

// Conn is one connection. It is used by one goroutine at a time.
//
// Statements have parameters $1, $2 ..; parameters and results are text, NULL is the empty text.
type Conn interface {
	// Query runs a statement and returns its rows.
	Query(ctx context.Context, query string, args ...string) ([][]string, error)
	// Contend calls f, whose statement may have to wait for a lock. Where the database allows it, connections that have the
	// same session name and hold that lock are ended after a while.
	Contend(ctx context.Context, f func(context.Context) error) error
	// Table describes a table, by its name as a job file has it. nil: there is none.
	Table(ctx context.Context, name string) (*Table, error)
	// Place names a table, there or to be made, as every connection to its database would, whatever the job file calls it.
	Place(ctx context.Context, name string) (string, error)
	// MayCreate says why the role cannot make a table of that name that is not there: a *Mismatch, or the database's error. nil
	// promises nothing.
	MayCreate(ctx context.Context, name string) error
	// CreateTable makes a table with the columns of a schema and a primary key of the key columns, if any.
	CreateTable(ctx context.Context, name string, schema *rows.Schema, key []string) error
	// Bind finds out how the rows of a sink are written. An error is a *Mismatch, or the database's.
	Bind(ctx context.Context, s *Sink, t *Table) (Binding, error)

	// Begin starts a transaction that writes.
	Begin(ctx context.Context) error
	// Hold keeps the table of a binding from being changed until the transaction ends, and says whether it is what it was when
	// it was described.
	Hold(ctx context.Context, b Binding) (same bool, err error)
	// Write writes the changes of one sink. An error that is about one row is a *RowError.
	Write(ctx context.Context, b Binding, c *Changes) error
	// Check has constraints checked now that the database would check at the commit.
	Check(ctx context.Context) error
	// Waits says whether an error of Write or Check is about a constraint that holds for whole statements or transactions, so that
	// other rows may satisfy it.
	Waits(ctx context.Context, err error) (bool, error)
	// Commit commits. An error says nothing about whether it is committed.
	Commit(ctx context.Context) error
	// Rollback ends the transaction without effect, or finds that the database has ended it so.
	Rollback(ctx context.Context) error
	// Close ends the connection, and with it an open transaction without effect.
	Close(ctx context.Context)
}

// Binding is how the rows of a sink are written over one connection.
type Binding interface {
	// Rules are what the table asks of values beyond their types, as it is now.
	Rules() []Rule
}

// Rule is a condition on the values of one column, known before they are sent.
type Rule struct {
	Column int // of the sink's schema
	// Required refuses null.
	Required bool
	// Check refuses a value; nil takes all. It is not called for null and may be called by several goroutines.
	Check func(v *rows.Vector, row int) *sink.Misfit
}

// Table is a table as its database describes it.
type Table struct {
	Name    string
	Columns []Column
	// Unique are the sets of columns that the database keeps unique and that an upsert can go by.
	Unique [][]string
	// Unlogged: the database empties it when it has crashed.
	Unlogged bool
	// Private is the driver's own knowledge.
	Private any
}

// Column is a column of a Table.
type Column struct {
	Name string
	Type string // as the database writes it
	// NotNull columns take no null.
	NotNull bool
	// Filled columns get a value by themselves: a default, an identity, a computation.
	Filled bool
	// Computed columns cannot be written.
	Computed bool
	// Row is the type of the sink's column where the schema is the table's own; the zero type where there is none.
	Row rows.Type
	// Private is the driver's own knowledge.
	Private any
}

// Index returns the place of a column, or -1.
func (t *Table) Index(name string) int {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return i
		}
	}
	return -1
}

// Changes are what a sink has for its table in one batch.
type Changes struct {
	Put  Rows // rows of the sink's schema
	Gone Rows // rows of the key columns, in the order of the key
}

// Rows are some rows of several tables of one schema.
type Rows struct {
	Tables []*rows.Table
	Refs   []Ref
}

// Ref is one row of Rows.
type Ref struct{ Table, Row uint32 }

// Len returns the number of rows.
func (r *Rows) Len() int { return len(r.Refs) }

// Slice returns rows [from, to).
func (r *Rows) Slice(from, to int) Rows { return Rows{Tables: r.Tables, Refs: r.Refs[from:to]} }
