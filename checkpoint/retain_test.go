package checkpoint

import (
	"strconv"
	"testing"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

func TestRetainKeepsThePolicy(t *testing.T) {
	hour := int64(60 * 60 * 1000)
	now := options().Clock()
	for name, tc := range map[string]struct {
		policy Policy
		age    func(BatchID) int64 // of a batch, in milliseconds
		upTo   BatchID
		want   BatchID // the oldest batch afterwards
	}{
		"newest 100":            {DefaultPolicy(), func(BatchID) int64 { return 25 * hour }, 149, 49},
		"a day":                 {DefaultPolicy(), func(BatchID) int64 { return 23 * hour }, 149, 0},
		"half of them old":      {DefaultPolicy(), func(id BatchID) int64 { return 25*hour - int64(id)*hour/20 }, 149, 20},
		"never more":            {Policy{Keep: 10, AgeMS: hour, Max: 60}, func(BatchID) int64 { return 0 }, 149, 99},
		"never unsealed ones":   {Policy{Keep: 2, Max: 2}, func(BatchID) int64 { return 0 }, 70, 69},
		"never the last two":    {Policy{}, func(BatchID) int64 { return 0 }, 149, 148},
		"not worth the trouble": {Policy{Keep: 145, Max: 145}, func(BatchID) int64 { return 0 }, 149, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, files := memory()
			l := open(t, files, "c")
			for id := range BatchID(150) {
				p := plan(id)
				p.TimeMS = now - tc.age(id)
				must(t, l.WritePlan(t.Context(), p))
				must(t, l.WriteDecision(t.Context(), decision(id)))
			}
			for _, name := range []string{"c/offsets/.3.crc", "c/commits/.3.crc", "c/commits/.3.undone-0badcafe", "c/commits/.149.undone-0badcafe"} {
				put(t, files, name, "x")
			}
			must(t, l.Retain(t.Context(), tc.upTo, tc.policy))
			v, err := look(t.Context(), files, "c")
			must(t, err)
			first, _ := v.offsets.first(), v.commits.first()
			if diff := first - tc.want; diff < -1 || diff > 1 || first != v.commits.first() || len(v.findings) > 0 || len(v.offsets.old) > 0 {
				t.Errorf("oldest %d and %d, want %d; findings %+v", first, v.commits.first(), tc.want, v.findings)
			}
			if left := len(v.offsets.side) + len(v.commits.side); (tc.want > 3) != (left == 1) {
				t.Errorf("hidden files: %v %v", v.offsets.side, v.commits.side)
			}
			if tc.policy.Max > 0 && tc.upTo == 149 && int64(len(v.offsets.ids)) > max(tc.policy.Max, tc.policy.Keep)+retainStep {
				t.Errorf("%d batches are kept", len(v.offsets.ids))
			}
			must(t, l.Close())
			l = open(t, files, "c")
			if got := tailWords(l.Tail(t.Context())); got != "plan 149 decided" {
				t.Errorf("tail: %s", got)
			}
		})
	}
}

// Revisions and modules go with the last batch that needs them, and never while a retained batch does.
func TestRetainKeepsWhatRetainedBatchesNeed(t *testing.T) {
	_, files := memory()
	l := open(t, files, "c")
	modules := [][]byte{[]byte("a"), []byte("b"), []byte("c"), []byte("orphan")}
	revision := func(m ...[]byte) []byte {
		text := `{"transforms":[`
		for _, b := range m {
			text += `{"module":"` + shaOf(b) + `"},`
		}
		return []byte(text + `]}`)
	}
	revisions := [][]byte{revision(modules[0], modules[1]), revision(modules[1]), revision(modules[2])}
	for _, m := range modules {
		must(t, l.PutModule(t.Context(), shaOf(m), m))
	}
	for _, r := range revisions {
		must(t, l.PutRevision(t.Context(), shaOf(r), r))
	}
	for id := range BatchID(60) {
		must(t, l.WritePlan(t.Context(), plan(id)))
		d := decision(id)
		d.Revision = shaOf(revisions[min(int(id)/20, 1)])
		must(t, l.WriteDecision(t.Context(), d))
	}
	must(t, l.Close())
	l = open(t, files, "c") // knows nothing of what the first process has put
	must(t, l.PutModule(t.Context(), shaOf(modules[2]), modules[2]))
	must(t, l.PutRevision(t.Context(), shaOf(revisions[2]), revisions[2]))

	kept := func(wantModules, wantRevisions string) {
		t.Helper()
		got := ""
		for i, m := range modules {
			if _, err := l.Module(t.Context(), shaOf(m)); err == nil {
				got += string(rune('a' + i))
			}
		}
		revs := ""
		for i, r := range revisions {
			if _, err := l.Revision(t.Context(), shaOf(r)); err == nil {
				revs += string(rune('0' + i))
			}
		}
		if got != wantModules || revs != wantRevisions {
			t.Errorf("kept modules %s and revisions %s, want %s and %s", got, revs, wantModules, wantRevisions)
		}
	}
	must(t, l.Retain(t.Context(), 59, Policy{Keep: 48, Max: 48}))
	kept("abc", "012")
	must(t, l.Retain(t.Context(), 59, Policy{Keep: 10, Max: 10}))
	kept("bc", "12")
	for id := BatchID(60); id < 80; id++ {
		must(t, l.WritePlan(t.Context(), plan(id)))
		d := decision(id)
		d.Revision = shaOf(revisions[2])
		must(t, l.WriteDecision(t.Context(), d))
	}
	must(t, l.Retain(t.Context(), 79, Policy{Keep: 10, Max: 10}))
	kept("c", "2")
}

// A revision that cannot be read may name any module: none is removed.
func TestRetainWithAnUnreadableRevision(t *testing.T) {
	_, files := memory()
	l := open(t, files, "c")
	module, revision := []byte("m"), []byte("{}")
	must(t, l.PutModule(t.Context(), shaOf(module), module))
	must(t, l.PutRevision(t.Context(), shaOf(revision), revision))
	for id := range BatchID(30) {
		must(t, l.WritePlan(t.Context(), plan(id)))
		d := decision(id)
		d.Revision = shaOf(revision)
		must(t, l.WriteDecision(t.Context(), d))
	}
	must(t, l.Close())
	put(t, files, "c/revisions/"+shaOf(revision)+".json", "garbage")
	l = open(t, files, "c")
	wantCode(t, "retain", l.Retain(t.Context(), 29, Policy{Keep: 5, Max: 5}), CodeDamaged, "revisions/")
	if _, err := l.Module(t.Context(), shaOf(module)); err != nil {
		t.Error(err)
	}
}

// listCount counts how often directories are listed.
type listCount struct {
	durable.Files
	lists int
}

func (c *listCount) List(dir string) ([]durable.Info, error) {
	c.lists++
	return c.Files.List(dir)
}

// TestRetainOfManySmallBatches: a long log stays within its bounds without its directories being listed all the time, and
// what was set aside goes too in the end.
func TestRetainOfManySmallBatches(t *testing.T) {
	_, mem := memory()
	files := &listCount{Files: mem}
	l := open(t, files, "c")
	policy := Policy{Keep: 100, AgeMS: 60 * 60 * 1000, Max: 1500}
	now := options().Clock()
	before := files.lists
	const batches = 4000
	for id := range BatchID(batches) {
		p := plan(id)
		p.TimeMS = now
		must(t, l.WritePlan(t.Context(), p))
		must(t, l.WriteDecision(t.Context(), decision(id)))
		if id%500 == 7 {
			put(t, mem, "c/offsets/."+strconv.Itoa(int(id))+".amended-0badcafe", "x")
		}
		must(t, l.Retain(t.Context(), id, policy))
		if kept := id - l.keep.floor + 1; kept > BatchID(policy.Max) {
			t.Fatalf("after batch %d there are %d", id, kept)
		}
	}
	if n := files.lists - before; n > 100 {
		t.Errorf("directories were listed %d times in %d batches", n, batches)
	}
	v, err := look(t.Context(), files, "c")
	must(t, err)
	if first := v.offsets.first(); first < batches-1500 || first > batches-1400 || v.commits.first() != first {
		t.Errorf("kept from %d and %d on", first, v.commits.first())
	}
	if len(v.findings) > 0 || len(v.offsets.old)+len(v.commits.old) > 0 {
		t.Errorf("findings %v, left over %v %v", v.findings, v.offsets.old, v.commits.old)
	}
	if n := len(v.offsets.side); n > 5 {
		t.Errorf("%d hidden files are left: %v", n, v.offsets.side)
	}
}
