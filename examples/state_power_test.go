package examples

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// powerCuts is how many power cuts there are at least: WASMILL_STATE_CUTS, or a few.
func powerCuts(t *testing.T) int {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("WASMILL_STATE_CUTS")); err == nil {
		return n
	}
	return 8
}

// cutsPerTable is how often the power fails before a table is finished.
const cutsPerTable = 4

// powerPoints are where power is cut: the disk is busy there.
var powerPoints = []string{
	"", "", "", "decide:after", "seal:after@7", "sync:before changelog/N-H", "syncdir:before state/changelog", "state apply-chunk@3", "state apply-marker@2",
	"state apply-end@4", "state snapshot-part", "state snapshot-link", "syncdir:before state/snapshot", "state snapshot-end", "state snapshot-end@2",
	"remove:after changelog/N-H", "remove:after snapshot/N", "state discard", "state clear", "state rebuild-load", "state rebuild-end",
}

// TestStatePowerCut kills the program and then does to its files what a power cut can: whatever was not synced is lost, cut,
// or full of zeros or of something else; names that were made are gone, and names that were removed are back. The next run
// goes on, and what comes out and what is kept equals the oracle. In every second table the lanes and the clock are others
// after each cut.
func TestStatePowerCut(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("cuts from seed %d", seed)
	k := &ledgerKills{
		ledgerSpec: ledgerSpec{entries: someEntries(400), files: 5, batch: 10, lateness: 3000, retention: fmt.Sprintf("{batches: %d, age: 0s}", retainedBatches)},
		rng:        rand.New(rand.NewPCG(seed, 1)), at: map[string]int{},
	}
	p := powerFailure{rng: k.rng}
	for p.cuts < powerCuts(t) {
		dir, file := k.setup(t)
		text := mustRead(t, file)
		k.anyOrder, k.shift = k.tables%2 == 1, 0
		var story []string
		for n := range cutsPerTable {
			if k.anyOrder {
				k.shift = []time.Duration{0, -time.Hour, 2 * time.Hour, -24 * time.Hour}[k.rng.IntN(4)]
				lanes := fmt.Sprintf("spec:\n  lanes: %d\n", []int{4, 7, 1, 3}[n%4])
				if err := os.WriteFile(file, []byte(strings.Replace(text, "spec:\n", lanes, 1)), 0o600); err != nil {
					t.Fatal(err)
				}
				story = append(story, fmt.Sprintf("%d lanes, clock off by %v", []int{4, 7, 1, 3}[n%4], k.shift))
			}
			r := k.shoot(t, dir, file, shot{point: powerPoints[k.rng.IntN(len(powerPoints))]})
			p.count(r)
			if r.killed {
				story = append(story, p.cut(t, dir))
			} else if r.code != 0 {
				t.Fatalf("%s\nneither killed nor well:\n%s", strings.Join(story, "\n"), r.stderr)
			}
		}
		r := run(t, k.env(dir), "run", file)
		if p.count(r); r.code != 0 {
			t.Fatalf("%s\nended with %d:\n%s", strings.Join(story, "\n"), r.code, r.stderr)
		}
		t.Cleanup(func() {
			if t.Failed() {
				t.Log(strings.Join(story, "\n"))
			}
		})
		k.hold(t, dir, false)
		if t.Failed() {
			t.FailNow()
		}
		k.tables++
		_ = os.RemoveAll(dir)
	}
	t.Logf("%d power cuts over %d tables, the store was built anew %d times: all equal to the oracle", p.cuts, k.tables, p.rebuilt)
	if p.rebuilt == 0 && p.cuts >= 30 { // fewer may all leave it whole
		t.Error("the store was never built anew")
	}
}

// powerFailure cuts the power.
type powerFailure struct {
	rng           *rand.Rand
	cuts, rebuilt int
}

func (p *powerFailure) count(r result) {
	p.rebuilt += strings.Count(r.stderr, "built anew")
}

// cut damages what may not have been synced in a folder, and says what.
func (p *powerFailure) cut(t *testing.T, dir string) string {
	t.Helper()
	p.cuts++
	state := filepath.Join(dir, "checkpoint", "state")
	var story []string
	hurt := func(folder, name string, how func([]byte) []byte) {
		path := filepath.Join(state, folder, name)
		was := []byte(mustRead(t, path))
		is := how(slices.Clone(was))
		story = append(story, fmt.Sprintf("%s/%s %d -> %d", folder, name, len(was), len(is)))
		var err error
		if is == nil {
			err = os.Remove(path)
		} else {
			err = os.WriteFile(path, is, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tables := slices.DeleteFunc(namesIn(t, filepath.Join(state, "badger")), func(n string) bool { return !strings.HasSuffix(n, ".sst") })
	for _, name := range namesIn(t, filepath.Join(state, "badger")) {
		switch {
		case name == "MANIFEST":
			if p.rng.IntN(2) == 0 {
				hurt("badger", name, p.shortened)
			}
		case strings.HasSuffix(name, ".lock"):
		case !strings.HasSuffix(name, ".sst"):
			hurt("badger", name, p.lost)
		case slices.Contains(tables[max(0, len(tables)-3):], name): // its name may not be synced yet
			if p.rng.IntN(3) == 0 {
				hurt("badger", name, p.lost)
			}
		}
	}
	decided := -1
	for _, name := range namesIn(t, filepath.Join(dir, "checkpoint", "commits")) {
		if n, err := strconv.Atoi(name); err == nil {
			decided = max(decided, n)
		}
	}
	for _, name := range namesIn(t, filepath.Join(state, "changelog")) {
		number, _, _ := strings.Cut(name, "-")
		if n, err := strconv.Atoi(number); err == nil && n > decided {
			hurt("changelog", name, p.lost)
		}
	}
	for _, name := range namesIn(t, filepath.Join(state, "snapshot")) {
		if strings.HasSuffix(name, ".tmp") {
			hurt("snapshot", name, p.lost)
		}
	}
	return strings.Join(append(story, p.back(t, dir)...), ", ")
}

// back brings files back whose removal was not synced.
func (p *powerFailure) back(t *testing.T, dir string) (story []string) {
	t.Helper()
	for _, folder := range []string{"changelog", "snapshot"} {
		kept := filepath.Join(dir, keptPlans, folder)
		removed := namesIn(t, kept)
		for _, name := range removed[max(0, len(removed)-4):] {
			to := filepath.Join(dir, "checkpoint", "state", folder, name)
			if _, err := os.Lstat(to); err == nil || p.rng.IntN(3) > 0 {
				continue
			}
			if err := os.WriteFile(to, []byte(mustRead(t, filepath.Join(kept, name))), 0o600); err != nil {
				t.Fatal(err)
			}
			story = append(story, folder+"/"+name+" is back")
		}
	}
	return story
}

// lost is what may be left of a file that was not synced; nil is none.
func (p *powerFailure) lost(b []byte) []byte {
	const page = 4096
	if len(b) == 0 {
		return b
	}
	at := p.rng.IntN(len(b))
	switch p.rng.IntN(6) {
	case 0:
		return nil
	case 1:
		return b[:0]
	case 2:
		return b[:at]
	case 3:
		clear(b[at-at%page:])
	case 4:
		for from := 0; from < len(b); from += page {
			if p.rng.IntN(2) == 0 {
				clear(b[from:min(from+page, len(b))])
			}
		}
	}
	return b
}

// shortened is an append that was under way: the file without some of its last bytes.
func (p *powerFailure) shortened(b []byte) []byte {
	return b[:max(len(b)-1-p.rng.IntN(40), 8)]
}

// namesIn are the files of a folder, those that were written last at the end.
func namesIn(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	out := make([]string, 0, len(list))
	for _, f := range list {
		if !f.IsDir() {
			out = append(out, f.Name())
		}
	}
	number := func(name string) int {
		n := 0
		for _, c := range strings.TrimLeft(name, ".") {
			if c < '0' || c > '9' {
				break
			}
			n = n*10 + int(c-'0')
		}
		return n
	}
	slices.SortStableFunc(out, func(a, b string) int { return number(a) - number(b) })
	return out
}
