package examples

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// mishap is something that happens to a job, for some kinds of targets.
type mishap struct {
	name  string
	kinds []string // nil: all
	befal func(t *testing.T, p *patient)
}

var mishaps = []mishap{
	{"an older checkpoint is restored", nil, restored},
	{"a copy of the checkpoint is run", nil, twoCopies},
	{"what was published is removed", nil, removed},
	{"what was published is removed while the job runs", nil, removedAtWork},
	{"another job's table is in its place", nil, exchanged},
	{"only the table is dropped", []string{toSQLite, toPostgres}, dropped},
	{"a fork goes on in the same table", []string{toDelta, toDeltaKeys, toSQLite, toSQLiteKeys, toPostgres, toServerKeys}, inherited},
	{"a fork stands for what is not published", []string{toDelta, toDeltaKeys, toSQLite, toSQLiteKeys, toPostgres, toServerKeys}, bereft},
	{"another job publishes to the same table", []string{toDelta, toSQLite, toPostgres}, shared},
	{"another job publishes to the same folder", []string{toFiles}, intruded},
	{"the clock is set back", nil, setBack},
	{"the clock is set back, with in-commit timestamps", []string{toDelta, toDeltaKeys}, setBackInCommit},
	{"the table has forgotten the txn", []string{toDelta, toDeltaKeys}, expired},
	{"the database is away at the start", []string{toSQLite, toPostgres}, away},
	{"the database takes no changes", []string{toPostgres}, frozen},
	{"the disk of the server is full", []string{toPostgres}, serverFull},
}

// TestTablesDamage: what may happen to checkpoints, tables and databases between two runs of a job ends with the code that the
// documentation has for it and leaves every row as it is; after the way out that the message names, the target holds what it must.
func TestTablesDamage(t *testing.T) {
	kinds := []string{toFiles, toDelta, toDeltaKeys, toSQLite, toSQLiteKeys}
	var pg *pgServer
	if os.Getenv("WASMILL_POSTGRES") != "" {
		pg = realServer(t)
		kinds = []string{toPostgres, toServerKeys} // the others need no server, and are run without one
	}
	var lines []string
	for _, m := range mishaps {
		for _, kind := range kinds {
			if m.kinds != nil && !slices.Contains(m.kinds, kind) {
				continue
			}
			p := admit(t, kind, pgOf(kind, pg), nil)
			m.befal(t, p)
			if t.Failed() {
				t.Fatalf("%s: %s", kind, m.name)
			}
			lines = append(lines, fmt.Sprintf("%-52s %-16s %s", m.name, kind, codesOf(p.met)))
		}
	}
	t.Logf("every target equal to its oracle in the end; runs that ended with a code:\n%s", strings.Join(lines, "\n"))
}

func pgOf(kind string, pg *pgServer) *pgServer {
	if strings.HasPrefix(kind, toPostgres) {
		return pg
	}
	return nil
}

func codesOf(met map[string]int) string {
	if len(met) == 0 {
		return "none: it goes on"
	}
	return strings.Join(slices.Sorted(maps.Keys(met)), ", ")
}

// ahead is that a table knows of more than its checkpoint.
const ahead, behind, differs = "target.ahead", "target.behind", "target.digest_differs"

func restored(t *testing.T, p *patient) {
	p.run(t)
	old := saved(t, p.checkpoint())
	p.more(t)
	p.run(t)
	newer := saved(t, p.checkpoint())
	putBack(t, old, p.checkpoint())
	for range 2 { // it is no cure to try again
		p.stops(t, ahead)
	}
	f := p.fork(t)
	f.run(t)
	f.holds(t, someChanges()[halfRecords:])
	here := p.forkHere(t) // it would bring again what the table has
	for range 2 {
		if p.base() == toFiles {
			here.stops(t, "sink.other_query")
		} else {
			here.stops(t, ahead)
		}
	}
	putBack(t, newer, p.checkpoint())
	p.run(t)
	p.check(t)
}

// inherited: a fork from where the table is goes on in it, and does so after it has published as before.
func inherited(t *testing.T, p *patient) {
	p.run(t)
	here := p.forkHere(t)
	here.run(t)
	p.more(t)
	here.run(t)
	here.run(t)
	here.holds(t, someChanges())
}

// bereft: a fork stands for a batch that is decided and not in the table, which the old job must bring first.
func bereft(t *testing.T, p *patient) {
	p.run(t)
	p.more(t)
	p.dies(t, "decide:after")
	here := p.forkHere(t)
	here.stops(t, behind)
	p.dies(t, "plan:after") // of the next batch
	here.run(t)
	here.holds(t, someChanges())
}

// twoCopies: both copies decide the same batch, with different output. The one that comes second stops; the first goes on.
func twoCopies(t *testing.T, p *patient) {
	p.run(t)
	other := p.copied(t)
	other.more(t)
	other.dies(t, "decide:after")
	p.instead(t, other)
	p.dies(t, "publish:after")
	other.instead(t, p)
	other.stops(t, differs)
	p.instead(t, other)
	p.run(t)
	other.instead(t, p)
	other.stops(t, ahead)
	p.instead(t, other)
	p.run(t)
	p.check(t)
}

func removed(t *testing.T, p *patient) {
	p.run(t)
	back := p.takeAway(t)
	p.more(t)
	for range 2 {
		p.fails(t, behind)
	}
	f := p.fork(t)
	f.run(t)
	f.holds(t, someChanges()[halfRecords:])
	back()
	p.run(t)
	p.check(t)
}

// atWork are the codes of a job whose target is taken away while it runs.
var atWork = map[string]string{toFiles: "sink.disk", toDelta: "sink.recreated", toSQLite: "sql.moved", toPostgres: "sql.epoch"}

func removedAtWork(t *testing.T, p *patient) {
	live := filepath.Join(p.dir, "live.yaml")
	p.put(t, live, strings.Replace(p.text(t), "availableNow: true", "interval: 0s", 1))
	r := launchShowing(t, "json", nil, live)
	half := p.oracle(t, someChanges()[:halfRecords])
	last := fmt.Sprintf(`"batchId":%d,`, 2*halfFiles-1)
	// Rows can be read before their batch is over, and what is taken away then is another mishap.
	there := func() bool {
		return strings.Contains(r.log.String(), last) && slices.Equal(slices.Sorted(slices.Values(p.rows(t))), half)
	}
	if !until(r, bound, there) {
		t.Fatalf("%s: the first half does not come, but %s instead of %s:\n%s", p.kind(), p.rows(t), half, r.tail())
	}
	back := p.takeAway(t)
	p.more(t)
	if !r.ended(bound) {
		t.Fatalf("%s: the job goes on to batch %d without what it has published:\n%s", p.kind(), decided(p.checkpoint()), r.tail())
	}
	if want := atWork[p.base()]; r.exit() != 1 || r.code() != want {
		t.Fatalf("%s: the job ended with %d by %s, want %s:\n%s", p.kind(), r.exit(), r.code(), want, r.tail())
	}
	p.met[r.code()]++
	p.fails(t, behind, "sink.damaged") // parts of a batch without a manifest
	back()
	p.run(t)
	p.check(t)
}

func exchanged(t *testing.T, p *patient) {
	p.run(t)
	back := p.takeAway(t)
	other := p.beside(t)
	other.run(t)
	p.more(t)
	want := behind
	if p.kind() == toFiles {
		want = "sink.other_query"
	}
	for range 2 {
		p.stops(t, want)
	}
	other.holds(t, other.records[:halfRecords])
	back()
	p.run(t)
	p.check(t)
}

// dropped: the job does not take an empty table for the one that it has published in, until the statement that the message names says
// that what is lost is lost.
func dropped(t *testing.T, p *patient) {
	p.run(t)
	p.sql(t, "DROP TABLE "+p.table(0))
	p.more(t)
	p.fails(t, "sql.recreated")
	p.stops(t, "sql.recreated")
	m := forgetting.FindString(p.said)
	if m == "" {
		t.Fatalf("no statement is named:\n%s", p.said)
	}
	p.sql(t, m)
	p.run(t)
	p.holds(t, someChanges()[halfRecords:])
}

var forgetting = regexp.MustCompile(`DELETE FROM wasmill_epoch WHERE query_id = '[^']*' AND target = '[^']*'`)

// sql has the database carry a statement out.
func (p *patient) sql(t *testing.T, statement string) {
	t.Helper()
	if p.pg != nil {
		p.pg.texts(t, statement)
		return
	}
	p.sqliteTexts(t, statement)
}

func shared(t *testing.T, p *patient) {
	other := p.beside(t)
	for _, j := range []*patient{p, other, p, other} {
		j.run(t)
		if _, err := os.Stat(j.later(halfFiles)); err == nil {
			j.more(t)
		}
	}
	p.holds(t, slices.Concat(someChanges(), other.records))
}

func intruded(t *testing.T, p *patient) {
	p.run(t)
	other := p.beside(t)
	other.stops(t, "sink.other_query")
	p.met["sink.other_query"]++
	p.more(t)
	p.run(t)
	p.check(t)
}

// setBackBy is how far the clock is off in the second run.
const setBackBy = "WASMILL_CLOCK_SHIFT=-48h"

func setBack(t *testing.T, p *patient) {
	p.run(t)
	p.more(t)
	p.dies(t, "stage:after@2")
	p.run(t, setBackBy)
	p.check(t)
}

func away(t *testing.T, p *patient) {
	if p.pg != nil {
		right := p.pg.behind
		p.pg.behind = "postgres://wasmill@127.0.0.1:1/postgres?sslmode=disable"
		p.put(t, p.file, p.text(t))
		p.fails(t, "sql.unreachable")
		p.pg.behind = right
		p.put(t, p.file, p.text(t))
	} else {
		mustRename(t, p.place, p.place+".away")
		p.fails(t, "sql.database")
		mustRename(t, p.place+".away", p.place)
		p.put(t, p.path("sqlite.db"), strings.Repeat("this is no database\n", 500))
		p.fails(t, "sql.database")
		if err := os.Remove(p.path("sqlite.db")); err != nil {
			t.Fatal(err)
		}
	}
	p.run(t)
	p.more(t)
	p.run(t)
	p.check(t)
}

// frozen: a standby, and a server that was told to, take no changes.
func frozen(t *testing.T, p *patient) {
	p.run(t)
	p.more(t)
	right := p.pg.behind
	p.pg.behind += "&options=-c%20default_transaction_read_only%3Don"
	p.put(t, p.file, p.text(t))
	p.pg.behind = right
	p.stops(t, "sql.read_only")
	p.put(t, p.file, p.text(t))
	p.run(t)
	p.check(t)
}

// serverFull: the table has a tablespace of its own, of which no page is left.
func serverFull(t *testing.T, p *patient) {
	if os.Geteuid() != 0 {
		t.Log("the disk of the server is not filled: that needs the right to mount one and to give it away")
		return
	}
	dir := p.tablespace(t)
	p.run(t)
	p.more(t)
	if !p.fills(t, dir, 0, []string{"sql.full"}) {
		t.Errorf("the disk was not full")
	}
	p.whole(t, decided(p.checkpoint()))
	p.run(t)
	p.check(t)
	p.pg.texts(t, "DROP TABLE "+p.table(0))
	p.pg.texts(t, "DROP TABLESPACE "+p.table(0))
}

// tablespace makes the table on a small disk.
func (p *patient) tablespace(t *testing.T) (dir string) {
	t.Helper()
	dir = smallDisk(t, diskPages)
	data := filepath.Join(dir, "data")
	server, err := user.Lookup("postgres")
	if err == nil {
		var uid, gid int
		_, err = fmt.Sscan(server.Uid, &uid)
		_, bad := fmt.Sscan(server.Gid, &gid)
		err = errors.Join(err, bad, os.Mkdir(data, 0o700), os.Chown(data, uid, gid), os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	p.pg.texts(t, "CREATE TABLESPACE "+p.table(0)+" LOCATION '"+data+"'")
	p.pg.texts(t, "CREATE TABLE "+p.table(0)+" (id bigint, key text, place text, amount numeric(9,2), at timestamptz) WITH (fillfactor = 10) TABLESPACE "+p.table(0))
	return dir
}

// amend adds an entry to the log of a Delta table, as another writer would: the table's metadata with more properties, behind some
// lines.
func (p *patient) amend(t *testing.T, properties map[string]string, before ...string) {
	t.Helper()
	dir := filepath.Join(p.path("s0"), "_delta_log")
	var meta map[string]map[string]any
	for l := range strings.Lines(mustRead(t, filepath.Join(dir, fmt.Sprintf("%020d.json", 0)))) {
		if strings.HasPrefix(l, `{"metaData"`) {
			if err := json.Unmarshal([]byte(l), &meta); err != nil {
				t.Fatal(err)
			}
		}
	}
	meta["metaData"]["configuration"] = properties
	line, err := json.Marshal(meta)
	if err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*.json")) // the pattern is well formed
	p.put(t, filepath.Join(dir, fmt.Sprintf("%020d.json", len(names))), strings.Join(append(before, string(line)), "\n")+"\n")
}

// setBackInCommit: the times of the entries rise all the same.
func setBackInCommit(t *testing.T, p *patient) {
	p.run(t)
	now, version := time.Now().UnixMilli(), 2*halfFiles
	p.amend(t, map[string]string{
		"delta.enableInCommitTimestamps": "true", "delta.inCommitTimestampEnablementVersion": strconv.Itoa(version),
		"delta.inCommitTimestampEnablementTimestamp": strconv.FormatInt(now, 10),
	},
		fmt.Sprintf(`{"commitInfo":{"inCommitTimestamp":%d,"timestamp":%[1]d,"operation":"SET TBLPROPERTIES"}}`, now),
		`{"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["inCommitTimestamp","appendOnly","invariants"]}}`)
	p.more(t)
	p.run(t, setBackBy)
	p.holds(t, someChanges())
	last, entries := int64(0), 0
	for _, a := range tableLog(t, p.path("s0")) {
		if a.CommitInfo == nil || a.CommitInfo.InCommitTimestamp == 0 {
			continue
		}
		if a.CommitInfo.InCommitTimestamp <= last {
			t.Errorf("%s: an entry has time %d after one with %d", p.kind(), a.CommitInfo.InCommitTimestamp, last)
		}
		last = a.CommitInfo.InCommitTimestamp
		entries++
	}
	if want := 1 + 2*halfFiles; entries != want {
		t.Errorf("%s: %d entries have a time, want %d", p.kind(), entries, want)
	}
}

// expired: another job has written checkpoints without the txn, and the entries before them are cleaned up.
func expired(t *testing.T, p *patient) {
	p.run(t)
	p.amend(t, map[string]string{"delta.setTransactionRetentionDuration": "interval 1 hours"})
	other := p.beside(t)
	other.run(t, "WASMILL_CLOCK_SHIFT=48h")
	log := filepath.Join(p.path("s0"), "_delta_log")
	checkpoints, err := filepath.Glob(filepath.Join(log, "*.checkpoint.parquet"))
	if err != nil || len(checkpoints) == 0 {
		t.Fatalf("no checkpoint: %v", err)
	}
	newest := strings.TrimSuffix(slices.Max(checkpoints), ".checkpoint.parquet")
	entries, _ := filepath.Glob(filepath.Join(log, "*.json")) // the pattern is well formed
	for _, e := range entries {
		if strings.TrimSuffix(e, ".json") < newest {
			if err := os.Remove(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.more(t)
	for range 2 {
		p.fails(t, "sink.expired")
	}
	f := p.fork(t)
	f.run(t)
	f.holds(t, someChanges()[halfRecords:])
}
