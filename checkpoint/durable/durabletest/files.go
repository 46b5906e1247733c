// Package durabletest holds the tests that every implementation of durable.Files passes. It is for tests alone.
package durabletest

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// RunFiles runs the suite. setup returns an empty directory on a file system of its own or nearly so.
func RunFiles(t *testing.T, setup func(t *testing.T) (files durable.Files, dir string)) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, durable.Files, string){
		"create":    testCreate,
		"read":      testRead,
		"link":      testLink,
		"rename":    testRename,
		"remove":    testRemove,
		"mkdir":     testMkdir,
		"list":      testList,
		"missing":   testMissing,
		"chtimes":   testChtimes,
		"lock":      testLock,
		"free":      testFree,
		"opendir":   testOpenDir,
		"put":       testPut,
		"replace":   testReplace,
		"makedir":   testMakeDir,
		"too large": testTooLarge,
	} {
		t.Run(name, func(t *testing.T) {
			files, dir := setup(t)
			test(t, files, dir)
		})
	}
}

func write(t *testing.T, files durable.Files, name, content string) {
	t.Helper()
	if err := durable.WriteFile(files, name, []byte(content)); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, files durable.Files, name string) string {
	t.Helper()
	b, err := durable.ReadFile(files, name, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

func wantNamed(t *testing.T, what string, err, want error, name string) {
	t.Helper()
	wantErr(t, what, err, want)
	if err != nil && !strings.Contains(err.Error(), name) {
		t.Errorf("%s: %v does not name %s", what, err, name)
	}
}

func entryNames(t *testing.T, files durable.Files, dir string) []string {
	t.Helper()
	infos, err := files.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, i := range infos {
		list = append(list, i.Name)
	}
	return list
}

func testCreate(t *testing.T, files durable.Files, dir string) {
	name := path.Join(dir, "a")
	f, err := files.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"one ", "two"} {
		if n, err := f.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatalf("write: %d, %v", n, err)
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil || info.Name != "a" || info.Size != 7 || !info.Regular || info.Dir {
		t.Errorf("stat: %+v, %v", info, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = f.Write([]byte("late"))
	wantErr(t, "write after close", err, fs.ErrClosed)
	_, err = files.Create(name)
	wantNamed(t, "create again", err, fs.ErrExist, name)
	if got := content(t, files, name); got != "one two" {
		t.Errorf("content %q", got)
	}
}

func testRead(t *testing.T, files durable.Files, dir string) {
	name := path.Join(dir, "a")
	write(t, files, name, "0123456789")
	f, err := files.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	b := make([]byte, 4)
	if n, err := f.ReadAt(b, 3); n != 4 || err != nil || string(b) != "3456" {
		t.Errorf("read at 3: %q, %v", b[:n], err)
	}
	if n, err := f.ReadAt(b, 8); n != 2 || err != io.EOF {
		t.Errorf("read at the end: %d, %v", n, err)
	}
	if all, err := io.ReadAll(f); err != nil || string(all) != "0123456789" {
		t.Errorf("read: %q, %v", all, err)
	}
	if _, err := f.Write(b); err == nil {
		t.Error("a file opened for reading was written")
	}
}

func testLink(t *testing.T, files durable.Files, dir string) {
	a, b := path.Join(dir, "a"), path.Join(dir, "b")
	write(t, files, a, "first")
	if err := files.Link(a, b); err != nil {
		t.Fatal(err)
	}
	write(t, files, path.Join(dir, "c"), "second")
	wantNamed(t, "link over a name", files.Link(path.Join(dir, "c"), b), fs.ErrExist, b)
	if err := files.Remove(a); err != nil {
		t.Fatal(err)
	}
	if got := content(t, files, b); got != "first" {
		t.Errorf("content %q", got)
	}
	wantErr(t, "link of nothing", files.Link(a, path.Join(dir, "d")), fs.ErrNotExist)
}

func testRename(t *testing.T, files durable.Files, dir string) {
	a, b := path.Join(dir, "a"), path.Join(dir, "sub", "b")
	if err := files.MkdirAll(path.Join(dir, "sub")); err != nil {
		t.Fatal(err)
	}
	write(t, files, a, "new")
	write(t, files, b, "old")
	if err := files.Rename(a, b); err != nil {
		t.Fatal(err)
	}
	if got := content(t, files, b); got != "new" {
		t.Errorf("content %q", got)
	}
	wantErr(t, "rename of nothing", files.Rename(a, b), fs.ErrNotExist)
	if diff := cmp.Diff([]string{"sub"}, entryNames(t, files, dir)); diff != "" {
		t.Error(diff)
	}
}

func testRemove(t *testing.T, files durable.Files, dir string) {
	a := path.Join(dir, "sub", "a")
	if err := files.MkdirAll(path.Dir(a)); err != nil {
		t.Fatal(err)
	}
	write(t, files, a, "x")
	if err := files.Remove(path.Dir(a)); err == nil {
		t.Error("a directory that is not empty was removed")
	}
	for _, name := range []string{a, path.Dir(a)} {
		if err := files.Remove(name); err != nil {
			t.Fatal(err)
		}
		wantNamed(t, "remove again", files.Remove(name), fs.ErrNotExist, name)
	}
}

func testMkdir(t *testing.T, files durable.Files, dir string) {
	deep := path.Join(dir, "a", "b", "c")
	for range 2 {
		if err := files.MkdirAll(deep); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := files.Stat(deep); err != nil || !info.Dir || info.Regular || info.Name != "c" {
		t.Errorf("stat: %+v, %v", info, err)
	}
	if err := files.SyncDir(deep); err != nil {
		t.Error(err)
	}
	write(t, files, path.Join(dir, "f"), "")
	if err := files.MkdirAll(path.Join(dir, "f", "g")); err == nil {
		t.Error("a directory was made inside a file")
	}
}

func testList(t *testing.T, files durable.Files, dir string) {
	for _, name := range []string{"b", "B", "10", "9", ".hidden", "é"} {
		write(t, files, path.Join(dir, name), name)
	}
	if diff := cmp.Diff([]string{".hidden", "10", "9", "B", "b", "é"}, entryNames(t, files, dir)); diff != "" {
		t.Error(diff)
	}
	infos, err := files.List(dir)
	if err != nil || infos[5].Size != 2 || !infos[5].Regular || infos[5].ModTime.IsZero() {
		t.Errorf("list: %+v, %v", infos, err)
	}
}

func testMissing(t *testing.T, files durable.Files, dir string) {
	name := path.Join(dir, "no", "such")
	_, err := files.Open(name)
	wantNamed(t, "open", err, fs.ErrNotExist, name)
	_, err = files.Create(name)
	wantNamed(t, "create", err, fs.ErrNotExist, name)
	_, err = files.Stat(name)
	wantNamed(t, "stat", err, fs.ErrNotExist, name)
	_, err = files.List(name)
	wantNamed(t, "list", err, fs.ErrNotExist, name)
	wantNamed(t, "sync directory", files.SyncDir(name), fs.ErrNotExist, name)
}

func testChtimes(t *testing.T, files durable.Files, dir string) {
	name := path.Join(dir, "a")
	write(t, files, name, "x")
	want := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := files.Chtimes(name, want); err != nil {
		t.Fatal(err)
	}
	if info, err := files.Stat(name); err != nil || !info.ModTime.Equal(want) {
		t.Errorf("stat: %+v, %v", info, err)
	}
}

func testLock(t *testing.T, files durable.Files, dir string) {
	name := path.Join(dir, "lock")
	held, err := files.Lock(name, "pid 1, host a")
	if err != nil {
		t.Fatal(err)
	}
	_, err = files.Lock(name, "pid 2")
	var locked *durable.LockedError
	if !errors.As(err, &locked) || locked.Holder != "pid 1, host a" || locked.Path != name {
		t.Fatalf("second lock: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	held, err = files.Lock(name, "pid 3")
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, files, name); got != "pid 3" {
		t.Errorf("holder %q", got)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
}

func testFree(t *testing.T, files durable.Files, dir string) {
	if free, err := files.Free(dir); err != nil || free <= 0 {
		t.Errorf("free: %d, %v", free, err)
	}
}

func testOpenDir(t *testing.T, files durable.Files, dir string) {
	if f, err := files.Open(dir); err == nil {
		_ = f.Close()
		t.Error("a directory was opened as a file")
	}
}

func testPut(t *testing.T, files durable.Files, dir string) {
	o := durable.NewObjects(files, dir)
	if err := o.PutIfAbsent(t.Context(), "a", []byte("one")); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "put again", o.PutIfAbsent(t.Context(), "a", []byte("two")), fs.ErrExist)
	b, err := o.Read(t.Context(), "a", 10)
	if err != nil || string(b) != "one" {
		t.Errorf("read: %q, %v", b, err)
	}
	if diff := cmp.Diff([]string{"a"}, entryNames(t, files, dir)); diff != "" {
		t.Error(diff)
	}
	if err := o.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "remove again", o.Remove(t.Context(), "a"), fs.ErrNotExist)
}

func testReplace(t *testing.T, files durable.Files, dir string) {
	o := durable.NewObjects(files, dir)
	for _, text := range []string{"one", "two"} {
		if err := o.Replace(t.Context(), "a", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := content(t, files, path.Join(dir, "a")); got != text {
			t.Errorf("content %q, want %q", got, text)
		}
	}
	infos, err := o.List(t.Context(), ".")
	if err != nil || len(infos) != 1 || infos[0].Name != "a" {
		t.Errorf("list: %+v, %v", infos, err)
	}
}

func testMakeDir(t *testing.T, files durable.Files, dir string) {
	deep := path.Join(dir, "a", "b")
	for range 2 {
		if err := durable.MakeDir(files, deep); err != nil {
			t.Fatal(err)
		}
	}
	write(t, files, path.Join(deep, "f"), "x")
	if err := durable.MakeDir(files, path.Join(deep, "f")); err == nil {
		t.Error("a file passed for a directory")
	}
}

func testTooLarge(t *testing.T, files durable.Files, dir string) {
	name := path.Join(dir, "a")
	write(t, files, name, "12345")
	if b, err := durable.ReadFile(files, name, 5); err != nil || string(b) != "12345" {
		t.Errorf("read: %q, %v", b, err)
	}
	_, err := durable.ReadFile(files, name, 4)
	wantNamed(t, "read", err, durable.ErrTooLarge, name)
}
