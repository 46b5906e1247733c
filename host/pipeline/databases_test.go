package pipeline

import (
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/host/job"
	sqlsink "github.com/wasmill/wasmill/host/sink/sql"
)

// TestDatabaseSettings: what a connection to a database says is read strictly.
func TestDatabaseSettings(t *testing.T) {
	const url = `"url":"postgres://u:p@h/d"`
	for name, c := range map[string]struct {
		kind, settings string
		limits         sqlsink.Limits
		says           string
	}{
		"postgres":            {kind: "postgres", settings: `{` + url + `}`},
		"sqlite":              {kind: "sqlite", settings: `{"path":"a.db"}`},
		"timeouts":            {kind: "postgres", settings: `{` + url + `,"connectTimeout":"2s","lockTimeout":"1m30s","statementTimeout":"1h"}`, limits: sqlsink.Limits{Connect: 2 * time.Second, Lock: 90 * time.Second, Statement: time.Hour}},
		"timeouts of sqlite":  {kind: "sqlite", settings: `{"path":"a.db","lockTimeout":"500ms","statementTimeout":"10m"}`, limits: sqlsink.Limits{Lock: 500 * time.Millisecond, Statement: 10 * time.Minute}},
		"a number":            {kind: "postgres", settings: `{` + url + `,"lockTimeout":30}`, says: "lockTimeout"},
		"no unit":             {kind: "postgres", settings: `{` + url + `,"lockTimeout":"30"}`, says: `lockTimeout: "30" is not a duration such as 30s`},
		"empty":               {kind: "postgres", settings: `{` + url + `,"statementTimeout":""}`, says: `statementTimeout: "" is not a duration`},
		"negative":            {kind: "postgres", settings: `{` + url + `,"connectTimeout":"-1s"}`, says: "connectTimeout: -1s is not between 100ms and 24h"},
		"too short":           {kind: "sqlite", settings: `{"path":"a.db","lockTimeout":"99ms"}`, says: "lockTimeout: 99ms is not between"},
		"too long":            {kind: "sqlite", settings: `{"path":"a.db","statementTimeout":"25h"}`, says: "statementTimeout: 25h0m0s is not between"},
		"connecting a file":   {kind: "sqlite", settings: `{"path":"a.db","connectTimeout":"1s"}`, says: "connectTimeout is for a server"},
		"misspelt":            {kind: "postgres", settings: `{` + url + `,"lockTimeOut2":"1s"}`, says: "lockTimeOut2"},
		"a path to postgres":  {kind: "postgres", settings: `{` + url + `,"path":"a.db"}`, says: "has a url, and no path"},
		"nothing":             {kind: "sqlite", settings: `{}`, says: "path is missing"},
		"a url to sqlite":     {kind: "sqlite", settings: `{"path":"a.db",` + url + `}`, says: "has a path, and no url"},
		"postgres without it": {kind: "postgres", settings: `{}`, says: "url is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			db, limits, err := databaseOf("db", c.kind, "/jobs", []byte(c.settings))
			if again := CheckConnection("db", c.kind, []byte(c.settings)); (again == nil) != (err == nil) {
				t.Errorf("validate says %v, a start says %v", again, err)
			}
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) || db != nil {
					t.Fatalf("%v, want %q", err, c.says)
				}
				return
			}
			if err != nil || db.Kind() != c.kind || limits != c.limits {
				t.Fatalf("%v, %v, %v", db, limits, err)
			}
		})
	}
}

// TestStatementMistakes: a mistake in a statement is said of the sink that has it, and with its place when the job file is read.
func TestStatementMistakes(t *testing.T) {
	text := []byte("apiVersion: wasmill/v1\nkind: Job\nmetadata: {name: two}\nspec:\n  checkpoint: ./checkpoint\n  trigger: {availableNow: true}\n" +
		"  connections: {db: {sqlite: {path: ./out.db}}}\n  sources: [{name: lines, files: {path: ./in, format: jsonl}}]\n  sinks:\n" +
		"    - {name: rows, from: [lines], sqlite: {connection: db, table: t, schema: {id: int64}, createTable: true}}\n" +
		"    - {name: counts, from: [lines], sqlite: {connection: db, schema: {id: int64}, statement: insert into n values (:di)}}\n")
	p := newPlace(t)
	says := func(err error, says string) {
		t.Helper()
		if err == nil || err.Error() != says {
			t.Errorf("%v, want %s", err, says)
		}
	}
	const mistake = "at 1:23 of the statement: parameter :di: the schema has no such column (a colon that is none of a parameter has a blank behind it)"
	_, err := job.Parse("job.yaml", text, job.Env{Dir: p.dir, CheckStatement: CheckStatement})
	says(err, "job.yaml:11:94: spec.sinks[1].sqlite.statement: "+mistake)
	j, err := job.Parse("job.yaml", text, job.Env{Dir: p.dir})
	if err != nil {
		t.Fatal(err)
	}
	says(p.run(j), "connection db: sink counts: "+mistake)
}
