package badger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/statestore"
)

// aged makes a folder with tables on several levels and returns what it held as of each batch.
func aged(t *testing.T, dir string) []map[string]string {
	t.Helper()
	b := mustOpen(t, dir)
	random := rand.New(rand.NewPCG(1, 2))
	state, history := map[string]string{}, []map[string]string{}
	for batch := range int64(24) {
		set := map[string]string{}
		for range 60 {
			key := fmt.Sprintf("\x10%03d", random.IntN(400))
			set[key] = ""
			if random.IntN(4) > 0 {
				set[key] = fmt.Sprintf("%d %s", batch, strings.Repeat("v", random.IntN(200)))
			}
		}
		applySet(t, b, batch, set)
		for key, value := range set {
			state[key] = value
			if value == "" {
				delete(state, key)
			}
		}
		history = append(history, maps.Clone(state))
		if batch%4 == 3 {
			if err := b.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return history
}

// sameState compares everything a folder holds as of its marker with the history.
func sameState(t *testing.T, b *backend, history []map[string]string) {
	t.Helper()
	m, err := b.Marker(1 << 40)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	if m.Batch >= 0 {
		want = history[m.Batch]
	}
	got := dump(t, b, m.Batch)
	if !maps.Equal(got, want) {
		t.Errorf("as of %d it holds %d pairs, want %d", m.Batch, len(got), len(want))
	}
}

func dump(t *testing.T, b *backend, asOf int64) map[string]string {
	t.Helper()
	c, err := b.Cursor(asOf, statestore.Range{Lower: []byte{1}}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got := map[string]string{}
	for c.Seek(nil); c.Valid(); c.Next() {
		v, err := c.Value()
		if err != nil {
			t.Fatal(err)
		}
		got[string(c.Key())] = string(v)
	}
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	return got
}

// harm is one kind of damage to a file; nil content removes it.
type harm struct {
	name string
	do   func(b []byte, random *rand.Rand) []byte
}

var harms = []harm{
	{"missing", func([]byte, *rand.Rand) []byte { return nil }},
	{"empty", func([]byte, *rand.Rand) []byte { return []byte{} }},
	{"cut", func(b []byte, r *rand.Rand) []byte { return b[:r.IntN(len(b))] }},
	{"cut by a byte", func(b []byte, r *rand.Rand) []byte { return b[:len(b)-1] }},
	{"longer", func(b []byte, r *rand.Rand) []byte { return append(b, 0, 0, 0, 0) }},
	{"bit", func(b []byte, r *rand.Rand) []byte { b[r.IntN(len(b))] ^= 1 << r.IntN(8); return b }},
	{"bit near the end", func(b []byte, r *rand.Rand) []byte {
		b[len(b)-1-r.IntN(min(len(b), 64))] ^= 1 << r.IntN(8)
		return b
	}},
	{"page of zeros", func(b []byte, r *rand.Rand) []byte {
		at := r.IntN(len(b)) &^ 4095
		clear(b[at:min(len(b), at+4096)])
		return b
	}},
	{"other content", func(b []byte, r *rand.Rand) []byte {
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}},
}

// Whatever is done to a file that is believed: opening says so and names it, or what is there is a whole earlier state.
func TestDamageIsNamedOrHarmless(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "badger")
	history := aged(t, dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(3, 4))
	named, harmless, tables := 0, 0, 0
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), tableSuffix) {
			tables++
		}
		for _, h := range harms {
			for range tries(e.Name()) {
				opened := damageOne(t, dir, e.Name(), h, random, history)
				if opened {
					harmless++
					continue
				}
				named++
			}
		}
	}
	t.Logf("%d tables; %d cases of damage named, %d harmless", tables, named, harmless)
	if tables < 1 || named < 20 { // compaction, in the background, makes one table of several
		t.Error("too little was tried")
	}
}

// tries is how often a file is damaged in each way: those that are removed on opening are for show.
func tries(name string) int {
	if name == manifestName || strings.HasSuffix(name, tableSuffix) {
		return 2
	}
	return 1
}

func damageOne(t *testing.T, dir, name string, h harm, random *rand.Rand, history []map[string]string) (opened bool) {
	t.Helper()
	to := crashed(t, dir)
	defer os.RemoveAll(to)
	path := filepath.Join(to, name)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(before) == 0 {
		return true
	}
	after := h.do(bytes.Clone(before), random)
	if after == nil {
		err = os.Remove(path)
	} else {
		err = os.WriteFile(path, after, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(context.Background(), config(t, to))
	if err == nil {
		if strings.HasSuffix(name, tableSuffix) && !bytes.Equal(before, after) {
			t.Errorf("%s, %s: opened", name, h.name)
		}
		sameState(t, b.(*backend), history)
		if err := b.Close(); err != nil {
			t.Errorf("%s, %s: %v", name, h.name, err)
		}
		return true
	}
	known := errors.Is(err, statestore.ErrDamaged) || errors.Is(err, statestore.ErrNewer)
	if !known || !strings.Contains(err.Error(), to) {
		t.Errorf("%s, %s: %v", name, h.name, err)
	}
	return false
}

// A value that changes under an open store is an error, not an answer.
func TestDamageWhileOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "badger")
	b := mustOpen(t, dir)
	apply(t, b, 0, put("\x10key", strings.Repeat("value", 50)))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = mustOpen(t, dir)
	defer b.Close()
	tables, err := filepath.Glob(filepath.Join(dir, "*"+tableSuffix))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	for _, name := range tables {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.Index(content, []byte("valuevalue"))
		if at < 0 {
			continue
		}
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt([]byte("V"), int64(at))
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := b.Get(0, []byte("\x10key"), nil); !errors.Is(err, statestore.ErrDamaged) {
		t.Errorf("get: %v", err)
	}
	c, err := b.Cursor(0, statestore.Range{Lower: []byte{1}}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Seek(nil)
	if _, err := c.Value(); !errors.Is(err, statestore.ErrDamaged) || !errors.Is(c.Err(), statestore.ErrDamaged) || c.Valid() {
		t.Errorf("cursor: %v, %v", err, c.Err())
	}
}

func FuzzTableIsVerified(f *testing.F) {
	dir := f.TempDir()
	f.Add([]byte{}, 0)
	f.Add([]byte{0, 0, 0, 0}, 1)
	f.Fuzz(func(t *testing.T, content []byte, _ int) {
		name := filepath.Join(dir, "000001.sst")
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := verifyTable(osFiles, name, nil); err == nil {
			t.Errorf("%d bytes pass for a table", len(content))
		}
		if err := os.WriteFile(filepath.Join(dir, manifestName), content, 0o644); err != nil {
			t.Fatal(err)
		}
		// Only that it returns.
		_, _ = readManifest(osFiles, filepath.Join(dir, manifestName))
	})
}
