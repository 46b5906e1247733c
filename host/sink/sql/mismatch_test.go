package sql_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// loose makes a collation by which "a" and "A" are equal.
const loose = "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false); "

// TestTablesThatDoNotFit: a table and a sink that do not go together are found out when the target is opened, and when it is
// only looked at, by a job that has not run yet, too.
func TestTablesThatDoNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		only, ddl string
		sink      sql.Sink
		schema    string
		code      string
		says      []string
	}{
		"no table":           {"", "SELECT 1", sql.Sink{}, "a: int32", sql.CodeTable, []string{"createTable"}},
		"no schema":          {"postgres", "SELECT 1", sql.Sink{Table: "nowhere.x"}, "a: int32", sql.CodeTable, []string{"nowhere.x"}},
		"another case":       {"postgres", "CREATE TABLE x (a integer)", sql.Sink{Table: "X"}, "a: int32", sql.CodeTable, []string{"called x"}},
		"no column":          {"", "CREATE TABLE x (a integer)", sql.Sink{}, "a: int32, b: string", sql.CodeColumn, []string{`"b"`}},
		"column's case":      {"", "CREATE TABLE x (a integer)", sql.Sink{}, "A: int32", sql.CodeColumn, []string{`called "a"`}},
		"needed column":      {"", "CREATE TABLE x (a integer, b text NOT NULL)", sql.Sink{}, "a: int32", sql.CodeColumn, []string{`"b"`, "no default"}},
		"computed":           {"", "CREATE TABLE x (a integer, b integer GENERATED ALWAYS AS (a + 1) STORED)", sql.Sink{}, "a: int32, b: int32", sql.CodeColumn, []string{"computes"}},
		"identity":           {"postgres", "CREATE TABLE x (a integer GENERATED ALWAYS AS IDENTITY, b text)", sql.Sink{}, "a: int32", sql.CodeColumn, []string{"computes"}},
		"no key":             {"", "CREATE TABLE x (a integer, b text)", sql.Sink{Key: []string{"a"}}, "a: int32", sql.CodeKey, []string{"(a)"}},
		"another key":        {"", "CREATE TABLE x (a integer, b integer, PRIMARY KEY (a, b))", sql.Sink{Key: []string{"a"}}, "a: int32, b: int32", sql.CodeKey, nil},
		"partial key":        {"", "CREATE TABLE x (a integer, b text); CREATE UNIQUE INDEX u ON x (a) WHERE b IS NULL", sql.Sink{Key: []string{"a"}}, "a: int32, b: string", sql.CodeKey, nil},
		"deferrable key":     {"postgres", "CREATE TABLE x (a integer PRIMARY KEY DEFERRABLE)", sql.Sink{Key: []string{"a"}}, "a: int32", sql.CodeKey, nil},
		"key of any case":    {"sqlite", "CREATE TABLE x (a text COLLATE NOCASE PRIMARY KEY)", sql.Sink{Key: []string{"a"}}, "a: string", sql.CodeKey, nil},
		"padded key":         {"postgres", "CREATE TABLE x (a char(3) PRIMARY KEY)", sql.Sink{Key: []string{"a"}}, "a: string", sql.CodeType, []string{"equal"}},
		"json as key":        {"postgres", "CREATE TABLE x (a jsonb PRIMARY KEY)", sql.Sink{Key: []string{"a"}}, "a: string", sql.CodeType, []string{"equal"}},
		"loose key":          {"postgres", loose + "CREATE TABLE x (a text COLLATE loose PRIMARY KEY)", sql.Sink{Key: []string{"a"}}, "a: string", sql.CodeType, []string{"equal"}},
		"loose index":        {"postgres", loose + "CREATE TABLE x (a text); CREATE UNIQUE INDEX u ON x (a COLLATE loose)", sql.Sink{Key: []string{"a"}}, "a: string", sql.CodeType, []string{"equal"}},
		"loose domain":       {"postgres", loose + "CREATE DOMAIN d AS text COLLATE loose; CREATE TABLE x (a d PRIMARY KEY)", sql.Sink{Key: []string{"a"}}, "a: string", sql.CodeType, []string{"equal"}},
		"small integer":      {"postgres", "CREATE TABLE x (a integer)", sql.Sink{}, "a: int64", sql.CodeType, []string{`"a"`, "integer", "int64"}},
		"fewer digits":       {"postgres", "CREATE TABLE x (a numeric(9,2))", sql.Sink{}, "a: decimal(9,3)", sql.CodeType, []string{"fewer digits"}},
		"rounded time":       {"postgres", "CREATE TABLE x (a timestamptz(3))", sql.Sink{}, "a: timestamp", sql.CodeType, []string{"rounds"}},
		"rounded clock":      {"postgres", "CREATE TABLE x (a timestamp(0))", sql.Sink{}, "a: timestamp_ntz", sql.CodeType, []string{"rounds"}},
		"no instants":        {"postgres", "CREATE TABLE x (a timestamptz)", sql.Sink{}, "a: timestamp_ntz", sql.CodeType, []string{"timestamp_ntz", "instants"}},
		"no such values":     {"postgres", "CREATE TABLE x (a inet)", sql.Sink{}, "a: string", sql.CodeType, []string{"inet", "statement"}},
		"text":               {"", "CREATE TABLE x (a text)", sql.Sink{}, "a: int32", sql.CodeType, nil},
		"lossy decimal":      {"sqlite", "CREATE TABLE x (a DECIMAL(18,2))", sql.Sink{}, "a: decimal(18,2)", sql.CodeType, []string{"15 digits"}},
		"lossy integer":      {"sqlite", "CREATE TABLE x (a REAL)", sql.Sink{}, "a: int64", sql.CodeType, nil},
		"strict":             {"sqlite", "CREATE TABLE x (a TEXT) STRICT", sql.Sink{}, "a: binary", sql.CodeType, []string{"strict"}},
		"converted text":     {"sqlite", "CREATE TABLE x (a NUMERIC)", sql.Sink{}, "a: string", sql.CodeType, nil},
		"a type for texts":   {"sqlite", "CREATE TABLE x (a STRING)", sql.Sink{}, "a: string", sql.CodeType, []string{"STRING", "makes numbers of them", "TEXT keeps them"}},
		"no table but":       {"postgres", "CREATE SEQUENCE x", sql.Sink{}, "a: int32", sql.CodeTable, []string{"something else"}},
		"unlogged":           {"postgres", "CREATE UNLOGGED TABLE x (a integer)", sql.Sink{}, "a: int32", sql.CodeUnlogged, []string{"crash", "ALTER TABLE x SET LOGGED", "idempotence: none"}},
		"unlogged partition": {"postgres", "CREATE TABLE x (a integer) PARTITION BY LIST (a); CREATE UNLOGGED TABLE p PARTITION OF x FOR VALUES IN (1)", sql.Sink{}, "a: int32", sql.CodeUnlogged, []string{"partition"}},
		"unlogged epochs":    {"postgres", "CREATE TABLE x (a integer); " + strings.Replace(sql.EpochTable, "TABLE", "UNLOGGED TABLE", 1), sql.Sink{}, "a: int32", sql.CodeUnlogged, []string{"table wasmill_epoch", "ALTER TABLE wasmill_epoch SET LOGGED"}},
		"bad statement":      {"", "CREATE TABLE x (a integer)", sql.Sink{Statement: "insert into x values (:a) nonsense ("}, "a: int32", sql.CodeStatement, []string{"statement"}},
		"server's place":     {"postgres", "CREATE TABLE x (a integer)", sql.Sink{Statement: "insert into x (a) -- ö\n values (:a), (:a + nope)"}, "a: int32", sql.CodeColumn, []string{`"nope"`, ", at 2:21 of the statement"}},
		"statement's table":  {"", "SELECT 1", sql.Sink{Statement: "insert into y values (:a)"}, "a: int32", sql.CodeTable, []string{"the table that the statement names"}},
		"keyed statement":    {"", "CREATE TABLE x (a integer PRIMARY KEY)", sql.Sink{Statement: "insert into y values (:a)", Key: []string{"a"}}, "a: int32", sql.CodeTable, []string{"the table that the statement names"}},
		"another's table":    {"sqlite", "CREATE TABLE x (a integer REFERENCES z (b))", sql.Sink{}, "a: int32", sql.CodeTable, []string{"a foreign key", "z"}},
		"own columns":        {"", "CREATE TABLE x (b integer)", sql.Sink{OwnColumns: true}, "a: int32, b: int32", sql.CodeColumn, []string{"`wasmill run --update rows`, and `--allow-changes`"}},
		"own, case":          {"", "CREATE TABLE x (A integer)", sql.Sink{OwnColumns: true}, "AB: int32", sql.CodeColumn, []string{"`wasmill run --update rows`, and `--allow-changes`"}},
		"own, needed":        {"", "CREATE TABLE x (a integer, b text NOT NULL)", sql.Sink{OwnColumns: true}, "a: int32", sql.CodeColumn, []string{"`wasmill run --update rows`, and `--allow-changes`"}},
		"own, type":          {"", "CREATE TABLE x (a text)", sql.Sink{OwnColumns: true}, "a: int32", sql.CodeType, []string{"`wasmill run --update rows`, and `--allow-changes`"}},
		"statement's column": {"", "CREATE TABLE x (a integer)", sql.Sink{Statement: "insert into x (b) values (:a)"}, "a: int32", sql.CodeColumn, nil},
		"long name":          {"postgres", "SELECT 1", sql.Sink{Create: true}, strings.Repeat("n", 64) + ": int32", sql.CodeColumn, []string{"63"}},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, w *world) {
				if c.only != "" && c.only != w.kind {
					t.Skip("not of " + w.kind)
				}
				w.script(t, c.ddl)
				s := c.sink
				if s.Table == "" && !(s.Statement != "" && s.Key == nil) {
					s.Table = "x"
				}
				s.Schema = schema(t, c.schema)
				target := w.target(t, s)
				if !s.Create {
					_, err := target.Inspect(t.Context(), sink.Owner{Job: "test"})
					wantFault(t, err, c.code, c.says...)
				}
				_, err := target.Open(t.Context(), owner())
				f := wantFault(t, err, c.code, c.says...)
				if f.Passes {
					t.Errorf("%v passes", f)
				}
				if name == "another's table" && strings.Contains(f.Hint(), "createTable") || s.OwnColumns && strings.Contains(f.Hint(), "sink's schema") || s.Statement != "" && strings.Contains(f.Hint(), "createTable") {
					t.Errorf("the way out is another sink's: %s", f.Hint())
				}
			})
		})
	}
}

// TestOtherTypes: columns that are wider than they need be, or of another kind, take the values exactly.
func TestOtherTypes(t *testing.T) {
	for name, c := range map[string]struct {
		only, ddl, schema, in, query, want string
	}{
		"wider":          {"postgres", "CREATE TABLE x (a bigint, b numeric, c numeric(40,5), d double precision, e varchar)", "a: int16, b: int64, c: decimal(9,2), d: float, e: string", `{"a":-7,"b":-9223372036854775808,"c":-1234567.89,"d":0.5,"e":"x"}`, "SELECT concat_ws(' ', a, b, c, d, e) FROM x", "-7 -9223372036854775808 -1234567.89000 0.5 x"},
		"without zone":   {"postgres", "CREATE TABLE x (a timestamp)", "a: timestamp", `{"a":"2013-01-31T10:00:00.25+02:00"}`, "SELECT a::text FROM x", "2013-01-31 08:00:00.25"},
		"of a clock":     {"postgres", "CREATE TABLE x (a timestamp)", "a: timestamp_ntz", `{"a":"2013-01-31 10:00:00.25"}`, "SELECT a::text FROM x", "2013-01-31 10:00:00.25"},
		"defaults":       {"", "CREATE TABLE x (a integer, b text DEFAULT 'new')", "a: int32", `{"a":1}`, "SELECT a || b FROM x", "1new"},
		"identity":       {"postgres", "CREATE TABLE x (a integer, b integer GENERATED ALWAYS AS IDENTITY)", "a: int32", `{"a":5}`, "SELECT concat(a, b) FROM x", "51"},
		"a view":         {"postgres", "CREATE TABLE y (a integer); CREATE VIEW x AS SELECT a FROM y", "a: int32", `{"a":5}`, "SELECT a FROM y", "5"},
		"row security":   {"postgres", "CREATE TABLE x (a integer); ALTER TABLE x ENABLE ROW LEVEL SECURITY; ALTER TABLE x FORCE ROW LEVEL SECURITY; CREATE POLICY p ON x USING (true)", "a: int32", `{"a":5}`, "SELECT a FROM x", "5"},
		"odd names":      {"", `CREATE TABLE "x" ("se""lect" integer, "É" text)`, `"se\"lect": int32, "É": string`, `{"se\"lect":1,"É":"é"}`, `SELECT "se""lect" || "É" FROM x`, "1é"},
		"epochs":         {"sqlite", "CREATE TABLE x (a INTEGER, b INT)", "a: timestamp, b: date", `{"a":"1970-01-01T00:00:01.5Z","b":"1970-01-11"}`, "SELECT a || ' ' || b || typeof(a) FROM x", "1500000 10integer"},
		"clock's epochs": {"sqlite", "CREATE TABLE x (a INTEGER, b TIMESTAMP)", "a: timestamp_ntz, b: timestamp_ntz", `{"a":"1970-01-01T00:00:01.5","b":"1970-01-01 00:00:01.5"}`, "SELECT a || ' ' || b || typeof(a) FROM x", "1500000 1970-01-01T00:00:01.500000integer"},
		"iso":            {"sqlite", "CREATE TABLE x (a DATETIME, b DATE)", "a: timestamp, b: date", `{"a":"1970-01-01T00:00:01.5Z","b":"1970-01-11"}`, "SELECT a || ' ' || b || typeof(a) FROM x", "1970-01-01T00:00:01.500000Z 1970-01-11text"},
		"strict":         {"sqlite", "CREATE TABLE x (a INT, b REAL, c TEXT, d BLOB, e ANY) STRICT", "a: int8, b: int32, c: decimal(38,2), d: binary, e: string", `{"a":1,"b":2,"c":3,"d":"AAA=","e":"05"}`, "SELECT a || b || c || hex(d) || e || typeof(e) FROM x", "12.03.00000005text"},
		"numeric":        {"sqlite", "CREATE TABLE x (a DECIMAL(15,2))", "a: decimal(15,2)", `{"a":1234567890123.25}`, "SELECT a || typeof(a) FROM x", "1234567890123.25real"},
		"without type":   {"sqlite", "CREATE TABLE x (a, b)", "a: string, b: decimal(9,2)", `{"a":"01","b":1}`, "SELECT a || typeof(b) FROM x", "01text"},
		"made nested":    {"sqlite", "CREATE TABLE x (a TEXT)", "a: struct<b: list<int32>>", `{"a":{"b":[1,null]}}`, "SELECT a FROM x", `{"b":[1,null]}`},
		"nested as text": {"postgres", "CREATE TABLE x (a text, b json)", "a: list<int32>, b: map<string, string>", `{"a":[1],"b":{"k":"v"}}`, "SELECT concat(a, b) FROM x", `[1]{"k":"v"}`},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, w *world) {
				if c.only != "" && c.only != w.kind {
					t.Skip("not of " + w.kind)
				}
				w.script(t, c.ddl)
				target := w.open(t, sql.Sink{Table: "x", Schema: schema(t, c.schema)})
				publish(t, target, 0, values(c.in))
				if got := w.texts(t, c.query); len(got) != 1 || got[0] != c.want {
					t.Fatalf("%q, want %q", got, c.want)
				}
			})
		})
	}
}

// TestLengths: what a type says of length or digits cuts and rounds nothing, whichever way rows go.
func TestLengths(t *testing.T) {
	const (
		ddl = "CREATE DOMAIN five AS char(5); CREATE DOMAIN deep AS five; CREATE TYPE mood AS ENUM ('fine day', 'x'); " +
			"CREATE TABLE x (id integer PRIMARY KEY, a char(5), b varchar(5), c five, d deep, e char, f mood, g numeric(9,2), h numeric, i timestamp(6), j jsonb, k bpchar)"
		columns = "id: int32, a: string, b: string, c: string, d: string, e: string, f: string, g: decimal(9,2), h: decimal(38,9), i: timestamp_ntz, j: string, k: string"
		in      = `{"id":1,"a":"abcde","b":"vwxyz","c":"fghij","d":"äöüß€","e":"q","f":"fine day","g":1234567.89,"h":12345678901234567890.123456789,"i":"2020-01-01T00:00:00.123456","j":"[1.50]","k":"long text"}`
		want    = "1 abcde vwxyz fghij äöüß€ q fine day 1234567.89 12345678901234567890.123456789 2020-01-01 00:00:00.123456 [1.50] long text"
	)
	for name, c := range map[string]struct {
		after     string
		key       []string
		statement string
	}{
		"copy":         {},
		"upsert":       {key: []string{"id"}},
		"row security": {after: "ALTER TABLE x ENABLE ROW LEVEL SECURITY"},
		"a view":       {after: "ALTER TABLE x RENAME TO y; CREATE VIEW x AS SELECT * FROM y"},
		"a statement":  {statement: "insert into x values (:id, :a, :b, :c, :d, :e, :f, :g, :h, :i, :j, :k)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "postgres")
			w.script(t, ddl)
			if c.after != "" {
				w.script(t, c.after)
			}
			target := w.open(t, sql.Sink{Table: "x", Schema: schema(t, columns), Key: c.key, Statement: c.statement})
			publish(t, target, 0, values(in))
			if diff := cmp.Diff([]string{want}, w.texts(t, "SELECT concat_ws(' ', id, a::text, b, c::text, d::text, e::text, f, g, h, i, j, k::text) FROM x")); diff != "" {
				t.Fatalf("the table has (-want +got):\n%s", diff)
			}
			if c.statement != "" {
				return // the server itself refuses what is too long
			}
			long := values(`{"id":2,"a":"abcdef"}`, `{"id":3,"b":"vwxyz "}`, `{"id":4,"c":"fghijk"}`, `{"id":5,"d":"fghij "}`, `{"id":6,"e":"qq"}`)
			_, err := target.Stage(t.Context(), output(1, "rows", laneOf(t, target, "rows", long)))
			wantRefusals(t, err, map[int64]string{0: "length", 1: "length", 2: "length", 3: "length", 4: "length"})
		})
	}
}

// TestStatementCasts: the values of a statement have the types of the schema, and texts fit where a quoted literal does.
func TestStatementCasts(t *testing.T) {
	w := newWorld(t, "postgres")
	w.script(t, "CREATE TABLE x (a inet, b integer, c numeric, d jsonb, e text, f timestamptz, g timestamp)")
	target := w.open(t, sql.Sink{
		Schema:    schema(t, "a: string, b: int64, c: decimal(9,2), d: list<int32>, f: timestamp, g: timestamp_ntz"),
		Statement: "insert into x values (:a, :b + 1, coalesce(:c, 7), :d, upper(:a), :f, :g)",
	})
	publish(t, target, 0, values(`{"a":"::1","b":41,"c":null,"d":[1],"f":"2000-01-01T00:00:00Z","g":"2000-01-01T00:00:01"}`))
	if diff := cmp.Diff([]string{"::1 42 7 [1] ::1 946684800 2000-01-01 00:00:01"}, w.texts(t, "SELECT concat_ws(' ', host(a), b, c, d, e, extract(epoch FROM f)::bigint, g) FROM x")); diff != "" {
		t.Fatal(diff)
	}
}

// TestColumns: a table's own columns as a schema.
func TestColumns(t *testing.T) {
	for kind, c := range map[string]struct{ ddl, want, keyed string }{
		"postgres": {
			`CREATE TABLE x (id serial, a smallint NOT NULL, b integer, c bigint, d real, e double precision, f numeric(9,2), g text, h varchar(3), i bytea,
	j boolean, k date, l timestamptz, m timestamp, n uuid, o text DEFAULT 'x', p integer GENERATED ALWAYS AS (b + 1) STORED)`,
			"a int16 not null, b int32, c int64, d float, e double, f decimal(9,2), g string, h string, i binary, j boolean, k date, l timestamp, m timestamp_ntz, n string",
			"CREATE TABLE z (id serial PRIMARY KEY, n integer DEFAULT 5, v text)",
		},
		"sqlite": {
			`CREATE TABLE x (id INTEGER PRIMARY KEY, a BIGINT NOT NULL, b VARCHAR(9), c REAL, d BLOB, e BOOLEAN, f DATE, g DATETIME, h DECIMAL(9,2), i TEXT DEFAULT 'x')`,
			"a int64 not null, b string, c double, d binary, e boolean, f date, g timestamp, h decimal(9,2)",
			"CREATE TABLE z (id INTEGER PRIMARY KEY, n INTEGER DEFAULT 5, v TEXT)",
		},
	} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, kind)
			w.run(t, c.ddl)
			columns, err := sql.Columns(t.Context(), w.db, testLimits, "db", "x", nil)
			must(t, err)
			var got []string
			for _, c := range columns {
				got = append(got, c.Name+" "+c.Type.String())
			}
			if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" {
				t.Fatal(diff)
			}
			s, err := rows.NewSchema(columns)
			must(t, err)
			_, err = w.target(t, sql.Sink{Table: "x", Schema: s}).Open(t.Context(), owner())
			must(t, err)
			w.run(t, c.keyed)
			columns, err = sql.Columns(t.Context(), w.db, testLimits, "db", "z", []string{"id"})
			must(t, err)
			if s, err = rows.NewSchema(columns); err != nil || s.Len() != 2 || s.Index("id") != 0 || s.Index("v") != 1 {
				t.Fatalf("the key's column is filled by the database, and left out: %v, %v", columns, err)
			}
			upsert := w.open(t, sql.Sink{Table: "z", Schema: s, Key: []string{"id"}}, func(cfg *sql.Config) { cfg.Connection = "keyed" })
			publish(t, upsert, 0, values(`{"id":7,"v":"a"}`, `{"id":7,"v":"b"}`))
			if diff := cmp.Diff([]string{"7b"}, w.texts(t, "SELECT id || v FROM z")); diff != "" {
				t.Fatal(diff)
			}
			_, err = sql.Columns(t.Context(), w.db, testLimits, "db", "nope", nil)
			wantFault(t, err, sql.CodeTable)
			w.run(t, "CREATE TABLE y (a numeric)")
			_, err = sql.Columns(t.Context(), w.db, testLimits, "db", "y", nil)
			wantFault(t, err, sql.CodeType, `"a"`)
		})
	}
}
