package checkpoint

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
)

// spark returns a copy of a checkpoint that Spark wrote.
func spark(t *testing.T, name string) string {
	t.Helper()
	return copyOf(t, filepath.Join("testdata", "spark", name))
}

// Every checkpoint of Spark's is read, and its state told in words.
func TestShowSpark(t *testing.T) {
	for _, name := range []string{"a-json-to-parquet", "b1-killed-in-task", "g-kafka-source", "i-stateful-rocksdb", "v3.5.9-stateful"} {
		s, err := Show(t.Context(), durable.OS(), spark(t, name))
		must(t, err)
		if n := len(s.Batches); n > 2 {
			s.Batches = s.Batches[n-2:]
		}
		text, err := json.MarshalIndent(s, "", "  ")
		must(t, err)
		golden(t, "show-"+name+".json", append(text, '\n'))

		r, err := Verify(t.Context(), durable.OS(), spark(t, name))
		must(t, err)
		if !r.OK() || !r.Spark || len(r.Offers) > 0 {
			t.Errorf("%s: %+v", name, r)
		}
		_, err = Open(t.Context(), durable.OS(), spark(t, name), options())
		wantCode(t, name, err, CodeForeign, "offsets/")
	}
}

// The rest of Spark's checkpoints, where they are at hand.
func TestShowMoreOfSpark(t *testing.T) {
	shared := os.Getenv("WASMILL_SHARED")
	if shared == "" {
		t.Skip("WASMILL_SHARED is not set")
	}
	dirs, err := filepath.Glob(filepath.Join(shared, "golden", "spark", "*", "checkpoint"))
	must(t, err)
	if len(dirs) == 0 {
		t.Fatal("no checkpoints found")
	}
	for _, dir := range dirs {
		s, err := Show(t.Context(), durable.OS(), dir)
		must(t, err)
		r, err := Verify(t.Context(), durable.OS(), dir)
		must(t, err)
		if !s.Spark || !r.OK() || s.Standing == Broken || s.QueryID == "" {
			t.Errorf("%s: %+v %+v", dir, s, r)
		}
		t.Logf("%s: %s", filepath.Base(filepath.Dir(dir)), s.Words)
	}
}

func TestShowSaysWhereTheTailStands(t *testing.T) {
	_, files := memory()
	l := open(t, files, "c")
	show := func() *Summary {
		t.Helper()
		s, err := Show(t.Context(), files, "c")
		must(t, err)
		return s
	}
	want := func(standing Standing, words string) {
		t.Helper()
		if s := show(); s.Standing != standing || s.Words != words {
			t.Errorf("%s: %s, want %s: %s", s.Standing, s.Words, standing, words)
		}
	}
	want(Empty, "no batch was planned yet")
	must(t, l.WritePlan(t.Context(), plan(0)))
	want(Undecided, "batch 0 is planned and not decided: the next start runs it again")
	must(t, l.WriteDecision(t.Context(), decision(0)))
	want(Unpublished, "batch 0 is decided but maybe not published in lake: the next start makes sure; Spark would take it for done")
	must(t, l.NotePublished(t.Context(), map[string]PublishedMark{"lake": {Batch: 0, Digest: "dd"}}))
	want(Done, "batch 0 is decided and published")
	quiet := decision(1)
	quiet.Targets = map[string]TargetOutcome{"lake": {Last: 0}}
	must(t, l.WritePlan(t.Context(), plan(1)))
	must(t, l.WriteDecision(t.Context(), quiet))
	want(Done, "batch 1 is decided and published")
	must(t, l.Supersede(t.Context(), 1, Undone))
	must(t, l.WriteDecision(t.Context(), decision(1)))
	must(t, l.Close())
	must(t, Resolve(t.Context(), files, "c", 1, "lake", Skip, options()))

	text, err := json.MarshalIndent(show(), "", "  ")
	must(t, err)
	golden(t, "show-own.json", append(text, '\n'))
	put(t, files, "c/published", "garbage")
	want(Unpublished, "batch 1 is decided but maybe not published in lake: the next start makes sure; Spark would take it for done")
	put(t, files, "c/commits/1", "")
	want(Broken, "something is wrong: commits/1: incomplete: the file is empty")
}

// Show and Verify read while a job writes, and see no gap that is none.
func TestShowWhileTheJobRuns(t *testing.T) {
	_, files := memory()
	l := open(t, files, "c")
	done := make(chan error, 1)
	go func() {
		for id := range BatchID(200) {
			if err := l.WritePlan(t.Context(), plan(id)); err != nil {
				done <- err
				return
			}
			if err := l.WriteDecision(t.Context(), decision(id)); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	looks := 0
	for {
		select {
		case err := <-done:
			must(t, err)
			if looks == 0 {
				t.Error("never looked")
			}
			return
		default:
		}
		s, err := Show(t.Context(), files, "c")
		must(t, err)
		if len(s.Findings) > 0 {
			t.Fatalf("findings: %+v", s.Findings)
		}
		looks++
	}
}

func TestResolve(t *testing.T) {
	f, files := memory()
	l := open(t, files, "c")
	batches(t, l, 0, 1)
	none, err := l.Resolution(t.Context(), 1, "lake")
	if none != nil || err != nil {
		t.Fatalf("resolution: %+v, %v", none, err)
	}
	must(t, l.Close())
	resolve := func(batch BatchID, target string, action Action) error {
		return Resolve(t.Context(), files, "c", batch, target, action, options())
	}
	wantCode(t, "an earlier batch", resolve(0, "lake", Skip), CodeInvalid, "batch 0 is not waiting")
	wantCode(t, "a later batch", resolve(2, "lake", Skip), CodeInvalid, "batch 2 is not waiting")
	wantCode(t, "another choice", resolve(1, "lake", "retry"), CodeInvalid, "retry")
	wantCode(t, "a path", resolve(1, "../lake", Skip), CodeInvalid, "no name of a target")
	f.FailNth(1, func(op faulty.Op) bool { return op.Kind == "syncdir" }, faulty.Fault{Err: syscall.EIO}, false)
	wantCode(t, "a directory that is not durable", resolve(1, "lake", Force), CodeNotDurable, "resolutions")
	f.SetFaults(nil)
	must(t, resolve(1, "lake", Force))
	must(t, resolve(1, "lake", Force))
	must(t, resolve(1, "lake", Skip)) // a force may have come to nothing
	wantCode(t, "another choice afterwards", resolve(1, "lake", Force), CodeInvalid, "resolutions/1-lake.json")

	l = open(t, f.Crash(nil, 0).Process(), "c")
	got, err := l.Resolution(t.Context(), 1, "lake")
	must(t, err)
	want := &ResolutionRecord{Version: 1, Batch: 1, Target: "lake", Action: Skip, TimeMS: 1_800_000_000_000}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	put(t, files, "c/resolutions/1-other.json", `{"version":1,"batch":1,"target":"lake","action":"skip"}`)
	l = open(t, files, "c")
	_, err = l.Resolution(t.Context(), 1, "other")
	wantCode(t, "a record of another target", err, CodeUnreadable, "resolutions/1-other.json")
}
