package sql_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wasmill/wasmill/host/sink/sql"
)

func TestParseStatement(t *testing.T) {
	s := schema(t, `a: int32, b: string, "odd name": string, "q\"uote": string`)
	both, pg, lite := kinds, []string{"postgres"}, []string{"sqlite"}
	for _, c := range []struct {
		kinds     []string
		text, sql string // as for PostgreSQL
		columns   []int
	}{
		{both, "insert into t values (:a, :b)", "insert into t values ($1, $2)", []int{0, 1}},
		{both, "INSERT INTO t VALUES (:b, :a, :b);  -- :end", "INSERT INTO t VALUES ($1, $2, $3)  -- :end", []int{1, 0, 1}},
		{both, `insert into t values (:"odd name", :"q""uote")`, "insert into t values ($1, $2)", []int{2, 3}},
		{both, `insert into t values (:a, ':b ?', ":b""@b", ':b''?', 'x\', :b)`, `insert into t values ($1, ':b ?', ":b""@b", ':b''?', 'x\', $2)`, []int{0, 1}},
		{both, "with n as (select 1) insert into t(a) values (:a) on conflict do nothing", "with n as (select 1) insert into t(a) values ($1) on conflict do nothing", []int{0}},
		{both, "update t set a$b = :a -- ? :b\n where c_$ = :b", "update t set a$b = $1 -- ? :b\n where c_$ = $2", []int{0, 1}},
		// A quote after a word that ends in e begins a text like any other.
		{both, `delete from t where a like'%\' escape'\' and d > date'2000-01-01' and b = :b`, `delete from t where a like'%\' escape'\' and d > date'2000-01-01' and b = $1`, []int{1}},
		{both, `update t set a = 1e'\', b = :b`, `update t set a = 1e'\', b = $1`, []int{1}},
		{both, `update t set a = x$e'\', b = :b`, `update t set a = x$e'\', b = $1`, []int{1}},
		{pg, `insert into t values (:a::bigint, E'\':b', e'\' :b ''' )`, `insert into t values ($1::bigint, E'\':b', e'\' :b ''' )`, []int{0}},
		{pg, "insert into t select $$ :b $$, $x$ :b $ $x$, :a", "insert into t select $$ :b $$, $x$ :b $ $x$, $1", []int{0}},
		{pg, "/* :b /* nested */ :b */ update t set a=:a", "/* :b /* nested */ :b */ update t set a=$1", []int{0}},
		{pg, "select f(x := :a, y => it$s, z := 'it''s :b', a$x$ + :b, b$x$)", "select f(x := $1, y => it$s, z := 'it''s :b', a$x$ + $2, b$x$)", []int{0, 1}},
		{pg, "select :a where j ? 'k' and j @> :b and a[:a] = 1", "select $1 where j ? 'k' and j @> $2 and a[$3] = 1", []int{0, 1, 0}},
		{pg, "select a[1:2], (b)[:], b[ : 2][c[1]: :a], :b", "select a[1:2], (b)[:], b[ : 2][c[1]: $1], $2", []int{0, 1}},
		{lite, "/* :b /* not nested */ update t set a=:a /* ' /**/", "/* :b /* not nested */ update t set a=$1 /* ' /**/", []int{0}},
		{lite, "insert into [t :b] (`a :b``?`, [it's], [\"]) values (:a, x'00', e'\\')", "insert into [t :b] (`a :b``?`, [it's], [\"]) values ($1, x'00', e'\\')", []int{0}},
	} {
		for _, kind := range c.kinds {
			want := c.sql
			if kind == "sqlite" {
				want = regexp.MustCompile(`\$(\d)`).ReplaceAllString(want, "?$1")
			}
			got, err := sql.ParseStatement(kind, c.text, s)
			if err != nil || got.SQL != want || !slices.Equal(got.Columns, c.columns) {
				t.Errorf("%s: %s: %q %v %v, want %q %v", kind, c.text, got.SQL, got.Columns, err, want, c.columns)
			}
		}
	}
	for _, c := range []struct {
		kinds      []string
		text, says string
	}{
		{both, "insert into t values (1)", "no parameter"},
		{both, "insert into t values (:a, :c)", "at 1:27 of the statement: parameter :c"},
		{both, "insert into t\n  values (:a, :c)", "at 2:15 of the statement: parameter :c"},
		{both, "insert into t values (:a); select 1", "more than one"},
		{both, "commit", "no parameter"},
		{both, "rollback to :a", `"rollback"`},
		{both, "insert into t values (:a, 'x", "at 1:27 of the statement: a ' is not closed"},
		{both, "insert into t values (:a, \"x", "not closed"},
		{both, "insert into t values (:a) /* x", "not closed"},
		{both, "insert into t values (:a, $1)", "parameter $1: "},
		{both, "insert into t values (:a, 1$1)", "parameter $1: "},
		{both, "insert into t values (:a, : b)", "without a name"},
		{both, "insert into t values (:a, :1)", "without a name"},
		{both, "insert into t values (:a, a[1], :1)", "without a name"},
		{both, "insert into t values (:a, :", "without a name"},
		{both, "insert into t values (:a, \x00)", "zero byte"},
		{both, "insert into t values (:\"a)", "not closed"},
		{pg, "insert into t values (:a, $1)", "have names here, as :column"},
		{pg, "insert into t values (:a, $q$ x", "not closed"},
		{pg, `insert into t values (:a, e'\')`, "not closed"},
		{pg, "insert into t values (:a) /* /* */", "not closed"},
		{lite, "insert into t values (?, :a)", "at 1:23 of the statement: parameter ?: write it as :name"},
		{lite, "insert into t values (:a, ?2)", "parameter ?2: write it as :name"},
		{lite, "insert into t values (:a, @b)", "parameter @b: write it as :name"},
		{lite, "insert into t values (:a, $b)", "parameter $b: write it as :name"},
		{lite, "insert into t values (:a::text)", "CAST(:column AS type)"},
		{lite, "insert into [t values (:a)", "[ is not closed"},
		{lite, "insert into `t values (:a)", "` is not closed"},
		{[]string{"nosql"}, "insert into t values (:a)", `"nosql"`},
	} {
		for _, kind := range c.kinds {
			if _, err := sql.ParseStatement(kind, c.text, s); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %s: %v, want %q", kind, c.text, err, c.says)
			}
		}
	}
}

// TestPlaceInStatement: what the database says of what it was sent is said of what the user wrote.
func TestPlaceInStatement(t *testing.T) {
	text := "insert into t -- ö\n values (:a, öops(:a),\n :\"odd name\");"
	st, err := sql.ParseStatement("postgres", text, schema(t, `a: int32, "odd name": string`))
	must(t, err)
	for part, want := range map[string]string{"insert": "1:1", "values": "2:2", "$1": "2:10", "öops": "2:14", "$2": "2:19", "$3": "3:2", "),": "2:21"} {
		at := utf8.RuneCountInString(st.SQL[:strings.Index(st.SQL, part)]) + 1
		if err := st.Placed(errors.New("wrong"), at); err.Error() != "wrong, at "+want+" of the statement" {
			t.Errorf("%q: %v, want %s", part, err, want)
		}
	}
	for _, at := range []int{-1, 0, len(st.SQL) + 2} {
		if err := st.Placed(errors.New("wrong"), at); err.Error() != "wrong" {
			t.Errorf("%d: %v", at, err)
		}
	}
	if end := st.Placed(errors.New("wrong"), utf8.RuneCountInString(st.SQL)+1); end.Error() != "wrong, at 3:15 of the statement" {
		t.Error(end)
	}
	if st.Placed(nil, 1) != nil {
		t.Error("no error is one")
	}
}

func FuzzParseStatement(f *testing.F) {
	for _, s := range []string{"insert into t values (:a, 'x''', E'\\'', $$ $$, :\"a\")", "update t set a = :a::int /* /* */ */ -- x", "::::a$1$a$$a$", "insert into [t] (`a``b`) values (:a, ?1)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for kind, param := range map[string]string{"postgres": "$1", "sqlite": "?1"} {
			st, err := sql.ParseStatement(kind, text, schema(t, "a: int32"))
			if err == nil && (len(st.Columns) == 0 || !strings.Contains(st.SQL, param)) {
				t.Errorf("%q became %q with %v", text, st.SQL, st.Columns)
			}
			for at := range len(st.SQL) + 2 {
				_ = st.Placed(errors.New("wrong"), at)
			}
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
