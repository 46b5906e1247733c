package sql_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/wasmill/wasmill/host/sink/sql"
	"github.com/wasmill/wasmill/host/sink/sql/postgres"
)

// TestExplain: what PostgreSQL says in codes that no test can bring about.
func TestExplain(t *testing.T) {
	db, err := postgres.New("db", "postgres://u@h/d")
	must(t, err)
	for state, want := range map[string]sql.Problem{
		"40001": {Code: sql.CodeServer, Passing: true},
		"40P01": {Code: sql.CodeServer, Passing: true},
		"08P01": {Code: sql.CodeUnreachable, Passing: true, WayOut: "PgBouncer"},
		"53100": {Code: sql.CodeFull, Passing: true},
		"53200": {Code: sql.CodeServer, Passing: true},
		"53300": {Code: sql.CodeUnreachable, Passing: true},
		"57P01": {Code: sql.CodeUnreachable, Passing: true, Broken: true},
		"57P03": {Code: sql.CodeUnreachable, Passing: true, Broken: true},
		"25P03": {Code: sql.CodeServer, Passing: true, Broken: true},
		"58030": {Code: sql.CodeServer, Passing: true},
		"08006": {Code: sql.CodeUnreachable, Passing: true},
		"XX001": {Code: sql.CodeServer},
		"42P07": {Code: sql.CodeStatement},
		"23505": {Code: sql.CodeConstraint, Data: true},
		"22P02": {Code: sql.CodeValue, Data: true},
		"P0001": {Code: sql.CodeConstraint, Data: true},
		"44000": {Code: sql.CodeConstraint, Data: true},
		"":      {Code: sql.CodeServer},
		"ZZZZZ": {Code: sql.CodeServer},
	} {
		severity := "ERROR"
		if want.Broken {
			severity = "FATAL"
		}
		got := db.Explain(fmt.Errorf("wrapped: %w", &pgconn.PgError{Severity: severity, Code: state, Message: "m", Detail: "d", ConstraintName: "c", ColumnName: "n"}))
		if got.Code != want.Code || got.Passing != want.Passing || got.Data != want.Data || got.Broken != want.Broken || got.WayOut == "" || !strings.Contains(got.WayOut, want.WayOut) || got.Detail != "m: d" || got.Column != "n" {
			t.Errorf("%s: %+v, want %+v", state, got, want)
		}
	}
	for _, err := range []error{io.EOF, io.ErrUnexpectedEOF, context.DeadlineExceeded, errors.New("conn closed")} {
		if got := db.Explain(err); !got.Passing || !got.Broken || got.WayOut == "" {
			t.Errorf("%v: %+v", err, got)
		}
	}
	if got := db.Explain(errors.New("what is this")); got.Passing || !got.Broken || got.Code == "" {
		t.Errorf("%+v", got)
	}
}
