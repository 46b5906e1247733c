package checkpoint

import (
	"context"
	"errors"
	"io/fs"
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
