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

// ledgerKills kills one job of the ledger again and again.
type ledgerKills struct {
	ledgerSpec
	rng *rand.Rand

	killed, named, tables  int
	views, lateN, timers   int
	changelogs, superseded int
}

func (k *ledgerKills) setup(t *testing.T) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	return dir, k.write(t, dir)
}

// TestStateKill kills the real program with SIGKILL while it runs a job with state: at every named point of a batch, of the
// state store and of its background work, and at random instants. Then what came out, batch by batch, and what is kept as of
// several batches must equal an oracle of plain maps; watermarks go on only, and each timer fires once.
func TestStateKill(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("random instants from seed %d", seed)
	k := &ledgerKills{ledgerSpec: ledgerSpec{entries: someEntries(400), files: 5, batch: 20, lateness: 3000}, rng: rand.New(rand.NewPCG(seed, 1))}
	points := k.trace(t)
	var plans [][]string // the points of each table; "" is a random instant
	var often []string
	for _, p := range slices.Sorted(maps.Keys(points)) {
		switch {
		case points[p] > seldom:
			often = append(often, p)
		case stateKills(t) >= 100 && ofState(p):
			plans = append(plans, []string{p, ""})
		}
	}
	k.rng.Shuffle(len(often), func(i, j int) { often[i], often[j] = often[j], often[i] })
	all := len(plans) + len(often)
	plans = append(plans, slices.Collect(slices.Chunk(often, perTable))...)
	for len(plans) > 0 || k.killed < stateKills(t) {
		plan := make([]string, perTable)
		if len(plans) > 0 {
			plan, plans = plans[0], plans[1:]
		}
		k.table(t, plan)
	}
	t.Logf("%d kills over %d tables, %d of them at %d named points; %d views of the state, %d late entries, %d timers fired, %d changelogs and %d of attempts that came to nothing: all equal to the oracle",
		k.killed, k.tables, k.named, all, k.views, k.lateN, k.timers, k.changelogs, k.superseded)
	if k.named < all*9/10 {
		t.Errorf("only %d of %d named points were reached", k.named, all)
	}
	if k.lateN == 0 || k.timers == 0 || k.killed < stateKills(t) {
		t.Errorf("%d late entries, %d timers, %d kills of %d", k.lateN, k.timers, k.killed, stateKills(t))
	}
}

// ofState reports whether a point belongs to the state: what else a run passes seldom, TestKill is killed at.
func ofState(point string) bool {
	return strings.Contains(point, "state") || strings.Contains(point, "changelog") || strings.Contains(point, "badger")
}

// trace runs the job in peace and returns the named points that it passes, with how often.
func (k *ledgerKills) trace(t *testing.T) map[string]int {
	t.Helper()
	dir, file := k.setup(t)
	name := filepath.Join(t.TempDir(), "trace")
	if r := run(t, []string{"WASMILL_FAILPOINT_TRACE=" + name}, "run", file); r.code != 0 {
		t.Fatal(r.stderr)
	}
	k.hold(t, dir, func(int, int) bool { return true })
	points := map[string]int{}
	for line := range strings.Lines(mustRead(t, name)) {
		points[strings.TrimSuffix(line, "\n")]++
	}
	for _, must := range []string{
		"plan:before", "decide:after", "seal:after", "sync:after changelog/N-H", "syncdir:after state/changelog",
		"state seal", "state apply-begin", "state apply-chunk", "state apply-marker", "state apply-end",
	} {
		if points[must] == 0 {
			t.Fatalf("the run does not pass the point %s", must)
		}
	}
	return points
}

// table makes one table, killed at the planned points in order, then finished and checked.
func (k *ledgerKills) table(t *testing.T, plan []string) {
	t.Helper()
	dir, file := k.setup(t)
	for _, point := range plan {
		var r result
		if point != "" {
			r = run(t, []string{"WASMILL_FAILPOINT=" + point}, "run", file)
		} else {
			r = runFor(t, time.Duration(1+k.rng.IntN(250))*time.Millisecond, nil, "run", file)
		}
		switch {
		case r.killed:
			k.killed++
			if point != "" {
				k.named++
			}
		case r.code != 0:
			t.Fatalf("plan %q: neither killed nor well:\n%s", plan, r.stderr)
		}
	}
	mustRun(t, "run", file)
	one := k.rng.IntN(30)
	k.hold(t, dir, func(batch, batches int) bool { return batch == one || batch == batches-1 })
	if t.Failed() {
		t.Fatalf("plan %q", plan)
	}
	k.tables++
	_ = os.RemoveAll(dir)
}

func (k *ledgerKills) hold(t *testing.T, dir string, at func(batch, batches int) bool) {
	t.Helper()
	o := k.check(t, dir, func(batch, batches int) bool {
		if at(batch, batches) {
			k.views++
			return true
		}
		return false
	})
	k.lateN += o.lateN
	k.timers += o.fired
	k.countChangelogs(t, dir)
}

// changelogs checks that each decided batch that changed the state has the changelog of its own attempt, and counts those and
// the ones that other attempts have left behind.
func (k *ledgerKills) countChangelogs(t *testing.T, dir string) {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(dir, "checkpoint", "state", "changelog"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, f := range files {
		there[f.Name()] = true
	}
	for _, p := range checkpointPlans(t, dir) {
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
		name := fmt.Sprintf("%d-%s", p.batch, decision.Wasmill.Attempt)
		if !there[name] {
			t.Errorf("%s: batch %d has no changelog %s", dir, p.batch, name)
		}
		delete(there, name)
		k.changelogs++
	}
	k.superseded += len(there)
}
