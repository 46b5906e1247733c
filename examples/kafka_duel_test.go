package examples

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// owner is one of two that run copies of a checkpoint, and believe that the topics are theirs.
type owner struct {
	name string
	w    *world // its folder, its counts
}

// beaten are the codes by which an owner learns that the other one has published what it has not: only a fork of the
// checkpoint would help, so starting it again is of no use.
var beaten = []string{"target.ahead", "target.digest_differs", "kafka.sink.conflict"}

// bout is one fight: it lasts until one owner is beaten.
type bout struct {
	t      *testing.T
	cancel context.CancelFunc

	mu    sync.Mutex
	loser *owner
	exits map[string]int
	stops int
}

// supervise starts an owner again whenever it ends, later each time, until the fight is over. Now and then it is killed, or
// stopped for a while, so that it wakes up when the other has gone on.
func (f *bout) supervise(ctx context.Context, o *owner, rng *rand.Rand) {
	back := 20 * time.Millisecond
	lost := 0
	for ctx.Err() == nil {
		at := o.w.batches()
		p := o.w.start(f.t, liveFile)
		f.torment(ctx, p, rng)
		p.kill()
		if o.w.batches() > at {
			back, lost = 20*time.Millisecond, 0
		}
		if p.killed() {
			f.count("killed")
			continue
		}
		code := p.code()
		f.count(code)
		if !slices.Contains(beaten, code) && !slices.Contains(passingCodes, code) && code != "kafka.sink.fenced" {
			f.t.Errorf("%s ended with %d by %s:\n%s", o.name, p.exit(), code, p.tail())
			f.cancel()
			return
		}
		if slices.Contains(beaten, code) {
			if lost++; lost == 2 {
				f.over(o)
				return
			}
		}
		pause(ctx, back+time.Duration(rng.IntN(20))*time.Millisecond)
		back = min(2*back, time.Second)
	}
}

// torment stops and wakes a process at random until it ends, is killed at random, or the fight is over.
func (f *bout) torment(ctx context.Context, p *process, rng *rand.Rand) {
	for ctx.Err() == nil && p.running() {
		pause(ctx, time.Duration(50+rng.IntN(400))*time.Millisecond)
		switch rng.IntN(8) {
		case 0:
			return
		case 1, 2:
			p.signal(syscall.SIGSTOP)
			pause(ctx, time.Duration(rng.IntN(300))*time.Millisecond)
			p.signal(syscall.SIGCONT)
			f.mu.Lock()
			f.stops++
			f.mu.Unlock()
		}
	}
}

func (f *bout) count(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.exits[what]++
}

func (f *bout) over(loser *owner) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.loser == nil {
		f.loser = loser
	}
	f.cancel()
}

// marks reads which batches were published, in order, from the marker topic.
func marks(t *testing.T, b *broker, query string) (batches []int) {
	t.Helper()
	for _, r := range b.committed(t, "__wasmill."+query)[0] {
		var m struct{ Batch int }
		if err := json.Unmarshal(r.Value, &m); err != nil {
			t.Fatalf("marker %s: %v", r.Value, err)
		}
		batches = append(batches, m.Batch)
	}
	return batches
}

// TestKafkaDuel lets two processes with copies of one checkpoint fight for the same topics: both are started again whenever
// they end. One of them is beaten at last, gets a copy of the other's checkpoint, and it begins anew. Each batch is published
// by one of them, and the output holds every order once.
func TestKafkaDuel(t *testing.T) {
	b := realBroker(t)
	rng := newRand(t)
	long := duelTime(t)
	w := newWorld(t, b, nil, false, func(j *kafkaJob) { j.records = 200 })
	w.feed.feed(t.Context(), t, 30, 0)
	w.finish(t)
	second := &world{b: b, feed: w.feed, dir: t.TempDir(), job: w.job, blows: map[string]int{}, rungs: map[string]int{}, exits: map[string]int{}}
	second.write(t)
	owners := []*owner{{"the first", w}, {"the second", second}}
	stop := w.feed.start(t, 15*time.Millisecond)
	timeout, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	best, bouts, undecided, stops, exits, wins := 0, 0, 0, 0, map[string]int{}, map[string]int{}
	for timeout.Err() == nil && !t.Failed() {
		replaceCheckpoint(t, owners[best].w, owners[1-best].w)
		f := fight(t, timeout, owners, rng)
		bouts++
		stops += f.stops
		for k, n := range f.exits {
			exits[k] += n
		}
		if f.loser == nil {
			undecided++
			best = standing(t, b, owners)
			continue
		}
		best = 0
		if f.loser == owners[0] {
			best = 1
		}
		wins[owners[best].name]++
	}
	stop()
	owners[best].w.finish(t)
	records := w.check(t)
	published := marks(t, b, w.query())
	for i := 1; i < len(published); i++ { // a batch of cancelled orders alone is not published
		if published[i] <= published[i-1] {
			t.Fatalf("batch %d was published after batch %d", published[i], published[i-1])
		}
	}
	t.Logf("%s: %d fights (%d without a loser), won by %s; %d pauses; ends: %s", long, bouts, undecided, counts(wins), stops, counts(exits))
	t.Logf("%d batches published, each by one of them; %d orders exactly once; upstream: %d transactions committed, %d aborted", len(published), records, w.feed.done, w.feed.aborted)
	if bouts-undecided < 2 || exits["kafka.sink.fenced"]+exits["target.ahead"] == 0 {
		t.Error("there was no fight")
	}
}

// fight starts both owners and waits until one is beaten or the time is over.
func fight(t *testing.T, ctx context.Context, owners []*owner, rng *rand.Rand) *bout {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &bout{t: t, cancel: cancel, exits: map[string]int{}}
	var wg sync.WaitGroup
	for _, o := range owners {
		own := rand.New(rand.NewPCG(rng.Uint64(), 1))
		wg.Go(func() { f.supervise(ctx, o, own) })
	}
	wg.Wait()
	return f
}

// standing is the owner whose checkpoint agrees with what is published, when a fight has no loser.
func standing(t *testing.T, b *broker, owners []*owner) int {
	t.Helper()
	for i, o := range owners {
		p := o.w.start(t, onceFile)
		if !p.ended(patience) {
			p.kill()
			t.Fatalf("%s does not end:\n%s", o.name, p.tail())
		}
		if p.exit() == 0 {
			return i
		}
		if code := p.code(); !slices.Contains(beaten, code) {
			t.Fatalf("%s ended by %s:\n%s", o.name, code, p.tail())
		}
	}
	t.Fatal("neither of the two can go on")
	return 0
}

// replaceCheckpoint gives one owner a copy of the other's checkpoint. Neither runs.
func replaceCheckpoint(t *testing.T, from, to *world) {
	t.Helper()
	if err := os.RemoveAll(to.file("checkpoint")); err != nil {
		t.Fatal(err)
	}
	copyDir(t, from.file("checkpoint"), filepath.Clean(to.file("checkpoint")))
}

// duelTime is how long they fight: WASMILL_DUEL, or a while.
func duelTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("WASMILL_DUEL")
	if text == "" {
		return 30 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(fmt.Errorf("WASMILL_DUEL: %w", err))
	}
	return d
}
