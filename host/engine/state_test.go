package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/engine/sim"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/statestore"
	"github.com/wasmill/wasmill/statestore/mem"
)

// keyedWorld is a world whose transform "words" feeds the keyed transform "tally": sinks "counts" and "windows" on target
// main, "late" on target side. Values are "v<n>": the last digit is the key, the event time goes on by a second a value.
func keyedWorld(t *testing.T) *world {
	w := newWorld(t)
	w.keyed = true
	return w
}

// keyedGraph is the graph of a keyed world.
func (w *world) keyedGraph(p *sim.Process, target func(string) sink.Target) *engine.Graph {
	main, side := target("main"), target("side")
	g := &engine.Graph{
		Lanes: w.lanes,
		Sources: []engine.SourceNode{{
			Name: "in", Source: &sim.Source{Proc: p, In: &w.in, SplitSize: 3, Step: w.step}, Limit: source.Limit{Records: w.batch},
			EventTime: &w.eventTime,
		}},
		Stages: []engine.StageNode{
			{
				Name: "words", Module: "m", Inputs: []engine.Edge{engine.FromSource(0)},
				Program: &sim.Program{Proc: p, Outputs: []string{"even", "odd"}, NewGuest: sim.Words(2, true)},
			},
			{
				Name: "tally", Module: "k", Inputs: []engine.Edge{w.keyedBy(engine.FromPort(0, 0)), w.keyedBy(engine.FromSource(0))}[:w.tallies],
				Program: &sim.Program{Proc: p, Outputs: []string{"counts", "windows", "late"}, Tables: sim.TallyTables, NewGuest: w.tally},
			},
		},
		Sinks: []engine.SinkNode{
			{Name: "counts", Target: main, Inputs: []engine.Edge{engine.FromPort(1, 0)}},
			{Name: "windows", Target: main, Inputs: []engine.Edge{engine.FromPort(1, 1)}},
			{Name: "late", Target: side, Inputs: []engine.Edge{engine.FromPort(1, 2)}},
			{Name: "dead", Target: target("dead")},
		},
	}
	if w.direct {
		g.Stages[1].Inputs = []engine.Edge{keyed(engine.FromSource(0))}
	}
	if w.behind {
		g.Stages = append(g.Stages, engine.StageNode{
			Name: "behind", Module: "k", Inputs: []engine.Edge{w.behindKeyed(engine.FromPort(1, 1))},
			Program: &sim.Program{Proc: p, Outputs: []string{"marks"}, NewGuest: sim.Marks},
		})
		g.Sinks = append(g.Sinks, engine.SinkNode{Name: "marks", Target: main, Inputs: []engine.Edge{engine.FromPort(2, 0)}})
	}
	return g
}

// keyedBy gives an edge the key of the world.
func (w *world) keyedBy(e engine.Edge) engine.Edge {
	if e = keyed(e); w.keyBy != nil {
		e.KeyBy = w.keyBy
	}
	return e
}

// behindKeyed gives the edge into the stage behind its key.
func (w *world) behindKeyed(e engine.Edge) engine.Edge {
	if e = keyed(e); w.behindBy != nil {
		e.KeyBy = w.behindBy
	}
	return e
}

func keyed(e engine.Edge) engine.Edge {
	e.KeyBy = &engine.KeyBy{Key: true}
	return e
}

// tallied is what a keyed world must come to over a prefix of its input that the watermark has passed to some point.
type tallied struct {
	counts  map[string][]string // by key, in order
	windows map[string]string   // by "key start", the count
}

func tally(values []string, step time.Duration) tallied {
	t := tallied{counts: map[string][]string{}, windows: map[string]string{}}
	windows := map[string]int{}
	for i, v := range values {
		key := v[len(v)-1:]
		t.counts[key] = append(t.counts[key], fmt.Sprintf("%s %d", key, len(t.counts[key])+1))
		at := int64(sim.Epoch) + int64(i)*step.Milliseconds()
		name := fmt.Sprintf("%s %d", key, at/sim.WindowMS*sim.WindowMS)
		windows[name]++
		t.windows[name] = strconv.Itoa(windows[name])
	}
	return t
}

// wantTallied compares what was published with the oracle. Windows that end after closed are still open.
func (w *world) wantTallied(closed int64) {
	w.t.Helper()
	want := tally(w.in.Values(), w.step)
	got := map[string][]string{}
	for _, v := range w.stores["main"].Values("counts") {
		key, _, _ := strings.Cut(v, " ")
		got[key] = append(got[key], v)
	}
	if !maps.EqualFunc(got, want.counts, slices.Equal[[]string]) {
		w.t.Errorf("counts are %v, want %v", got, want.counts)
	}
	seen := map[string]string{}
	for _, v := range w.stores["main"].Values("windows") {
		cut := strings.LastIndexByte(v, ' ')
		if _, twice := seen[v[:cut]]; twice {
			w.t.Errorf("window %s came twice", v[:cut])
		}
		seen[v[:cut]] = v[cut+1:]
	}
	maps.DeleteFunc(want.windows, func(name, _ string) bool {
		start, err := strconv.ParseInt(name[strings.IndexByte(name, ' ')+1:], 10, 64)
		return err != nil || start+sim.WindowMS > closed
	})
	if !maps.Equal(seen, want.windows) {
		w.t.Errorf("closed windows are %v, want %v", seen, want.windows)
	}
	if late := w.stores["side"].Values("late"); len(late) > 0 {
		w.t.Errorf("late: %q", late)
	}
}

// lastMS is the event time of the last value.
func (w *world) lastMS() int64 {
	return int64(sim.Epoch) + int64(len(w.in.Values())-1)*w.step.Milliseconds()
}

func TestKeyedStage(t *testing.T) {
	for _, lanes := range []int{1, 2, 4} {
		for _, workers := range []int{1, 3} {
			t.Run(fmt.Sprintf("%d lanes %d workers", lanes, workers), func(t *testing.T) {
				w := keyedWorld(t)
				w.lanes, w.workers = lanes, workers
				w.in.Append(numbered("v", 47)...)
				w.mustRun()
				w.wantTallied(w.lastMS())
				w.in.Append(numbered("v", 20)...)
				w.mustRun() // goes on with the state that it finds
				w.wantTallied(w.lastMS())
				w.wantConsistent()
			})
		}
	}
}

func TestLatenessHoldsWindowsOpen(t *testing.T) {
	w := keyedWorld(t)
	w.eventTime.LatenessMS = 7_000
	w.in.Append(numbered("v", 47)...)
	w.mustRun()
	w.wantTallied(w.lastMS() - 7_000)
}

func TestCompleteInputClosesEverything(t *testing.T) {
	w := keyedWorld(t)
	w.eventTime.Complete = true
	w.in.Append(numbered("v", 47)...)
	w.mustRun()
	w.wantTallied(w.lastMS() + 10*sim.WindowMS)
}

func TestIdleSourceGoesOnWithTheClock(t *testing.T) {
	w := keyedWorld(t)
	w.eventTime.IdleMS = 4_000
	w.in.Append(numbered("v", 47)...)
	w.mustRun()
	w.wantTallied(w.lastMS())
	w.clock.Move(4_001 * time.Millisecond)
	w.mustRun()
	w.wantTallied(w.lastMS() + 1)
	w.clock.Move(sim.WindowMS * time.Millisecond)
	w.mustRun()
	w.wantTallied(w.lastMS() + 1 + sim.WindowMS)
	w.in.Append("v07") // its window has been closed meanwhile: its event time is that of the 48th value
	w.mustRun()
	if got := w.stores["side"].Values("late"); !slices.Equal(got, []string{"v07"}) {
		t.Errorf("late: %q", got)
	}
}

func TestUnionIntoAKeyedStage(t *testing.T) {
	w := keyedWorld(t)
	w.tallies = 2 // each value comes once through words and once directly
	w.in.Append(numbered("v", 30)...)
	w.mustRun()
	if got := len(w.stores["main"].Values("counts")); got != 60 {
		t.Errorf("%d counts, want 60", got)
	}
}

func TestKeyedPoison(t *testing.T) {
	w := keyedWorld(t)
	values := numbered("v", 30)
	values[4], values[17] = "trap4", "fail7"
	w.in.Append(values...)
	w.tallies = 2
	w.mustRun()
	counts := map[string]int{}
	for _, v := range w.stores["main"].Values("counts") {
		counts[v[:1]]++
	}
	for key, n := range counts {
		want := 6
		if key == "4" || key == "7" {
			want = 4 // the bad one is missing on both ways
		}
		if n != want {
			t.Errorf("key %s was counted %d times, want %d", key, n, want)
		}
	}
	if got := len(w.stores["dead"].Values("dead")); got != 4 {
		t.Errorf("%d dead letters, want 4: two of each stage", got)
	}
}

func TestRecordsWithoutAKeyAreSetAside(t *testing.T) {
	w := keyedWorld(t)
	w.tallies = 2
	w.step = 0 // the source gives no keys then
	w.in.Append(numbered("v", 5)...)
	w.mustRun()
	letters := w.stores["dead"].Values("dead")
	if len(letters) != 10 {
		t.Fatalf("%d dead letters, want 10: %q", len(letters), letters)
	}
	for _, l := range letters {
		if !strings.Contains(l, `"word":"no_key"`) || !strings.Contains(l, `"code":-6`) || !strings.Contains(l, `"stage":"tally"`) {
			t.Errorf("letter %s", l)
		}
	}
}

// TestLettersWithoutAKeyNameWhoPutThemOut: a record that another transform has put out, for a record or for a timer, is said
// to come from there.
func TestLettersWithoutAKeyNameWhoPutThemOut(t *testing.T) {
	w := keyedWorld(t)
	w.behind, w.lanes = true, 1
	w.behindBy = &engine.KeyBy{Header: "nope"}
	w.in.Append(numbered("v", 47)...)
	w.mustRun()
	places := map[string]int64{}
	for _, l := range w.stores["dead"].Values("dead") {
		var lt struct {
			Batch  int64
			Stage  string
			Source string
			Split  string
			Offset int64
			Word   string
		}
		if err := json.Unmarshal([]byte(l), &lt); err != nil {
			t.Fatal(err)
		}
		place := fmt.Sprint(lt.Batch)
		if lt.Stage != "behind" || lt.Source != "tally" || lt.Split != "" || lt.Word != "no_key" || lt.Offset != places[place] {
			t.Errorf("letter %s, want offset %d", l, places[place])
		}
		places[place]++
	}
	if len(places) == 0 {
		t.Error("no letters")
	}
}

// TestKeyedReplay runs every batch again at the state before it.
func TestKeyedReplay(t *testing.T) {
	w := keyedWorld(t)
	w.in.Append(numbered("v", 47)...)
	w.mustRun()
	w.replayAll()
}

// TestKeyedKills kills the process at every call of a part, and goes on.
func TestKeyedKills(t *testing.T) {
	for _, traits := range []sink.Traits{durableTraits, volatileTraits} {
		for at := 1; ; at++ {
			w := keyedWorld(t)
			w.traits["main"], w.traits["side"] = traits, traits
			w.in.Append(numbered("v", 23)...)
			p := &sim.Process{KillAt: at}
			if w.run(p) == nil {
				break
			}
			if traits.Volatile {
				w.stores["main"].DropStaged()
				w.stores["side"].DropStaged()
			}
			w.mustRun()
			w.wantTallied(w.lastMS())
			w.wantConsistent()
			if t.Failed() {
				t.Fatalf("killed at call %d", at)
			}
		}
	}
}

// TestStateIsMadeAgain takes a changelog away that the store needs: the batch is run again for it.
func TestStateIsMadeAgain(t *testing.T) {
	w := keyedWorld(t)
	w.in.Append(numbered("v", 23)...)
	w.mustRun()
	var rungs []string
	w.events = &engine.Events{Recovered: func(r engine.Recovery) { rungs = append(rungs, r.Rung+" "+r.Detail) }}
	w.dropChangelog(1)
	w.in.Append(numbered("v", 20)...)
	w.mustRun()
	w.wantTallied(w.lastMS())
	if !slices.Contains(rungs, "rerun for what it changed of the state") {
		t.Errorf("recovery did %q", rungs)
	}
}

// TestStateLost takes a changelog and the input away: nothing can make the state again.
func TestStateLost(t *testing.T) {
	w := keyedWorld(t)
	w.in.Append(numbered("v", 23)...)
	w.mustRun()
	w.dropChangelog(1)
	w.in.Replace(12, "v-other-5")
	err := w.run(&sim.Process{})
	if !isCode(err, engine.CodeStateLost) {
		t.Errorf("error %v, want %s", err, engine.CodeStateLost)
	}
}

// TestWatermarkNeverGoesBack looks at all plans of a job that was killed and whose clock was set back.
func TestWatermarkNeverGoesBack(t *testing.T) {
	w := keyedWorld(t)
	for round := range 6 {
		w.in.Append(numbered("v", 11)...)
		if round%2 == 1 {
			w.clock.Move(-time.Hour)
		}
		if err := w.run(&sim.Process{KillAt: 20 + 7*round}); err == nil {
			t.Fatal("the process was not killed")
		}
	}
	w.mustRun()
	last := int64(0)
	for _, p := range w.plans() {
		if p.WatermarkMS < last {
			t.Errorf("batch %d: watermark %d after %d", p.Batch, p.WatermarkMS, last)
		}
		last = p.WatermarkMS
	}
	if last == 0 {
		t.Error("there was no watermark")
	}
}

// TestTimersOfTheClock fires timers in processing time without any input.
func TestTimersOfTheClock(t *testing.T) {
	w := keyedWorld(t)
	w.tally = func(l sandbox.Lane) sim.Guest { return sim.Alarm(l, 1500*time.Millisecond) }
	w.in.Append("v1", "v2", "v1")
	w.mustRun()
	w.wantOn("main", "windows")
	w.clock.Move(1499 * time.Millisecond)
	w.mustRun()
	w.wantOn("main", "windows")
	w.clock.Move(time.Millisecond)
	w.mustRun()
	w.wantOn("main", "windows", "1 at 1500", "2 at 1500")
	if n := w.plans()[len(w.plans())-1].Batch; n != checkpoint.BatchID(1) {
		t.Errorf("the last batch is %d: one without data was planned for nothing", n)
	}
}

// openState opens the state of a keyed world. Its backend is in memory and gone with the process, so that each process
// builds the state from the changelogs.
func (w *world) openState(ctx context.Context, files durable.Files) (*statestore.Store, error) {
	if !w.keyed {
		return nil, nil
	}
	return statestore.Open(ctx, statestore.Config{
		Files: files, Dir: w.dir + "/state", Query: simQuery, Backend: mem.Open, BackendName: "mem",
	})
}

// withLog opens the checkpoint for reading.
func (w *world) withLog(f func(ctx context.Context, log *checkpoint.Log, store *statestore.Store)) {
	w.t.Helper()
	ctx := context.Background()
	files := w.disk.Process()
	defer files.Kill()
	log, err := checkpoint.Open(ctx, files, w.dir, checkpoint.Options{Job: "sim", Holder: "test", Clock: func() int64 { return 0 }})
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close()
	store, err := w.openState(ctx, files)
	if err != nil {
		w.t.Fatal(err)
	}
	defer store.Close()
	f(ctx, log, store)
}

// plans are those of all batches.
func (w *world) plans() []*checkpoint.Plan {
	w.t.Helper()
	var out []*checkpoint.Plan
	w.withLog(func(ctx context.Context, log *checkpoint.Log, _ *statestore.Store) {
		last, _, err := log.Tail(ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		for id := checkpoint.BatchID(0); id <= last.Batch; id++ {
			p, err := log.Plan(ctx, id)
			if err != nil {
				w.t.Fatal(err)
			}
			out = append(out, p)
		}
	})
	return out
}

// replayAll runs every batch again at the state before it and compares all digests.
func (w *world) replayAll() {
	w.t.Helper()
	stateful := 0
	w.withLog(func(ctx context.Context, log *checkpoint.Log, store *statestore.Store) {
		last, _, err := log.Tail(ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		g, policy := w.graph(&sim.Process{})
		for id := checkpoint.BatchID(0); id <= last.Batch; id++ {
			past := engine.Past{Query: log.QueryID(), Begin: store.Begin}
			if past.Decision, err = log.Decision(ctx, id); err != nil {
				w.t.Fatal(err)
			}
			if past.Plan, err = log.Plan(ctx, id); err == nil && id > 0 {
				past.Prev, err = log.Plan(ctx, id-1)
			}
			if err != nil {
				w.t.Fatal(err)
			}
			got, err := engine.Replay(ctx, g, policy, past.Decision.Revision, past, 1, nil)
			if err == nil {
				err = engine.Compare(&past, got, w.host, engine.Changes{})
			}
			if err != nil {
				w.t.Fatalf("replay batch %d: %v", id, err)
			}
			if d := past.Decision; d.State != "" {
				stateful++
				if err := store.Load(ctx, int64(id), d.Attempt, d.State); err != nil {
					w.t.Fatal(err)
				}
			}
		}
	})
	if stateful < 3 {
		w.t.Errorf("%d batches changed the state: nothing was proven", stateful)
	}
}

// dropChangelog removes what a batch changed of the state.
func (w *world) dropChangelog(batch int64) {
	w.t.Helper()
	files := w.disk.Process()
	defer files.Kill()
	dir := w.dir + "/state/changelog"
	list, err := files.List(dir)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range list {
		if !strings.HasPrefix(f.Name, fmt.Sprintf("%d-", batch)) {
			continue
		}
		if err := errors.Join(files.Remove(dir+"/"+f.Name), files.SyncDir(dir)); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	w.t.Fatalf("batch %d has no changelog", batch)
}

// wantOn compares what a sink on a target holds.
func (w *world) wantOn(target, sinkName string, want ...string) {
	w.t.Helper()
	if got := w.stores[target].Values(sinkName); !slices.Equal(got, want) {
		w.t.Errorf("%s holds %q, want %q", sinkName, got, want)
	}
}

// TestTimersThatAreLeft fires more timers at one instant than one batch hands over. The others come in the batches after it,
// and time stands still meanwhile for the transform behind: it takes nothing for late that the timers still give.
func TestTimersThatAreLeft(t *testing.T) {
	const each = 9_001
	w := keyedWorld(t)
	w.lanes, w.batch, w.behind = 2, 100, true
	w.tally = func(l sandbox.Lane) sim.Guest { return sim.Swarm(l, each) }
	var fired []int64
	w.events = &engine.Events{Batch: func(s engine.BatchStats) {
		if n := s.Stages[1].Timers; n > 0 {
			fired = append(fired, n)
		}
	}}
	values := make([]string, 10)
	for i := range values {
		values[i] = fmt.Sprintf("v%d1", i) // one key, so one lane
	}
	w.in.Append(values...)
	w.mustRun()
	if want := []int64{20_000, 20_000, 20_000, 20_000, 10*each - 80_000}; !slices.Equal(fired, want) {
		t.Errorf("timers fired by batch: %v, want %v", fired, want)
	}
	got := w.stores["main"].Values("windows")
	if slices.Sort(got); len(got) != 10*each || len(slices.Compact(got)) != each {
		t.Errorf("%d timers fired, %d of them different, want %d", len(got), len(slices.Compact(got)), 10*each)
	}
	last := int64(sim.Epoch + 9_000)
	var marks, late []string
	for _, v := range w.stores["main"].Values("marks") {
		mark, lateMark, _ := strings.Cut(v, " ")
		marks, late = append(marks, mark), append(late, lateMark)
	}
	now := strconv.FormatInt(last, 10)
	if want := []string{"0", "0", "0", "0", now}; !slices.Equal(slices.Compact(marks), slices.Compact(slices.Clone(want))) || len(marks) < 5 {
		t.Errorf("watermarks of the transform behind: %v, want %v", marks, want)
	}
	if len(slices.Compact(late)) != 1 || late[0] != "0" {
		t.Errorf("what is late for the transform behind: %v, want only 0", late)
	}
	for _, p := range w.plans() {
		if _, held := p.Late["tally"]; held {
			t.Errorf("batch %d: time stands still for the transform that has the timers", p.Batch)
		}
	}
	w.replayAll()
}

// TestKeyedStageIsToldWhatIsNoJSON: the exchange has looked at the value, and the guest must hear of it.
func TestKeyedStageIsToldWhatIsNoJSON(t *testing.T) {
	w := keyedWorld(t)
	w.lanes = 2
	w.eventTime = engine.EventTime{Pointer: "/t", Unit: abi.Milliseconds}
	seen := map[string]uint8{}
	w.tally = func(sandbox.Lane) sim.Guest {
		return func(c sandbox.Call, _ sandbox.Emit) error {
			for i := range c.Records {
				r := &c.Records[i]
				seen[string(r.Value)] = r.Flags
			}
			return nil
		}
	}
	w.tallies, w.direct = 1, true
	w.in.Append(`{"t":1}`, `{"t":}`, `"x"`, `{"t":2} `, `nope`)
	w.mustRun()
	want := map[string]uint8{
		`{"t":1}`: abi.FlagEventTime, `{"t":}`: abi.FlagNotJSON, `"x"`: 0, `{"t":2} `: abi.FlagEventTime, `nope`: abi.FlagNotJSON,
	}
	if !maps.Equal(seen, want) {
		t.Errorf("flags by value: %v, want %v", seen, want)
	}
}

// TestOneSourceKeyedAndNot: two transforms read one source whose event time stands in the value, one of them by key. What the
// engine finds in a record must not stay in the source's own.
func TestOneSourceKeyedAndNot(t *testing.T) {
	w := keyedWorld(t)
	w.eventTime = engine.EventTime{Pointer: "/t", Unit: abi.Milliseconds}
	w.tallies, w.step = 2, 0
	w.keyBy = &engine.KeyBy{JSON: []string{"/k"}}
	w.in.Append(`{"k":"a","t":1700000000000}`, `{"k":"b"}`, `{"k":"a","t":1700000009000}`, `{"k":"b"}`)
	w.mustRun()
	if got := len(w.stores["main"].Values("counts")); got != 8 {
		t.Errorf("%d counts, want 8", got)
	}
}

// TestDowntimeIsNotIdleness: a job that comes back after an hour finds what came meanwhile. Its sources were not idle, so
// nothing of that is late.
func TestDowntimeIsNotIdleness(t *testing.T) {
	w := keyedWorld(t)
	w.eventTime.IdleMS = 4_000
	w.in.Append(numbered("v", 47)...)
	w.mustRun()
	w.clock.Move(time.Hour)
	w.in.Append(numbered("v", 60)...) // six batches
	w.mustRun()
	w.wantTallied(w.lastMS())
}
