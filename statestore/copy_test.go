package statestore_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/statestore"
	"github.com/wasmill/wasmill/statestore/mem"
)

// copied is the state as of the end of a batch, copied, as text. Whatever is done to the files fails.
func (k *kept) copied(t *testing.T, files durable.Files, batch int64) (string, error) {
	t.Helper()
	disk := mem.New()
	s, err := statestore.OpenCopy(t.Context(), statestore.Config{
		Files: files, Dir: k.dir, Query: query, Backend: disk.Open, BackendName: "another", ApplyBatches: 1,
		Events: statestore.Events{Warning: func(op string, err error) { t.Errorf("warning: %s: %v", op, err) }},
	}, batch, "")
	if err != nil {
		return "", err
	}
	defer func() { must(t, s.Close()) }()
	return exported(t, s, batch), nil
}

// untouched is a file system of which files are only read.
type untouched struct {
	durable.Files
	t *testing.T
}

func (u untouched) wrong(op, name string) error {
	u.t.Errorf("%s %s", op, name)
	return fs.ErrPermission
}

func (u untouched) Create(name string) (durable.File, error)     { return nil, u.wrong("create", name) }
func (u untouched) Link(name, _ string) error                    { return u.wrong("link", name) }
func (u untouched) Rename(name, _ string) error                  { return u.wrong("rename", name) }
func (u untouched) Remove(name string) error                     { return u.wrong("remove", name) }
func (u untouched) MkdirAll(name string) error                   { return u.wrong("mkdir", name) }
func (u untouched) SyncDir(name string) error                    { return u.wrong("sync", name) }
func (u untouched) Chtimes(name string, _ time.Time) error       { return u.wrong("touch", name) }
func (u untouched) Lock(name, _ string) (c io.Closer, err error) { return nil, u.wrong("lock", name) }

// A copy has what the store has that goes on, as of each batch from the older snapshot on, and changes no file.
func TestCopyBesideAnOpenStore(t *testing.T) {
	k := &kept{dir: filepath.Join(t.TempDir(), "state"), disk: mem.New(), digests: map[int64]string{}, states: map[int64]string{}}
	s := k.open(t)
	changed, copies, refused := int64(-1), 0, 0
	for n := range int64(60) {
		k.batches(t, s, n, n+1)
		if k.digests[n] != "" {
			changed = n
		}
		if n == 40 {
			must(t, s.Retain(t.Context(), 39))
		}
		// What the job writes and has not sealed, and what a killed one has left, counts for nothing and stays.
		must(t, os.WriteFile(filepath.Join(k.dir, "changelog", fmt.Sprintf("%d-cafecafe", n+1)), []byte("torn"), 0o600))
		must(t, os.WriteFile(filepath.Join(k.dir, "snapshot", ".7.tmp"), []byte("torn"), 0o600))
		for _, at := range []int64{changed, changed - 1, changed - 12} {
			if at >= 0 && k.digests[at] == "" {
				continue
			}
			if at < 0 {
				at = -1
			}
			got, err := k.copied(t, untouched{durable.OS(), t}, at)
			for try := 0; errors.Is(err, fs.ErrNotExist) && try < 4; try++ { // a snapshot has just gone
				got, err = k.copied(t, untouched{durable.OS(), t}, at)
			}
			switch {
			case at < changed && errors.Is(err, statestore.ErrMissing):
				refused++
				continue
			case err != nil:
				t.Fatalf("batch %d of %d: %v", at, n, err)
			case got != k.states[max(at, 0)] && at >= 0, at < 0 && got != "":
				t.Fatalf("batch %d of %d: the copy differs: %d bytes, want %d", at, n, len(got), len(k.states[at]))
			}
			copies++
		}
		must(t, os.Remove(filepath.Join(k.dir, "changelog", fmt.Sprintf("%d-cafecafe", n+1))))
	}
	if copies < 80 || refused == 0 {
		t.Errorf("%d copies, %d of what is too old", copies, refused)
	}
}

// going is a file system in which a file goes just before it is opened.
type going struct {
	durable.Files
	name string
}

func (g going) Open(name string) (durable.File, error) {
	if strings.Contains(name, g.name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return g.Files.Open(name)
}

// Files that go meanwhile are told from damage, so that another try is worth while.
func TestCopyWhileFilesGo(t *testing.T) {
	k := newKept(t, mem.New())
	s := k.open(t)
	must(t, s.Rewind(t.Context(), k.last(), math.MaxInt64))
	must(t, s.Retain(t.Context(), 54))
	must(t, s.Close())
	names := k.snapshots(t)
	newest := filepath.Base(names[len(names)-1])
	for _, name := range []string{"/snapshot/", fmt.Sprintf("/changelog/%d-", k.last()), fmt.Sprintf("/changelog/%d-", k.above(t))} {
		_, err := k.copied(t, going{durable.OS(), name}, k.last())
		if !errors.Is(err, statestore.ErrMissing) && !errors.Is(err, fs.ErrNotExist) || errors.Is(err, statestore.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	got, err := k.copied(t, going{durable.OS(), "/snapshot/" + newest}, k.last())
	if err != nil || got != k.states[k.last()] {
		t.Errorf("from the older snapshot: %d bytes, want %d; %v", len(got), len(k.states[k.last()]), err)
	}
	flip(t, filepath.Join(k.dir, "changelog", fmt.Sprintf("%d-%08x", k.last(), k.last())))
	if _, err := k.copied(t, durable.OS(), k.last()); !errors.Is(err, statestore.ErrCorrupt) {
		t.Errorf("damaged: %v", err)
	}
}
