package checkpoint

import (
	"testing"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

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
