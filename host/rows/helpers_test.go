package rows_test

import (
	"testing"

	"github.com/wasmill/wasmill/host/rows"
)

// schemaOf makes a schema of names and types in turn.
func schemaOf(tb testing.TB, columns ...string) *rows.Schema {
	tb.Helper()
	var list []rows.Column
	for i := 0; i < len(columns); i += 2 {
		typ, err := rows.ParseType(columns[i+1])
		if err != nil {
			tb.Fatal(err)
		}
		list = append(list, rows.Column{Name: columns[i], Type: typ})
	}
	s, err := rows.NewSchema(list)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}
