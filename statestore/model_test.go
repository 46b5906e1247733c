package statestore_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/statestore"
	"github.com/wasmill/wasmill/statestore/badger"
	"github.com/wasmill/wasmill/statestore/mem"
)

// place names an entry, or a timer, in the oracle.
type place struct {
	stage, table string // a timer's table is ""
	group        uint8
	key, sub     string
	domain       uint8
	at           int64
}

type cell struct {
	value  string
	expiry int64
}

// oracle is the state as of the end of one batch.
type oracle map[place]cell

// decided is what the checkpoint knows of a batch.
type decided struct {
	attempt, digest string
	info            statestore.BatchInfo
	after           oracle
}

// gate holds the background apply back while it is shut.
type gate struct {
	mu   sync.Mutex
	cond *sync.Cond
	shut bool
}

func newGate() *gate {
	g := &gate{}
	g.cond = sync.NewCond(&g.mu)
	return g
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	g.cond.Broadcast()
}

func (g *gate) pass(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name == "apply-begin" && g.shut {
		g.cond.Wait()
	}
}

var errTorn = errors.New("the apply was torn")

// tearing is a backend of which an apply ends in the middle, once for each time it is armed.
type tearing struct {
	statestore.Backend
	after *atomic.Int64 // so many changes; negative: not armed
}

func (b tearing) Apply(ctx context.Context, m statestore.Marker, changes iter.Seq2[statestore.Change, error]) error {
	after := b.after.Swap(-1)
	return b.Backend.Apply(ctx, m, func(yield func(statestore.Change, error) bool) {
		n := int64(0)
		for c, err := range changes {
			if n++; n-1 == after {
				yield(statestore.Change{}, errTorn)
				return
			}
			if !yield(c, err) {
				return
			}
		}
	})
}

// world is a job with its disk.
type world struct {
	t interface {
		Helper()
		Fatal(args ...any)
		Fatalf(format string, args ...any)
		Context() context.Context
	}
	r       *rand.Rand
	fs      *faulty.FS
	opener  statestore.Opener
	disk    *mem.Disk // nil for a backend on a real disk
	store   *statestore.Store
	gate    *gate
	tear    atomic.Int64
	batches []decided // by batch number
	oldest  int64     // of what is retained
	now     int64
	mark    int64
	stages  []statestore.Stage
	lanes   int
	calm    bool // a batch comes to its end, and nothing but the backend ends it
	seen    map[string]int
}

func (w *world) open() {
	for !w.tryOpen() {
		w.check(w.store.Close())
	}
}

// tryOpen opens the store and loads what it has not got. It gives up when an apply is torn.
func (w *world) tryOpen() bool {
	w.gate = newGate()
	s, err := statestore.Open(w.t.Context(), statestore.Config{
		Files: w.fs.Process(), Dir: "/c/state", Query: query, Backend: w.backend, BackendName: "backend",
		ApplyBatches: []int{1, 3, 8}[w.r.IntN(3)],
		CacheBytes:   []int64{-1, 2000, 1 << 20}[w.r.IntN(3)], Events: statestore.Events{Point: w.gate.pass},
	})
	w.check(err)
	w.store = s
	for n := s.Last() + 1; n < int64(len(w.batches)); n++ {
		d := w.batches[n]
		err := s.Load(w.t.Context(), n, d.attempt, d.digest)
		if errors.Is(err, errTorn) {
			w.seen["torn"]++
			return false
		}
		w.check(err)
		if w.r.IntN(3) == 0 && d.digest != "" { // again: harmless
			w.check(s.Load(w.t.Context(), n, d.attempt, d.digest))
		}
	}
	return true
}

func (w *world) backend(ctx context.Context, cfg statestore.BackendConfig) (statestore.Backend, error) {
	b, err := w.opener(ctx, cfg)
	return tearing{b, &w.tear}, err
}

// begin begins a batch, after a crash if an apply was torn meanwhile.
func (w *world) begin(info statestore.BatchInfo) *statestore.Txn {
	txn, err := w.store.Begin(w.t.Context(), info)
	if errors.Is(err, errTorn) {
		w.seen["torn"]++
		w.crash()
		txn, err = w.store.Begin(w.t.Context(), info)
		if errors.Is(err, errTorn) {
			w.tear.Store(-1)
			w.crash()
			txn, err = w.store.Begin(w.t.Context(), info)
		}
	}
	w.check(err)
	return txn
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// crash drops all memory, what was not synced, and what the backend had not made durable.
func (w *world) crash() {
	w.gate.set(false)
	w.check(w.store.Close())
	w.fs = w.fs.Crash(w.r, []float64{0, 0.5, 1}[w.r.IntN(3)])
	if w.disk != nil {
		w.disk = w.disk.Clone()
		if back := w.r.Int64N(4); w.r.IntN(2) == 0 && w.oldest == 0 {
			w.disk.Rewind(int64(len(w.batches)) - 1 - back)
		}
		w.opener = w.disk.Open
	}
	w.open()
	w.seen["crash"]++
}

func (w *world) last() oracle {
	if len(w.batches) == 0 {
		return oracle{}
	}
	return w.batches[len(w.batches)-1].after
}

// settle changes the declared stages, and says what becomes of the state.
func (w *world) settle(before oracle) oracle {
	if w.r.IntN(8) == 0 {
		a, b := statestore.Stage{Name: "a", Tables: []string{"t1", "t2"}}, statestore.Stage{Name: "b", Tables: []string{"t1"}}
		w.stages = [][]statestore.Stage{{a, b}, {b, a}, {a}, {{Name: "a", Tables: []string{"t2"}}, b}, {{Name: "a", Tables: []string{"t3", "t1"}}}}[w.r.IntN(5)]
	}
	if w.r.IntN(6) == 0 {
		w.lanes = []int{1, 3, 4, 64}[w.r.IntN(4)]
	}
	after := oracle{}
	for p, c := range before {
		for _, s := range w.stages {
			if s.Name == p.stage && (p.table == "" || slices.Contains(s.Tables, p.table)) {
				after[p] = c
			}
		}
	}
	return after
}

// run is one attempt at a batch: the same seed gives the same operations.
func (w *world) run(txn *statestore.Txn, info statestore.BatchInfo, before oracle, seed uint64) (oracle, statestore.Summary) {
	after := maps.Clone(before)
	expected := 0
	for p, c := range before { // what has expired is removed by itself
		if c.expiry != 0 && c.expiry <= info.TimeMS {
			delete(after, p)
		}
	}
	for si := range info.Stages {
		for lane := range info.Lanes {
			r := rand.New(rand.NewPCG(seed, uint64(si*100+lane)))
			v := &laneRun{w: w, r: r, info: info, l: txn.Lane(si, lane), stage: info.Stages[si], before: before, all: after}
			if r.IntN(4) == 0 { // a run that is given up
				junk := *v
				junk.all = maps.Clone(after)
				junk.operations(lane)
				v.l.Reset()
				w.seen["reset"]++
			}
			v.operations(lane)
			expected += v.effective()
		}
	}
	for p, c := range before {
		if c.expiry != 0 && c.expiry <= info.TimeMS {
			if _, ok := after[p]; !ok {
				expected++ // counted by its lane otherwise
			}
		}
	}
	sum, err := txn.Sum(w.t.Context())
	w.check(err)
	if int64(expected) > sum.Entries {
		w.t.Fatalf("batch %d: %d entries, want %d", info.Batch, sum.Entries, expected)
	}
	if retires := w.retires(info); !retires && int64(expected) != sum.Entries {
		w.t.Fatalf("batch %d: %d entries, want %d", info.Batch, sum.Entries, expected)
	}
	return after, sum
}

// retires reports whether a batch may remove entries of tables that are no longer declared.
func (w *world) retires(statestore.BatchInfo) bool { return w.seen["stages"] > 0 }

func (w *world) batch() {
	n := int64(len(w.batches))
	stages := fmt.Sprint(w.stages)
	before := w.settle(w.last())
	if fmt.Sprint(w.stages) != stages {
		w.seen["stages"]++
	}
	w.now += w.r.Int64N(6)
	if w.r.IntN(10) == 0 {
		w.now -= 3 // the clock was set back
	}
	w.mark += w.r.Int64N(4)
	info := statestore.BatchInfo{Batch: n, TimeMS: w.now, WatermarkMS: w.mark, Lanes: w.lanes, Stages: w.stages}
	due := w.due(before, info)
	if got, err := w.store.Due(info.TimeMS, everywhere(info.WatermarkMS)); err != nil || got != (due > 0) && n > 0 && stages == fmt.Sprint(w.stages) {
		w.t.Fatalf("due: %v, %v; %d timers are", got, err, due)
	}
	seed := w.r.Uint64()
	if w.r.IntN(4) == 0 { // an attempt that is given up
		txn := w.begin(info)
		w.run(txn, info, before, w.r.Uint64())
		txn.Close()
		w.seen["abort"]++
	}
	if !w.calm {
		w.gate.set(w.r.IntN(3) > 0)
		if w.r.IntN(8) == 0 {
			w.tear.Store(w.r.Int64N(12))
		}
	}
	txn := w.begin(info)
	after, sum := w.run(txn, info, before, seed)
	attempt := fmt.Sprintf("%08x", w.r.Uint32())
	w.check(txn.Write(w.t.Context(), attempt))
	w.batches = append(w.batches, decided{attempt, sum.Digest, info, after})
	w.count(before, after, info)
	if w.calm || w.r.IntN(6) > 0 {
		err := w.store.Seal(w.t.Context(), txn)
		txn.Close()
		if errors.Is(err, errTorn) {
			w.seen["torn"]++
			w.crash()
		} else {
			w.check(err)
		}
	} else {
		w.crash() // decided and not sealed
	}
	w.replay(n, before, seed, sum)
}

func (w *world) due(state oracle, info statestore.BatchInfo) (n int) {
	for p := range state {
		if isDue(p, info) {
			n++
		}
	}
	return n
}

func isDue(p place, info statestore.BatchInfo) bool {
	if p.table != "" {
		return false
	}
	if p.domain == statestore.DomainEvent {
		return info.WatermarkMS != 0 && p.at <= info.WatermarkMS
	}
	return p.at <= info.TimeMS
}

// count makes sure that every due timer is gone after its batch, unless it was made anew.
func (w *world) count(before, after oracle, info statestore.BatchInfo) {
	for p := range before {
		if isDue(p, info) {
			w.seen["fired"]++
		}
	}
	for p, c := range after {
		if c.expiry != 0 {
			w.seen["expiry"]++
		}
		_ = p
	}
}

// replay runs the batch again on a view as of the batch before: it must come to the same.
func (w *world) replay(n int64, before oracle, seed uint64, want statestore.Summary) {
	if w.r.IntN(2) == 0 || n-1 < w.oldest-1 {
		return
	}
	view, err := w.store.At(w.t.Context(), n-1)
	w.check(err)
	defer view.Close()
	txn, err := view.Begin(w.t.Context(), w.batches[n].info)
	w.check(err)
	defer txn.Close()
	_, sum := w.run(txn, w.batches[n].info, before, seed)
	if sum.Digest != want.Digest || sum.Entries != want.Entries {
		w.t.Fatalf("batch %d again: %+v, want %+v", n, sum, want)
	}
	w.seen["replay"]++
}

// look compares the state as of a batch.
func (w *world) look() {
	if len(w.batches) == 0 {
		return
	}
	n := w.r.Int64N(int64(len(w.batches)))
	view, err := w.store.At(w.t.Context(), n)
	if n < w.oldest-1 && errors.Is(err, statestore.ErrCompacted) {
		w.seen["compacted"]++
		return
	}
	w.check(err)
	defer view.Close()
	got := oracle{}
	for _, table := range view.Tables() {
		if table.Retired {
			continue
		}
		w.check(view.Export(w.t.Context(), table, func(row *statestore.Row) bool {
			got[place{table.Stage, table.Name, row.Group, string(row.Key), string(row.Sub), row.Domain, row.AtMS}] = cell{string(row.Value), row.ExpiryMS}
			return true
		}))
	}
	if want := w.batches[n].after; !maps.Equal(got, want) {
		w.t.Fatalf("state as of %d: %v\nwant %v", n, sorted(got), sorted(want))
	}
	w.seen["view"]++
}

func sorted(o oracle) []string {
	var out []string
	for p, c := range o {
		out = append(out, fmt.Sprintf("%v=%v", p, c))
	}
	slices.Sort(out)
	return out
}

// laneRun does random operations on one lane and on its oracle.
type laneRun struct {
	w      *world
	r      *rand.Rand
	info   statestore.BatchInfo
	l      *statestore.Lane
	stage  statestore.Stage
	before oracle
	all    oracle // of all lanes
	read   map[place]bool
	wrote  map[place]bool
	gone   map[place]bool // timers that this batch has deleted
	groups []uint8
}

func (v *laneRun) operations(lane int) {
	v.read, v.wrote, v.gone = map[place]bool{}, map[place]bool{}, map[place]bool{}
	v.groups = nil
	for _, g := range []uint8{0, 1, 20, 40, 63} {
		if int(g)*v.info.Lanes/64 == lane {
			v.groups = append(v.groups, g)
		}
	}
	if len(v.groups) == 0 {
		return
	}
	n := v.r.IntN(15)
	for range n {
		v.operation()
	}
	v.fire()
	for range v.r.IntN(4) {
		v.operation()
	}
}

func (v *laneRun) place() place {
	return place{
		stage: v.stage.Name, table: v.stage.Tables[v.r.IntN(len(v.stage.Tables))], group: v.groups[v.r.IntN(len(v.groups))],
		key: []string{"", "a", "ab", "b"}[v.r.IntN(4)], sub: []string{"", "x", "xy", "y", "\xff", "x\xff"}[v.r.IntN(6)],
	}
}

func (v *laneRun) timer() place {
	p := v.place()
	p.table, p.domain = "", uint8(v.r.IntN(2))
	p.at = v.w.markOf(p.domain, v.info) - 3 + v.r.Int64N(8)
	return p
}

func (w *world) markOf(domain uint8, info statestore.BatchInfo) int64 {
	if domain == statestore.DomainEvent {
		return info.WatermarkMS
	}
	return info.TimeMS
}

func (v *laneRun) entry(p place) statestore.Entry {
	return statestore.Entry{
		Group: p.group, Table: uint16(slices.Index(v.stage.Tables, p.table)), Key: []byte(p.key), Sub: []byte(p.sub),
	}
}

func timerAt(p place) statestore.Timer {
	return statestore.Timer{Domain: p.domain, AtMS: p.at, Group: p.group, Key: []byte(p.key), Sub: []byte(p.sub)}
}

// visible is what a read should see.
func (v *laneRun) visible(p place) (cell, bool) {
	c, ok := v.all[p]
	return c, ok && (c.expiry == 0 || c.expiry > v.info.TimeMS)
}

func (v *laneRun) operation() {
	t := v.w.t
	p := v.place()
	switch v.r.IntN(12) {
	case 0, 1, 2:
		want, there := v.visible(p)
		got, found, err := v.l.Get(v.entry(p))
		if err != nil || found != there || found && string(got) != want.value {
			t.Fatalf("batch %d: get %v: %q %v %v, want %q %v", v.info.Batch, p, got, found, err, want.value, there)
		}
		if !v.wrote[p] {
			v.read[p] = true
		}
	case 3, 4, 5:
		c := cell{value: []string{"", "1", "2", "a longer value"}[v.r.IntN(4)]}
		if v.r.IntN(3) == 0 && p.table != "t2" {
			c.expiry = v.info.TimeMS - 1 + v.r.Int64N(9)
		}
		if c.expiry == 0 && v.r.IntN(2) == 0 {
			c = cmpOr(v.before[p], c) // often the same again
		}
		v.w.check(v.l.Put(v.entry(p), []byte(c.value), c.expiry))
		v.all[p], v.wrote[p] = c, true
	case 6:
		v.w.check(v.l.Delete(v.entry(p)))
		delete(v.all, p)
		v.wrote[p] = true
	case 7:
		v.deletePrefix(p)
	case 8, 9:
		v.scan(p)
	case 10:
		p = v.timer()
		v.w.check(v.l.SetTimer(timerAt(p)))
		v.all[p], v.wrote[p] = cell{}, true
	case 11:
		p = v.timer()
		v.w.check(v.l.DeleteTimer(timerAt(p)))
		delete(v.all, p)
		v.wrote[p], v.gone[p] = true, true
	}
}

func cmpOr(a, b cell) cell { return cmp.Or(a, b) }

// under lists the visible entries of one key whose sub begins so, in order.
func (v *laneRun) under(p place, prefix string) (list []place) {
	for q := range v.all {
		if _, ok := v.visible(q); ok && q.stage == p.stage && q.table == p.table && q.group == p.group && q.key == p.key && strings.HasPrefix(q.sub, prefix) {
			list = append(list, q)
		}
	}
	slices.SortFunc(list, func(a, b place) int { return strings.Compare(a.sub, b.sub) })
	return list
}

func (v *laneRun) scan(p place) {
	descending := v.r.IntN(2) == 0
	var after []byte
	if v.r.IntN(2) == 0 {
		after = []byte(v.place().sub)
	}
	limit := 1 + v.r.IntN(4)
	want := ""
	list := v.under(p, p.sub)
	if descending {
		slices.Reverse(list)
	}
	for _, q := range list {
		if c := strings.Compare(q.sub, string(after)); after != nil && (!descending && c <= 0 || descending && c >= 0) {
			continue
		}
		if limit--; limit < 0 {
			break
		}
		want += fmt.Sprintf("%q=%q ", q.sub, v.all[q].value)
	}
	got, n := "", max(0, strings.Count(want, "=")) // as many as there should be, and one more if there is
	err := v.l.Scan(v.entry(p), after, descending, func(sub, value []byte) bool {
		if limit < 0 && n == 0 {
			return false
		}
		n--
		got += fmt.Sprintf("%q=%q ", sub, value)
		return true
	})
	if err != nil || got != want {
		v.w.t.Fatalf("batch %d: scan %v after %q descending %v: %s %v\nwant %s", v.info.Batch, p, after, descending, got, err, want)
	}
}

func (v *laneRun) deletePrefix(p place) {
	list := v.under(p, p.sub)
	var before []byte
	if v.r.IntN(2) == 0 {
		before = []byte(v.place().sub)
		list = slices.DeleteFunc(v.under(p, ""), func(q place) bool { return q.sub < p.sub || q.sub >= string(before) })
	}
	n, err := v.l.DeletePrefix(v.entry(p), before)
	if err != nil || n < len(list) {
		v.w.t.Fatalf("batch %d: delete %v before %q: %d entries, %v, want %d", v.info.Batch, p, before, n, err, len(list))
	}
	for _, q := range list {
		delete(v.all, q)
		v.wrote[q] = true
	}
}

// fire takes the due timers and compares them with those that should be.
func (v *laneRun) fire() {
	var want []place
	for p := range v.before {
		if isDue(p, v.info) && p.stage == v.stage.Name && slices.Contains(v.groups, p.group) && !v.gone[p] {
			want = append(want, p)
		}
	}
	slices.SortFunc(want, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.domain, b.domain), cmp.Compare(a.at, b.at), strings.Compare(a.key, b.key), strings.Compare(a.sub, b.sub))
	})
	most := 1 + v.r.IntN(6)
	left := len(want) > most
	want = want[:min(most, len(want))]
	var got []place
	more, err := v.l.Due(most, func(t *statestore.Timer) error {
		p := place{stage: v.stage.Name, group: t.Group, key: string(t.Key), sub: string(t.Sub), domain: t.Domain, at: t.AtMS}
		got = append(got, p)
		delete(v.all, p)
		v.wrote[p] = true
		if v.r.IntN(4) == 0 {
			v.operation()
		}
		return nil
	})
	strip := func(list []place) (out []place) { // timers at one instant with equal key and sub may be of two groups
		for _, p := range list {
			p.group = 0
			out = append(out, p)
		}
		return out
	}
	if err != nil || !slices.Equal(strip(got), strip(want)) || more != left {
		v.w.t.Fatalf("batch %d: fired %v %v %v\nwant %v %v", v.info.Batch, got, more, err, want, left)
	}
	v.w.seen["timer"] += len(got)
}

// effective counts what the changelog should have of this lane.
func (v *laneRun) effective() (n int) {
	for p := range v.wrote {
		base, there := v.before[p]
		hidden := there && base.expiry != 0 && base.expiry <= v.info.TimeMS
		now, put := v.all[p]
		switch {
		case !put && hidden: // counted with what is removed by itself
		case put && v.read[p] && there && !hidden && now == base:
		case !put && v.read[p] && !there:
		default:
			n++
		}
	}
	return n
}

// Random batches, crashes and looks back, against maps.
func TestModel(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		disk := mem.New()
		w := &world{t: t, r: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)), fs: faulty.New(), disk: disk, opener: disk.Open}
		w.live(rapid.IntRange(1, 25).Draw(t, "steps"), seen)
	})
	for _, what := range []string{"crash", "reset", "abort", "replay", "view", "torn", "compacted", "stages", "timer", "expiry"} {
		if seen[what] == 0 {
			t.Errorf("no %s: %v", what, seen)
		}
	}
	t.Log(seen)
}

// The same on Badger, which is what a job runs on.
func TestModelOnBadger(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(6) {
		dir := t.TempDir()
		w := &world{t: t, r: rand.New(rand.NewPCG(seed, 2)), fs: faulty.New()}
		w.opener = func(ctx context.Context, cfg statestore.BackendConfig) (statestore.Backend, error) {
			cfg.Files, cfg.Dir = durable.OS(), dir
			return badger.Open(ctx, cfg)
		}
		w.live(25, seen, w.tearOne)
	}
	for _, what := range []string{"crash", "replay", "view", "torn", "timer", "expiry"} {
		if seen[what] == 0 {
			t.Errorf("no %s: %v", what, seen)
		}
	}
	t.Log(seen)
}

// tearOne goes on until the store tells that an apply has ended in the middle, and compares what the next store makes of it. Tearing
// waits for an apply of enough changes, and the store tells of it at the latest when nothing more can wait.
func (w *world) tearOne() {
	w.calm = true
	defer func() { w.calm = false }()
	torn := w.seen["torn"]
	for range 5 * statestore.DefaultBacklogBatches {
		w.gate.set(false)
		if w.tear.Load() < 0 {
			w.tear.Store(1 + w.r.Int64N(4))
		}
		w.batch()
		if w.seen["torn"] > torn {
			w.look()
			return
		}
	}
	w.t.Fatal("no apply was torn")
}

// live lets a job live for some steps, and in the end through what else comes.
func (w *world) live(steps int, seen map[string]int, also ...func()) {
	w.seen, w.lanes = map[string]int{}, 1
	w.tear.Store(-1)
	w.stages = []statestore.Stage{{Name: "a", Tables: []string{"t1", "t2"}}}
	w.open()
	defer func() {
		w.gate.set(false)
		_ = w.store.Close()
		for k, n := range w.seen {
			seen[k] += n
		}
	}()
	for range steps {
		switch w.r.IntN(10) {
		case 0:
			w.crash()
		case 1:
			w.retain()
		case 2, 3:
			w.look()
		default:
			w.batch()
		}
	}
	w.look()
	for _, f := range also {
		f()
	}
}

func (w *world) retain() {
	if len(w.batches) < 3 {
		return
	}
	w.gate.set(false)
	w.oldest = max(w.oldest, int64(len(w.batches))-1-w.r.Int64N(3))
	w.check(w.store.Retain(w.t.Context(), w.oldest))
}
