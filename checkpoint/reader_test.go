package checkpoint

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// treeOf lists all files of a directory with what is in them.
func treeOf(t *testing.T, files durable.Files, dir string) string {
	t.Helper()
	infos, err := files.List(dir)
	must(t, err)
	var b strings.Builder
	for _, i := range infos {
		name := path.Join(dir, i.Name)
		if i.Dir {
			b.WriteString(name + "/\n" + treeOf(t, files, name))
			continue
		}
		b.WriteString(name + " " + read(t, files, name) + "\n")
	}
	return b.String()
}

// TestReaderReadsWhatTheLogReads holds a reader beside an open log to the log's own answers, and to changing nothing.
func TestReaderReadsWhatTheLogReads(t *testing.T) {
	ctx := t.Context()
	_, files := memory()
	l := open(t, files, "cp")
	revision, module := []byte(`{"abi":1}`), []byte("\x00asm")
	must(t, errors.Join(l.PutRevision(ctx, shaOf(revision), revision), l.PutModule(ctx, shaOf(module), module)))
	batches(t, l, 0, 3)
	must(t, l.NotePublished(ctx, map[string]PublishedMark{"lake": {Batch: 2, Digest: "dd"}}))
	before := treeOf(t, files, "cp")
	r, err := OpenReader(ctx, files, "cp")
	must(t, err)
	if r.QueryID() != testID || r.Job() != "delays" || r.CheckJob("delays") != nil {
		t.Errorf("query %s of job %s", r.QueryID(), r.Job())
	}
	wantCode(t, "another job", r.CheckJob("other"), CodeOtherJob, ownerFile)
	p, d, err := r.Tail(ctx)
	if err != nil || p.Batch != l.next.plan || d.Batch != l.next.decision {
		t.Errorf("tail is %v, %v, %v", p, d, err)
	}
	oldest, newest, err := r.Kept(ctx)
	if err != nil || oldest != 0 || newest != p.Batch {
		t.Errorf("kept are %d to %d, %v", oldest, newest, err)
	}
	for id := BatchID(0); id <= p.Batch; id++ {
		want, err := l.Plan(ctx, id)
		got, rerr := r.Plan(ctx, id)
		if err != nil || rerr != nil || got.TimeMS != want.TimeMS || len(got.Sources) != len(want.Sources) {
			t.Errorf("plan %d is %v, %v", id, got, rerr)
		}
		if d, err := r.Decision(ctx, id); err != nil || d.Batch != id {
			t.Errorf("decision %d is %v, %v", id, d, err)
		}
	}
	if text, err := r.Revision(ctx, shaOf(revision)); err != nil || string(text) != string(revision) {
		t.Errorf("revision %q, %v", text, err)
	}
	if wasm, err := r.Module(ctx, shaOf(module)); err != nil || string(wasm) != string(module) {
		t.Errorf("module %q, %v", wasm, err)
	}
	if m := r.Published(ctx)["lake"]; m.Batch != 2 {
		t.Errorf("published is %v", m)
	}
	for i, name := range []string{"flights", "ticks", "new", "flights"} {
		if dir, err := r.SourceDir(name); err != nil || dir != fmt.Sprintf("cp/sources/%d", i%3) {
			t.Errorf("source %s remembers in %s, %v", name, dir, err)
		}
	}
	if res, err := r.Resolution(ctx, 2, "lake"); res != nil || err != nil {
		t.Errorf("resolution %v, %v", res, err)
	}
	if after := treeOf(t, files, "cp"); after != before {
		t.Errorf("reading changed the checkpoint from\n%s\nto\n%s", before, after)
	}
}

// TestReaderOfATornTail gives the tail without the torn record, like the log.
func TestReaderOfATornTail(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		plan       BatchID
		decided    bool
	}{
		{"decision", "commits/2", 2, false},
		{"plan", "offsets/2", 1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := t.Context()
			_, files := memory()
			batches(t, open(t, files, "cp"), 0, 2)
			if tt.decided {
				must(t, files.Remove("cp/commits/2"))
			}
			put(t, files, "cp/"+tt.file, "v1\n{")
			r, err := OpenReader(ctx, files, "cp")
			must(t, err)
			p, d, err := r.Tail(ctx)
			var torn *TornError
			if !errors.As(err, &torn) || torn.File != tt.file || p == nil || p.Batch != tt.plan || (d != nil) != tt.decided {
				t.Errorf("tail is %v, %v, %v", p, d, err)
			}
		})
	}
}

func TestReaderRefuses(t *testing.T) {
	for _, tt := range []struct{ name, code, gone string }{
		{"a gap", CodeGap, "offsets/1"},
		{"no metadata", CodeMetadataMissing, "metadata"},
		{"a decision without its plan", CodeNoPlan, "offsets/2"},
	} {
		_, files := memory()
		batches(t, open(t, files, "cp"), 0, 2)
		must(t, files.Remove("cp/"+tt.gone))
		_, err := OpenReader(t.Context(), files, "cp")
		wantCode(t, tt.name, err, tt.code, tt.gone)
	}
	_, files := memory()
	_, err := OpenReader(t.Context(), files, "nope")
	wantCode(t, "no directory", err, CodeMissing, "nope")
	put(t, files, "other/file", "x")
	_, err = OpenReader(t.Context(), files, "other")
	wantCode(t, "another directory", err, CodeMissing, "other")
}

// TestReaderOfWhatIsGone names what is not kept.
func TestReaderOfWhatIsGone(t *testing.T) {
	_, files := memory()
	batches(t, open(t, files, "cp"), 0, 2)
	r, err := OpenReader(t.Context(), files, "cp")
	must(t, err)
	_, err = r.Plan(t.Context(), 3)
	wantCode(t, "a plan to come", err, CodeMissing, "offsets/3")
	_, err = r.Decision(t.Context(), 3)
	wantCode(t, "a decision to come", err, CodeMissing, "commits/3")
	_, err = r.Revision(t.Context(), strings.Repeat("0", 64))
	wantCode(t, "a revision", err, CodeMissing, "revisions/")
	_, err = r.Module(t.Context(), "nope")
	wantCode(t, "a module", err, CodeInvalid, "nope")
	put(t, files, "cp/offsets/0", "v1\n{")
	_, err = r.Plan(t.Context(), 0)
	wantCode(t, "a damaged plan", err, CodeUnreadable, "offsets/0")
}
