package examples

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// stateKills is how many times the program is killed at least: WASMILL_STATE_KILLS, or a few. From 100 on every named
// point is among them.
func stateKills(t *testing.T) int {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("WASMILL_STATE_KILLS")); err == nil {
		return n
	}
	return 12
}

// smallState lets a few batches of few entries pass all that happens to state: merged applies, a full backlog, tables and
// compactions of Badger, snapshots in several parts.
const smallState = "WASMILL_STATE_SIZES=cacheBytes=4096,backlogBatches=3,backlogBytes=20000,applyBatches=2,applyBytes=8000," +
	"snapshotBatches=3,snapshotBytes=8000,snapshotPart=2000,memTable=65536"

// someEntries are entries of a few keys whose times go on and back, some of them far enough to be late.
func someEntries(n int) []ledgerEntry {
	rng := rand.New(rand.NewPCG(11, 12))
	entries := make([]ledgerEntry, n)
	for i := range entries {
		entries[i] = ledgerEntry{fmt.Sprintf("k%d", rng.IntN(9)), 1_700_000_000_000 + int64(i)*400 + rng.Int64N(6000) - 3000, rng.Int64N(100) - 20}
		if rng.IntN(12) == 0 {
			entries[i].at -= 12_000
		}
	}
	return entries
}

// retainedBatches is how many the job keeps, so that it throws away much in a short run.
const retainedBatches = 4

// ledgerKills kills one job of the ledger again and again.
type ledgerKills struct {
	ledgerSpec
	rng *rand.Rand

	shift                time.Duration  // how far the clock is off
	at                   map[string]int // kills by point, "" for random instants
	killed, tables       int
	views, lateN, timers int
	changelogs           int
}

// shot is one run that is to end early: at a point, or at a random instant if that is "".
type shot struct {
	point  string
	damage bool // the store is damaged before, so that it must be built anew
}

func (s shot) String() string {
	if s.damage {
		return "damaged, " + s.point
	}
	return s.point
}

func (k *ledgerKills) setup(t *testing.T) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	return dir, k.write(t, dir)
}

// TestStateKill kills the real program with SIGKILL while it runs a job with state: at every named point of a batch, of the
// state store, of its background work, of retention and of a rebuild, and at random instants. Then what came out, batch by
// batch, and what is kept as of several batches must equal an oracle of plain maps; watermarks go on only, and each timer
// fires once.
func TestStateKill(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("random instants from seed %d", seed)
	k := &ledgerKills{
		ledgerSpec: ledgerSpec{entries: someEntries(400), files: 5, batch: 10, lateness: 3000, retention: fmt.Sprintf("{batches: %d, age: 0s}", retainedBatches)},
		rng:        rand.New(rand.NewPCG(seed, 1)), at: map[string]int{},
	}
	k.slaughter(t, k.trace(t))
	others := 0
	for _, p := range slices.Sorted(maps.Keys(k.at)) {
		if !ofState(p) {
			others += k.at[p]
			continue
		}
		t.Logf("%4d %s", k.at[p], p)
	}
	t.Logf("%4d at points that are not of the state", others-k.at[""])
	t.Logf("%4d at random instants", k.at[""])
	t.Logf("%d kills over %d tables, %d of them at %d named points; %d views of the state, %d late entries, %d timers fired, %d changelogs: all equal to the oracle",
		k.killed, k.tables, k.killed-k.at[""], len(k.at)-1, k.views, k.lateN, k.timers, k.changelogs)
	if k.lateN == 0 || k.timers == 0 || k.killed < stateKills(t) {
		t.Errorf("%d late entries, %d timers, %d kills of %d", k.lateN, k.timers, k.killed, stateKills(t))
	}
}

// rebuildPoints are passed when the store is built anew.
var rebuildPoints = []string{
	"state rebuild-begin", "state clear", "state rebuild-load", "state rebuild-end",
}

// statePoints are what a run passes at least: the others depend on what the state store does with files.
var statePoints = []string{
	"plan:before", "decide:after", "seal:after", "sync:after changelog/N-H", "syncdir:after state/changelog",
	"state seal", "state apply-begin", "state apply-chunk", "state apply-marker", "state apply-end",
	"state snapshot-begin", "state snapshot-part", "state snapshot-link", "state snapshot-end", "state discard",
	"sync:after snapshot/.N.tmp", "rename:after snapshot/N", "syncdir:after state/snapshot", "remove:after snapshot/N", "remove:after changelog/N-H",
}

// ofState reports whether a point belongs to the state: what else a run passes seldom, TestKill is killed at.
func ofState(point string) bool {
	return strings.Contains(point, "state") || strings.Contains(point, "changelog") || strings.Contains(point, "snapshot")
}

// slaughter kills the job at each of the points, again and again until each one is met, and then at random ones and at random
// instants until there are enough kills.
func (k *ledgerKills) slaughter(t *testing.T, points map[string]int) {
	t.Helper()
	var names []string
	for _, p := range slices.Sorted(maps.Keys(points)) {
		if ofState(p) || points[p] > seldom {
			names = append(names, p)
		}
	}
	const rounds = 12 // a point is tried so often before it is given up
	for range rounds {
		if stateKills(t) < 100 {
			break
		}
		var plan []shot
		for _, p := range names {
			if k.at[p] == 0 {
				plan = append(plan, shot{point: p})
			}
		}
		k.rng.Shuffle(len(plan), func(i, j int) { plan[i], plan[j] = plan[j], plan[i] })
		for table := range slices.Chunk(plan, perTable) {
			k.table(t, table)
		}
		if k.missed(rebuildPoints) {
			k.table(t, k.rebuilds())
		}
	}
	some := slices.DeleteFunc(slices.Clone(names), func(p string) bool { return !ofState(p) })
	for k.killed < stateKills(t) {
		plan := k.rebuilds()
		if k.rng.IntN(4) > 0 {
			plan = nil
			for range perTable {
				p := some[k.rng.IntN(len(some))]
				plan = append(plan, shot{point: []string{p, "", p + "@2"}[k.rng.IntN(3)]})
			}
		}
		k.table(t, plan)
	}
	if stateKills(t) >= 100 && k.missed(slices.Concat(names, rebuildPoints)) {
		t.Errorf("points were not met")
	}
}

// missed reports whether the job was not yet killed at some of the points.
func (k *ledgerKills) missed(points []string) bool {
	return slices.ContainsFunc(points, func(p string) bool { return k.at[p] == 0 })
}

// rebuilds are shots at what builds the store anew: some on a damaged one, some on what the one before has left of it.
func (k *ledgerKills) rebuilds() []shot {
	plan := []shot{{point: fmt.Sprintf("seal:after@%d", 5+k.rng.IntN(20))}}
	for _, p := range append(rebuildPoints, "state apply-chunk", "state apply-marker", "state clear@2", "") {
		plan = append(plan, shot{p, true})
		if k.rng.IntN(2) == 0 {
			plan = append(plan, shot{rebuildPoints[k.rng.IntN(len(rebuildPoints))], false})
		}
	}
	return plan
}

// trace runs the job in peace and returns the named points that it passes, with how often.
func (k *ledgerKills) trace(t *testing.T) map[string]int {
	t.Helper()
	dir, file := k.setup(t)
	name := filepath.Join(t.TempDir(), "trace")
	if r := run(t, append(k.env(dir), "WASMILL_FAILPOINT_TRACE="+name), "run", file); r.code != 0 {
		t.Fatal(r.stderr)
	}
	k.hold(t, dir, true)
	points := map[string]int{}
	for line := range strings.Lines(mustRead(t, name)) {
		points[strings.TrimSuffix(line, "\n")]++
	}
	for _, must := range statePoints {
		if points[must] == 0 {
			t.Errorf("the run does not pass the point %s", must)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return points
}

func (k *ledgerKills) env(dir string) []string {
	return []string{smallState, "WASMILL_FAILPOINT_KEEP=" + filepath.Join(dir, keptPlans), "WASMILL_CLOCK_SHIFT=" + k.shift.String()}
}

// table makes one table, killed at the planned points in order, then finished and checked.
func (k *ledgerKills) table(t *testing.T, plan []shot) {
	t.Helper()
	dir, file := k.setup(t)
	for _, s := range plan {
		if s.damage {
			k.damage(t, dir)
		}
		if r := k.shoot(t, dir, file, s); !r.killed && r.code != 0 {
			t.Fatalf("plan %q: neither killed nor well:\n%s", plan, r.stderr)
		}
	}
	if r := run(t, k.env(dir), "run", file); r.code != 0 {
		t.Fatalf("plan %q: ended with %d:\n%s", plan, r.code, r.stderr)
	}
	k.hold(t, dir, !slices.ContainsFunc(plan, func(s shot) bool { return s.damage }))
	if t.Failed() {
		t.Fatalf("plan %q", plan)
	}
	k.tables++
	_ = os.RemoveAll(dir)
}

// shoot runs the job until it is killed.
func (k *ledgerKills) shoot(t *testing.T, dir, file string, s shot) (r result) {
	t.Helper()
	if s.point != "" {
		r = run(t, append(k.env(dir), "WASMILL_FAILPOINT="+s.point), "run", file)
	} else {
		r = runFor(t, time.Duration(1+k.rng.IntN(250))*time.Millisecond, k.env(dir), "run", file)
	}
	if r.killed {
		k.killed++
		point, _, _ := strings.Cut(s.point, "@")
		k.at[point]++
	}
	return r
}

// damage makes a store useless.
func (k *ledgerKills) damage(t *testing.T, dir string) {
	t.Helper()
	name := filepath.Join(dir, "checkpoint", "state", "badger", "MANIFEST")
	if err := os.WriteFile(name, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// hold holds a finished table against the oracle, with the state as of the last batch and of one a little before it, which a
// store that was built anew may not have.
func (k *ledgerKills) hold(t *testing.T, dir string, before bool) {
	t.Helper()
	o := k.check(t, dir, func(batch, batches int) bool {
		if batch == batches-1 || before && batch == batches-retainedBatches {
			k.views++
			return true
		}
		return false
	})
	k.lateN += o.lateN
	k.timers += o.fired
	k.countChangelogs(t, dir)
}

// countChangelogs checks that each retained batch that changed the state has the changelog of its own attempt and none of
// another, and counts them.
func (k *ledgerKills) countChangelogs(t *testing.T, dir string) {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(dir, "checkpoint", "state", "changelog"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string][]string{} // attempts by batch
	for _, f := range files {
		batch, attempt, _ := strings.Cut(f.Name(), "-")
		there[batch] = append(there[batch], attempt)
	}
	plans := checkpointPlans(t, dir)
	for _, p := range plans[len(plans)-retainedBatches:] {
		text := mustRead(t, filepath.Join(dir, "checkpoint", "commits", strconv.Itoa(p.batch)))
		var decision struct {
			Wasmill struct{ State, Attempt string }
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "v1\n")), &decision); err != nil {
			t.Fatalf("decision %d: %v", p.batch, err)
		}
		if decision.Wasmill.State == "" {
			continue
		}
		if got := there[strconv.Itoa(p.batch)]; !slices.Equal(got, []string{decision.Wasmill.Attempt}) {
			t.Errorf("%s: batch %d has the changelogs of the attempts %q, want that of %s", dir, p.batch, got, decision.Wasmill.Attempt)
		}
		k.changelogs++
	}
}
