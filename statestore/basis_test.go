package statestore

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// listCursor walks a sorted list of keys and counts its seeks.
type listCursor struct {
	keys  []string
	at    int
	seeks int
}

func (c *listCursor) Seek(key []byte) {
	c.seeks++
	c.at, _ = slices.BinarySearch(c.keys, string(key))
}
func (c *listCursor) Next()                  { c.at++ }
func (c *listCursor) Valid() bool            { return c.at < len(c.keys) }
func (c *listCursor) Key() []byte            { return []byte(c.keys[c.at]) }
func (c *listCursor) Value() ([]byte, error) { return nil, nil }
func (c *listCursor) Err() error             { return nil }
func (c *listCursor) Close() error           { return nil }

// TestSeekWhereItStands: a cursor that is not moved because it stands where a seek leads stands where a moved one would.
func TestSeekWhereItStands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching("[abc]{0,3}")
		keys := rapid.SliceOfN(word, 0, 8).Draw(t, "keys")
		slices.Sort(keys)
		keys = slices.Compact(keys)
		s := &cursorSource{cursor: &listCursor{keys: keys}}
		plain := &listCursor{keys: keys}
		for range rapid.IntRange(1, 20).Draw(t, "moves") {
			if s.key() != nil && rapid.Bool().Draw(t, "next") {
				s.next()
				plain.Next()
			} else {
				key := []byte(word.Draw(t, "key"))
				s.seek(key)
				plain.Seek(key)
			}
			var want []byte
			if plain.Valid() {
				want = plain.Key()
			}
			if !bytes.Equal(s.key(), want) {
				t.Fatalf("it stands on %q, want %q", s.key(), want)
			}
		}
	})
}

// TestSeeksOverWhatIsGone: where nothing is left of many groups, the backend is asked once, and not once a group: it walks
// over all that was deleted each time.
func TestSeeksOverWhatIsGone(t *testing.T) {
	cursor := &listCursor{keys: []string{"z"}}
	m := &merged{layers: []source{&cursorSource{cursor: cursor}}}
	for g := range Groups {
		prefix := []byte{'a', byte(g)}
		if m.seek(prefix, prefix); m.key() != nil {
			t.Fatalf("group %d has %q", g, m.key())
		}
	}
	if cursor.seeks != 1 {
		t.Errorf("%d seeks", cursor.seeks)
	}
}
