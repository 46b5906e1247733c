package faulty_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/durabletest"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
)

func TestIsAFileSystem(t *testing.T) {
	durabletest.RunFiles(t, func(*testing.T) (durable.Files, string) {
		p := faulty.New().Process()
		if err := p.MkdirAll("/dir"); err != nil {
			panic(err)
		}
		return p, "/dir"
	})
}

func pcg(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func list(t *testing.T, f *faulty.FS, dir string) string {
	t.Helper()
	infos, err := f.Process().List(dir)
	must(t, err)
	var names []string
	for _, i := range infos {
		names = append(names, i.Name)
	}
	return strings.Join(names, " ")
}

// unsynced makes a file system with one durable file and one of everything that is not durable.
func unsynced(t *testing.T) *faulty.FS {
	t.Helper()
	f := faulty.New()
	p := f.Process()
	for _, name := range []string{"kept", "removed", "old"} {
		must(t, durable.WriteFile(p, name, []byte(name)))
	}
	must(t, p.SyncDir("/"))
	must(t, p.Remove("removed"))
	must(t, p.Rename("old", "new"))
	must(t, durable.WriteFile(p, "made", []byte("made")))
	must(t, p.MkdirAll("dir"))
	return f
}

func TestCrashTakesWhatWasNotSynced(t *testing.T) {
	f := unsynced(t)
	if got := list(t, f.Crash(pcg(1), 0), "/"); got != "kept old removed" {
		t.Errorf("nothing written back: %s", got)
	}
	if got := list(t, f.Crash(pcg(1), 1), "/"); got != "dir kept made new" {
		t.Errorf("all written back: %s", got)
	}
	if got := list(t, f, "/"); got != "dir kept made new" {
		t.Errorf("the crash changed the file system itself: %s", got)
	}
	must(t, f.Process().SyncDir("/"))
	if got := list(t, f.Crash(pcg(1), 0), "/"); got != "dir kept made new" {
		t.Errorf("synced: %s", got)
	}
}

// Every combination of the four changes is found after some crash, and no other state.
func TestCrashKeepsEachChangeOnItsOwn(t *testing.T) {
	f := unsynced(t)
	seen := make(map[string]bool)
	for seed := range uint64(400) {
		got := list(t, f.Crash(pcg(seed), 0.5), "/")
		seen[got] = true
		if strings.Contains(got, "old") == strings.Contains(got, "new") {
			t.Fatalf("a rename was torn: %s", got)
		}
	}
	if len(seen) != 16 {
		t.Errorf("%d states, want 16: %v", len(seen), seen)
	}
}

// What is left of unsynced content is of every kind: lost, whole, torn, zeroed, garbled.
func TestCrashTearsContent(t *testing.T) {
	f := faulty.New()
	p := f.Process()
	whole := strings.Repeat("x", 20_000)
	h, err := p.Create("a")
	must(t, err)
	must(t, durable.WriteAll(h, []byte(whole)))
	must(t, p.SyncDir("/"))
	kinds := make(map[string]int)
	for seed := range uint64(500) {
		b, err := durable.ReadFile(f.Crash(pcg(seed), 0.5).Process(), "a", 1<<20)
		must(t, err)
		if len(b) > len(whole) {
			t.Fatalf("%d bytes of %d", len(b), len(whole))
		}
		switch got := string(b); {
		case got == "":
			kinds["lost"]++
		case got == whole:
			kinds["whole"]++
		case strings.HasPrefix(whole, got):
			kinds["torn"]++
		case strings.Trim(got, "x\x00") == "":
			kinds["zeros"]++
		default:
			kinds["garbage"]++
		}
	}
	for _, kind := range []string{"lost", "whole", "torn", "zeros", "garbage"} {
		if kinds[kind] == 0 {
			t.Errorf("no content was %s: %v", kind, kinds)
		}
	}
	must(t, h.Sync())
	for seed := range uint64(50) {
		b, err := durable.ReadFile(f.Crash(pcg(seed), 0.1).Process(), "a", 1<<20)
		if err != nil || string(b) != whole {
			t.Fatalf("synced content did not survive: %d bytes, %v", len(b), err)
		}
	}
}

func TestFailedSyncDropsThePages(t *testing.T) {
	f := faulty.New()
	p := f.Process()
	h, err := p.Create("a")
	must(t, err)
	must(t, durable.WriteAll(h, []byte("lost")))
	must(t, p.SyncDir("/"))
	f.FailNth(1, func(op faulty.Op) bool { return op.Kind == "sync" }, faulty.Fault{Err: syscall.EIO}, false)
	if err := h.Sync(); !errors.Is(err, durable.ErrSync) || !errors.Is(err, syscall.EIO) {
		t.Fatalf("sync: %v", err)
	}
	must(t, h.Sync())
	if b, err := durable.ReadFile(p, "a", 10); err != nil || string(b) != "lost" {
		t.Errorf("read back %q, %v", b, err)
	}
	if b, err := durable.ReadFile(f.Crash(pcg(1), 0).Process(), "a", 10); err != nil || len(b) != 0 {
		t.Errorf("after the crash %q, %v", b, err)
	}
}

func TestSpaceRunsOutAndComesBack(t *testing.T) {
	f := faulty.New()
	p := f.Process()
	f.SetSpace(10)
	h, err := p.Create("a")
	must(t, err)
	n, err := h.Write([]byte("0123456789abc"))
	if n != 10 || !durable.NoSpace(err) {
		t.Fatalf("wrote %d, %v", n, err)
	}
	if free, err := p.Free("/"); free != 0 || err != nil {
		t.Errorf("free: %d, %v", free, err)
	}
	must(t, p.Remove("a"))
	if free, err := p.Free("/"); free != 10 || err != nil {
		t.Errorf("free: %d, %v", free, err)
	}
}

func TestProcesses(t *testing.T) {
	f := faulty.New()
	first, second := f.Process(), f.Process()
	_, err := first.Lock("lock", "first")
	must(t, err)
	var locked *durable.LockedError
	if _, err := second.Lock("lock", "second"); !errors.As(err, &locked) || locked.Holder != "first" {
		t.Fatalf("second lock: %v", err)
	}
	h, err := first.Create("a")
	must(t, err)
	first.LoseLocks()
	held, err := second.Lock("lock", "second")
	must(t, err)
	must(t, durable.WriteAll(h, []byte("zombie")))
	if b, err := durable.ReadFile(second, "a", 10); err != nil || string(b) != "zombie" {
		t.Errorf("what the zombie wrote: %q, %v", b, err)
	}
	second.Kill()
	if _, err := second.Create("b"); !errors.Is(err, faulty.ErrKilled) {
		t.Errorf("a killed process made a file: %v", err)
	}
	_, err = first.Lock("lock", "first again")
	must(t, err)
	must(t, held.Close())
	if _, err := f.Process().Lock("lock", "third"); !errors.As(err, &locked) || locked.Holder != "first again" {
		t.Errorf("a dead process gave up a lock that it does not hold: %v", err)
	}
}

func TestStopAt(t *testing.T) {
	for when, want := range map[faulty.Moment]string{faulty.Before: "", faulty.Half: "cont", faulty.After: "content."} {
		f := faulty.New()
		p := f.Process()
		f.StopAt(2, when)
		h, err := p.Create("a")
		must(t, err)
		if _, err := h.Write([]byte("content.")); !errors.Is(err, faulty.ErrStopped) {
			t.Fatalf("write: %v", err)
		}
		if err := h.Sync(); !errors.Is(err, faulty.ErrStopped) {
			t.Fatalf("sync: %v", err)
		}
		b, err := durable.ReadFile(f.Crash(pcg(1), 1).Process(), "a", 10)
		if err != nil || string(b) != want {
			t.Errorf("stopped %d: %q, %v", when, b, err)
		}
	}
}

func TestCloneIsABackup(t *testing.T) {
	f := unsynced(t)
	backup := f.Clone()
	must(t, f.Process().Remove("kept"))
	if got := list(t, backup, "/"); got != "dir kept made new" {
		t.Errorf("backup: %s", got)
	}
}

// A durable object survives any crash, and a crash is the same for the same seed.
func TestPutSurvivesEveryCrash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		count := rapid.IntRange(1, 5).Draw(t, "objects")
		size := rapid.IntRange(0, 10_000).Draw(t, "size")
		stop := rapid.IntRange(1, 60).Draw(t, "stop")
		when := faulty.Moment(rapid.IntRange(0, 2).Draw(t, "when"))
		keep := rapid.SampledFrom([]float64{0, 0.1, 0.5, 0.9, 1}).Draw(t, "keep")
		f := faulty.New()
		n := 0
		o := durable.NewObjects(f.Process(), "/", durable.WithUnique(func() string { n++; return fmt.Sprintf("%08x", n) }))
		f.StopAt(stop, when)
		done := 0
		content := func(i int) []byte { return []byte(strings.Repeat(fmt.Sprint(i), size)) }
		for done < count && o.PutIfAbsent(t.Context(), fmt.Sprint(done), content(done)) == nil {
			done++
		}
		once, twice := f.Crash(pcg(seed), keep), f.Crash(pcg(seed), keep)
		if diff := cmp.Diff(dump(once), dump(twice)); diff != "" {
			t.Fatalf("the same crash is not the same: %s", diff)
		}
		left := dump(once)
		for i := range count {
			got, there := left[fmt.Sprint(i)]
			if i < done && !there {
				t.Fatalf("object %d is gone", i)
			}
			if there && got != string(content(i)) {
				t.Fatalf("object %d is damaged", i)
			}
		}
	})
}

func dump(f *faulty.FS) map[string]string {
	p := f.Process()
	out := make(map[string]string)
	infos, err := p.List("/")
	for _, i := range infos {
		var b []byte
		b, err = durable.ReadFile(p, i.Name, 1<<20)
		out[i.Name] = string(b)
	}
	if err != nil {
		out["error"] = err.Error()
	}
	return out
}
