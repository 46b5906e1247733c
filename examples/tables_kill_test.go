package examples

import (
	"bufio"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tablesKills is how many times the program is killed at least: WASMILL_TABLES_KILLS, or a few. From 100 on every named
// point of the tables is among them.
func tablesKills(t *testing.T) int {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("WASMILL_TABLES_KILLS")); err == nil {
		return n
	}
	return 12
}

// tableShot is something that happens to one run of a job.
type tableShot struct {
	point  string        // it kills itself here: NAME or NAME@N
	inside string        // or it is killed some time after it has reached this point
	wire   string        // or when this point of the connection to the server is reached
	cut    bool          // there the connection alone is cut
	server bool          // or the server is killed and started again
	nth    int           // of inside and wire
	after  time.Duration // of inside, server and of a random instant, which is what is left
}

// kind is what the shot counts as.
func (s *tableShot) kind() string {
	switch {
	case s.point != "":
		point, _, _ := strings.Cut(s.point, "@")
		return point
	case s.inside != "":
		return "behind " + s.inside
	case s.wire != "":
		return s.wire
	case s.server:
		return "the server is killed"
	}
	return "random instant"
}

// tablesKill kills jobs that publish to some targets.
type tablesKill struct {
	kinds  []string
	pg     *pgServer
	bus    *broker
	rng    *rand.Rand
	job    *tablesJob     // of the table at work
	at     map[string]int // kills by kind, of all combinations
	steps  map[string]int // kills at steps of a batch, of this one
	points map[string]int // points of tables that a run of this combination passes
	cuts   map[string]int // connections cut, servers killed

	killed, tables int
	ended          map[string]int // ways in which it ended by itself after a cut
}

func (k *tablesKill) name() string { return strings.Join(k.kinds, " + ") }

func (k *tablesKill) setup(t *testing.T) (dir, file string) {
	t.Helper()
	k.job = &tablesJob{kinds: k.kinds, pg: k.pg, bus: k.bus}
	return k.job.write(t)
}

// ofTables are the points that belong to the publishing of tables: the others are the same for every job, and TestKill is
// killed at them.
var ofTables = regexp.MustCompile(`^[a-z]+:[a-z]+$|_delta_log|\.parquet|place=V| N/sN|spool|\.published|checkpoint/published|^sent: |^answered: `)

// besideTables are points that match and are of the program's start, or are passed a different number of times in every run.
var besideTables = regexp.MustCompile(`checkpoint/spool`)

// protocol are points that publishing passes at least, by kind of target: a job that does not is not killed at what matters.
var protocol = map[string][]string{
	toDelta: {
		"mkdir:after sN/_delta_log", "write:half place=V/part-N-H-N-H.cN.zstd.parquet", "sync:after place=V/part-N-H-N-H.cN.zstd.parquet", "syncdir:after sN/place=V",
		"write:half _delta_log/.H.json.H.tmp", "sync:after _delta_log/.H.json.H.tmp", "link:before _delta_log/H.json", "link:after _delta_log/H.json",
		"syncdir:after sN/_delta_log", "rename:after _delta_log/H.checkpoint.parquet", "rename:after _delta_log/_last_checkpoint",
	},
	toDeltaKeys:  {"write:half sN/part-N-H-N-H.cN.zstd.parquet", "sync:after sN/part-N-H-N-H.cN.zstd.parquet", "link:before _delta_log/H.json", "link:after _delta_log/H.json"},
	toSQLite:     {"stage:after", "decide:after", "publish:before", "publish:after"},
	toPostgres:   {"sent: COMMIT", "answered: COMMIT", "sent: data of a COPY", "answered: end of a COPY"},
	toServerKeys: {"sent: COMMIT", "answered: COMMIT"},
}

// traced runs the job in peace and returns the points of tables that it passes, with how often.
func (k *tablesKill) traced(t *testing.T) map[string]int {
	t.Helper()
	if k.pg != nil {
		k.pg.watch("", 0, nil)
	}
	points := trace(t, &victim{name: k.name(), setup: k.setup, check: func(t *testing.T, _ string) { k.job.check(t) }})
	if k.pg != nil {
		maps.Copy(points, k.pg.points())
	}
	maps.DeleteFunc(points, func(p string, _ int) bool { return !ofTables.MatchString(p) || besideTables.MatchString(p) })
	for _, kind := range k.kinds {
		for _, must := range protocol[kind] {
			if points[must] == 0 {
				t.Errorf("%s: the run does not pass the point %s", k.name(), must)
			}
		}
	}
	return points
}

// slaughter kills the job at each point at which none was killed yet, and then between publishes, inside of steps and at
// random instants, until there are enough kills.
func (k *tablesKill) slaughter(t *testing.T, want int) {
	t.Helper()
	k.points = k.traced(t)
	const rounds = 12 // a point is tried so often before it is given up
	for range rounds {
		plan := k.unmet()
		if tablesKills(t) < 100 || len(plan) == 0 {
			break
		}
		for len(plan) > 0 {
			var shots []tableShot
			shots, plan = k.take(plan)
			k.table(t, shots)
		}
	}
	if tablesKills(t) >= 100 {
		want = max(want, k.killed+perTable/2)
	}
	for k.killed < want {
		k.table(t, k.mixed(min(perTable*2/3, want-k.killed)))
	}
}

// aStep is a step of a batch, at which every combination is killed.
var aStep = regexp.MustCompile(`^[a-z]+:[a-z]+$`)

// unmet are points that no kill was at.
func (k *tablesKill) unmet() (plan []string) {
	for _, p := range slices.Sorted(maps.Keys(k.points)) {
		if k.at[p] == 0 || aStep.MatchString(p) && k.steps[p] == 0 {
			plan = append(plan, p)
		}
	}
	k.rng.Shuffle(len(plan), func(i, j int) { plan[i], plan[j] = plan[j], plan[i] })
	return plan
}

// take makes shots for one table: at most one point of its beginning, which comes first, two that few batches pass, and some
// that every batch passes.
func (k *tablesKill) take(plan []string) (shots []tableShot, rest []string) {
	room := [...]int{1, 2, 5}
	var of [3][]tableShot
	for _, p := range plan {
		class := 2
		switch n := k.points[p]; {
		case onWire(p) && !strings.Contains(p, "CREATE"): // what is said once is said at every start
		case n <= 2:
			class = 0
		case n < changeFiles*2-1:
			class = 1
		}
		if room[class] == 0 {
			rest = append(rest, p)
			continue
		}
		room[class]--
		of[class] = append(of[class], k.at1(p))
	}
	return slices.Concat(of[:]...), rest
}

// at1 is a kill at the first time of a point.
func (k *tablesKill) at1(p string) tableShot {
	if onWire(p) {
		return tableShot{wire: p, nth: 1}
	}
	return tableShot{point: p}
}

func onWire(p string) bool {
	return strings.HasPrefix(p, "sent: ") || strings.HasPrefix(p, "answered: ")
}

// insides are the points behind which something happens for a while, with how long that may take.
var insides = map[string]time.Duration{
	"lock:after checkpoint/lock": 40 * time.Millisecond, "stage:before": 8 * time.Millisecond, "publish:before": 4 * time.Millisecond,
}

// mixed are shots of all kinds, most of them from the decision to the end of the batch.
func (k *tablesKill) mixed(n int) (shots []tableShot) {
	often := slices.DeleteFunc(slices.Sorted(maps.Keys(k.points)), func(p string) bool { return k.points[p] < changeFiles*2-1 })
	between := betweenPublishes(often)
	wire := slices.DeleteFunc(slices.Clone(often), func(p string) bool { return !onWire(p) })
	for _, p := range often {
		if strings.Contains(p, "_delta_log") {
			between = append(between, p)
		}
	}
	inside := slices.Sorted(maps.Keys(insides))
	for len(shots) < n {
		nth := 1 + k.rng.IntN(2)
		switch what := k.rng.IntN(10); {
		case what < 4:
			shots = append(shots, tableShot{point: between[k.rng.IntN(len(between))] + "@" + strconv.Itoa(nth)})
		case what < 6:
			p := inside[k.rng.IntN(len(inside))]
			if insides[p] > 10*time.Millisecond {
				nth = 1
			}
			shots = append(shots, tableShot{inside: p, nth: nth, after: time.Duration(k.rng.Int64N(int64(insides[p])))})
		case what < 8 && len(wire) > 0:
			shots = append(shots, tableShot{wire: wire[k.rng.IntN(len(wire))], nth: nth})
		default:
			shots = append(shots, tableShot{after: time.Duration(1+k.rng.IntN(150)) * time.Millisecond})
		}
	}
	return shots
}

// table makes one table, shot at as planned, then finished and checked.
func (k *tablesKill) table(t *testing.T, plan []tableShot) {
	t.Helper()
	dir, file := k.setup(t)
	for i := range plan {
		k.shoot(t, file, &plan[i])
	}
	if k.pg != nil {
		k.pg.watch("", 0, nil)
	}
	mustRun(t, "run", file)
	k.job.check(t)
	if t.Failed() {
		t.Fatalf("%s in %s: plan %+v", k.name(), dir, plan)
	}
	k.tables++
}

// shoot runs the job until what is planned has happened, or until its end.
func (k *tablesKill) shoot(t *testing.T, file string, s *tableShot) {
	t.Helper()
	var env []string
	var steps *os.File
	if s.point != "" {
		env = append(env, "WASMILL_FAILPOINT="+s.point)
	}
	if s.inside != "" {
		steps = fifo(t, file+".steps")
		env = append(env, "WASMILL_FAILPOINT_TRACE="+steps.Name())
	}
	var p *process
	started := make(chan struct{})
	var struck chan struct{}
	if k.pg != nil {
		var strike func()
		if !s.cut {
			strike = func() { <-started; p.signal(syscall.SIGKILL) }
		}
		struck = k.pg.watch(s.wire, s.nth, strike)
	}
	p = launch(t, env, file)
	close(started)
	switch {
	case s.point != "" || s.wire != "":
	case s.inside != "":
		k.follow(p, steps, s)
	case s.server:
		if until(p, bound, func() bool { return decided(k.job.checkpoint()) >= s.nth }) {
			pause(t.Context(), s.after)
			k.pg.sh(t, "kill9")
			k.pg.sh(t, "start")
			k.cuts[s.kind()]++
		}
	case !p.ended(s.after):
		p.signal(syscall.SIGKILL)
	}
	if !p.ended(patience) {
		t.Fatalf("%s: %+v: it hangs:\n%s", k.name(), *s, p.tail())
	}
	if steps != nil {
		_ = steps.Close()
	}
	if s.cut && isClosed(struck) {
		k.cuts["cut at "+s.kind()]++
	}
	k.note(t, p, s)
}

// note takes note of how a run ended.
func (k *tablesKill) note(t *testing.T, p *process, s *tableShot) {
	t.Helper()
	switch {
	case p.killed():
		k.killed++
		k.at[s.kind()]++
		k.steps[s.kind()]++
	case p.exit() == 0:
	case (s.cut || s.server) && slices.Contains(passingSQL, p.code()):
		k.ended[p.code()]++
	default:
		t.Fatalf("%s: %+v: it ended with %d by %s:\n%s", k.name(), *s, p.exit(), p.code(), p.tail())
	}
}

// passingSQL are the codes that a run may end with when its connection was cut or the server was away: the next start goes on.
var passingSQL = []string{"sql.connection", "sql.unreachable"}

// follow kills a process some time after it has reached a point, and reads on until it has ended.
func (k *tablesKill) follow(p *process, steps *os.File, s *tableShot) {
	go func() {
		<-p.done
		_ = steps.Close()
	}()
	reached := 0
	for sc := bufio.NewScanner(steps); sc.Scan(); {
		if sc.Text() != s.inside {
			continue
		}
		if reached++; reached == s.nth {
			time.AfterFunc(s.after, func() { p.signal(syscall.SIGKILL) })
		}
	}
}

// fifo makes a pipe with a name: what is written to it is read at that very moment.
func fifo(t *testing.T, name string) *os.File {
	t.Helper()
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Open(name, syscall.O_RDWR|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0) // also for writing: it has no end before it is closed
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), name)
}

// tablesRun kills one combination after the other, prints counts, and demands that every point was met.
func tablesRun(t *testing.T, combinations [][]string, pg *pgServer, bus *broker, also func(k *tablesKill)) {
	rng := newRand(t)
	at, cuts, ended := map[string]int{}, map[string]int{}, map[string]int{}
	want := tablesKills(t)
	total, tables := 0, 0
	var missed []string
	for i, kinds := range combinations {
		began := time.Now()
		k := &tablesKill{kinds: kinds, rng: rng, at: at, steps: map[string]int{}, cuts: cuts, ended: ended}
		if slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasPrefix(kind, toPostgres) }) {
			k.pg = pg
		}
		if slices.Contains(kinds, toKafka) {
			k.bus = bus
		}
		k.slaughter(t, max((want-total+len(combinations)-i-1)/(len(combinations)-i), 1))
		if also != nil {
			also(k)
		}
		k.keep(t)
		total, tables = total+k.killed, tables+k.tables
		if left := k.unmet(); want >= 100 && len(left) > 0 {
			missed = append(missed, fmt.Sprintf("%s: no kill was at %q", k.name(), left))
		}
		t.Logf("%4d kills over %2d tables in %4.1f s: %s", k.killed, k.tables, time.Since(began).Seconds(), k.name())
	}
	report(t, at, "kills")
	report(t, cuts, "times")
	t.Logf("ended by itself after a cut: %s", counts(ended))
	t.Logf("%d kills over %d tables and %d combinations, every table equal to its oracle", total, tables, len(combinations))
	if total < want || missed != nil {
		t.Errorf("%d kills, %d were asked for; %s", total, want, strings.Join(missed, "; "))
	}
}

// report prints counts, with all files of one kind on one line.
func report(t *testing.T, at map[string]int, what string) {
	t.Helper()
	sums := map[string]int{}
	for p, n := range at {
		_, place, ok := strings.Cut(p, " ")
		if !ok || strings.HasPrefix(p, "random") || strings.Contains(p, ": ") || strings.HasPrefix(p, "behind ") || what != "kills" {
			place = p
		}
		sums[place] += n
	}
	for _, p := range slices.Sorted(maps.Keys(sums)) {
		t.Logf("%4d %s: %s", sums[p], what, p)
	}
}

// keep puts the Delta tables of the last job where other programs are to judge them, with a line each in a list of them.
func (k *tablesKill) keep(t *testing.T) {
	t.Helper()
	to := os.Getenv("WASMILL_TABLES_KEEP")
	if to == "" {
		return
	}
	list, err := os.OpenFile(filepath.Join(to, "tables"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	for i, kind := range k.kinds {
		if !strings.HasPrefix(kind, toDelta) {
			continue
		}
		dir := filepath.Join(to, k.job.id+"-"+k.job.sink(i))
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(k.job.dir, k.job.sink(i)))); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+".jsonl", []byte(expected(kind)), 0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(list, "%s\t%s\t%s/%s=%d\n", dir, dir+".jsonl", k.job.query(t), k.job.sink(i), changeFiles*2-1)
	}
}

// expected are the rows of a table in the forms of `.ci/readers`.
func expected(kind string) string {
	all := someChanges()
	if keeps(kind) {
		all = left(all)
	}
	var s strings.Builder
	for _, c := range all {
		fmt.Fprintf(&s, `{"id":%d,"key":%q,"place":%q,"amount":%q,"at":%q}`+"\n", c.ID, c.Key, c.Place, c.Amount, strings.TrimSuffix(c.At, "Z")+".000000Z")
	}
	return s.String()
}

// TestTablesKill kills the real program with SIGKILL while it publishes to tables: to each kind alone and to pairs of them, at
// every named point of publishing, inside of steps and at random instants. Then every record is in every target once, and each
// table says of itself what was decided.
func TestTablesKill(t *testing.T) {
	tablesRun(t, [][]string{
		{toDelta},
		{toDeltaKeys},
		{toSQLite},
		{toSQLiteKeys},
		{toFiles},
		{toSQLite, toSQLiteKeys},
		{toFiles, toDelta},
		{toFiles, toSQLite},
		{toDelta, toSQLite},
		{toDeltaKeys, toSQLiteKeys},
		{toDelta, toDeltaKeys},
	}, nil, nil, nil)
}
