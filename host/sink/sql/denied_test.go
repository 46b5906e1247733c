package sql_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// poor is the world as a role sees it that may do nothing yet, and the role's name.
func (w *world) poor(t *testing.T) (*world, string) {
	t.Helper()
	role := "r_" + w.schema
	w.run(t, "CREATE ROLE "+role+" LOGIN NOSUPERUSER", "GRANT USAGE ON SCHEMA "+w.schema+" TO "+role)
	t.Cleanup(func() { w.run(t, "DROP OWNED BY "+role, "DROP ROLE "+role) })
	return &world{kind: "postgres", db: newPostgresDatabase(t, strings.Replace(w.url, "//wasmill@", "//"+role+"@", 1))}, role
}

// TestDenied: a row that a policy of the table denies is a fault of that row, as one that breaks a CHECK is; a privilege that the
// role lacks is no fault of any row.
func TestDenied(t *testing.T) {
	secured := []string{"CREATE TABLE x (id bigint PRIMARY KEY, t text)", "ALTER TABLE x ENABLE ROW LEVEL SECURITY", "CREATE POLICY look ON x FOR SELECT USING (true)"}
	raised := func(state string) []string {
		return []string{
			"CREATE TABLE x (id bigint, t text)",
			"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id = 3 THEN RAISE 'no threes' USING ERRCODE = '" + state + "'; END IF; RETURN NEW; END $$",
			"CREATE TRIGGER refuse BEFORE INSERT ON x FOR EACH ROW EXECUTE FUNCTION refuse()",
		}
	}
	for name, c := range map[string]struct {
		ddl     []string
		key     []string
		sql     string
		records []kv
		want    []int64
		says    string
	}{
		"a policy": {
			ddl:     append(secured, "CREATE POLICY p ON x FOR INSERT WITH CHECK (id <> 3)"),
			records: ids(0, 6), want: []int64{3}, says: "row-level security",
		},
		"a policy with a name": {
			ddl:     append(secured, "CREATE POLICY p ON x FOR INSERT WITH CHECK (true)", "CREATE POLICY nothrees ON x AS RESTRICTIVE FOR INSERT WITH CHECK (id <> 3)"),
			records: append(ids(2, 4), ids(13, 14)...), want: []int64{1}, says: "nothrees",
		},
		"a policy for those there": {
			ddl: append(secured, "INSERT INTO x VALUES (3, 'old'), (4, 'old')",
				"CREATE POLICY p ON x FOR INSERT WITH CHECK (true)", "CREATE POLICY u ON x FOR UPDATE USING (id <> 3) WITH CHECK (t <> 'no')"),
			key:     []string{"id"},
			records: values(`{"id":1,"t":"no"}`, `{"id":3,"t":"new"}`, `{"id":4,"t":"no"}`, `{"id":5,"t":"x"}`), want: []int64{1, 2}, says: "row-level security",
		},
		"a policy and a statement": {
			ddl: append(secured, "CREATE POLICY p ON x FOR INSERT WITH CHECK (id <> 3)"), sql: "insert into x values (:id, :t)",
			records: ids(0, 6), want: []int64{3}, says: "row-level security",
		},
		"a view with a check": {
			ddl:     []string{"CREATE TABLE y (id bigint, t text)", "CREATE VIEW x AS SELECT id, t FROM y WHERE id <> 3 WITH CHECK OPTION"},
			records: ids(0, 6), want: []int64{3}, says: "check option",
		},
		"a trigger with a code of its own":    {ddl: raised("ZZ001"), records: ids(0, 6), want: []int64{3}, says: "no threes"},
		"a trigger that speaks of privileges": {ddl: raised("42501"), records: ids(0, 6), want: []int64{3}, says: "no threes"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "postgres")
			poor, role := w.poor(t)
			w.run(t, append(c.ddl, "GRANT SELECT, INSERT, UPDATE ON x TO "+role, sql.EpochTable, "GRANT SELECT, INSERT, UPDATE ON wasmill_epoch TO "+role)...)
			before := w.run(t, "SELECT id, t FROM x ORDER BY id")
			target := poor.open(t, sql.Sink{Table: "x", Schema: schema(t, "id: int64, t: string"), Key: c.key, Statement: c.sql})
			_, err := target.Stage(t.Context(), output(0, "rows", laneOf(t, target, "rows", c.records)))
			f := wantFault(t, err, sql.CodeConstraint, "table x", fmt.Sprintf("sink rows, row %d of lane 0: ", c.want[0]), c.says, "dead-letter")
			if strings.Contains(f.Hint(), "grant") || f.Passes {
				t.Errorf("way out: %s", f.Hint())
			}
			var r *sink.Refused
			if !errors.As(err, &r) || r.More {
				t.Fatalf("%v, want refused rows", err)
			}
			var got []int64
			for _, row := range r.Rows {
				got = append(got, row.Row)
				if row.Misfit.Code != "constraint" || !strings.Contains(row.Misfit.Reason, c.says) {
					t.Errorf("%+v", row.Misfit)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Fatalf("refused are (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, w.run(t, "SELECT id, t FROM x ORDER BY id")); diff != "" {
				t.Fatalf("the table has changed:\n%s", diff)
			}
			var rest []kv
			for i, record := range c.records {
				if !slices.Contains(got, int64(i)) {
					rest = append(rest, record)
				}
			}
			publish(t, target, 0, rest)
			if n := w.texts(t, "SELECT count(*) FROM x WHERE id <> 3")[0]; n == "0" {
				t.Error("the others are not published")
			}
		})
	}
	t.Run("what the role lacks", func(t *testing.T) {
		w := newWorld(t, "postgres")
		poor, role := w.poor(t)
		w.run(t, append(secured, "GRANT INSERT ON x TO "+role, sql.EpochTable, "GRANT SELECT, INSERT, UPDATE ON wasmill_epoch TO "+role)...)
		target := poor.open(t, sql.Sink{Table: "x", Schema: schema(t, "id: int64")})
		w.run(t, "REVOKE INSERT ON x FROM "+role)
		_, err := target.Stage(t.Context(), output(0, "rows", laneOf(t, target, "rows", ids(0, 2))))
		wantFault(t, err, sql.CodePrivilege, "grant the role")
		if errors.As(err, new(*sink.Refused)) {
			t.Errorf("%v is about a row", err)
		}
	})
	t.Run("a table that a trigger lacks", func(t *testing.T) {
		w := newWorld(t, "postgres")
		w.run(
			t, "CREATE TABLE x (id bigint)",
			"CREATE FUNCTION copied() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO z VALUES (NEW.id); RETURN NEW; END $$",
			"CREATE TRIGGER copied BEFORE INSERT ON x FOR EACH ROW EXECUTE FUNCTION copied()",
		)
		target := w.open(t, sql.Sink{Table: "x", Schema: schema(t, "id: int64"), Create: true})
		_, err := target.Stage(t.Context(), output(0, "rows", laneOf(t, target, "rows", ids(0, 2))))
		if f := wantFault(t, err, sql.CodeTable, `"z"`, "a trigger"); strings.Contains(f.Hint(), "createTable") || f.Passes {
			t.Errorf("%v (%s)", f, f.Hint())
		}
	})
	t.Run("row security from now on", func(t *testing.T) {
		w := newWorld(t, "postgres")
		poor, role := w.poor(t)
		w.run(t, "CREATE TABLE x (id bigint)", "GRANT INSERT ON x TO "+role, sql.EpochTable, "GRANT SELECT, INSERT, UPDATE ON wasmill_epoch TO "+role)
		target := poor.open(t, sql.Sink{Table: "x", Schema: schema(t, "id: int64")})
		publish(t, target, 0, ids(0, 2))
		w.run(t, "ALTER TABLE x ENABLE ROW LEVEL SECURITY", "CREATE POLICY p ON x FOR INSERT WITH CHECK (id <> 3)")
		publish(t, target, 1, ids(4, 6))
		_, err := target.Stage(t.Context(), output(2, "rows", laneOf(t, target, "rows", ids(2, 4))))
		wantFault(t, err, sql.CodeConstraint, "row 1 of lane 0")
	})
}
