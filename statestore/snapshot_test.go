package statestore_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/statestore"
	"github.com/wasmill/wasmill/statestore/badger"
	"github.com/wasmill/wasmill/statestore/mem"
)

// kept is a state folder, and what is known of it: the decisions, and what the state was as of each batch.
type kept struct {
	dir     string
	disk    *mem.Disk // nil: Badger
	digests map[int64]string
	states  map[int64]string
	rebuilt []int64
}

func (k *kept) open(t *testing.T) *statestore.Store {
	t.Helper()
	cfg := statestore.Config{Files: durable.OS(), Dir: k.dir, Query: query, Backend: badger.Open, SnapshotBatches: 8}
	if k.disk != nil {
		cfg.Backend, cfg.BackendName = k.disk.Open, "mem"
	}
	cfg.Events.Rebuilt = func(snapshot int64, _ error) { k.rebuilt = append(k.rebuilt, snapshot) }
	cfg.Events.Warning = func(op string, err error) { t.Errorf("warning: %s: %v", op, err) }
	s, err := statestore.Open(t.Context(), cfg)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// exported is everything in the state as of a batch, as text.
func exported(t *testing.T, s *statestore.Store, batch int64) string {
	t.Helper()
	v, err := s.At(t.Context(), batch)
	must(t, err)
	defer v.Close()
	var out strings.Builder
	for _, table := range v.Tables() {
		must(t, v.Export(t.Context(), table, func(r *statestore.Row) bool {
			fmt.Fprintf(&out, "%s/%s %d %x %x %x %d %d %d\n", table.Stage, table.Name, r.Group, r.Key, r.Sub, r.Value, r.ExpiryMS, r.Domain, r.AtMS)
			return true
		}))
	}
	return out.String()
}

// some changes the state at random; every third batch does nothing.
func (k *kept) batches(t *testing.T, s *statestore.Store, from, to int64) {
	t.Helper()
	for n := from; n < to; n++ {
		random := rand.New(rand.NewPCG(uint64(n), 5))
		sum := batch(t, s, statestore.BatchInfo{Batch: n, TimeMS: 1000 * n}, func(l *statestore.Lane) {
			if n%3 == 2 {
				return
			}
			for range 30 {
				e := statestore.Entry{Group: uint8(random.IntN(64)), Key: fmt.Append(nil, random.IntN(30)), Sub: fmt.Append(nil, random.IntN(3))}
				e.Table = uint16(random.IntN(2))
				switch random.IntN(5) {
				case 0:
					must(t, l.Delete(e))
				case 1:
					must(t, l.Put(e, fmt.Append(nil, n, "until"), 1000*(n+1+random.Int64N(20))))
				case 2:
					must(t, l.SetTimer(statestore.Timer{Domain: uint8(n % 2), AtMS: random.Int64N(1 << 40), Group: e.Group, Key: e.Key, Sub: e.Sub}))
				default:
					must(t, l.Put(e, bytes.Repeat(fmt.Append(nil, n), 1+random.IntN(40)), 0))
				}
			}
		})
		if sum.Digest != "" {
			k.digests[n] = sum.Digest
		}
		k.states[n] = exported(t, s, n)
	}
}

// last is the newest batch that changed something.
func (k *kept) last() (last int64) {
	for n := range k.digests {
		last = max(last, n)
	}
	return last
}

// recover does what the engine does at a start, with the decisions of the newest batches alone.
func (k *kept) recover(t *testing.T, s *statestore.Store) {
	t.Helper()
	must(t, s.Rewind(t.Context(), k.last(), math.MaxInt64))
	for n := s.Last() + 1; n <= k.last(); n++ {
		digest := k.digests[n]
		if digest != "" && n < k.last()-3 {
			t.Fatalf("the decision of batch %d is needed", n)
		}
		must(t, s.Load(t.Context(), n, fmt.Sprintf("%08x", n), digest))
	}
}

func (k *kept) check(t *testing.T, s *statestore.Store) {
	t.Helper()
	if got := exported(t, s, k.last()); got != k.states[k.last()] {
		t.Errorf("the state differs: %d bytes, want %d", len(got), len(k.states[k.last()]))
	}
}

func newKept(t *testing.T, disk *mem.Disk) *kept {
	t.Helper()
	k := &kept{dir: filepath.Join(t.TempDir(), "state"), disk: disk, digests: map[int64]string{}, states: map[int64]string{}}
	s := k.open(t)
	k.batches(t, s, 0, 55)
	must(t, s.Close())
	return k
}

func (k *kept) copy(t *testing.T) *kept {
	c := *k
	c.digests, c.states = maps.Clone(k.digests), maps.Clone(k.states)
	c.dir = filepath.Join(t.TempDir(), "state")
	must(t, os.CopyFS(c.dir, os.DirFS(k.dir)))
	if k.disk != nil {
		c.disk = k.disk.Clone()
	}
	return &c
}

func (k *kept) snapshots(t *testing.T) (names []string) {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(k.dir, "snapshot"))
	must(t, err)
	for _, e := range list {
		names = append(names, filepath.Join(k.dir, "snapshot", e.Name()))
	}
	return names
}

// above is the first batch that changed something after the newest snapshot. It is not the last one.
func (k *kept) above(t *testing.T) int64 {
	t.Helper()
	names := k.snapshots(t)
	n, err := strconv.ParseInt(filepath.Base(names[len(names)-1]), 10, 64)
	must(t, err)
	for n++; k.digests[n] == ""; n++ {
	}
	if n >= k.last() {
		t.Fatalf("no two changelogs after the newest snapshot, %d", n)
	}
	return n
}

func flip(t *testing.T, name string) {
	t.Helper()
	b, err := os.ReadFile(name)
	must(t, err)
	b[len(b)/2] ^= 4
	must(t, os.WriteFile(name, b, 0o644))
}

func TestRebuild(t *testing.T) {
	for _, backend := range []string{"mem", "badger"} {
		t.Run(backend, func(t *testing.T) {
			var disk *mem.Disk
			if backend == "mem" {
				disk = mem.New()
			}
			testRebuild(t, newKept(t, disk))
		})
	}
}

func testRebuild(t *testing.T, base *kept) {
	if n := len(base.snapshots(t)); n != 2 {
		t.Fatalf("%d snapshots", n)
	}
	lose := func(t *testing.T, k *kept) {
		if k.disk != nil {
			k.disk = mem.New()
			return
		}
		must(t, os.RemoveAll(filepath.Join(k.dir, "badger")))
	}
	newest := func(k *kept) string { s := k.snapshots(t); return s[len(s)-1] }
	changelog := func(k *kept, batch int64) string {
		return filepath.Join(k.dir, "changelog", fmt.Sprintf("%d-%08x", batch, batch))
	}
	cases := []struct {
		name    string
		harm    func(t *testing.T, k *kept)
		rebuilt int
		err     error
		names   string // in the error
	}{
		{"nothing", func(*testing.T, *kept) {}, 0, nil, ""},
		{"lost, all changelogs there", lose, 0, nil, ""},
		{"lost, old changelogs gone", func(t *testing.T, k *kept) { lose(t, k); must(t, os.Remove(changelog(k, 0))) }, 1, nil, ""},
		{"lost, newest snapshot damaged", func(t *testing.T, k *kept) {
			lose(t, k)
			must(t, os.Remove(changelog(k, 0)))
			flip(t, newest(k))
		}, 1, nil, ""},
		{"lost, both snapshots damaged", func(t *testing.T, k *kept) {
			lose(t, k)
			must(t, os.Remove(changelog(k, 0)))
			for _, s := range k.snapshots(t) {
				flip(t, s)
			}
		}, 0, statestore.ErrCorrupt, "snapshot"},
		{"lost, a changelog missing after the snapshots", func(t *testing.T, k *kept) {
			lose(t, k)
			must(t, os.Remove(changelog(k, k.above(t))))
			must(t, os.Remove(changelog(k, 0)))
		}, 0, statestore.ErrMissing, fmt.Sprint("/changelog/", base.above(t), "-*")},
		{"lost, a changelog damaged between the snapshots", func(t *testing.T, k *kept) {
			lose(t, k)
			must(t, os.Remove(changelog(k, 0)))
			flip(t, changelog(k, 36))
		}, 1, nil, ""},
		{"another attempt lies about", func(t *testing.T, k *kept) {
			lose(t, k)
			must(t, os.Remove(changelog(k, 0)))
			b, err := os.ReadFile(changelog(k, 45))
			must(t, err)
			must(t, os.WriteFile(changelog(k, 46)[:len(changelog(k, 46))-8]+"ffffffff", b, 0o644))
		}, 1, nil, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := base.copy(t)
			c.harm(t, k)
			s := k.open(t)
			if c.err != nil {
				err := s.Rewind(t.Context(), k.last(), math.MaxInt64)
				if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.names) {
					t.Errorf("rewind: %v", err)
				}
				return
			}
			k.recover(t, s)
			k.check(t, s)
			if len(k.rebuilt) != c.rebuilt {
				t.Errorf("built anew from %v", k.rebuilt)
			}
			k.batches(t, s, 55, 58)
			must(t, s.Close())
			s = k.open(t)
			k.recover(t, s)
			k.check(t, s)
		})
	}
}

// A store that is ahead of what was decided goes back, and what was before its snapshot is not there.
func TestRewindToAnEarlierBatch(t *testing.T) {
	k := newKept(t, mem.New())
	s := k.open(t)
	must(t, s.Rewind(t.Context(), 46, math.MaxInt64))
	if s.Last() > 46 || len(k.rebuilt) != 1 {
		t.Fatalf("last %d, built anew %v", s.Last(), k.rebuilt)
	}
	for n := s.Last() + 1; n <= 46; n++ {
		must(t, s.Load(t.Context(), n, fmt.Sprintf("%08x", n), k.digests[n]))
	}
	if exported(t, s, 46) != k.states[46] {
		t.Error("the state of batch 46 differs")
	}
	if _, err := s.At(t.Context(), 10); !errors.Is(err, statestore.ErrCompacted) {
		t.Errorf("as of 10: %v", err)
	}
}

func TestDamagedBackendIsBuiltAnew(t *testing.T) {
	k := newKept(t, nil)
	tables, err := filepath.Glob(filepath.Join(k.dir, "badger", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	flip(t, tables[0])
	s := k.open(t)
	if _, err := s.Begin(t.Context(), statestore.BatchInfo{Batch: 60, Lanes: 1, Stages: oneStage}); !errors.Is(err, statestore.ErrDamaged) || !strings.Contains(err.Error(), tables[0]) {
		t.Errorf("begin on a damaged folder: %v", err)
	}
	if _, err := s.At(t.Context(), 10); !errors.Is(err, statestore.ErrDamaged) {
		t.Errorf("look at a damaged folder: %v", err)
	}
	k.recover(t, s)
	k.check(t, s)
	if len(k.rebuilt) != 1 {
		t.Errorf("built anew from %v", k.rebuilt)
	}
}

// A changelog that a rebuild needs stays, whatever is said to be no longer replayed.
func TestSnapshotsHoldChangelogs(t *testing.T) {
	k := newKept(t, mem.New())
	s := k.open(t)
	must(t, s.Rewind(t.Context(), k.last(), math.MaxInt64))
	must(t, s.Retain(t.Context(), 54))
	must(t, s.Close())
	k.disk = mem.New()
	s = k.open(t)
	k.recover(t, s)
	k.check(t, s)
	if len(k.rebuilt) != 1 {
		t.Errorf("built anew from %v", k.rebuilt)
	}
	if _, err := os.Stat(filepath.Join(k.dir, "changelog", fmt.Sprintf("%d-%08x", 0, 0))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the first changelog: %v", err)
	}
}
