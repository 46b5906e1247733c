package checkpoint

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
