package postgres

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/wasmill/wasmill/host/sink/sql"
)

// Explain implements sql.Database, by the classes of SQLSTATE: appendix A of the server's documentation.
func (d *Database) Explain(err error) sql.Problem {
	if err == nil {
		return sql.Problem{}
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		p := explain(pg)
		p.Absent = pg.Code == "3D000" // invalid_catalog_name
		if row, ok := rowRoutines[pg.Routine]; ok && !p.Data && !p.Passing {
			p = row
		}
		fatal := severity(pg) == "FATAL"
		if fatal && (class(pg) == "22" || class(pg) == "42" && p.Code == sql.CodeStatement) {
			p = sql.Problem{Code: sql.CodeConfig, WayOut: "take the parameter out of the connection's url, or correct it: what the url has beyond libpq's parameters is a setting of the server"}
		}
		p.Column, p.Detail = pg.ColumnName, detail(pg)
		p.Broken = fatal || severity(pg) == "PANIC" || class(pg) == "57"
		return p
	}
	away := sql.Problem{Code: sql.CodeUnreachable, Passing: true, Broken: true, WayOut: "see that the server runs and can be reached at " + d.Place()}
	var ne net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), pgconn.Timeout(err):
		away.Code, away.WayOut = sql.CodeTimeout, "see what keeps the server at "+d.Place()+" from answering"
	case errors.Is(err, errRolledBack):
		return sql.Problem{Code: sql.CodeServer, Passing: true, WayOut: "it is written again"}
	case strings.Contains(err.Error(), "tls error"), strings.Contains(err.Error(), "server refused TLS"):
		away.Code, away.Passing, away.WayOut = sql.CodeAuth, false, "see sslmode, sslrootcert and the server's certificate"
	case errors.As(err, &ne), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
	case errors.As(err, new(*pgconn.ConnectError)):
	case strings.Contains(err.Error(), "conn closed"), strings.Contains(err.Error(), "closed"):
	default:
		return sql.Problem{Code: sql.CodeServer, Broken: true, WayOut: "see the server's log"}
	}
	return away
}

// foreignKey is the SQLSTATE of a foreign key.
const foreignKey = "23503"

// severity is a word of English in every language of the server.
func severity(e *pgconn.PgError) string { return cmp.Or(e.SeverityUnlocalized, e.Severity) }

func class(e *pgconn.PgError) string {
	if len(e.Code) < 2 {
		return ""
	}
	return e.Code[:2]
}

// rowRoutines are the functions of the server that refuse one row under a code that says something else, by the name that an error
// carries in every language: a policy of row security is a lack of privilege, and a RAISE may have any code.
var rowRoutines = map[string]sql.Problem{
	"ExecWithCheckOptions": {
		Code: sql.CodeConstraint, Data: true,
		WayOut: "mend the records, the table's policies (the view pg_policies has them) or the transform and start again, or set such records aside by `errors: {policy: dead-letter, deadLetters: <sink>}`",
	},
	"exec_stmt_raise": {Code: sql.CodeConstraint, Data: true, WayOut: sql.WayOutRow},
}

// states are single codes that say more than their class.
var states = map[string]sql.Problem{
	"08P01": {Code: sql.CodeUnreachable, Passing: true, WayOut: "see that the url names a PostgreSQL server; a pooler on the way, such as PgBouncer, must pool sessions"},
	"21000": {
		Code: sql.CodeValue, Data: true, WayOut: sql.WayOutRow,
		Together: "two keys of the batch are one in the table: a trigger changes the key as it is written; let the transform write keys in the form that the table keeps, " +
			"or write row by row with a `statement`: insert .. on conflict .. do update",
	},
	"3D000": {Code: sql.CodeDatabase, WayOut: "create the database, or correct its name in the url"},
	"28000": {Code: sql.CodeAuth, WayOut: "see the role in the url and the server's pg_hba.conf"},
	"28P01": {Code: sql.CodeAuth, WayOut: "see the role and the password in the url, whose special characters are written as %XX, or in PGPASSWORD"},
	"42501": {Code: sql.CodePrivilege, WayOut: "grant the role USAGE on the schema, INSERT on the table, and SELECT, UPDATE and DELETE where the mode is upsert; with sequences also USAGE"},
	"25006": {Code: sql.CodeReadOnly, Passing: true, WayOut: "name the server that takes changes: a standby does not, and neither does a role with default_transaction_read_only"},
	"42P01": {Code: sql.CodeTable, WayOut: "create the table, or let it be made: `createTable: true`"},
	"3F000": {Code: sql.CodeTable, WayOut: "create the schema, or correct the table's name"},
	"42703": {Code: sql.CodeColumn, WayOut: "add the column to the table, or take it out of the sink's schema, then start again"},
	"42804": {Code: sql.CodeType, WayOut: "the table is not what it was when the job started: start again"},
	"22P03": {Code: sql.CodeType, WayOut: "the table is not what it was when the job started: start again"},
	"42P10": {Code: sql.CodeKey, WayOut: "create a unique index on the columns of `key`"},
	"53100": {Code: sql.CodeFull, Passing: true, WayOut: "make room on the server's disk"},
	"53300": {Code: sql.CodeUnreachable, Passing: true, WayOut: "the server has no connection left: close others or raise max_connections"},
	"55P03": {Code: sql.CodeLocked, Passing: true, WayOut: "see in pg_locks who holds the lock, and whether that is another connection of this job, whose sinks can share one; `lockTimeout` of the connection is how long it is waited for"},
	"57014": {Code: sql.CodeTimeout, Passing: true, WayOut: "see in pg_stat_activity what keeps the server busy; `statementTimeout` of the connection is how long a statement may take"},
	"42601": {Code: sql.CodeStatement, WayOut: "correct the sink's statement"},
	"42P18": {Code: sql.CodeStatement, WayOut: "say the type of a parameter with a cast, such as :column::text"},
	"42P08": {Code: sql.CodeStatement, WayOut: "say the type of a parameter with a cast, such as :column::text"},
	"0A000": {Code: sql.CodeStatement, WayOut: "see the server's word for what it does not do with this table"},
}

// classes are what is left, by the first two characters.
var classes = map[string]sql.Problem{
	"08": {Code: sql.CodeUnreachable, Passing: true, WayOut: "see that the server runs and can be reached"},
	"21": {Code: sql.CodeValue, Data: true, WayOut: sql.WayOutRow},
	"22": {Code: sql.CodeValue, Data: true, WayOut: sql.WayOutRow},
	"23": {Code: sql.CodeConstraint, Data: true, WayOut: sql.WayOutRow},
	"25": {Code: sql.CodeServer, Passing: true, WayOut: "it is written again"},
	"28": {Code: sql.CodeAuth, WayOut: "see the role in the url and the server's pg_hba.conf"},
	"40": {Code: sql.CodeServer, Passing: true, WayOut: "it is written again; if this comes often, see who else writes to the table"},
	"42": {Code: sql.CodeStatement, WayOut: "see that the table and the sink's statement go together"},
	"44": {Code: sql.CodeConstraint, Data: true, WayOut: sql.WayOutRow},
	"53": {Code: sql.CodeServer, Passing: true, WayOut: "the server lacks something: see its log"},
	"54": {Code: sql.CodeValue, Data: true, WayOut: sql.WayOutRow},
	"55": {Code: sql.CodeServer, Passing: true, WayOut: "see the server's log"},
	"57": {Code: sql.CodeUnreachable, Passing: true, WayOut: "the server ended the connection or is starting: see its log"},
	"58": {Code: sql.CodeServer, Passing: true, WayOut: "see the server's log"},
	"P0": {Code: sql.CodeConstraint, Data: true, WayOut: sql.WayOutRow}, // a trigger's RAISE
	"XX": {Code: sql.CodeServer, Passing: false, WayOut: "see the server's log"},
}

func explain(e *pgconn.PgError) sql.Problem {
	if p, ok := states[e.Code]; ok {
		return p
	}
	if p, ok := classes[class(e)]; ok {
		return p
	}
	return sql.Problem{Code: sql.CodeServer, WayOut: "see the server's log"}
}

// detail is the server's word without what stands elsewhere.
func detail(e *pgconn.PgError) string {
	text := e.Message
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}
