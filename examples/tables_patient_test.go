package examples

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// patient is a job over one target that something happens to between two runs. Its tables are in a folder of their own. The first run
// takes half of the input.
type patient struct {
	*tablesJob
	file  string
	aside string         // what the held back files are called
	met   map[string]int // codes that runs ended with
	said  string         // by the last of them
}

// half of the input, in files and in records.
const (
	halfFiles   = changeFiles / 2
	halfRecords = halfFiles * 2 * changeBatch
)

// admit makes a patient. mould changes the job before it is written.
func admit(t *testing.T, kind string, pg *pgServer, mould func(*tablesJob)) *patient {
	t.Helper()
	p := &patient{tablesJob: &tablesJob{kinds: []string{kind}, place: t.TempDir(), pg: pg}, met: map[string]int{}, aside: "later"}
	if mould != nil {
		mould(p.tablesJob)
	}
	_, p.file = p.write(t)
	p.hold(t)
	return p
}

func (p *patient) kind() string { return p.kinds[0] }

func (p *patient) base() string {
	base, _, _ := strings.Cut(p.kind(), " ")
	return base
}

// hold puts the second half of the input aside.
func (p *patient) hold(t *testing.T) {
	t.Helper()
	for i := halfFiles; i < changeFiles; i++ {
		mustRename(t, p.input1(i), p.later(i))
	}
}

// more lets the job have the rest of the input.
func (p *patient) more(t *testing.T) {
	t.Helper()
	for i := halfFiles; i < changeFiles; i++ {
		mustRename(t, p.later(i), p.input1(i))
	}
}

func (p *patient) input1(i int) string { return filepath.Join(p.dir, "in", fmt.Sprintf("%d.jsonl", i)) }
func (p *patient) later(i int) string  { return filepath.Join(p.dir, p.aside+strconv.Itoa(i)) }

func mustRename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// run runs the job, which must end well.
func (p *patient) run(t *testing.T, env ...string) {
	t.Helper()
	if r := run(t, env, "run", p.file); r.code != 0 {
		t.Fatalf("%s: it ended with %d (killed %v):\n%s", p.kind(), r.code, r.killed, r.stderr)
	}
}

// dies runs the job until it kills itself at a point.
func (p *patient) dies(t *testing.T, point string) {
	t.Helper()
	if r := run(t, []string{"WASMILL_FAILPOINT=" + point}, "run", p.file); !r.killed {
		t.Fatalf("%s: it ended with %d before %s:\n%s", p.kind(), r.code, point, r.stderr)
	}
}

// stops runs the job, which must end with one of some codes, with a word on the way out, and leave the rows as they are.
func (p *patient) stops(t *testing.T, codes ...string) (code string) {
	t.Helper()
	before := p.rows(t)
	code = p.fails(t, codes...)
	sameRows(t, p.kind()+" after "+code, p.rows(t), before)
	return code
}

// fails is stops where the rows cannot be looked at.
func (p *patient) fails(t *testing.T, codes ...string) (code string) {
	t.Helper()
	r := run(t, nil, "run", p.file)
	m := codeForm.FindStringSubmatch(r.stderr)
	if r.code != 1 || m == nil || !slices.Contains(codes, m[1]) {
		t.Fatalf("%s: it ended with %d, want 1 by one of %v:\n%s", p.kind(), r.code, codes, r.stderr)
	}
	if !strings.Contains(r.stderr, "way out: ") {
		t.Errorf("%s: no way out is named:\n%s", p.kind(), r.stderr)
	}
	p.met[m[1]]++
	p.said = r.stderr
	return m[1]
}

// rows are what readers of the target see, in the forms of oracleRows.
func (p *patient) rows(t *testing.T) []string {
	t.Helper()
	switch p.base() {
	case toFiles:
		return lines(t, p.path("s0"))
	case toDelta:
		return tableRows(t, p.path("s0"))
	case toSQLite:
		if len(p.sqliteTexts(t, "SELECT name FROM sqlite_schema WHERE name = 's0'")) == 0 {
			return nil
		}
		return p.sqliteTexts(t, selectRows+p.table(0))
	}
	if len(p.pg.texts(t, "SELECT relname::text FROM pg_class WHERE relname = '"+p.table(0)+"'")) == 0 {
		return nil
	}
	return p.pg.texts(t, selectRows+p.table(0))
}

// holds demands that the target has what comes of some records, and nothing else.
func (p *patient) holds(t *testing.T, all []change) {
	t.Helper()
	sameRows(t, p.kind(), p.rows(t), p.oracle(t, all))
}

// oracle is what readers see of some records, sorted.
func (p *patient) oracle(t *testing.T, all []change) []string {
	t.Helper()
	rows, values := oracleRows(t, p.kind(), all)
	if p.base() == toFiles {
		rows = values
	}
	slices.Sort(rows)
	return rows
}

// tableRows are the rows of a Delta table, whoever wrote its entries.
func tableRows(t *testing.T, dir string) []string {
	t.Helper()
	live := map[string]*string{}
	for _, a := range tableLog(t, dir) {
		if a.Remove != nil {
			delete(live, a.Remove.Path)
		}
		if a.Add != nil {
			live[a.Add.Path] = a.Add.PartitionValues["place"]
		}
	}
	return fileRows(t, dir, live)
}

// tableLog are all actions of a Delta table's log, in order.
func tableLog(t *testing.T, dir string) (actions []logged) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "_delta_log", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names { // Glob sorts
		for l := range strings.Lines(mustRead(t, name)) {
			var a logged
			if err := json.Unmarshal([]byte(l), &a); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			actions = append(actions, a)
		}
	}
	return actions
}

// saved is a copy of a folder.
func saved(t *testing.T, dir string) (kept string) {
	t.Helper()
	kept = filepath.Join(t.TempDir(), "kept")
	copyDir(t, dir, kept)
	return kept
}

// putBack makes a folder what it was.
func putBack(t *testing.T, kept, dir string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	copyDir(t, kept, dir)
}

// takeAway removes all that the target has, and returns what puts it back.
func (p *patient) takeAway(t *testing.T) (back func()) {
	t.Helper()
	if p.base() == toPostgres {
		table, epoch := p.table(0), p.table(0)+"_epoch"
		query := p.query(t)
		p.pg.texts(t, "ALTER TABLE "+table+" RENAME TO "+table+"_kept")
		p.pg.texts(t, "CREATE TABLE "+epoch+" AS SELECT * FROM wasmill_epoch WHERE query_id LIKE '"+query+"%'")
		p.pg.texts(t, "DELETE FROM wasmill_epoch WHERE query_id LIKE '"+query+"%'")
		return func() {
			p.pg.texts(t, "DROP TABLE IF EXISTS "+table)
			p.pg.texts(t, "ALTER TABLE "+table+"_kept RENAME TO "+table)
			p.pg.texts(t, "DELETE FROM wasmill_epoch WHERE query_id LIKE '"+query+"%'")
			p.pg.texts(t, "INSERT INTO wasmill_epoch SELECT * FROM "+epoch)
		}
	}
	kept := saved(t, p.place)
	entries, err := os.ReadDir(p.place)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(p.place, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return func() { putBack(t, kept, p.place) }
}

// beside is another job, with a checkpoint and records of its own, that publishes to the same place.
func (p *patient) beside(t *testing.T) *patient {
	t.Helper()
	return admit(t, p.kind(), p.pg, func(j *tablesJob) {
		j.place, j.id, j.records = p.place, p.id, changesFrom(1000)
	})
}

// copied is the same job with a copy of the checkpoint, as on another machine, and other input from there on. While one of the two
// runs, what the other has of input is on hold.
func (p *patient) copied(t *testing.T) *patient {
	t.Helper()
	j := *p.tablesJob
	j.progress = saved(t, p.checkpoint())
	other := &patient{tablesJob: &j, file: filepath.Join(j.dir, "copy.yaml"), met: p.met, aside: "other"}
	for i := halfFiles; i < changeFiles; i++ {
		other.put(t, other.later(i), strings.ReplaceAll(mustRead(t, p.later(i)), `"amount":"`, `"amount":"9`))
	}
	other.put(t, other.file, j.text(t))
	return other
}

// instead lets one have its input in place of the other.
func (p *patient) instead(t *testing.T, other *patient) {
	t.Helper()
	other.hold(t)
	p.more(t)
}

func (p *patient) put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fork begins anew, where a checkpoint stands, in new places.
func (p *patient) fork(t *testing.T) *patient {
	t.Helper()
	return p.forkInto(t, "forked", t.TempDir(), unique("tables"))
}

// forkHere begins anew, where a checkpoint stands, in the same places.
func (p *patient) forkHere(t *testing.T) *patient {
	t.Helper()
	return p.forkInto(t, "here", p.place, p.id)
}

func (p *patient) forkInto(t *testing.T, progress, place, id string) *patient {
	t.Helper()
	j := *p.tablesJob
	j.progress, j.place, j.id = progress, place, id
	mustRun(t, "checkpoint", "fork", "--to", j.checkpoint(), p.checkpoint())
	other := &patient{tablesJob: &j, file: filepath.Join(j.dir, progress+".yaml"), met: p.met}
	other.put(t, other.file, j.text(t))
	return other
}
