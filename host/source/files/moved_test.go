package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

// TestMoved plans two files, moves the folder and looks from there.
func TestMoved(t *testing.T) {
	r := newRig(t, JSONL)
	r.put("a", "1\n")
	r.put("b", "2\n")
	at := r.latest(checkpoint.Position{}, 0)
	was, is := r.in, filepath.Join(filepath.Dir(r.in), "näw %\xff")
	if err := os.Rename(was, is); err != nil {
		t.Fatal(err)
	}
	r.in, r.cfg.Path = is, is
	r.open()

	_, err := r.src.Latest(context.Background(), at, source.Limit{})
	same(t, "code", code(t, err), CodeMoved)
	moved, ok := errors.AsType[*source.MovedError](err)
	if !ok || moved.Was != was || moved.Is != is {
		t.Errorf("the fault names %+v", moved)
	}
	if !strings.Contains(hint(t, err), "put the path back") || !strings.Contains(hint(t, err), "--allow-changes") {
		t.Errorf("way out: %s", hint(t, err))
	}
	same(t, "code of a look", code(t, r.src.Moved(at)), CodeMoved)
	same(t, "a position of no input", r.src.Moved(checkpoint.Position{}), nil)

	// What was planned is still read by the plan's own paths: the folder is put back for it.
	if err := os.Symlink(is, was); err != nil {
		t.Fatal(err)
	}
	same(t, "the range of before", r.read(checkpoint.Position{}, at), []string{"0:1", "0:2"})

	r.cfg.AllowMoved = true
	r.open()
	to := r.latest(at, 0)
	same(t, "new input", r.read(at, to), []string{"0:1", "0:2"})
	same(t, "a look that allows it", code(t, r.src.Moved(at)), CodeMoved)
	same(t, "a look from the new position", r.src.Moved(to), nil)

	r.cfg.AllowMoved = false
	r.open()
	r.put("c", "3\n")
	same(t, "after consent", r.read(to, r.latest(to, 0)), []string{"0:3"})
}

func TestNotMoved(t *testing.T) {
	r := newRig(t, JSONL)
	r.put("a.jsonl", "1\n")
	at := r.latest(checkpoint.Position{}, 0)
	r.put("b.jsonl", "2\n")
	for name, path := range map[string]string{
		"the same":          r.in,
		"in other words":    r.in + "/../in/",
		"a glob below it":   r.in + "/*.jsonl",
		"a deep glob of it": r.in + "/**",
	} {
		r.cfg.Path = path
		r.open()
		same(t, name, r.read(at, r.latest(at, 0)), []string{"0:2"})
	}

	// A position of Spark's has no base, nor has one that was written without it.
	r.cfg.Path = filepath.Dir(r.in)
	r.open()
	same(t, "Spark's position", r.src.Moved(checkpoint.Position{Line: "0"}), nil)
	same(t, "a position without base", r.src.Moved(checkpoint.Position{Line: "0", Extra: `{"v":1,"synced":0}`}), nil)
	same(t, "the directory above", code(t, r.src.Moved(at)), CodeMoved)
}
