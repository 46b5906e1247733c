package checkpoint

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
)

const forkID = "00000000-1111-2222-3333-444444444444"

func forkOptions() Options {
	opts := options()
	opts.Job, opts.NewID = "delays-2", func() string { return forkID }
	return opts
}

func TestForkGoesOnWhereABatchEnded(t *testing.T) {
	f, files := memory()
	l := open(t, files, "c")
	dir, err := l.SourceDir("flights")
	must(t, err)
	batches(t, l, 0, 3)
	put(t, files, dir+"/0", "seen")
	put(t, files, dir+"/deep/1.compact", "seen too")
	put(t, files, dir+"/.0.crc", "crc")
	got, err := Fork(t.Context(), files, "c", "d", ForkRequest{
		Batch: 2, Ends: map[string]Position{"ticks": {Line: "99"}}, Options: forkOptions(),
	})
	must(t, err)
	want := &Forked{QueryID: forkID, From: testID + "@2", Sources: []SourceSummary{
		{Number: 0, Name: "flights", Line: `{"logOffset":2}`, Extra: `{"at":"<12>"}`}, {Number: 1, Name: "ticks", Line: "99"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	files = f.Crash(nil, 0).Process()
	n, err := Open(t.Context(), files, "d", forkOptions())
	must(t, err)
	defer func() { must(t, n.Close()) }()
	p, d, err := n.Tail(t.Context())
	must(t, err)
	wantPlan := plan(2)
	wantPlan.Batch, wantPlan.TimeMS, wantPlan.WatermarkMS = 0, 1_800_000_000_000, 15
	wantPlan.Conf = map[string]string{
		"wasmill.fork": testID + "@2", "wasmill.origins": `[{"query":"` + testID + `","batch":2,"last":{"lake":2}}]`,
	}
	wantPlan.Sources[1].End = Position{Line: "99"}
	if diff := cmp.Diff(&wantPlan, p); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Origin{{Query: testID, Batch: 2, Last: map[string]BatchID{"lake": 2}}}, p.Origins()); diff != "" {
		t.Error(diff)
	}
	own := plan(2)
	if o := own.Origins(); o != nil {
		t.Errorf("a plan that is no fork's comes from %+v", o)
	}
	old := Plan{Conf: map[string]string{"wasmill.fork": testID + "@7"}}
	if diff := cmp.Diff([]Origin{{Query: testID, Batch: 7}}, old.Origins()); diff != "" {
		t.Error(diff)
	}
	wantDecision := &Decision{NextWatermarkMS: 15, Sources: map[string]SourceOutcome{"flights": {WatermarkMS: 5, Idle: true}}}
	if diff := cmp.Diff(wantDecision, d); diff != "" {
		t.Error(diff)
	}
	if read(t, files, "d/sources/0/deep/1.compact") != "seen too" || list(t, files, "d/sources/0") != "0 deep" {
		t.Errorf("sources: %s", list(t, files, "d/sources/0"))
	}
	if n.QueryID() != forkID {
		t.Errorf("query id %s", n.QueryID())
	}
	must(t, n.WritePlan(t.Context(), plan(1)))
}

func TestForkSpark(t *testing.T) {
	from, to := spark(t, "g-kafka-source"), t.TempDir()
	_, err := Fork(t.Context(), durable.OS(), from, to, ForkRequest{Batch: NoBatch, Options: forkOptions()})
	wantCode(t, "without names", err, CodeForeign, "offsets/2")
	got, err := Fork(t.Context(), durable.OS(), from, to, ForkRequest{Batch: NoBatch, Names: []string{"orders"}, Options: forkOptions()})
	must(t, err)
	if len(got.Sources) != 1 || got.Sources[0].Name != "orders" || got.From != "77f5edb4-3bf4-496b-8b9c-e92f19239553@2" {
		t.Errorf("forked: %+v", got)
	}
	l, err := Open(t.Context(), durable.OS(), to, forkOptions())
	must(t, err)
	defer func() { must(t, l.Close()) }()
	p, _, err := l.Tail(t.Context())
	must(t, err)
	if want := `{"golden.in":{"0":10,"1":10,"2":10},"golden.in2":{"0":10,"1":10,"2":10}}`; p.Position("orders").Line != want {
		t.Errorf("position %s, want %s", p.Position("orders").Line, want)
	}
	if got := read(t, durable.OS(), to+"/sources/0/0"); got[0] != 0 || got[1:3] != "v1" {
		t.Errorf("the source's note is %q", got)
	}
}

// An uncommitted batch of Spark's is not forked from: the batch before it is.
func TestForkOfAnUndecidedTail(t *testing.T) {
	got, err := Fork(t.Context(), durable.OS(), spark(t, "b1-killed-in-task"), t.TempDir(),
		ForkRequest{Batch: NoBatch, Names: []string{"in"}, Options: forkOptions()})
	must(t, err)
	if got.From != "c3cf99af-fe3a-4bf6-80a0-ae3aa9c49212@10" {
		t.Errorf("forked from %s", got.From)
	}
}

func TestForkRefuses(t *testing.T) {
	_, files := memory()
	l := open(t, files, "c")
	batches(t, l, 0, 1)
	must(t, l.WritePlan(t.Context(), plan(2)))
	must(t, open(t, files, "fresh").Close())
	for name, tc := range map[string]struct {
		from, to string
		req      ForkRequest
		code     string
		words    string
	}{
		"not empty":            {"c", "c", ForkRequest{Batch: 1}, CodeInvalid, "in use"},
		"an undecided batch":   {"c", "d", ForkRequest{Batch: 2}, CodeMissing, "commits/2"},
		"a batch to come":      {"c", "d", ForkRequest{Batch: 9}, CodeMissing, "offsets/9"},
		"no batch yet":         {"fresh", "d", ForkRequest{Batch: NoBatch}, CodeMissing, "no batch was decided"},
		"no checkpoint":        {"nowhere", "d", ForkRequest{Batch: 0}, CodeMissing, "nowhere"},
		"names that are known": {"c", "d", ForkRequest{Batch: 1, Names: []string{"a", "b"}}, CodeForeign, "offsets/1"},
		"a bad position":       {"c", "d", ForkRequest{Batch: 1, Ends: map[string]Position{"ticks": {Line: "bad"}}}, CodeInvalid, "not one line of JSON"},
		"an unknown source":    {"c", "d", ForkRequest{Batch: 1, Ends: map[string]Position{"x": {Line: "1"}}}, CodeInvalid, "no source"},
	} {
		tc.req.Options = forkOptions()
		_, err := Fork(t.Context(), files, tc.from, tc.to, tc.req)
		wantCode(t, name, err, tc.code, tc.words)
	}
}

// A fork that a power cut ends is no checkpoint, or the whole one.
func TestPowerCutInFork(t *testing.T) {
	base, files := memory()
	l := open(t, files, "c")
	dir, err := l.SourceDir("flights")
	must(t, err)
	put(t, files, dir+"/0", "seen")
	batches(t, l, 0, 1)
	must(t, l.Close())
	for n := 1; ; n++ {
		f := base.Clone()
		f.StopAt(n, faulty.Moment(n%3))
		_, err := Fork(t.Context(), f.Process(), "c", "d", ForkRequest{Batch: 1, Options: forkOptions()})
		if err == nil {
			break
		}
		for _, keep := range []float64{0, 1} {
			left := f.Crash(nil, keep).Process()
			_, copied := left.Stat("d/sources/0")
			again, err := Open(t.Context(), left, "d", forkOptions())
			if err != nil {
				continue
			}
			p, d, err := again.Tail(t.Context())
			must(t, err)
			if p == nil && copied == nil {
				t.Fatalf("operation %d: half a fork passes for a new checkpoint", n)
			}
			if p != nil && (d == nil || p.Position("flights").Line != `{"logOffset":1}`) {
				t.Fatalf("operation %d: %+v, %+v", n, p, d)
			}
		}
	}
}
