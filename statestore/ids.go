package statestore

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Stage declares a keyed stage's state: the name of the transform, and those of its tables by their place in the manifest.
type Stage struct {
	Name   string
	Tables []string
}

// maxTables is how many tables a stage may declare (ABI 1).
const maxTables = 64

// ids gives numbers to names, once. It is listed in every changelog and kept in the backend. A value is never changed:
// resolve makes a new one.
type ids struct {
	Next       uint16        `json:"next"` // the id of the next transform
	Transforms []transformID `json:"transforms"`
}

type transformID struct {
	ID      uint16    `json:"id"`
	Name    string    `json:"name"`
	Retired bool      `json:"retired,omitempty"` // no longer declared; what is left of it is being deleted
	Next    uint16    `json:"next"`              // the id of its next table
	Tables  []tableID `json:"tables"`
}

type tableID struct {
	ID      uint16 `json:"id"`
	Name    string `json:"name"`
	Retired bool   `json:"retired,omitempty"`
	Expires bool   `json:"expires,omitempty"` // an entry with an expiry was put into it once
}

// stageIDs are the numbers of one declared stage.
type stageIDs struct {
	transform uint16
	tables    []uint16
}

func (t *ids) clone() *ids {
	c := *t
	c.Transforms = slices.Clone(t.Transforms)
	for i := range c.Transforms {
		c.Transforms[i].Tables = slices.Clone(c.Transforms[i].Tables)
	}
	return &c
}

// resolve finds or gives the ids of the declared stages and retires what is no longer declared.
func (t *ids) resolve(stages []Stage) (*ids, []stageIDs, error) {
	next := t.clone()
	out := make([]stageIDs, len(stages))
	declared := make(map[string]bool, len(stages))
	for i, s := range stages {
		if declared[s.Name] {
			return nil, nil, fmt.Errorf("two stages are called %q", s.Name)
		}
		declared[s.Name] = true
		tr, err := next.transform(s.Name)
		if err != nil {
			return nil, nil, err
		}
		if out[i], err = tr.resolve(s.Tables); err != nil {
			return nil, nil, err
		}
	}
	for i := range next.Transforms {
		if tr := &next.Transforms[i]; !declared[tr.Name] {
			tr.Retired = true
		}
	}
	return next, out, nil
}

// transform finds the transform of a name that is not retired, or gives it an id. The pointer is valid until the next call.
func (t *ids) transform(name string) (*transformID, error) {
	for i := range t.Transforms {
		if tr := &t.Transforms[i]; tr.Name == name && !tr.Retired {
			return tr, nil
		}
	}
	id := max(t.Next, 1)
	if id == 1<<16-1 {
		return nil, fmt.Errorf("%d transforms: %w", id, ErrLimit)
	}
	t.Next = id + 1
	t.Transforms = append(t.Transforms, transformID{ID: id, Name: name, Next: 1})
	return &t.Transforms[len(t.Transforms)-1], nil
}

func (t *transformID) resolve(names []string) (stageIDs, error) {
	if len(names) > maxTables {
		return stageIDs{}, fmt.Errorf("%d tables of %q, at most %d: %w", len(names), t.Name, maxTables, ErrLimit)
	}
	out := stageIDs{transform: t.ID, tables: make([]uint16, len(names))}
	declared := make(map[string]bool, len(names))
	for i, name := range names {
		if declared[name] {
			return stageIDs{}, fmt.Errorf("two tables of %q are called %q", t.Name, name)
		}
		declared[name] = true
		at := slices.IndexFunc(t.Tables, func(x tableID) bool { return x.Name == name && !x.Retired })
		if at < 0 {
			if t.Next == 1<<16-1 {
				return stageIDs{}, fmt.Errorf("%d tables of %q: %w", t.Next, t.Name, ErrLimit)
			}
			t.Tables = append(t.Tables, tableID{ID: t.Next, Name: name})
			t.Next++
			at = len(t.Tables) - 1
		}
		out.tables[i] = t.Tables[at].ID
	}
	for i := range t.Tables {
		if !declared[t.Tables[i].Name] {
			t.Tables[i].Retired = true
		}
	}
	return out, nil
}

// find returns the entry of an id, or nil.
func (t *ids) find(id uint16) *transformID {
	for i := range t.Transforms {
		if t.Transforms[i].ID == id {
			return &t.Transforms[i]
		}
	}
	return nil
}

func (t *transformID) find(id uint16) *tableID {
	for i := range t.Tables {
		if t.Tables[i].ID == id {
			return &t.Tables[i]
		}
	}
	return nil
}

// expires reports whether entries of a table may have an expiry.
func (t *ids) expires(transform, table uint16) bool {
	tr := t.find(transform)
	if tr == nil {
		return false
	}
	tab := tr.find(table)
	return tab != nil && tab.Expires
}

// anyExpires reports whether there is such a table.
func (t *ids) anyExpires() bool {
	return slices.ContainsFunc(t.Transforms, func(tr transformID) bool {
		return slices.ContainsFunc(tr.Tables, func(tab tableID) bool { return tab.Expires })
	})
}

// check refuses what no store has written.
func (t *ids) check() error {
	seen := make(map[uint16]bool)
	for _, tr := range t.Transforms {
		if tr.ID == 0 || tr.ID >= t.Next || seen[tr.ID] {
			return fmt.Errorf("the id %d of transform %q is wrong", tr.ID, tr.Name)
		}
		seen[tr.ID] = true
		tables := make(map[uint16]bool)
		for _, tab := range tr.Tables {
			if tab.ID == 0 || tab.ID >= tr.Next || tables[tab.ID] {
				return fmt.Errorf("the id %d of table %q of %q is wrong", tab.ID, tab.Name, tr.Name)
			}
			tables[tab.ID] = true
		}
	}
	return nil
}

// metaVersion is that of what stands in a backend's marker and in the head of a changelog.
const metaVersion = 1

// meta stands in the backend's marker and in the head of a changelog.
type meta struct {
	Version int    `json:"version"`
	Query   string `json:"query"`
	Batch   int64  `json:"batch"`
	IDs     *ids   `json:"ids"`
	// Digest is that of the batch's own changelog, After names the changelog before it: a chain, in which a missing link
	// shows and which tells the attempt that counts from others.
	Digest string `json:"digest"`
	After  link   `json:"after"`
	// Base is the batch of the snapshot that a backend was built from, in the marker of that batch; what was before it is
	// not there.
	Base int64 `json:"base,omitempty"`
}

// link names the changelog of a batch; the one before the first is that of batch -1.
type link struct {
	Batch  int64  `json:"batch"`
	Digest string `json:"digest"`
}

// noLink is the link before the first changelog.
var noLink = link{Batch: -1}

func (m *meta) link() link { return link{m.Batch, m.Digest} }

func (m *meta) encode() ([]byte, error) {
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode the table of ids: %w", err)
	}
	return b, nil
}

// decodeMeta reads a meta. The error is without a sentinel, but for a newer version.
func decodeMeta(b []byte) (*meta, error) {
	var m meta
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("no table of ids: %w", err)
	}
	if m.Version > metaVersion {
		return nil, fmt.Errorf("version %d of the table of ids, this program knows %d: %w", m.Version, metaVersion, ErrNewer)
	}
	if m.Version < 1 || m.IDs == nil || m.Batch < 0 {
		return nil, fmt.Errorf("no table of ids")
	}
	return &m, m.IDs.check()
}
