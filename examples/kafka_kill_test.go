package examples

import (
	"bufio"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// blow is one thing done to a job at work. What is not set is left out; in the end the process is always killed.
type blow struct {
	name  string
	point string        // it kills itself here
	after time.Duration // it is killed after this time

	// On the nth request of a key the connection is treated so; deadly kills the process there.
	wire   treatment
	deadly bool
	key    int16
	nth    int

	broker bool // the broker is killed and started again
}

// requestNames are the requests that mean something to exactly once.
var requestNames = map[int16]string{
	0: "Produce", 1: "Fetch", 2: "ListOffsets", 3: "Metadata", 8: "OffsetCommit", 10: "FindCoordinator", 18: "ApiVersions",
	22: "InitProducerId", 23: "OffsetForLeaderEpoch", 24: "AddPartitionsToTxn", endTxn: "EndTxn (abort)", commitTxn: "EndTxn (commit)", 32: "DescribeConfigs", 61: "DescribeProducers",
	65: "DescribeTransactions",
}

const createTopics = 19 // only in the beginning of a job

func requestName(key int16) string {
	if n, ok := requestNames[key]; ok {
		return n
	}
	return strconv.Itoa(int(key))
}

// strike starts the job and does to it what a blow says.
func (w *world) strike(t *testing.T, b *blow) {
	t.Helper()
	fired := make(chan struct{})
	if w.proxy != nil {
		w.proxy.set(w.judge(b, fired))
	}
	var env []string
	if b.point != "" {
		env = []string{"WASMILL_FAILPOINT=" + b.point}
	}
	p := w.start(t, liveFile, env...)
	began := time.Now()
	defer func() {
		if took := time.Since(began); took > slow && !b.broker {
			t.Logf("%s %s at %s #%d: over after %s", b.name, b.point, requestName(b.key), b.nth, took.Round(time.Millisecond))
		}
		p.kill()
		w.ended(t, p, b.mistaken()...)
	}()
	switch {
	case b.broker:
		w.killBroker(t, p, b)
	case b.point != "" || b.deadly:
		if p.ended(bound) && p.killed() {
			w.blows["kills at "+b.name]++
		} else if p.running() {
			w.blows["kills though a point was not reached"]++
			t.Logf("%s: %q %s #%d is not reached", b.name, b.point, requestName(b.key), b.nth)
		}
	case b.wire != passOn:
		w.surviveCut(t, p, b, fired)
	default:
		if !p.ended(b.after) {
			w.blows["kills at random"]++
		}
	}
}

// mistaken are the codes that a cut may be taken for: a cluster that hangs up before it has ever answered may want TLS or a
// password.
func (b *blow) mistaken() []string {
	if b.wire == passOn || b.nth != 1 {
		return nil
	}
	return []string{"kafka.auth", "kafka.tls"}
}

// bound is how long a process may take to reach a point, or to get over a cut connection.
const bound = 20 * time.Second

// slow is how long a blow takes before it is worth a line.
const slow = 5 * time.Second

// judge says which request is treated how; fired is closed at that one.
func (w *world) judge(b *blow, fired chan struct{}) func(request) verdict {
	if b.wire == passOn {
		return nil
	}
	var mu sync.Mutex
	n := 0
	return func(r request) verdict {
		mu.Lock()
		defer mu.Unlock()
		if r.key != b.key {
			return verdict{}
		}
		if n++; n != b.nth {
			return verdict{}
		}
		return verdict{treatment: b.wire, stall: 400 * time.Millisecond, then: func() {
			if b.deadly {
				w.strikeNow()
			}
			close(fired)
		}}
	}
}

// surviveCut waits until the connection is cut and the job has got over it: it goes on by itself or ends with a passing
// error. Then it is killed.
func (w *world) surviveCut(t *testing.T, p *process, b *blow, fired chan struct{}) {
	t.Helper()
	if !until(p, bound, func() bool { return isClosed(fired) }) {
		t.Logf("%s: %s #%d was not seen", b.name, requestName(b.key), b.nth)
		w.blows["kills though a request was not seen"]++
		return
	}
	w.blows["connections: "+b.name]++
	at := w.batches()
	if !until(p, bound, func() bool { return w.batches() > at+1 }) && p.running() {
		t.Errorf("%s at %s #%d: the program neither goes on nor ends:\n%s", b.name, requestName(b.key), b.nth, p.tail())
	}
	if p.running() {
		w.blows["kills after a cut"]++
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// killBroker kills the broker while the job is at work, starts it again, and lets the job get over it.
func (w *world) killBroker(t *testing.T, p *process, b *blow) {
	t.Helper()
	at := w.batches()
	until(p, bound, func() bool { return w.batches() > at+1 })
	pause(t.Context(), b.after)
	w.b.shaken.Add(1)
	w.b.sh(t, "kill9")
	w.blows["kills of the broker"]++
	w.b.sh(t, "start")
	w.b.shaken.Add(1)
	at = w.batches()
	if !until(p, patience, func() bool { return w.batches() > at+1 }) && p.running() {
		t.Errorf("the broker is back, and the program neither goes on nor ends:\n%s", p.tail())
	}
	if p.running() {
		w.blows["kills after the broker's"]++
	}
}

// traced runs the job for some batches and returns the named points that it passes, with how often, and the requests.
func (w *world) traced(t *testing.T) (points map[string]int, requests []int16) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "trace")
	p := w.start(t, onceFile, "WASMILL_FAILPOINT_TRACE="+name)
	if !p.ended(patience) || p.exit() != 0 {
		t.Fatalf("the first run:\n%s", p.tail())
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	points = map[string]int{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		points[sc.Text()]++
	}
	if w.proxy != nil {
		requests = slices.Sorted(maps.Keys(w.proxy.requests()))
	}
	return points, requests
}

// wireBlows are the ways to treat requests: each kind of request, cut and deadly, early and later.
func wireBlows(keys []int16, rng *rand.Rand) []blow {
	var out []blow
	for _, key := range keys {
		for _, b := range []blow{
			{name: "cut before a request", wire: cutBefore},
			{name: "cut in a request", wire: cutMid},
			{name: "an answer lost", wire: cutAfter},
			{name: "a stall", wire: stallFor},
			{name: "a request", wire: cutBefore, deadly: true},
			{name: "an answer", wire: cutAfter, deadly: true},
		} {
			b.key, b.nth = key, 1
			if slices.Contains([]int16{0, 1, commitTxn}, key) {
				b.nth = 1 + rng.IntN(8)
			}
			out = append(out, b)
		}
	}
	return out
}

// TestKafkaKill kills the real program over a real broker, at every named point of its protocol, at requests of each kind
// and at random; kills the broker, and cuts connections. All the while an upstream producer commits and aborts transactions,
// and a second input is compacted. In the end every order is in the output once, in order per key.
func TestKafkaKill(t *testing.T) {
	b := realBroker(t)
	rng := newRand(t)
	w := newWorld(t, b, startProxy(t, b), true, func(j *kafkaJob) { j.group = unique("lag") })
	w.feed.feed(t.Context(), t, 120, 0)
	points, requests := w.traced(t)
	var often, once []string
	for _, p := range slices.Sorted(maps.Keys(points)) {
		if points[p] >= w.batches()-1 {
			often = append(often, p)
		} else {
			once = append(once, p)
		}
	}
	t.Logf("%d named points in every batch, %d at other times; requests %v", len(often), len(once), names(requests))
	requests = slices.DeleteFunc(requests, func(key int16) bool { return key == createTopics })
	blows := wireBlows(requests, rng)
	for _, p := range often {
		blows = append(blows, blow{name: "a named point", point: p + "@" + strconv.Itoa(1+rng.IntN(3))})
	}
	for range 8 {
		blows = append(blows, blow{name: "the broker", broker: true, after: time.Duration(rng.IntN(200)) * time.Millisecond})
	}
	want := kafkaKills(220)
	rng.Shuffle(len(once), func(i, j int) { once[i], once[j] = once[j], once[i] })
	once = once[:min(len(once), want/8)]
	for len(blows)+len(once) < want {
		blows = append(blows, blow{name: "random", after: time.Duration(50+rng.IntN(400)) * time.Millisecond})
	}
	rng.Shuffle(len(blows), func(i, j int) { blows[i], blows[j] = blows[j], blows[i] })
	stop := w.feed.start(t, 15*time.Millisecond)
	for i := range blows {
		w.strike(t, &blows[i])
	}
	stop()
	w.finish(t)
	records := w.check(t)
	w.report(t)
	n := w.kills() + seldomPoints(t, b, once)
	t.Logf("%d kills over %d batches, %d orders exactly once", n, w.batches(), records)
	if n < want*9/10 {
		t.Errorf("%d kills, %d were asked for", n, want)
	}
}

func (w *world) kills() int {
	n := 0
	for name, c := range w.blows {
		if name[:5] == "kills" {
			n += c
		}
	}
	return n
}

// seldomPoints kills a new job at each point that is not passed in every batch: most are of the beginning.
func seldomPoints(t *testing.T, b *broker, points []string) (kills int) {
	t.Helper()
	w := newWorld(t, b, nil, false, func(j *kafkaJob) { j.records = 60 })
	w.feed.feed(t.Context(), t, 60, 0)
	in := b.committed(t, w.job.orders)
	for _, point := range points {
		v := newWorld(t, b, nil, false, func(j *kafkaJob) { j.orders, j.records = w.job.orders, 60 })
		p := v.start(t, onceFile, "WASMILL_FAILPOINT="+point)
		if !p.ended(patience) {
			t.Fatalf("point %q:\n%s", point, p.tail())
		}
		v.ended(t, p)
		if p.killed() {
			kills++
		}
		v.finish(t)
		checkOrders(t, in, b.committed(t, v.job.out))
		if t.Failed() {
			t.Fatalf("point %q:\n%s", point, p.tail())
		}
	}
	t.Logf("%d kills of new jobs at %d points of their beginning", kills, len(points))
	return kills
}

// kafkaKills is how many kills are asked for: WASMILL_KAFKA_KILLS, or a number of the test's.
func kafkaKills(usual int) int {
	if n, err := strconv.Atoi(os.Getenv("WASMILL_KAFKA_KILLS")); err == nil {
		return n
	}
	return usual
}

func newRand(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func names(keys []int16) []string {
	var out []string
	for _, k := range keys {
		out = append(out, requestName(k))
	}
	return out
}
