package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
)

func TestTailReturnsWhatWasWritten(t *testing.T) {
	dir := t.TempDir() + "/a/b"
	l := open(t, durable.OS(), dir)
	if p, d, err := l.Tail(t.Context()); p != nil || d != nil || err != nil {
		t.Fatalf("a new checkpoint has a tail: %v %v %v", p, d, err)
	}
	batches(t, l, 0, 2)
	must(t, l.WritePlan(t.Context(), plan(3)))
	must(t, l.Close())

	l = open(t, durable.OS(), dir)
	p, d, err := l.Tail(t.Context())
	if err != nil || d != nil {
		t.Fatalf("tail: %v %v", d, err)
	}
	if diff := cmp.Diff(ptr(plan(3)), p); diff != "" {
		t.Fatal(diff)
	}
	must(t, l.WriteDecision(t.Context(), decision(3)))
	_, d, err = l.Tail(t.Context())
	must(t, err)
	if diff := cmp.Diff(ptr(decision(3)), d); diff != "" {
		t.Fatal(diff)
	}
	if l.QueryID() != testID || l.Dir() != dir {
		t.Fatalf("query id %s, directory %s", l.QueryID(), l.Dir())
	}
	earlier, err := l.Plan(t.Context(), 1)
	must(t, err)
	if diff := cmp.Diff(ptr(plan(1)), earlier); diff != "" {
		t.Fatal(diff)
	}
	_, err = l.Decision(t.Context(), 4)
	wantCode(t, "a decision that was not taken", err, CodeMissing, "commits/4")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
	}
}

// A batch costs two syncs of files and two of directories in the checkpoint.
func TestARecordCostsOneSyncOfEachKind(t *testing.T) {
	files := durable.Count(durable.OS())
	l := open(t, files, t.TempDir())
	cost := func(what string, do func() error) {
		t.Helper()
		f0, d0 := files.Syncs()
		must(t, do())
		if f1, d1 := files.Syncs(); f1-f0 != 1 || d1-d0 != 1 {
			t.Errorf("%s: %d syncs of files and %d of directories, want 1 and 1", what, f1-f0, d1-d0)
		}
	}
	for id := range BatchID(3) {
		cost("plan", func() error { return l.WritePlan(t.Context(), plan(id)) })
		cost("decision", func() error { return l.WriteDecision(t.Context(), decision(id)) })
	}
	f0, d0 := files.Syncs()
	must(t, l.NotePublished(t.Context(), map[string]PublishedMark{"lake": {Batch: 2, Digest: "d"}}))
	if f1, d1 := files.Syncs(); f1 != f0 || d1 != d0 {
		t.Error("the note of what is published waits for the disk")
	}
	marks, err := l.Published(t.Context())
	must(t, err)
	if diff := cmp.Diff(map[string]PublishedMark{"lake": {Batch: 2, Digest: "d"}}, marks); diff != "" {
		t.Error(diff)
	}
}

func TestRecordsFollowEachOther(t *testing.T) {
	_, files := memory()
	l := open(t, files, "c")
	wantCode(t, "plan 1 first", l.WritePlan(t.Context(), plan(1)), CodeInvalid, "plan 1")
	wantCode(t, "decision without plan", l.WriteDecision(t.Context(), decision(0)), CodeInvalid, "decision 0")
	must(t, l.WritePlan(t.Context(), plan(0)))
	wantCode(t, "plan 1 before decision 0", l.WritePlan(t.Context(), plan(1)), CodeInvalid, "plan 1")
	must(t, l.WriteDecision(t.Context(), decision(0)))
	wantCode(t, "decision twice", l.WriteDecision(t.Context(), decision(0)), CodeInvalid, "decision 0")
	if got := list(t, files, "c/offsets") + list(t, files, "c/commits"); got != "00" {
		t.Errorf("records: %s", got)
	}
	twice := plan(1)
	twice.Sources = append(twice.Sources, twice.Sources[0])
	wantCode(t, "a source twice", l.WritePlan(t.Context(), twice), CodeInvalid, "flights")
}

// Two processes that both believe to hold the checkpoint: the second to write a record is told, whatever it would have
// written, and nothing of the first one's is changed.
func TestAZombieIsToldOfTheOther(t *testing.T) {
	f, files := memory()
	zombie := open(t, files, "c")
	batches(t, zombie, 0, 0)
	files.LoseLocks()
	l := open(t, f.Process(), "c")
	_, _, err := l.Tail(t.Context())
	must(t, err)
	must(t, l.WritePlan(t.Context(), plan(1)))
	same := zombie.WritePlan(t.Context(), plan(1))
	wantCode(t, "the same plan", same, CodeConcurrent, "offsets/1")
	other := plan(1)
	other.TimeMS++
	wantCode(t, "another plan", zombie.WritePlan(t.Context(), other), CodeConcurrent, "offsets/1")
	must(t, l.WriteDecision(t.Context(), decision(1)))
	p, err := l.Plan(t.Context(), 1)
	must(t, err)
	if diff := cmp.Diff(ptr(plan(1)), p); diff != "" {
		t.Error(diff)
	}
}

// When the answer to a write is lost, the same write by the same process is no conflict.
func TestARepeatedWriteOfOurOwnIsFine(t *testing.T) {
	f, files := memory()
	l := open(t, files, "c")
	f.FailNth(1, func(op faulty.Op) bool { return op.Kind == "link" }, faulty.Fault{Err: syscall.EIO, When: faulty.After}, false)
	wantCode(t, "the answer is lost", l.WritePlan(t.Context(), plan(0)), CodeIO, "offsets/0")
	must(t, l.WritePlan(t.Context(), plan(0)))
	must(t, l.WriteDecision(t.Context(), decision(0)))
}

func TestErrorsOfTheDiskHaveCodes(t *testing.T) {
	for _, tc := range []struct {
		kind string
		err  error
		code string
	}{
		{"write", syscall.ENOSPC, CodeNoSpace},
		{"write", syscall.EDQUOT, CodeNoSpace},
		{"create", syscall.EACCES, CodeDenied},
		{"create", syscall.EROFS, CodeDenied},
		{"sync", syscall.EIO, CodeNotDurable},
		{"syncdir", syscall.ENOSPC, CodeNotDurable},
		{"link", syscall.EIO, CodeIO},
	} {
		f, files := memory()
		l := open(t, files, "c")
		f.FailNth(1, func(op faulty.Op) bool { return op.Kind == tc.kind }, faulty.Fault{Err: tc.err}, false)
		err := l.WritePlan(t.Context(), plan(0))
		wantCode(t, tc.kind, err, tc.code, "offsets/0")
		if !errors.Is(err, tc.err) || errors.Is(err, durable.ErrSync) != (tc.code == CodeNotDurable) {
			t.Errorf("%s: %v", tc.kind, err)
		}
	}
}

func TestReadOnlyCheckpoint(t *testing.T) {
	f, files := memory()
	l := open(t, files, "c")
	batches(t, l, 0, 1)
	must(t, l.Close())
	f.FailNth(1, faulty.Op.Writes, faulty.Fault{Err: syscall.EROFS}, true)
	_, err := Open(t.Context(), files, "c", options())
	wantCode(t, "open", err, CodeDenied, "c/lock")
	s, err := Show(t.Context(), files, "c")
	if err != nil || s.LastDecision != 1 {
		t.Errorf("show: %+v, %v", s, err)
	}
	r, err := Verify(t.Context(), files, "c")
	if err != nil || !r.OK() {
		t.Errorf("verify: %+v, %v", r, err)
	}
}

func TestSourcesKeepTheirNumbers(t *testing.T) {
	_, files := memory()
	l := open(t, files, "c")
	if a, b := l.SourceNumber("b"), l.SourceNumber("a"); a != 0 || b != 1 {
		t.Fatalf("numbers %d and %d", a, b)
	}
	step := func(id BatchID, sources ...SourcePosition) {
		t.Helper()
		must(t, l.WritePlan(t.Context(), Plan{Batch: id, Sources: sources}))
		must(t, l.WriteDecision(t.Context(), decision(id)))
	}
	at := func(name, line, extra string) SourcePosition {
		return SourcePosition{Name: name, End: Position{Line: line, Extra: extra}}
	}
	step(0, at("a", "1", "x"), at("b", "2", ""))
	step(1, at("a", "3", "y"))                   // b has left the job
	step(2, at("c", "4", ""), at("a", "5", "y")) // c is new, and first in the job file
	must(t, l.Close())
	l = open(t, files, "c")
	step(3, at("b", "7", "z"), at("c", "4", "")) // b is back, a has left
	p, _, err := l.Tail(t.Context())
	must(t, err)
	want := []SourcePosition{at("b", "7", "z"), at("a", "5", "y"), at("c", "4", "")}
	if diff := cmp.Diff(want, p.Sources); diff != "" {
		t.Error(diff)
	}
	if !strings.HasSuffix(read(t, files, "c/offsets/3"), "\n7\n5\n4") {
		t.Errorf("lines: %s", read(t, files, "c/offsets/3"))
	}
	if n := l.SourceNumber("c"); n != 2 {
		t.Errorf("c has number %d", n)
	}
	dir, err := l.SourceDir("a")
	must(t, err)
	if dir != "c/sources/1" {
		t.Errorf("directory %s", dir)
	}
}

// What a source remembers before its first plan must not be inherited by another one.
func TestNotesOfUnplannedSourcesAreDropped(t *testing.T) {
	_, files := memory()
	l := open(t, files, "c")
	batches(t, l, 0, 0)
	for name, want := range map[string]string{"flights": "c/sources/0", "newcomer": "c/sources/2"} {
		dir, err := l.SourceDir(name)
		must(t, err)
		if dir != want {
			t.Fatalf("%s has %s", name, dir)
		}
		put(t, files, dir+"/sub/seen", "files")
	}
	must(t, l.Close())
	open(t, files, "c")
	if got := list(t, files, "c/sources"); got != "0" {
		t.Errorf("sources: %s", got)
	}
}

func TestSupersede(t *testing.T) {
	for _, tc := range []struct {
		name     string
		decided  bool
		damage   string // file to tear
		why      Reason
		left     string // names in offsets and commits afterwards, crc files included
		wantTail string
	}{
		{"torn plan", false, "offsets/2", Torn, "0 1 .2.torn-A | 0 1", "plan 1 decided"},
		{"torn decision", true, "commits/2", Torn, ".2.crc 0 1 2 | 0 1 .2.torn-A", "plan 2"},
		{"amended", false, "", Amended, "0 1 .2.amended-A | 0 1", "plan 1 decided"},
		{"undone", true, "", Undone, ".2.crc 0 1 2 | 0 1 .2.undone-0badcafe", "plan 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, files := memory()
			l := open(t, files, "c")
			batches(t, l, 0, 1)
			must(t, l.WritePlan(t.Context(), plan(2)))
			put(t, files, "c/offsets/.2.crc", "crc")
			if tc.decided {
				must(t, l.WriteDecision(t.Context(), decision(2)))
				put(t, files, "c/commits/.2.crc", "crc")
			}
			if tc.damage != "" {
				put(t, files, "c/"+tc.damage, read(t, files, "c/"+tc.damage)[:20])
			}
			must(t, l.Close())
			l = open(t, files, "c")
			_, _, err := l.Tail(t.Context())
			if torn := (*TornError)(nil); tc.damage == "" && err != nil || tc.damage != "" && (!errors.As(err, &torn) || torn.Batch != 2 || torn.File != tc.damage) {
				t.Fatalf("tail: %v", err)
			}
			must(t, l.Supersede(t.Context(), 2, tc.why))
			left := fields(list(t, files, "c/offsets")) + " | " + fields(list(t, files, "c/commits"))
			if left != tc.left {
				t.Errorf("left %s, want %s", left, tc.left)
			}
			if got := tailWords(l.Tail(t.Context())); got != tc.wantTail {
				t.Errorf("tail: %s, want %s", got, tc.wantTail)
			}
			after := f.Crash(nil, 0).Process()
			if got := tailWords(open(t, after, "c").Tail(t.Context())); got != tc.wantTail {
				t.Errorf("tail after a power cut: %s, want %s", got, tc.wantTail)
			}
			again := l.Supersede(t.Context(), 2, tc.why)
			if again == nil {
				t.Error("superseded twice")
			}
			if tc.wantTail == "plan 2" {
				must(t, l.WriteDecision(t.Context(), decision(2)))
			} else {
				must(t, l.WritePlan(t.Context(), plan(2)))
			}
		})
	}
}

// fields sorts the superseded records last and hides random attempts.
func fields(names string) string {
	var plain, aside []string
	for _, n := range strings.Fields(names) {
		base, attempt, found := strings.Cut(n, "-")
		if found && attempt != "0badcafe" {
			n = base + "-A"
		}
		if found {
			aside = append(aside, n)
		} else {
			plain = append(plain, n)
		}
	}
	return strings.Join(append(plain, aside...), " ")
}

func tailWords(p *Plan, d *Decision, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case p == nil:
		return "none"
	case d == nil:
		return fmt.Sprintf("plan %d", p.Batch)
	}
	return fmt.Sprintf("plan %d decided", p.Batch)
}

func TestSupersedeRefusesWhatDoesNotFit(t *testing.T) {
	_, files := memory()
	l := open(t, files, "c")
	batches(t, l, 0, 1)
	for _, why := range []Reason{Torn, Amended} {
		wantCode(t, string(why), l.Supersede(t.Context(), 1, why), CodeInvalid, "batch 1")
	}
	wantCode(t, "an earlier batch", l.Supersede(t.Context(), 0, Undone), CodeInvalid, "batch 0")
	must(t, l.WritePlan(t.Context(), plan(2)))
	wantCode(t, "no decision", l.Supersede(t.Context(), 2, Undone), CodeInvalid, "batch 2")
}

// A torn tail is told together with the tail without it.
func TestTailWithoutTheTornRecord(t *testing.T) {
	_, files := memory()
	l := open(t, files, "c")
	batches(t, l, 0, 1)
	must(t, l.WritePlan(t.Context(), plan(2)))
	for _, damage := range []string{"", "v1", "v1\n{\"batchWatermarkMs\"", "\x00\x00\x00\x00"} {
		put(t, files, "c/offsets/2", damage)
		p, d, err := l.Tail(t.Context())
		wantCode(t, "tail", err, CodeTorn, "offsets/2")
		if tailWords(p, d, nil) != "plan 1 decided" {
			t.Errorf("%q: %s", damage, tailWords(p, d, nil))
		}
	}
	put(t, files, "c/commits/2", "v1\n{}")
	_, _, err := l.Tail(t.Context())
	wantCode(t, "a torn plan with a decision", err, CodeUnreadable, "offsets/2")
}

func TestArtifactsAreKeptUnderTheirDigest(t *testing.T) {
	_, files := memory()
	l := open(t, files, "c")
	revision, module := []byte(`{"transforms":[]}`), []byte("\x00asm")
	must(t, l.PutRevision(t.Context(), shaOf(revision), revision))
	must(t, l.PutModule(t.Context(), shaOf(module), module))
	wantCode(t, "a wrong digest", l.PutModule(t.Context(), shaOf(revision), module), CodeInvalid, "sha256")
	got, err := l.Module(t.Context(), shaOf(module))
	if err != nil || string(got) != string(module) {
		t.Errorf("module %q, %v", got, err)
	}
	if got, err = l.Revision(t.Context(), shaOf(revision)); err != nil || string(got) != string(revision) {
		t.Errorf("revision %q, %v", got, err)
	}
	_, err = l.Module(t.Context(), shaOf([]byte("other")))
	wantCode(t, "another module", err, CodeMissing, "modules/")
	_, err = l.Module(t.Context(), "../../etc/passwd")
	wantCode(t, "no digest", err, CodeInvalid, "no sha256")

	name := "c/modules/" + shaOf(module) + ".wasm"
	put(t, files, name, "garbage")
	_, err = l.Module(t.Context(), shaOf(module))
	wantCode(t, "a damaged module", err, CodeDamaged, "modules/")
	must(t, l.Close())
	l = open(t, files, "c")
	must(t, l.PutModule(t.Context(), shaOf(module), module))
	if got := read(t, files, name); got != string(module) {
		t.Errorf("not healed: %q", got)
	}
}

// A directory that a person has removed is made again, durably.
func TestDirectoriesAreMadeAgain(t *testing.T) {
	f, files := memory()
	must(t, open(t, files, "c").Close())
	must(t, files.Remove("c/modules"))
	must(t, files.SyncDir("c"))
	l := open(t, files, "c")
	must(t, l.PutModule(t.Context(), shaOf([]byte("\x00asm")), []byte("\x00asm")))
	after := open(t, f.Crash(nil, 0).Process(), "c")
	if _, err := after.Module(t.Context(), shaOf([]byte("\x00asm"))); err != nil {
		t.Error(err)
	}
}

// A process that finds an artifact cannot know whether it is durable, unless a decision names it.
func TestArtifactsAreWrittenAgainUntilADecisionProvesThem(t *testing.T) {
	files := durable.Count(durable.OS())
	dir := t.TempDir()
	module := []byte("\x00asm")
	revision := []byte(`{"transforms":[{"module":"` + shaOf(module) + `"}]}`)
	writes := func(decide bool) int64 {
		l, err := Open(t.Context(), files, dir, options())
		must(t, err)
		_, _, err = l.Tail(t.Context())
		must(t, err)
		before, _ := files.Syncs()
		for range 2 {
			must(t, l.PutModule(t.Context(), shaOf(module), module))
			must(t, l.PutRevision(t.Context(), shaOf(revision), revision))
		}
		after, _ := files.Syncs()
		if decide {
			must(t, l.WritePlan(t.Context(), plan(0)))
			d := decision(0)
			d.Revision = shaOf(revision)
			must(t, l.WriteDecision(t.Context(), d))
		}
		must(t, l.Close())
		return after - before
	}
	if first, second, third := writes(false), writes(true), writes(false); first != 2 || second != 2 || third != 0 {
		t.Errorf("%d, %d and %d writes, want 2, 2 and 0", first, second, third)
	}
}

func TestOptionsMustMakeAQueryID(t *testing.T) {
	for _, newID := range []func() string{nil, func() string { return "job-1" }} {
		_, files := memory()
		opts := options()
		opts.NewID = newID
		_, err := Open(context.Background(), files, "c", opts)
		wantCode(t, "open", err, CodeInvalid, "metadata")
	}
}

func TestContextEndsEveryCall(t *testing.T) {
	_, files := memory()
	l := open(t, files, "c")
	batches(t, l, 0, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, tail := l.Tail(ctx)
	_, planErr := l.Plan(ctx, 0)
	_, show := Show(ctx, files, "c")
	for what, err := range map[string]error{
		"tail": tail, "plan": planErr, "show": show, "write": l.WritePlan(ctx, plan(1)),
		"note": l.NotePublished(ctx, nil),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
