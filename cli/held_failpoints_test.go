//go:build failpoints

package cli

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/statestore"
	"github.com/wasmill/wasmill/statestore/mem"
)

// The backend that holds the apply back answers as a map does.
func TestHeldIsAMap(t *testing.T) {
	still, err := mem.Open(t.Context(), statestore.BackendConfig{})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		b := &held{marker: statestore.Marker{Batch: -1}, still: still}
		model := map[string]string{}
		names := rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("\x10%d", rapid.IntRange(0, 3000).Draw(t, "key")) })
		for batch := range int64(rapid.IntRange(1, 4).Draw(t, "batches")) {
			changes := map[string]string{}
			for range rapid.IntRange(0, 1500).Draw(t, "changes") {
				changes[names.Draw(t, "name")] = rapid.StringN(0, 8, 80).Draw(t, "value")
			}
			for k, v := range changes {
				if model[k] = v; v == "" {
					delete(model, k)
				}
			}
			if err := b.Apply(t.Context(), statestore.Marker{Batch: batch}, ordered(changes)); err != nil {
				t.Fatal(err)
			}
		}
		for _, down := range []bool{false, true} {
			r := statestore.Range{Lower: []byte(names.Draw(t, "lower")), Upper: []byte(names.Draw(t, "upper"))}
			var want, got []string
			for _, k := range slices.Sorted(maps.Keys(model)) {
				if k >= string(r.Lower) && k < string(r.Upper) {
					want = append(want, k+"="+model[k])
				}
			}
			if down {
				slices.Reverse(want)
			}
			c, _ := b.Cursor(0, r, down)
			for c.Seek(nil); c.Valid(); c.Next() {
				v, _ := c.Value()
				got = append(got, string(c.Key())+"="+string(v))
			}
			if !slices.Equal(got, want) {
				t.Fatalf("walk of %q down %v: %q, want %q", r, down, got, want)
			}
		}
		k := names.Draw(t, "get")
		v, found, _ := b.Get(0, []byte(k), nil)
		if want, ok := model[k]; found != ok || !bytes.Equal(v, []byte(want)) {
			t.Fatalf("get %q: %q %v, want %q %v", k, v, found, want, ok)
		}
	})
}

func ordered(changes map[string]string) iter.Seq2[statestore.Change, error] {
	return func(yield func(statestore.Change, error) bool) {
		for _, k := range slices.Sorted(maps.Keys(changes)) {
			c := statestore.Change{Key: []byte(k)}
			if v := changes[k]; v != "" {
				c.Value = []byte(v)
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}
