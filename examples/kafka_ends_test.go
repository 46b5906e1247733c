package examples

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// fed is a world without a proxy of its own whose input is there.
func fed(t *testing.T, b *broker, p *proxy, mould func(*kafkaJob)) *world {
	t.Helper()
	w := newWorld(t, b, p, false, func(j *kafkaJob) {
		j.records = 100
		if mould != nil {
			mould(j)
		}
	})
	w.feed.feed(t.Context(), t, 40, 0)
	return w
}

// refused starts the job, which must end with a code.
func (w *world) refused(t *testing.T, codes ...string) *process {
	t.Helper()
	p := w.start(t, onceFile)
	if !p.ended(patience) {
		p.kill()
		t.Fatalf("the job does not end:\n%s", p.tail())
	}
	if p.exit() != 1 || !slices.Contains(codes, p.code()) {
		t.Fatalf("the job ends with %d by %s, want one of %v:\n%s", p.exit(), p.code(), codes, p.tail())
	}
	t.Logf("it ends with %s", firstError(p))
	return p
}

func firstError(p *process) string {
	s := codeForm.FindStringIndex(p.log.String())
	if s == nil {
		return ""
	}
	text := p.log.String()[s[0]:]
	return text[:min(len(text), 600)]
}

// TestKafkaTimesOut stops the program between the decision and the commit until the broker has ended its transaction, and
// lets it go on. It finds out by itself, publishes the batch all the same, once, and goes on.
func TestKafkaTimesOut(t *testing.T) {
	b := realBroker(t)
	for name, way := range map[string]treatment{"the commit is sent again": cutBefore, "the commit comes late": stallFor} {
		t.Run(name, func(t *testing.T) { timesOut(t, b, way) })
	}
}

func timesOut(t *testing.T, b *broker, way treatment) {
	t.Helper()
	w := fed(t, b, startProxy(t, b), func(j *kafkaJob) { j.sink = ", transactionTimeout: 2s" })
	commits := 0
	overslept := make(chan error, 1)
	w.proxy.set(func(r request) (v verdict) {
		if r.key != commitTxn {
			return v
		}
		if commits++; commits != 3 { // commits come one at a time
			return v
		}
		return verdict{treatment: way, then: func() { overslept <- w.oversleep(t.Context()) }}
	})
	p := w.start(t, liveFile)
	select {
	case err := <-overslept:
		if err != nil {
			t.Fatal(err)
		}
	case <-p.done:
		t.Fatalf("the job ended before it was stopped:\n%s", p.tail())
	case <-t.Context().Done():
		return
	}
	at := w.batches()
	if !until(p, patience, func() bool { return w.batches() > at+1 }) {
		t.Fatalf("the job does not go on:\n%s", p.tail())
	}
	p.kill()
	if len(p.rungs()) == 0 {
		t.Errorf("nothing was recovered:\n%s", p.tail())
	}
	w.ended(t, p)
	w.finish(t)
	t.Logf("%d orders exactly once", w.check(t))
	w.report(t)
}

// oversleep stops the process until the broker has ended its transaction by itself.
func (w *world) oversleep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w.mu.Lock()
	p := w.process
	w.mu.Unlock()
	p.signal(syscall.SIGSTOP)
	defer p.signal(syscall.SIGCONT)
	id := "wasmill." + w.query() + ".main"
	for {
		all, err := w.b.adm.DescribeTransactions(ctx, id)
		if err != nil {
			return err
		}
		if s := all[id].State; s != "Ongoing" && s != "PrepareAbort" && s != "PrepareEpochFence" {
			return all[id].Err
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// TestKafkaExpired deletes records of a batch that is planned and not decided. The job says what is gone; told to skip
// that, it goes on with what there is.
func TestKafkaExpired(t *testing.T) {
	b := realBroker(t)
	w := fed(t, b, nil, nil)
	p := w.start(t, onceFile, "WASMILL_FAILPOINT=plan:after@3")
	if !p.ended(patience) || !p.killed() {
		t.Fatalf("the point is not reached:\n%s", p.tail())
	}
	before := b.committed(t, w.job.out)
	ends, err := b.adm.ListEndOffsets(t.Context(), w.job.orders)
	if err != nil {
		t.Fatal(err)
	}
	var gone kadm.Offsets
	ends.Each(func(o kadm.ListedOffset) {
		if o.Partition < 2 {
			gone.Add(kadm.Offset{Topic: o.Topic, Partition: o.Partition, At: o.Offset - 20, LeaderEpoch: -1})
		}
	})
	if _, err := b.adm.DeleteRecords(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	w.refused(t, "source.changed")
	if after := b.committed(t, w.job.out); total(after) != total(before) {
		t.Errorf("%d records were published by a batch that lost its input", total(after)-total(before))
	}
	w.job.more = ", onDataLoss: skip"
	w.write(t)
	w.finish(t)
	if kept, err := filepath.Glob(w.file("checkpoint/offsets/.*.amended-*")); err != nil || len(kept) != 1 {
		t.Errorf("%d plans are kept aside (%v), want the one that could not be carried out", len(kept), err)
	}
	checkSubset(t, w, before)
}

func total[T any](m map[int32][]T) (n int) {
	for _, all := range m {
		n += len(all)
	}
	return n
}

// checkSubset demands of an output from which some input was missing: what was there before, all of the partitions that
// lost nothing and all that is left of the others, each once.
func checkSubset(t *testing.T, w *world, before map[int32][]*kgo.Record) {
	t.Helper()
	got := map[string]int{}
	for _, all := range w.b.committed(t, w.job.out) {
		for _, r := range all {
			got[string(r.Value)]++
		}
	}
	missing, records := 0, 0
	want, _ := wanted(t, w.b.committed(t, w.job.orders))
	for _, values := range want {
		for _, v := range values {
			if records++; got[v] != 1 {
				missing++
			}
		}
	}
	for _, all := range before {
		for _, r := range all {
			if got[string(r.Value)] != 1 {
				missing++
			}
		}
	}
	for v, n := range got {
		if n != 1 {
			t.Errorf("%d times in the output: %s", n, v)
		}
	}
	if missing > 0 {
		t.Errorf("%d of %d records are not in the output", missing, records)
	}
	t.Logf("%d records are in the output, of %d that are still in the input", len(got), records)
}

// TestKafkaRestored puts an old copy of the checkpoint back. The job stops and says so, and nothing comes twice.
func TestKafkaRestored(t *testing.T) {
	b := realBroker(t)
	w := fed(t, b, nil, nil)
	p := w.start(t, onceFile, "WASMILL_FAILPOINT=seal:after@3")
	if !p.ended(patience) || !p.killed() {
		t.Fatalf("the point is not reached:\n%s", p.tail())
	}
	old := filepath.Join(t.TempDir(), "old")
	copyDir(t, w.file("checkpoint"), old)
	w.finish(t)
	in := b.committed(t, w.job.orders)
	checkOrders(t, in, b.committed(t, w.job.out))
	if err := os.RemoveAll(w.file("checkpoint")); err != nil {
		t.Fatal(err)
	}
	copyDir(t, old, w.file("checkpoint"))
	for range 2 { // it is no cure to try again
		w.refused(t, "target.ahead")
	}
	checkOrders(t, in, b.committed(t, w.job.out))
}

// TestKafkaMarkerDeleted deletes the marker topic between two runs, and while the job runs.
func TestKafkaMarkerDeleted(t *testing.T) {
	b := realBroker(t)
	w := fed(t, b, nil, nil)
	w.finish(t)
	in := b.committed(t, w.job.orders)
	records := checkOrders(t, in, b.committed(t, w.job.out))
	b.remove("__wasmill." + w.query())
	w.feed.feed(t.Context(), t, 5, 0)
	for range 2 {
		w.refused(t, "target.behind", "kafka.sink.marker_topic")
	}
	if n := total(b.committed(t, w.job.out)); n != records {
		t.Errorf("%d records were published without a marker topic", n-records)
	}
}

// TestKafkaMarkerDeletedAtWork deletes the marker topic while the job runs: it ends, and does not publish further batches.
func TestKafkaMarkerDeletedAtWork(t *testing.T) {
	b := realBroker(t)
	w := fed(t, b, nil, nil)
	stop := w.feed.start(t, 15*time.Millisecond)
	p := w.start(t, liveFile)
	if !until(p, bound, func() bool { return w.batches() > 8 }) {
		t.Fatalf("the job makes no progress:\n%s", p.tail())
	}
	b.remove("__wasmill." + w.query())
	if !p.ended(patience) {
		p.kill()
		t.Fatalf("the job goes on without its marker topic:\n%s", p.tail())
	}
	t.Logf("it ends with %s", firstError(p))
	stop()
	w.refused(t, "target.behind", "kafka.sink.marker_topic", "target.ahead")
	got := map[string]int{}
	for _, all := range b.committed(t, w.job.out) {
		for _, r := range all {
			if got[string(r.Value)]++; got[string(r.Value)] > 1 {
				t.Fatalf("twice in the output: %s", r.Value)
			}
		}
	}
}

func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("copy %s: %v\n%s", from, err, out)
	}
}
