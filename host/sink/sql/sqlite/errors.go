package sqlite

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"modernc.org/sqlite"

	"github.com/wasmill/wasmill/host/sink/sql"
)

// Primary result codes: https://www.sqlite.org/rescode.html.
const (
	generic    = 1
	perm       = 3
	busy       = 5
	locked     = 6
	noMemory   = 7
	readOnly   = 8
	interrupt  = 9
	ioError    = 10
	corrupt    = 11
	full       = 13
	cannotOpen = 14
	protocol   = 15
	schema     = 17
	tooBig     = 18
	constraint = 19
	mismatch   = 20
	auth       = 23
	notADB     = 26
)

// moved is the extended code SQLITE_READONLY_DBMOVED: the file is not where it was when it was opened.
const moved = 1032

// errMoved says the same before anything is written; SQLite itself does not look in WAL mode.
var errMoved = errors.New("the file was moved, removed or replaced while the job had it open")

// errNoDirectory says that no database can be made at a path.
var errNoDirectory = errors.New("its directory is not there")

const wayOutMoved = "put it back, then start again"

// primary returns the primary result code of an error, 0 for none of SQLite's.
func primary(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// foreignKey is the extended code SQLITE_CONSTRAINT_FOREIGNKEY.
const foreignKey = 787

func isForeignKey(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code() == foreignKey
}

func isMoved(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code() == moved
}

// Explain implements sql.Database.
func (d *Database) Explain(err error) sql.Problem {
	switch {
	case err == nil:
		return sql.Problem{}
	case errors.Is(err, sql.ErrNoDatabase):
		return sql.Problem{Code: sql.CodeDatabase, Absent: true, WayOut: "correct the path, or let the database be made with its table: `createTable: true`"}
	case errors.Is(err, errNoDirectory):
		return sql.Problem{Code: sql.CodeDatabase, Absent: true, WayOut: "make the directory, or correct the path of the connection"}
	case errors.Is(err, errMoved):
		return sql.Problem{Code: sql.CodeMoved, Broken: true, WayOut: wayOutMoved}
	case isMoved(err):
		return sql.Problem{Code: sql.CodeMoved, Broken: true, WayOut: errMoved.Error() + ": " + wayOutMoved}
	case errors.Is(err, errForeignKey):
		return sql.Problem{Code: sql.CodeConstraint, Data: true, Detail: "FOREIGN KEY constraint failed", WayOut: sql.WayOutRow}
	case errors.Is(err, context.DeadlineExceeded):
		return sql.Problem{Code: sql.CodeTimeout, Passing: true, Broken: true, WayOut: "see what keeps the database busy; `statementTimeout` of the connection is how long writing may take"}
	}
	p := explain(primary(err), err.Error(), d.path)
	if p.Data {
		p.Detail = detail.ReplaceAllString(err.Error(), "$1")
	}
	return p
}

// detail is what SQLite says of a constraint, without the words for the code and the code.
var detail = regexp.MustCompile(`^(?:constraint failed: )?(.*?)(?: \(\d+\))?$`)

func explain(code int, text, path string) sql.Problem {
	switch code {
	case busy, locked, protocol:
		return sql.Problem{Code: sql.CodeLocked, Passing: true, WayOut: "see which other process writes to " + path + ", or reads from it for long; `lockTimeout` of the connection is how long it is waited for"}
	case interrupt:
		return sql.Problem{Code: sql.CodeTimeout, Passing: true, Broken: true, WayOut: "see what keeps the database busy; `statementTimeout` of the connection is how long writing may take"}
	case readOnly:
		return sql.Problem{Code: sql.CodeReadOnly, WayOut: "let the process write to " + path + " and its directory"}
	case full:
		return sql.Problem{Code: sql.CodeFull, Passing: true, Broken: true, WayOut: "make room on the disk, or raise max_page_count"}
	case cannotOpen:
		return sql.Problem{Code: sql.CodeUnreachable, Passing: true, Broken: true, WayOut: "see that the directory of " + path + " is there and may be written to"}
	case perm, auth:
		return sql.Problem{Code: sql.CodePrivilege, WayOut: "let the process write to " + path}
	case corrupt, notADB:
		return sql.Problem{Code: sql.CodeDatabase, Broken: true, WayOut: "the file is damaged or no SQLite database: put back a copy, or correct the path"}
	case constraint:
		return sql.Problem{Code: sql.CodeConstraint, Data: true, WayOut: sql.WayOutRow}
	case tooBig, mismatch:
		return sql.Problem{Code: sql.CodeValue, Data: true, WayOut: sql.WayOutRow}
	case ioError, noMemory:
		return sql.Problem{Code: sql.CodeServer, Passing: true, Broken: true, WayOut: "see the disk of " + path}
	case schema:
		return sql.Problem{Code: sql.CodeServer, Passing: true, Broken: true, WayOut: "the tables were changed meanwhile: it is tried again"}
	case generic:
		return statementProblem(text)
	}
	return sql.Problem{Code: sql.CodeServer, Broken: true, WayOut: "see " + path}
}

// statementProblem tells by its text what a statement fails on: there is one code for all.
func statementProblem(text string) sql.Problem {
	switch {
	case strings.Contains(text, "no such table"):
		return sql.Problem{Code: sql.CodeTable, WayOut: "create the table, or let it be made: `createTable: true`"}
	case strings.Contains(text, "no column named"), strings.Contains(text, "no such column"):
		return sql.Problem{Code: sql.CodeColumn, WayOut: "add the column to the table, or take it out of the sink's schema, then start again"}
	case strings.Contains(text, "ON CONFLICT clause does not match"):
		return sql.Problem{Code: sql.CodeKey, WayOut: "create a unique index on the columns of `key`"}
	}
	return sql.Problem{Code: sql.CodeStatement, WayOut: "see that the table and the sink's statement go together"}
}
