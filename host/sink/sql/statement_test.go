package sql_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/sink/sql"
)

func TestParseStatement(t *testing.T) {
	s := schema(t, `a: int32, b: string, "odd name": string, "q\"uote": string`)
	for text, want := range map[string]struct {
		sql     string
		columns []int
	}{
		"insert into t values (:a, :b)":                                            {"insert into t values ($1, $2)", []int{0, 1}},
		"INSERT INTO t VALUES (:b, :a, :b);  -- :end":                              {"INSERT INTO t VALUES ($1, $2, $3)  -- :end", []int{1, 0, 1}},
		`insert into t values (:"odd name", :"q""uote")`:                           {"insert into t values ($1, $2)", []int{2, 3}},
		"insert into t values (:a::bigint, ':b', \":b\", E'\\':b' )":               {"insert into t values ($1::bigint, ':b', \":b\", E'\\':b' )", []int{0}},
		"insert into t select $$ :b $$, $x$ :b $ $x$, :a":                          {"insert into t select $$ :b $$, $x$ :b $ $x$, $1", []int{0}},
		"/* :b /* nested */ */ update t set a=:a -- :b\n where b = :b":             {"/* :b /* nested */ */ update t set a=$1 -- :b\n where b = $2", []int{0, 1}},
		"select f(x := :a, y => it$s, z := 'it''s :b')":                            {"select f(x := $1, y => it$s, z := 'it''s :b')", []int{0}},
		"with n as (select 1) insert into t(a) values (:a) on conflict do nothing": {"with n as (select 1) insert into t(a) values ($1) on conflict do nothing", []int{0}},
	} {
		got, err := sql.ParseStatement(text, s)
		if err != nil || got.SQL != want.sql || !slices.Equal(got.Columns, want.columns) {
			t.Errorf("%s: %q %v %v, want %q %v", text, got.SQL, got.Columns, err, want.sql, want.columns)
		}
	}
	for text, says := range map[string]string{
		"insert into t values (1)":            "no parameter",
		"insert into t values (:c)":           ":c",
		"insert into t values (:a); select 1": "more than one",
		"commit":                              "no parameter",
		"rollback to :a":                      `"rollback"`,
		"insert into t values (:a, 'x":        "not closed",
		"insert into t values (:a, \"x":       "not closed",
		"insert into t values (:a, $q$ x":     "not closed",
		"insert into t values (:a) /* x":      "not closed",
		"insert into t values (:a, $1)":       "parameter $1",
		"insert into t values (:a, x[1: 2])":  "without a name",
		"insert into t values (:a, \x00)":     "zero byte",
		"insert into t values (:\"a)":         "not closed",
	} {
		if _, err := sql.ParseStatement(text, s); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

func FuzzParseStatement(f *testing.F) {
	for _, s := range []string{"insert into t values (:a, 'x''', E'\\'', $$ $$, :\"a\")", "update t set a = :a::int /* /* */ */ -- x", "::::a$1$a$$a$"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		st, err := sql.ParseStatement(text, schema(t, "a: int32"))
		if err == nil && (len(st.Columns) == 0 || !strings.Contains(st.SQL, "$1")) {
			t.Errorf("%q became %q with %v", text, st.SQL, st.Columns)
		}
	})
}

func TestParseName(t *testing.T) {
	for text, want := range map[string]string{
		"orders": `"orders"`, "public.Orders": `"public"."Orders"`, `"a.b"."c""d"`: `"a.b"."c""d"`, `x."y z"`: `"x"."y z"`,
	} {
		if n, err := sql.ParseName(text); err != nil || n.Quoted() != want {
			t.Errorf("%s: %s %v, want %s", text, n.Quoted(), err, want)
		}
	}
	for _, text := range []string{"", ".", "a.", ".a", "a.b.c", `"a`, `"a"b`, `""`, "a\x00", "\xff"} {
		if n, err := sql.ParseName(text); err == nil {
			t.Errorf("%q is %+v", text, n)
		}
	}
}
