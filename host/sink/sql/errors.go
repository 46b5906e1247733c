package sql

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/host/fault"
)

// The codes of this package's faults.
const (
	CodeConfig      = "sql.config"      // the settings contradict each other
	CodeUnreachable = "sql.unreachable" // the database is away
	CodeAuth        = "sql.auth"        // the database does not let the role in
	CodeDatabase    = "sql.database"    // there is no such database, or its file is none
	CodeTable       = "sql.table"       // a table is missing, or cannot be made
	CodeRecreated   = "sql.recreated"   // a table that the job has published in is gone
	CodeUnlogged    = "sql.unlogged"    // the database empties a table after a crash
	CodeMoved       = "sql.moved"       // the database's file is not where it was
	CodeColumn      = "sql.column"      // a column is missing, or has no value
	CodeType        = "sql.type"        // a column takes no such values
	CodeKey         = "sql.key"         // a table has no unique constraint on the key
	CodePrivilege   = "sql.privilege"   // the role may not do it
	CodeReadOnly    = "sql.read_only"   // the database takes no changes
	CodeFull        = "sql.full"        // the database has no room
	CodeLocked      = "sql.locked"      // somebody holds a lock for too long
	CodeTimeout     = "sql.timeout"     // the database takes too long
	CodeConstraint  = "sql.constraint"  // rows break a constraint
	CodeValue       = "sql.value"       // the database does not take a value
	CodeStatement   = "sql.statement"   // the database does not take a statement
	CodeServer      = "sql.server"      // another word of the database
	CodeEpoch       = "sql.epoch"       // the table or the row of epochs is not as it must be
	CodeEpochNewer  = "sql.epoch_newer" // a newer version of Wasmill wrote the epoch row
	CodeConflict    = "sql.conflict"    // something else is published already
	CodeFenced      = "sql.fenced"      // another process has taken the target over
)

// Problem is the class of a database's error.
type Problem struct {
	Code string
	// Passing: it may pass by itself.
	Passing bool
	// Data: a row is the reason, not the state of the database.
	Data bool
	// Absent: there is no database.
	Absent bool
	// Broken: the connection cannot be used any more.
	Broken bool
	// Column and Detail are what the database says of a row, where it does.
	Column, Detail string
	WayOut         string
	// Together is the way out where rows are refused together and none of them alone.
	Together string
}

// WayOutRow is the way out of rows that are refused.
const WayOutRow = "mend the records, the constraint or the transform and start again, or set such records aside by `errors: {policy: dead-letter, deadLetters: <sink>}`"

// wayOutTogether is the way out where no row can be set aside.
const wayOutTogether = "no row is refused by itself: see which rows the table's constraints and triggers do not take in one transaction, and mend those, or the transform"

// Mismatch says why a table and a sink do not go together.
type Mismatch struct {
	Code   string
	Err    error
	WayOut string
}

func (m *Mismatch) Error() string { return m.Err.Error() }

// Unwrap returns what is wrong.
func (m *Mismatch) Unwrap() error { return m.Err }

// RowError is an error of the database about one row.
type RowError struct {
	Gone bool // of Changes.Gone, else of Changes.Put
	Row  int  // of its Refs
	Err  error
}

func (e *RowError) Error() string { return e.Err.Error() }

// Unwrap returns what the database says.
func (e *RowError) Unwrap() error { return e.Err }

func (t *Target) place() string { return "connection " + t.ID() }

// tablePlace is where a sink's rows go.
func (t *Target) tablePlace(s *Sink) string {
	if s == nil {
		return t.place()
	}
	if s.Table == "" {
		return t.place() + ", statement of sink " + s.Name
	}
	return t.place() + ", table " + s.Table
}

// fault puts an error of the database into words.
func (t *Target) fault(place string, err error) error {
	if err == nil {
		return nil
	}
	if f := (*fault.Error)(nil); errors.As(err, &f) {
		return err
	}
	if m := (*Mismatch)(nil); errors.As(err, &m) {
		return fault.New(m.Code, place, m.Err, m.WayOut)
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	p := t.cfg.Database.Explain(err)
	f := fault.New(p.Code, place, err, p.WayOut)
	f.Passes = p.Passing
	return f
}

// sinkFault is fault for a sink whose table is there, with a way out that the sink's settings leave.
func (t *Target) sinkFault(s *Sink, err error) error {
	if err == nil || s == nil || errors.As(err, new(*fault.Error)) {
		return t.fault(t.tablePlace(s), err)
	}
	made := t.fault(t.tablePlace(s), err)
	f := (*fault.Error)(nil)
	if !errors.As(made, &f) {
		return made
	}
	switch f.ErrCode {
	case CodeColumn, CodeType:
		if s.OwnColumns {
			f.WayOut = fmt.Sprintf("make the table's columns as they were, or give a new one a default; or take them anew: `wasmill run --update %s`, and `--allow-changes` when it asks for that", s.Name)
		}
	case CodeTable: // the sink's own is there
		f.WayOut = "create the table that it names, which a trigger, a foreign key or a view of the sink's table needs, then start again"
		if s.Statement != "" {
			f.WayOut = "create the table that the statement names, or correct the statement, then start again"
		}
	}
	return made
}

func (t *Target) fenced() error {
	return fault.New(CodeFenced, t.place(), errors.New("another process has taken the target over"),
		"see that one process alone runs this checkpoint, and no copy of it, then start again")
}
