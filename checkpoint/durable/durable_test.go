package durable_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/durabletest"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
)

func TestOSIsAFileSystem(t *testing.T) {
	durabletest.RunFiles(t, func(t *testing.T) (durable.Files, string) { return durable.OS(), t.TempDir() })
}

func TestWrappersChangeNothing(t *testing.T) {
	durabletest.RunFiles(t, func(t *testing.T) (durable.Files, string) {
		tap := durable.Tap(durable.OS(), func(string, string) error { return nil })
		return durable.Count(tap), t.TempDir()
	})
}

// The order is what the promise hangs on: the content is durable before it has its name, the name before the call
// returns.
func TestPutIfAbsentInOrder(t *testing.T) {
	f := faulty.New()
	files := f.Process()
	if err := files.MkdirAll("offsets"); err != nil {
		t.Fatal(err)
	}
	f.StartTrace()
	if err := durable.NewObjects(files, ".").PutIfAbsent(t.Context(), "offsets/17", []byte("v1")); err != nil {
		t.Fatal(err)
	}
	want := `create offsets/.N.tmp
write offsets/.N.tmp 2 bytes
sync offsets/.N.tmp
close offsets/.N.tmp
link offsets/N
syncdir offsets
remove offsets/.N.tmp
`
	if diff := cmp.Diff(want, f.Trace()); diff != "" {
		t.Error(diff)
	}
}

func TestReplaceInOrder(t *testing.T) {
	f := faulty.New()
	f.StartTrace()
	if err := durable.NewObjects(f.Process(), "/").Replace(t.Context(), "published", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	want := `create .published.tmp
write .published.tmp 2 bytes
sync .published.tmp
close .published.tmp
rename published
syncdir /
`
	if diff := cmp.Diff(want, f.Trace()); diff != "" {
		t.Error(diff)
	}
}

func TestMakeDirSyncsEachNewParent(t *testing.T) {
	f := faulty.New()
	files := f.Process()
	if err := files.MkdirAll("a"); err != nil {
		t.Fatal(err)
	}
	f.StartTrace()
	if err := durable.MakeDir(files, "a/b/c"); err != nil {
		t.Fatal(err)
	}
	want := "stat b/c\nstat a/b\nstat a\nmkdir b/c\nsyncdir a/b\nsyncdir a\n"
	if diff := cmp.Diff(want, f.Trace()); diff != "" {
		t.Error(diff)
	}
}

func TestCountsWaitsForTheDisk(t *testing.T) {
	c := durable.Count(durable.OS())
	o := durable.NewObjects(c, t.TempDir())
	for i := range 3 {
		if err := o.PutIfAbsent(t.Context(), fmt.Sprint(i), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if files, dirs := c.Syncs(); files != 3 || dirs != 3 {
		t.Errorf("%d syncs of files and %d of directories, want 3 and 3", files, dirs)
	}
}

// Each point that Tap names can stop an operation before, in the middle and after it.
func TestTapStopsAtEveryPoint(t *testing.T) {
	var points []string
	errStop := errors.New("stop")
	run := func(stopAt int) (string, error) {
		dir, n := t.TempDir(), 0
		files := durable.Tap(durable.OS(), func(op, path string) error {
			if n++; n == stopAt {
				points = append(points, op+" "+durable.Class(path))
				return errStop
			}
			return nil
		})
		return dir, durable.NewObjects(files, dir).PutIfAbsent(t.Context(), "offsets", []byte("content"))
	}
	for n := 1; ; n++ {
		dir, err := run(n)
		if err == nil {
			break
		}
		if !errors.Is(err, errStop) {
			t.Fatalf("stop %d: %v", n, err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "offsets")); err == nil && string(b) != "content" {
			t.Errorf("stopped at %s: %q has the name", points[n-1], b)
		}
	}
	all := strings.Join(points, "\n")
	for _, want := range []string{"create:before", "write:before", "write:half", "write:after", "sync:before", "sync:after", "link:before", "link:after", "syncdir:before", "syncdir:after"} {
		if !strings.Contains(all, want) {
			t.Errorf("%s was never reached in\n%s", want, all)
		}
	}
}

func TestClassIsTheSameForEveryBatch(t *testing.T) {
	long := strings.Repeat("0a", 32)
	for _, tc := range [][2]string{
		{"/c/offsets/12", "offsets/N"},
		{"/c/offsets/.12.0badcafe.tmp", "offsets/.N.tmp"},
		{"/c/commits/.7.undone-0badcafe", "commits/.N.undone-A"},
		{"/c/revisions/" + long + ".json", "revisions/H.json"},
		{"/c/state/changelog/4-0badcafe", "changelog/N-A"},
		{"lock", "lock"},
		{"/c/.metadata.12345678.tmp", "c/.metadata.tmp"},
		{"/out/part-00000-9538ada3-12-" + long + ".c000.parquet", "out/part-N-A-N-H.cN.parquet"},
	} {
		name, want := tc[0], tc[1]
		if got := durable.Class(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// A full disk and a failed sync leave the name free, no half-written file under it, and say what they are.
func TestFailuresLeaveTheNameFree(t *testing.T) {
	for kind, errno := range map[string]error{
		"create": syscall.EMFILE, "write": syscall.ENOSPC, "sync": syscall.EIO, "link": syscall.EDQUOT,
	} {
		for _, when := range []faulty.Moment{faulty.Before, faulty.Half} {
			f := faulty.New()
			files := f.Process()
			f.FailNth(1, func(op faulty.Op) bool { return op.Kind == kind }, faulty.Fault{Err: errno, When: when}, false)
			err := durable.NewObjects(files, "/").PutIfAbsent(t.Context(), "a", []byte("content"))
			if !errors.Is(err, errno) || errors.Is(err, fs.ErrExist) {
				t.Errorf("%s: %v", kind, err)
			}
			if (kind == "sync") != errors.Is(err, durable.ErrSync) {
				t.Errorf("%s: ErrSync wrongly told in %v", kind, err)
			}
			if durable.NoSpace(err) != (kind == "write" || kind == "link") {
				t.Errorf("%s: NoSpace wrongly told of %v", kind, err)
			}
			infos, err := files.List("/")
			if err != nil || len(infos) != 0 {
				t.Errorf("%s: left %+v, %v", kind, infos, err)
			}
		}
	}
}

// halting writes a few bytes at a time and is interrupted.
type halting struct {
	b strings.Builder
	n int
}

func (h *halting) Write(b []byte) (int, error) {
	if h.n++; h.n%2 == 0 {
		return 0, syscall.EINTR
	}
	return h.b.Write(b[:min(3, len(b))])
}

type stuck struct{}

func (stuck) Write([]byte) (int, error) { return 0, nil }

func TestWriteAllGoesOnAfterShortWrites(t *testing.T) {
	h := &halting{}
	if err := durable.WriteAll(h, []byte("a longer text")); err != nil || h.b.String() != "a longer text" {
		t.Errorf("wrote %q, %v", h.b.String(), err)
	}
	if err := durable.WriteAll(stuck{}, []byte("x")); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a writer that takes nothing: %v", err)
	}
}

func TestOpenRefusesWhatMayBlock(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	if f, err := durable.OS().Open(fifo); err == nil {
		_ = f.Close()
		t.Error("a fifo was opened")
	}
	if l, err := durable.OS().Lock(fifo, "x"); err == nil {
		_ = l.Close()
		t.Error("a fifo was locked")
	}
}

func TestLockFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "precious")
	if err := os.WriteFile(target, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(dir, "lock")); err != nil {
		t.Fatal(err)
	}
	if l, err := durable.OS().Lock(filepath.Join(dir, "lock"), "x"); err == nil {
		_ = l.Close()
		t.Error("a link was locked")
	}
	if b, err := os.ReadFile(target); err != nil || string(b) != "text" {
		t.Errorf("the link's target is %q, %v", b, err)
	}
}
