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
	wire   string        // or when this point of a connection to a server or a broker is reached
	cut    bool          // there the connection alone is cut
	server bool          // or the server is killed and started again
	broker bool          // or the broker is
	nth    int           // of inside and wire, and the batch of server and broker
	after  time.Duration // of inside, server, broker and of a random instant, which is what is left
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
	case s.broker:
		return "the broker is killed"
	}
	return "random instant"
}

// tablesKill kills jobs that publish to some targets.
type tablesKill struct {
	kinds  []string
	pg     *pgServer
	bus    *broker
	proxy  *proxy // before the broker
	rng    *rand.Rand
	job    *tablesJob     // of the table at work
	points map[string]int // points of tables that a run of this combination passes
	all    *tablesTally
	pair   *pairTally

	killed, tables int
}

func (k *tablesKill) name() string { return strings.Join(k.kinds, " + ") }

func (k *tablesKill) setup(t *testing.T) (dir, file string) {
	t.Helper()
	k.job = &tablesJob{kinds: k.kinds, pg: k.pg, bus: k.bus}
	if k.proxy != nil {
		k.job.brokers = k.bus.proxy
	}
	return k.job.write(t)
}

// ofTables are the points that belong to the publishing of tables: the others are the same for every job, and TestKill is
// killed at them.
var ofTables = regexp.MustCompile(`^[a-z]+:[a-z]+$|_delta_log|\.parquet|place=V| N/sN|spool|\.published|checkpoint/published|^(sent|answered|request|response): |^link:[a-z]+ _spark_metadata/N$| (sqlite|postgres)( (append|upsert))?$`)

// besideTables are points that match and are of the program's start, or are passed a different number of times in every run.
var besideTables = regexp.MustCompile(`checkpoint/spool`)

// protocol are points that publishing passes at least, by kind of target: a job that does not is not killed at what matters.
var protocol = map[string][]string{
	toDelta: {
		"mkdir:after sN/_delta_log", "write:half place=V/part-N-H-N-H.cN.zstd.parquet", "sync:after place=V/part-N-H-N-H.cN.zstd.parquet", "syncdir:after sN/place=V",
		"write:half _delta_log/.H.json.H.tmp", "sync:after _delta_log/.H.json.H.tmp", "link:before _delta_log/H.json", "link:after _delta_log/H.json",
		"syncdir:after sN/_delta_log", "rename:after _delta_log/H.checkpoint.parquet", "rename:after _delta_log/_last_checkpoint",
	},
	toDeltaKeys: {"write:half sN/part-N-H-N-H.cN.zstd.parquet", "sync:after sN/part-N-H-N-H.cN.zstd.parquet", "link:before _delta_log/H.json", "link:after _delta_log/H.json"},
	toSQLite:    databasePoints("sqlite", "append"), toSQLiteKeys: databasePoints("sqlite", "upsert"),
	toPostgres:   append(databasePoints("postgres", "append"), "sent: COMMIT", "answered: COMMIT", "sent: data of a COPY", "answered: end of a COPY"),
	toServerKeys: append(databasePoints("postgres", "upsert"), "sent: COMMIT", "answered: COMMIT"),
	toKafka:      {"request: EndTxn (commit)", "response: EndTxn (commit)", "request: Produce", "response: Produce", "request: InitProducerId"},
}

// databasePoints are those of a database that a job makes its table in.
func databasePoints(kind, mode string) (points []string) {
	for _, step := range []string{"create-table", "epoch-create", "epoch-insert", "epoch-claim", "begin", "epoch-advance", "epoch-note", "commit"} {
		points = append(points, step+":before "+kind, step+":after "+kind)
	}
	for _, moment := range []string{"before", "half", "after"} {
		points = append(points, "rows:"+moment+" "+kind+" "+mode)
	}
	return points
}

// traced runs the job in peace and returns the points of tables that it passes, with how often.
func (k *tablesKill) traced(t *testing.T) map[string]int {
	t.Helper()
	k.peace()
	requests := k.requests()
	points := trace(t, &victim{name: k.name(), setup: k.setup, check: func(t *testing.T, _ string) { k.job.check(t) }})
	if k.pg != nil {
		maps.Copy(points, k.pg.points())
	}
	for name, n := range k.requests() {
		points["request: "+name], points["response: "+name] = n-requests[name], n-requests[name]
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

// ofPairs are the points at which every pair of targets is killed: the steps of a batch, and where each target's part becomes
// visible.
var ofPairs = regexp.MustCompile(`^[a-z]+:[a-z]+$|^commit:|^link:[a-z]+ (_delta_log/H\.json|_spark_metadata/N)$|^(request|response): EndTxn \(commit\)$`)

// unmet are points that no kill was at.
func (k *tablesKill) unmet() (plan []string) {
	for _, p := range slices.Sorted(maps.Keys(k.points)) {
		if k.all.at[p] == 0 || ofPairs.MatchString(p) && k.pair.at[p] == 0 {
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
		case atStart.MatchString(p): // what is done once is done at every start
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

// atStart are points that every start passes.
var atStart = regexp.MustCompile(`^(request|response): |^(sent|answered): [^C]|^(sent|answered): CO|^epoch-(insert|claim):`)

// at1 is a kill at the first time of a point.
func (k *tablesKill) at1(p string) tableShot {
	if onWire(p) {
		return tableShot{wire: p, nth: 1}
	}
	return tableShot{point: p}
}

func onWire(p string) bool {
	return strings.HasPrefix(p, "sent: ") || strings.HasPrefix(p, "answered: ") || toBroker(p)
}

// insides are the points behind which something happens for a while, with how long that may take.
var insides = map[string]time.Duration{
	"lock:after checkpoint/lock": 40 * time.Millisecond, "stage:before": 8 * time.Millisecond, "publish:before": 4 * time.Millisecond,
	"commit:before sqlite": 2 * time.Millisecond, "commit:before postgres": 2 * time.Millisecond,
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
	inside := slices.DeleteFunc(slices.Sorted(maps.Keys(insides)), func(p string) bool {
		return strings.Contains(p, " ") && k.points[p] == 0 && !strings.Contains(p, "lock")
	})
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
	k.peace()
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
	struck := k.watch(s, func() { <-started; p.signal(syscall.SIGKILL) })
	p = launch(t, env, file)
	close(started)
	switch {
	case s.point != "" || s.wire != "":
	case s.inside != "":
		k.follow(p, steps, s)
	case s.server || s.broker:
		k.restart(t, p, s)
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
		k.all.cuts["cut at "+s.kind()]++
		k.pair.cuts++
	}
	k.note(t, p, s)
}

// note takes note of how a run ended.
func (k *tablesKill) note(t *testing.T, p *process, s *tableShot) {
	t.Helper()
	switch {
	case p.killed():
		k.killed++
		k.all.at[s.kind()]++
		k.pair.at[s.kind()]++
		k.pair.kills++
		if info, err := os.Stat(filepath.Join(k.job.dir, "sqlite.db-journal")); err == nil && info.Size() > 0 {
			k.all.journals++
		}
	case p.exit() == 0:
	case (s.cut || s.server || s.broker) && slices.Contains(passingTables, p.code()):
		k.all.ended[p.code()]++
	default:
		t.Fatalf("%s: %+v: it ended with %d by %s:\n%s", k.name(), *s, p.exit(), p.code(), p.tail())
	}
}

// passingTables are the codes that a run may end with when its connection was cut or the server was away: the next start goes on. A
// broker that hangs up before it has ever answered may want TLS or a password.
var passingTables = append([]string{"sql.unreachable", "kafka.auth", "kafka.tls"}, passingCodes...)

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

// alone are the combinations that need no server.
var alone = [][]string{
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
}

// TestTablesKill kills the real program with SIGKILL while it publishes to tables: to each kind alone and to pairs of them, at
// every named point of publishing, inside of steps and at random instants. Then every record is in every target once, and each
// table says of itself what was decided.
func TestTablesKill(t *testing.T) {
	tablesRun(t, alone, nil, nil, nil)
}
