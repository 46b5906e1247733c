package kafka_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/kafka"
)

const perBatch = 7

// job is what survives the processes of a test: how far publishing was asked for and how far it was confirmed.
type job struct {
	c       *cluster
	topic   string
	batches checkpoint.BatchID
	mu      sync.Mutex
	asked   checkpoint.BatchID
	told    checkpoint.BatchID
}

func newJob(c *cluster, topic string, batches int) *job {
	return &job{c: c, topic: topic, batches: checkpoint.BatchID(batches), asked: checkpoint.NoBatch, told: checkpoint.NoBatch}
}

func (j *job) records(id checkpoint.BatchID) []abi.Record {
	var out []abi.Record
	for i := range perBatch {
		out = append(out, record("key "+strconv.Itoa(i), fmt.Sprintf("%d.%d", id, i)))
	}
	return out
}

// live is one process: it goes on where the target says, until the last batch or an error.
func (j *job) live(ctx context.Context, t *testing.T, target *kafka.Target, between func()) error {
	j.mu.Lock()
	told := j.told // another owner may publish more before this one looks again
	j.mu.Unlock()
	p, err := target.Open(ctx, j.c.owner())
	if err != nil {
		return err
	}
	j.mu.Lock()
	if p.Batch < told || p.Batch > j.asked || p.Batch >= 0 && p.Digest != digest(p.Batch) {
		t.Errorf("published is %+v, asked for %d, confirmed %d", p, j.asked, told)
	}
	j.mu.Unlock()
	for id := p.Batch + 1; id < j.batches; id++ {
		l, err := target.NewLane("orders")
		if err != nil {
			return err
		}
		for _, r := range j.records(id) {
			if err := l.Append(&r); err != nil {
				return err
			}
		}
		s, err := target.Stage(ctx, sink.Output{
			Batch: id, TimeMS: 1_700_000_000_000, Digest: digest(id), Attempt: "0000000a",
			Sinks: []sink.SinkOutput{{Name: "orders", Lanes: []sink.Lane{l}}},
		})
		if err != nil {
			return err
		}
		between()
		j.mu.Lock()
		j.asked = max(j.asked, id)
		j.mu.Unlock()
		if err := target.Publish(ctx, decision(id), s); err != nil {
			return err
		}
		j.mu.Lock()
		j.told = max(j.told, id)
		j.mu.Unlock()
	}
	return nil
}

// run starts processes until the job is done, and returns how many it took.
func (j *job) run(t *testing.T, judge func(process int) func(key int16) verdict) int {
	t.Helper()
	for process := range 1000 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		w := &wire{judge: judge(process), onDeath: cancel}
		target := j.c.target(t, w, func(cfg *kafka.Config) { cfg.Sinks[0].Topic = j.topic })
		target.Hurry()
		err := j.live(ctx, t, target, func() {})
		target.Kill()
		cancel()
		if err == nil {
			return process + 1
		}
	}
	t.Fatal("the job makes no progress")
	return 0
}

// check compares what readers see with what the job published, per key and in order.
func (j *job) check(t *testing.T) {
	t.Helper()
	got, want := map[string][]string{}, map[string][]string{}
	for _, r := range j.c.committed(t, j.topic) {
		got[string(r.Key)] = append(got[string(r.Key)], string(r.Value))
	}
	for id := range j.batches {
		for _, r := range j.records(id) {
			want[string(r.Key)] = append(want[string(r.Key)], string(r.Value))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("a reader sees (-want +got):\n%s", diff)
	}
}

// never lets every request pass.
func never(int16) verdict { return pass }

// at does something to the n-th request of a process.
func at(n int, v verdict, met *int16) func(int16) verdict {
	i := 0
	return func(key int16) verdict {
		if i++; i-1 != n {
			return pass
		}
		*met = key
		return v
	}
}

// TestEveryWindow ends the process, or cuts its connection, before and after each request of two batches in turn: before
// staging, in the midst of it, after it, with the commit's answer lost, after the commit.
func TestEveryWindow(t *testing.T) {
	for _, v := range []struct {
		name string
		verdict
	}{{"cut", cut}, {"answer lost", cutAfter}, {"die", die}, {"die after", dieAfter}} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			windows, died, keys := 0, 0, map[int16]int{}
			for n := 0; ; n++ {
				j := newJob(newFake(t), "out", 2)
				met := int16(-1)
				processes := j.run(t, func(process int) func(int16) verdict {
					if process > 0 {
						return never
					}
					return at(n, v.verdict, &met)
				})
				j.check(t)
				if met < 0 {
					break
				}
				windows++
				died += processes - 1
				keys[met]++
			}
			t.Logf("%d windows, %d further processes, by request %v", windows, died, keys)
			for _, key := range []int16{keyProduce, keyInit, keyEndTxn} {
				if keys[key] == 0 {
					t.Errorf("no window at request %d", key)
				}
			}
			if late := keys[keyTelemetry]; v.verdict == die && died < windows-late {
				t.Errorf("%d of %d deaths were noticed", died, windows-late)
			}
		})
	}
}

// randomly interrupts processes at random requests, so often in all.
func randomly(seed uint64, times int) (judge func(process int) func(int16) verdict, done func() int) {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 1))
	count := 0
	return func(int) func(int16) verdict {
			mu.Lock()
			defer mu.Unlock()
			n, v := rng.IntN(12), []verdict{cut, cutAfter, die, dieAfter}[rng.IntN(4)]
			i := 0
			return func(int16) verdict {
				mu.Lock()
				defer mu.Unlock()
				if i++; i <= n || count == times {
					return pass
				}
				i, n, v = 0, rng.IntN(12), []verdict{cut, cutAfter, die, dieAfter}[rng.IntN(4)]
				count++
				return v
			}
		}, func() int {
			mu.Lock()
			defer mu.Unlock()
			return count
		}
}

func TestRandomInterruptions(t *testing.T) {
	interrupt(t, newFake(t), "out", 60, 25)
}

// TestRandomInterruptionsOnARealBroker runs where WASMILL_KAFKA names a broker.
func TestRandomInterruptionsOnARealBroker(t *testing.T) {
	c := realCluster(t)
	interrupt(t, c, c.topic(t, 4), 150, 50)
}

func interrupt(t *testing.T, c *cluster, topic string, batches, times int) {
	t.Helper()
	j := newJob(c, topic, batches)
	judge, done := randomly(7, times)
	start := time.Now()
	processes := j.run(t, judge)
	j.check(t)
	t.Logf("%d batches, %d interruptions, %d processes, %s", batches, done(), processes, time.Since(start).Round(time.Millisecond))
	if done() < times {
		t.Errorf("%d interruptions of %d", done(), times)
	}
}

func TestDuel(t *testing.T) { duel(t, newFake(t), "out", 3, 120) }

// TestDuelOnARealBroker runs where WASMILL_KAFKA names a broker.
func TestDuelOnARealBroker(t *testing.T) {
	c := realCluster(t)
	duel(t, c, c.topic(t, 4), 2, 150)
}

// duel lets several processes believe that they own the query: each takes it over when it was shut out.
func duel(t *testing.T, c *cluster, topic string, owners, batches int) {
	t.Helper()
	j := newJob(c, topic, batches)
	var wg sync.WaitGroup
	var mu sync.Mutex
	takeovers, codes := 0, map[string]int{}
	for n := range owners {
		target := c.target(t, nil, func(cfg *kafka.Config) { cfg.Sinks[0].Topic = topic })
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(n), 3))
			for {
				err := j.live(t.Context(), t, target, func() { wait(t.Context(), rng.IntN(6)) })
				mu.Lock()
				if err == nil {
					mu.Unlock()
					return
				}
				takeovers++
				code := codeOf(err)
				codes[code]++
				if !slices.Contains([]string{kafka.CodeFenced, kafka.CodeConflict, "lost"}, code) {
					t.Errorf("an owner ended by %s: %v", code, err)
				}
				stop := takeovers > 100*batches
				mu.Unlock()
				if stop || t.Context().Err() != nil {
					return
				}
				wait(t.Context(), rng.IntN(40))
			}
		})
	}
	wg.Wait()
	j.check(t)
	t.Logf("%d owners, %d batches, %d takeovers, ended by %v", owners, batches, takeovers, codes)
	if takeovers == 0 {
		t.Error("nobody was shut out")
	}
}

// wait lets others have a turn. Nothing depends on how long it takes.
func wait(ctx context.Context, ms int) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
	defer cancel()
	<-ctx.Done()
}

// TestDeadNeighbour: a process that publishes to one cluster under two names dies with both transactions open. The one
// opened first must not wait for the other's timeout.
func TestDeadNeighbour(t *testing.T) {
	c := newFake(t)
	second := *c
	second.conn = "second"
	names := []*cluster{c, &second}
	var dying []*kafka.Target
	for _, n := range names {
		target := n.opened(t, nil)
		mustPublish(t, target, 0, record(n.conn, "0"))
		dying = append(dying, target)
	}
	// The second one's marker comes first, so that it holds up readers of the other's.
	for _, i := range []int{1, 0} {
		mustStage(t, dying[i], 1, record(names[i].conn, "lost"))
	}
	if err := dying[0].Publish(t.Context(), decision(1), nil); err != nil {
		t.Fatal(err)
	}
	mustStage(t, dying[0], 2, record("main", "lost too"))
	for _, target := range dying {
		target.Kill()
	}
	for i, want := range []checkpoint.BatchID{1, 0} {
		target := names[i].target(t, nil, func(cfg *kafka.Config) { cfg.Patience = 10 * time.Second })
		p, err := target.Open(t.Context(), c.owner())
		if err != nil || p.Batch != want || p.Digest != digest(want) {
			t.Errorf("%s: %+v, %v, want batch %d", names[i].conn, p, err, want)
		}
	}
}

// TestFirstCommit commits the first transaction of many clients as fast as it can: each must be there.
func TestFirstCommit(t *testing.T) {
	c := newFake(t)
	target := c.target(t, nil, nil)
	const batches = 150
	var want []string
	for id := range checkpoint.BatchID(batches) {
		if _, err := target.Open(t.Context(), c.owner()); err != nil {
			t.Fatal(err)
		}
		want = append(want, strconv.Itoa(int(id)))
		mustPublish(t, target, id, record("a", want[id]))
	}
	if diff := cmp.Diff(want, values(c.committed(t, "out"))); diff != "" {
		t.Error(diff)
	}
}
