package examples

import (
	"bufio"
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

// kills is how many times the program is killed at least: WASMILL_KILLS, or a few. From 100 on every named point is
// among them.
func kills(t *testing.T) int {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("WASMILL_KILLS")); err == nil {
		return n
	}
	return 40
}

// victim is a job that can be killed and checked.
type victim struct {
	name string
	// everyPoint: also the points of the beginning, which are the same for every job.
	everyPoint bool

	setup func(t *testing.T) (dir, file string)
	check func(t *testing.T, dir string)
}

var victims = []victim{
	{
		name: "flights, three sinks", everyPoint: true,
		setup: func(t *testing.T) (string, string) { return flightsJob(t, "clean.wasm", "2500") },
		check: checkFlights,
	},
	{name: "poison records, two sinks", setup: poisonJob, check: checkPoison},
}

// TestKill kills the real program with SIGKILL, at every named point of the protocol and at random instants, several times
// a table, and compares the finished tables with the oracle.
func TestKill(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("random instants from seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	total, tables := 0, 0
	for i := range victims {
		v := &victims[i]
		points := trace(t, v)
		want := kills(t) * (i*-1 + 2) / 3 // two thirds for the first
		n, tb := slaughter(t, v, points, want, rng)
		total += n
		tables += tb
	}
	t.Logf("%d kills over %d tables, every table equal to its oracle", total, tables)
	if total < kills(t) {
		t.Errorf("%d kills, %d were asked for", total, kills(t))
	}
}

// trace runs a victim in peace and returns the named points that it passes, with how often.
func trace(t *testing.T, v *victim) map[string]int {
	t.Helper()
	dir, file := v.setup(t)
	name := filepath.Join(t.TempDir(), "trace")
	if r := run(t, []string{"WASMILL_FAILPOINT_TRACE=" + name}, "run", file); r.code != 0 {
		t.Fatal(r.stderr)
	}
	v.check(t, dir)
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	points := map[string]int{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		points[sc.Text()]++
	}
	for _, must := range []string{"plan:before", "run:after", "stage:after", "decide:before", "decide:after", "publish:after", "seal:after"} {
		if points[must] == 0 {
			t.Fatalf("%s: the run does not pass the point %s", v.name, must)
		}
	}
	return points
}

const (
	perTable = 12 // how often a table's run is killed before it may finish
	seldom   = 6  // points that a run passes so seldom belong to its beginning, or to every tenth batch
)

// slaughter kills a victim at each named point and then at random instants until the wanted number is reached. Points
// that a run passes seldom get a table of their own each, the others share tables.
func slaughter(t *testing.T, v *victim, points map[string]int, want int, rng *rand.Rand) (killed, tables int) {
	t.Helper()
	var plans [][]string // the points of each table; "" is a random instant
	var often []string
	for _, p := range slices.Sorted(maps.Keys(points)) {
		switch {
		case points[p] > seldom:
			often = append(often, p)
		case v.everyPoint && kills(t) >= 100:
			plans = append(plans, []string{p, ""})
		}
	}
	rng.Shuffle(len(often), func(i, j int) { often[i], often[j] = often[j], often[i] })
	once := len(plans)
	plans = append(plans, slices.Collect(slices.Chunk(often, perTable))...)
	named := 0
	for len(plans) > 0 || killed < want {
		plan := make([]string, perTable)
		if len(plans) > 0 {
			plan, plans = plans[0], plans[1:]
		}
		n, at := killTable(t, v, plan, rng)
		killed, named, tables = killed+n, named+at, tables+1
	}
	t.Logf("%s: %d kills, %d of them at %d named points, %d tables", v.name, killed, named, once+len(often), tables)
	if all := len(often) + once; named < all*9/10 {
		t.Errorf("%s: only %d of %d named points were reached", v.name, named, all)
	}
	return killed, tables
}

// killTable makes one table, killed at the planned points in order, then finished and checked.
func killTable(t *testing.T, v *victim, plan []string, rng *rand.Rand) (killed, named int) {
	t.Helper()
	dir, file := v.setup(t)
	for _, point := range plan {
		var r result
		if point != "" {
			r = run(t, []string{"WASMILL_FAILPOINT=" + point}, "run", file)
		} else {
			r = runFor(t, time.Duration(1+rng.IntN(150))*time.Millisecond, nil, "run", file)
		}
		switch {
		case r.killed:
			killed++
			if point != "" {
				named++
			}
		case r.code != 0:
			t.Fatalf("%s: plan %q: neither killed nor well:\n%s", v.name, plan, r.stderr)
		}
	}
	mustRun(t, "run", file)
	v.check(t, dir)
	if t.Failed() {
		t.Fatalf("%s: plan %q", v.name, plan)
	}
	return killed, named
}

// poisonJob is a job over a guest that traps on values that begin with "poison".
func poisonJob(t *testing.T) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	for f := range 6 {
		var b strings.Builder
		for i := range 300 {
			b.WriteString(poisonLine(f, i) + "\n")
		}
		if err := os.WriteFile(filepath.Join(dir, "in", fmt.Sprintf("%d.txt", f)), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	module, err := filepath.Abs("../abi/kit/wasm/poison.wasm")
	if err != nil {
		t.Fatal(err)
	}
	job := `
apiVersion: wasmill/v1
kind: Job
metadata: {name: poison}
spec:
  checkpoint: ./checkpoint
  trigger: {availableNow: true}
  sources:
    - {name: in, files: {path: ./in, format: lines}, batch: {maxRecords: 250}}
  transforms:
    - {name: echo, from: [in], module: ` + module + `}
  sinks:
    - {name: out, from: [echo], files: {path: ./out, format: jsonl}}
    - {name: dead, files: {path: ./dead, format: jsonl}}
  errors: {policy: dead-letter, deadLetters: dead}
`
	file = filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(file, []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, file
}

func poisonLine(f, i int) string {
	if i%97 == 41 {
		return fmt.Sprintf(`poison %d-%d`, f, i)
	}
	return fmt.Sprintf(`{"file":%d,"line":%d}`, f, i)
}

func checkPoison(t *testing.T, dir string) {
	t.Helper()
	var good []string
	bad := 0
	for f := range 6 {
		for i := range 300 {
			if line := poisonLine(f, i); strings.Contains(line, "poison") {
				bad++
			} else {
				good = append(good, line)
			}
		}
	}
	sameRows(t, "out", lines(t, filepath.Join(dir, "out")), good)
	dead := lines(t, filepath.Join(dir, "dead"))
	if len(dead) != bad {
		t.Errorf("%d dead letters, want %d", len(dead), bad)
	}
	for _, l := range dead {
		if !strings.Contains(l, `poison`) || !strings.Contains(l, `"word":"unreachable"`) {
			t.Errorf("dead letter %s", l)
		}
	}
}
