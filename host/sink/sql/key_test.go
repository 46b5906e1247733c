package sql_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// TestKeySpellings: a deletion's key is held to what a row's key is held to, and both mean the row that the database means by it:
// what does not fit is refused and deletes nothing.
func TestKeySpellings(t *testing.T) {
	for name, c := range map[string]struct {
		ddl, schema, only string
		keys              []string
	}{
		"uuid": {"uuid", "string", "postgres", []string{
			"00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-0000-0000-0000-000000000000", "",
		}},
		"varchar":     {"varchar(3)", "string", "postgres", []string{"", "ab", "äöü", "a\x00", "abcd"}},
		"enum":        {"mood", "string", "postgres", []string{"sad", "ok", ""}},
		"domain":      {"code", "string", "postgres", []string{"ab", "abc"}},
		"text":        {"text", "string", "", []string{"", "a", "A", "é", "\xff", "a\x00"}},
		"bigint":      {"bigint", "int64", "", []string{"0", "7", "-7", "9223372036854775807", "9223372036854775808", ""}},
		"smallint":    {"smallint", "int8", "", []string{"0", "127", "128"}},
		"numeric":     {"numeric(9,2)", "decimal(9,2)", "postgres", []string{"0", "1.5", "1.50", "9999999.99", "0.001", "NaN"}},
		"timestamptz": {"timestamptz", "timestamp", "postgres", []string{"2013-01-31T10:00:00Z", "2013-01-31T11:00:00+01:00", "infinity"}},
		"timestamp":   {"timestamp", "timestamp_ntz", "postgres", []string{"2013-01-31T10:00:00", "2013-01-31 10:00:00.000000"}},
		"date":        {"date", "date", "postgres", []string{"2013-01-31", "2013-02-30", "0001-01-01"}},
		"boolean":     {"boolean", "boolean", "postgres", []string{"true", "false", "t", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, w *world) {
				if c.only != "" && c.only != w.kind {
					t.Skip("not of " + w.kind)
				}
				if w.kind == "postgres" {
					w.run(t, "CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE DOMAIN code AS varchar(2)")
				}
				w.run(t, "CREATE TABLE x (k "+c.ddl+" PRIMARY KEY)", "CREATE TABLE model (k "+c.ddl+" PRIMARY KEY)")
				s := &spellings{w: w, batch: -1, known: map[string]string{}, target: w.open(t, sql.Sink{Table: "x", Schema: schema(t, "k: "+c.schema), Key: []string{"k"}})}
				rapid.Check(t, func(r *rapid.T) { s.check(r, t, c.keys) })
			})
		})
	}
}

type spellings struct {
	w      *world
	target *sql.Target
	batch  checkpoint.BatchID
	known  map[string]string // judgements by key
}

func (s *spellings) check(r *rapid.T, t *testing.T, keys []string) {
	var changes []kv
	var model []string
	for range rapid.IntRange(1, 5).Draw(r, "changes") {
		key := respelt(r, rapid.SampledFrom(keys).Draw(r, "key"))
		put, deletion := kv{value: `{"k":` + jsonText(key) + `}`}, kv{key: key}
		is, known := s.known[key]
		if !known {
			is = s.judge(t, deletion)
			if as := s.judge(t, put); as != is {
				r.Fatalf("%q: as a row's key %q, as a deletion's %q", key, as, is)
			}
			s.known[key] = is
		}
		if is != "" {
			continue
		}
		literal := "'" + strings.ReplaceAll(key, "'", "''") + "'"
		if rapid.Bool().Draw(r, "deletion") {
			changes, model = append(changes, deletion), append(model, "DELETE FROM model WHERE k = "+literal)
		} else {
			changes, model = append(changes, put), append(model, "INSERT INTO model VALUES ("+literal+") ON CONFLICT DO NOTHING")
		}
	}
	s.batch++
	publish(t, s.target, s.batch, changes)
	apart := `SELECT 'only there', k FROM (SELECT k FROM model EXCEPT SELECT k FROM x) AS a
UNION ALL SELECT 'only here', k FROM (SELECT k FROM x EXCEPT SELECT k FROM model) AS b`
	if got := s.w.run(r, append(model, apart)...); len(got) > 0 {
		r.Fatalf("after %v: %v", changes, got)
	}
}

// judge says by which code a change is refused, "" if it is taken.
func (s *spellings) judge(t *testing.T, change kv) string {
	t.Helper()
	l := laneOf(t, s.target, "rows", nil)
	err := l.Append(change.record())
	if err == nil {
		_, err = s.target.Stage(t.Context(), output(s.batch+1, "rows", l))
		must(t, s.target.Abort(t.Context(), s.batch+1))
	}
	if m := (*sink.Misfit)(nil); errors.As(err, &m) {
		return "misfit"
	}
	if r := (*sink.Refused)(nil); errors.As(err, &r) {
		return r.Rows[0].Misfit.Code
	}
	must(t, err)
	return ""
}

// respelt writes a key in another way, which may be another key or none.
func respelt(r *rapid.T, key string) string {
	switch rapid.IntRange(0, 6).Draw(r, "spelling") {
	case 0:
		return strings.ToUpper(key)
	case 1:
		return strings.ReplaceAll(key, "-", "")
	case 2:
		return key + rapid.SampledFrom([]string{" ", "0", "x", "-old"}).Draw(r, "after")
	case 3:
		return rapid.SampledFrom([]string{" ", "0", "+", "{"}).Draw(r, "before") + key
	case 4:
		return key[:len(key)/2]
	}
	return key
}

// jsonText writes a text as JSON, with bytes that are no text as they are.
func jsonText(text string) string {
	return `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\x00", `\u0000`).Replace(text) + `"`
}
