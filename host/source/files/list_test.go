package files

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
)

func TestListing(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{
		"b.jsonl", "a.jsonl", "a/x.jsonl", "a/y.csv", "a/b/c/z.jsonl", ".hidden", "_success", "c.tmp", "d.tmp/x.jsonl",
		"day=1/p.jsonl", "day=1/_y=2/q.jsonl", "day=1/sub/r.jsonl", "day=1/.s.jsonl", "_z=1/t.jsonl", "ü.jsonl",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("1\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"l.jsonl": "a/x.jsonl", "dangling": "nowhere", "loop": ".", "dir": "a", "self": "self", "k=v": "day=1",
	} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "empty.jsonl"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	folder := "_z=1/t.jsonl a.jsonl b.jsonl day=1/_y=2/q.jsonl day=1/p.jsonl l.jsonl ü.jsonl"
	for pattern, want := range map[string]string{
		"":             folder,
		"a":            "a/x.jsonl a/y.csv",
		"b.jsonl":      "b.jsonl",
		"*.jsonl":      "a.jsonl b.jsonl l.jsonl ü.jsonl",
		"[ab].jsonl":   "a.jsonl b.jsonl",
		"?":            "a/x.jsonl a/y.csv",
		"*/*.jsonl":    "_z=1/t.jsonl a/x.jsonl day=1/p.jsonl",
		"a/**/*.jsonl": "a/b/c/z.jsonl a/x.jsonl",
		"a/**":         "a/b/c/z.jsonl a/x.jsonl a/y.csv",
		"day=*":        "day=1/_y=2/q.jsonl day=1/p.jsonl",
		"nothing/*":    "",
		"*.none":       "",
	} {
		l, err := newLister(durable.OS(), filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		found, err := l.walk(context.Background())
		if err != nil {
			t.Errorf("%q: %v", pattern, err)
			continue
		}
		var got []string
		for _, f := range found {
			got = append(got, strings.TrimPrefix(f.path, root+"/"))
		}
		same(t, pattern, strings.Join(got, " "), want)
	}
}

// TestUnchangedDirectory is not listed again, for a while.
func TestUnchangedDirectory(t *testing.T) {
	r := newRig(t, JSONL)
	lists := 0
	r.cfg.Files = durable.Tap(durable.OS(), func(op, path string) error {
		if op == "list:before" && path == r.in {
			lists++
		}
		return nil
	})
	r.open()
	r.put("a", "1\n")
	r.age(r.in, time.Hour)
	at := r.latest(checkpoint.Position{}, 0)
	for range 5 {
		same(t, "nothing is new", r.latest(at, 0), at)
	}
	same(t, "listings of an unchanged directory", lists, 1)
	r.put("b", "2\n")
	r.age(r.in, time.Second)
	at = r.latest(at, 0)
	same(t, "listings after a change", lists, 2)
	same(t, "nothing is new", r.latest(at, 0), at)
	same(t, "listings of one that changed just now", lists, 3)
	r.age(r.in, time.Hour)
	r.latest(at, 0)
	same(t, "listings with another time stamp", lists, 4)
	r.now = r.now.Add(relistEvery)
	r.latest(at, 0)
	same(t, "listings after a while", lists, 5)
}

func TestOneFile(t *testing.T) {
	r := newRig(t, JSONL)
	r.cfg.Path = r.put("a", "1\n")
	r.cfg.Attach = []string{"path"}
	r.open()
	end := r.latest(checkpoint.Position{}, 0)
	same(t, "records", r.read(checkpoint.Position{}, end), []string{"a:0:1"})
}

func TestURI(t *testing.T) {
	for path, want := range map[string]string{
		"/a/b c%":        "file:///a/b%20c%25",
		"/ü漢/a+b&c=d;@:": "file:///ü漢/a+b&c=d;@:",
		"/\"<>#?[]^`{|}": "file:///%22%3C%3E%23%3F%5B%5D%5E%60%7B%7C%7D",
		"/\xff\n\u0085":  "file:///%FF%0A%C2%85",
	} {
		same(t, path, toURI(path), want)
	}
	for uri, want := range map[string]string{"file:/a%20b": "/a b", "file:///%C3%BC": "/ü", "/x+y": "/x+y"} {
		got, err := fromURI(uri)
		if err != nil {
			t.Error(err)
		}
		same(t, uri, got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		path := "/" + string(rapid.SliceOf(rapid.Byte()).Draw(t, "path"))
		got, err := fromURI(toURI(path))
		if err != nil || got != path {
			t.Fatalf("%q becomes %q: %v", path, got, err)
		}
	})
}

// TestUnmatched: a path that has matched nothing so far is worth one word, until a file was read.
func TestUnmatched(t *testing.T) {
	r := newRig(t, JSONL)
	r.cfg.Path = r.in + "/*.jsonl"
	r.open()
	for range 3 {
		same(t, "nothing", r.latest(checkpoint.Position{}, 0), checkpoint.Position{})
		r.now = r.now.Add(time.Minute)
	}
	if len(r.warn) != 1 || !strings.Contains(r.warn[0].Error(), "no file matches "+r.in+"/*.jsonl so far") {
		t.Errorf("warnings: %v", r.warn)
	}
	if got := r.src.Remark(checkpoint.Position{}); got != r.warn[0].Error() {
		t.Errorf("remark: %q", got)
	}
	path := r.put("a.jsonl", "1\n")
	r.now = r.now.Add(time.Minute)
	at := r.latest(checkpoint.Position{}, 0)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	r.open()
	same(t, "nothing is new", r.latest(at, 0), at)
	same(t, "warnings", len(r.warn), 1)
	same(t, "remark", r.src.Remark(at), "")
}
