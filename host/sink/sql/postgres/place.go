package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/wasmill/wasmill/host/sink/sql"
)

// placed adds where in a user's statement an error of the server is, where the server says it.
func placed(st *sql.Statement, err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return st.Placed(err, int(pg.Position))
	}
	return err
}
