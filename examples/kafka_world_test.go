package examples

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// world is a job over topics, with all that a test may do to it, and counts of what was done.
type world struct {
	b     *broker
	proxy *proxy // nil: the job goes straight to the broker
	feed  *feeder
	dir   string
	job   kafkaJob

	mu      sync.Mutex
	process *process
	blows   map[string]int // kills and cuts by kind
	rungs   map[string]int // of all recoveries
	exits   map[string]int // by code, of processes that ended by themselves
}

// kafkaJob is what job files are made of.
type kafkaJob struct {
	brokers, orders, prices, out, copies string
	records                              int    // of orders, the most of a batch
	group                                string // "" without
	lake                                 bool   // also into a table of Parquet files
	more                                 string // settings of the source of orders
	sink                                 string // settings of the sink
}

// text is a job file. Its trigger is not part of what is run, so one checkpoint serves both.
func (j *kafkaJob) text(t *testing.T, trigger string) string {
	t.Helper()
	abs := func(name string) string {
		name, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	var s strings.Builder
	fmt.Fprintf(&s, "apiVersion: wasmill/v1\nkind: Job\nmetadata: {name: kafka}\nspec:\n  checkpoint: ./checkpoint\n  trigger: {%s}\n", trigger)
	fmt.Fprintf(&s, "  connections: {main: {kafka: {brokers: [%q], requestTimeout: 5s}}}\n  sources:\n", j.brokers)
	group := ""
	if j.group != "" {
		group = ", group: " + j.group
	}
	fmt.Fprintf(&s, "    - {name: orders, kafka: {connection: main, topics: [%s]%s%s}, batch: {maxRecords: %d}}\n", j.orders, group, j.more, j.records)
	if j.prices != "" {
		fmt.Fprintf(&s, "    - {name: prices, kafka: {connection: main, topics: [%s]}, batch: {maxRecords: 200}}\n", j.prices)
	}
	fmt.Fprintf(&s, "  transforms:\n    - {name: convert, from: [orders], module: %s}\n", abs("../transforms/convert/convert-go.wasm"))
	if j.prices != "" {
		fmt.Fprintf(&s, "    - {name: pass, from: [prices], module: %s}\n", abs("../abi/kit/wasm/echo.wasm"))
	}
	fmt.Fprintf(&s, "  sinks:\n    - {name: out, from: [convert.out], kafka: {connection: main, topic: %s%s}}\n", j.out, j.sink)
	if j.prices != "" {
		fmt.Fprintf(&s, "    - {name: copies, from: [pass], kafka: {connection: main, topic: %s}}\n", j.copies)
	}
	if j.lake {
		s.WriteString("    - {name: lake, from: [convert.out], files: {path: ./lake, format: parquet, schema: {order_id: int64, currency: string, amount_eur: \"decimal(12,2)\"}}}\n")
	}
	return s.String()
}

const (
	onceFile = "once.yaml" // ends when everything is read
	liveFile = "live.yaml" // runs on
)

// write puts the two job files into the folder.
func (w *world) write(t *testing.T) {
	t.Helper()
	for name, trigger := range map[string]string{onceFile: "availableNow: true", liveFile: "interval: 0s"} {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(w.job.text(t, trigger)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// newWorld makes topics and a job between them. mould changes the job before it is written.
func newWorld(t *testing.T, b *broker, p *proxy, prices bool, mould func(*kafkaJob)) *world {
	t.Helper()
	w := &world{b: b, proxy: p, dir: t.TempDir(), blows: map[string]int{}, rungs: map[string]int{}, exits: map[string]int{}}
	w.job = kafkaJob{brokers: b.addr, orders: b.topic(t, "orders", 4, nil), out: b.topic(t, "out", 4, nil), records: 400}
	if p != nil {
		w.job.brokers = b.proxy
	}
	if prices {
		w.job.prices = b.topic(t, "prices", 1, map[string]string{
			"cleanup.policy": "compact", "segment.ms": "500", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "100",
		})
		w.job.copies = b.topic(t, "copies", 1, nil)
	}
	if mould != nil {
		mould(&w.job)
	}
	w.feed = newFeeder(b, w.job.orders, w.job.prices, 1)
	w.write(t)
	t.Cleanup(func() {
		if q := w.query(); q != "" {
			b.remove("__wasmill." + q)
		}
	})
	return w
}

func (w *world) file(name string) string { return filepath.Join(w.dir, name) }

// query is the id of the checkpoint, "" before there is one.
func (w *world) query() string {
	text, _ := os.ReadFile(w.file("checkpoint/metadata")) // "" when there is none
	_, id, _ := strings.Cut(string(text), `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	return id
}

// decided is the newest decided batch of a checkpoint, -1 without one.
func decided(checkpoint string) int {
	names, _ := os.ReadDir(filepath.Join(checkpoint, "commits")) // none: nothing is decided
	newest := -1
	for _, n := range names {
		if id, err := strconv.Atoi(n.Name()); err == nil {
			newest = max(newest, id)
		}
	}
	return newest
}

// batches is how many batches are decided.
func (w *world) batches() int { return decided(w.file("checkpoint")) + 1 }

// start starts the program on one of the job files.
func (w *world) start(t *testing.T, file string, env ...string) *process {
	t.Helper()
	p := launch(t, env, w.file(file))
	w.mu.Lock()
	w.process = p
	w.mu.Unlock()
	return p
}

// strikeNow kills the process of the moment. It may be called from a connection's goroutine.
func (w *world) strikeNow() {
	w.mu.Lock()
	p := w.process
	w.mu.Unlock()
	if p != nil {
		p.signal(syscall.SIGKILL)
	}
}

// ended takes note of how a process ended. One that ended by itself must have had a passing reason, or one of more.
func (w *world) ended(t *testing.T, p *process, more ...string) {
	t.Helper()
	for _, r := range p.rungs() {
		w.rungs[r]++
	}
	if p.killed() || p.exit() == 0 {
		return
	}
	code := p.code()
	w.exits[code]++
	if !slices.Contains(passingCodes, code) && !slices.Contains(more, code) {
		t.Fatalf("the program ended with %d by %s:\n%s", p.exit(), code, p.tail())
	}
}

// passingCodes are what a process may end with while its connections are cut or the broker is away: the next start goes on.
var passingCodes = []string{"kafka.unreachable", "kafka.broker", "kafka.sink.expired"}

// finish lets the job come to its end in peace, started again where it ends with a passing error.
func (w *world) finish(t *testing.T) {
	t.Helper()
	if w.proxy != nil {
		w.proxy.set(nil)
	}
	for range 10 {
		p := w.start(t, onceFile)
		if !p.ended(patience) {
			p.kill()
			t.Fatalf("the job does not come to its end:\n%s", p.tail())
		}
		w.ended(t, p)
		if p.exit() == 0 {
			return
		}
	}
	t.Fatalf("ten starts do not bring the job to its end: %v", w.exits)
}

// check compares the topics. It returns how many orders there are.
func (w *world) check(t *testing.T) int {
	t.Helper()
	in := w.b.committed(t, w.job.orders)
	w.feed.check(t, in)
	out := w.b.committed(t, w.job.out)
	records := checkOrders(t, in, out)
	if t.Failed() {
		w.explain(t, in, out)
	}
	if w.job.prices != "" {
		n := checkPrices(t, w.b.committed(t, w.job.prices), w.b.committed(t, w.job.copies), w.feed.price)
		t.Logf("prices: %d were written to the compacted topic, %d of them are in the copy", w.feed.price, n)
	}
	return records
}

// report prints counts.
func (w *world) report(t *testing.T) {
	t.Helper()
	f := w.feed
	t.Logf("upstream: %d transactions committed, %d aborted, %d unclear", f.done, f.aborted, len(f.unclear))
	t.Logf("done to it: %s; recoveries by rung: %s; ended by itself: %s", counts(w.blows), counts(w.rungs), counts(w.exits))
}

func counts(m map[string]int) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, m[k]))
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// until waits for something that a process brings about, within a time; false when it does not come or the process ends.
func until(p *process, within time.Duration, there func() bool) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	timer := time.NewTimer(within)
	defer timer.Stop()
	for !there() {
		select {
		case <-p.done:
			return there()
		case <-timer.C:
			return false
		case <-tick.C:
		}
	}
	return true
}
