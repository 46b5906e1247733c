package cli_test

import (
	dbsql "database/sql"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite" // the driver
)

// queryFile demands the first column of what a query gives, with spaces between: sql FILE QUERY WANT
func queryFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: sql FILE QUERY WANT")
	}
	db, err := dbsql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	defer db.Close()
	found, err := db.Query(args[1])
	ts.Check(err)
	defer found.Close()
	var got []string
	for found.Next() {
		var text string
		ts.Check(found.Scan(&text))
		got = append(got, text)
	}
	ts.Check(found.Err())
	if text := strings.Join(got, " "); text != args[2] {
		ts.Fatalf("%s gives %q, want %q", args[1], text, args[2])
	}
}
