package delta

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows"
)

// What a history keeps at most between calls; the rest is read again when it is asked for.
const (
	maxEras     = 1024
	maxVersions = 1024
	maxAdds     = 1 << 17 // in versions
	maxCounted  = 1 << 16 // files of which the size is known
)

// era is what the table is at a version: metadata and protocol, and what follows from them.
type era struct {
	protocol *delta.Protocol
	meta     *delta.Metadata
	schema   *rows.Schema
	parts    []string // partition columns
	names    [][]byte // what stands before each column's value in a row's JSON
	refused  error    // why the table cannot be read; there is no schema then
}

func newEra(p *delta.Protocol, m *delta.Metadata, schemaOf func() (*rows.Schema, []string, error)) *era {
	e := &era{protocol: p, meta: m}
	if e.refused = delta.CheckRead(*p, *m); e.refused != nil {
		return e
	}
	if e.schema, e.parts, e.refused = schemaOf(); e.refused != nil {
		return e
	}
	for i := range e.schema.Len() {
		name := []byte{','}
		if i == 0 {
			name[0] = '{'
		}
		e.names = append(e.names, append(rows.AppendQuoted(name, []byte(e.schema.Column(i).Name)), ':'))
	}
	return e
}

// version is one step of the stream: a version of the log, or the snapshot that it begins with.
type version struct {
	number  int64
	adds    []*delta.Add // with rows to deliver, in order
	removes string       // the path of a file whose rows it removes, "" if it removes none
	era     *era
	before  *era // of the version before; nil when that is not known
	mark    string
}

// history reads the log as far as it is asked for, and keeps what was read last. It is safe for concurrent use.
type history struct {
	log   *delta.Log
	files durable.Files
	dir   string

	mu       sync.Mutex
	eras     map[int64]*era
	versions map[int64]*version
	adds     int // in versions
	snapshot *version
	counted  map[string]size // by path
	// While the stream waits for a version, mark is what the one before it looks like: a table that is made anew must not
	// be taken for what is to come.
	waiting int64
	mark    string
}

func newHistory(log *delta.Log, files durable.Files, dir string) *history {
	return &history{
		log: log, files: files, dir: dir, waiting: none,
		eras: map[int64]*era{}, versions: map[int64]*version{}, counted: map[string]size{},
	}
}

// step returns what is read at a place; nil when the log ends before it.
func (h *history) step(ctx context.Context, at place) (*version, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, err := h.stepLocked(ctx, at)
	if err == nil && v != nil && v.era.refused != nil {
		return nil, v.era.refused
	}
	return v, err
}

func (h *history) stepLocked(ctx context.Context, at place) (*version, error) {
	if at.snapshot {
		return h.snapshotLocked(ctx, at.version)
	}
	if v := h.versions[at.version]; v != nil {
		return v, nil
	}
	e, err := h.log.Next(ctx, at.version)
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, h.wait(ctx, at.version)
	}
	if err := h.follows(ctx, at.version); err != nil {
		return nil, err
	}
	v := &version{number: e.Version, before: h.eras[e.Version-1], mark: markOf(e)}
	for a := range e.Adds() {
		if a.DataChange {
			v.adds = append(v.adds, a)
		}
	}
	for r := range e.Removes() {
		if r.DataChange {
			v.removes = r.Path
			break
		}
	}
	if v.era, err = h.eraAfter(ctx, e); err != nil {
		return nil, err
	}
	h.keep(v)
	return v, nil
}

// wait takes note of how the log looks before a version that is to come.
func (h *history) wait(ctx context.Context, next int64) error {
	if h.waiting == next || next == 0 {
		return nil
	}
	h.waiting, h.mark = next, ""
	if v := h.versions[next-1]; v != nil {
		h.mark = v.mark
		return nil
	}
	e, err := h.log.Entry(ctx, next-1)
	switch {
	case errors.Is(err, delta.ErrNoVersion):
		return nil // a checkpoint stands for it
	case err != nil:
		h.waiting = none
		return err
	}
	h.mark = markOf(e)
	return nil
}

// follows makes sure that a version, which was waited for, comes after the one that was there before it.
func (h *history) follows(ctx context.Context, next int64) error {
	if h.waiting != next || h.mark == "" {
		return nil
	}
	e, err := h.log.Entry(ctx, next-1)
	switch {
	case errors.Is(err, delta.ErrNoVersion):
		clear(h.eras) // cleaned away meanwhile: the table's id is looked at anew
		return nil
	case err != nil:
		return err
	case markOf(e) != h.mark:
		return madeAnew(h.dir, next-1)
	}
	return nil
}

// markOf tells entries apart.
func markOf(e *delta.Entry) string {
	mark := fmt.Sprintf("%d", len(e.Actions))
	if c := e.CommitInfo(); c != nil {
		mark += fmt.Sprintf(" %d %s", c.Timestamp, c.TxnID)
	}
	for a := range e.Adds() {
		return mark + " " + a.Path
	}
	return mark
}

// eraAfter is what the table is after an entry.
func (h *history) eraAfter(ctx context.Context, e *delta.Entry) (*era, error) {
	before, m, p := h.eras[e.Version-1], e.Metadata(), e.Protocol()
	switch {
	case before != nil && m == nil && p == nil:
		return before, nil
	case before == nil && (m == nil || p == nil):
		return h.eraLocked(ctx, e.Version)
	}
	if m == nil {
		m = before.meta
	}
	if p == nil {
		p = before.protocol
	}
	return newEra(p, m, schemaOf(h.dir, m)), nil
}

// era returns what the table is at a version.
func (h *history) era(ctx context.Context, version int64) (*era, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.eraLocked(ctx, version)
}

// eraAt returns what the table is before a place, if that can be made still, or else at it.
func (h *history) eraAt(ctx context.Context, at place) (*era, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at.snapshot {
		v, err := h.snapshotLocked(ctx, at.version)
		if err != nil {
			return nil, err
		}
		return v.era, nil
	}
	e, err := h.eraLocked(ctx, max(0, at.version-1))
	if errors.Is(err, delta.ErrNoVersion) {
		return h.eraLocked(ctx, at.version)
	}
	return e, err
}

func (h *history) eraLocked(ctx context.Context, version int64) (*era, error) {
	if e := h.eras[version]; e != nil {
		return e, nil
	}
	s, err := h.log.SnapshotAt(ctx, version)
	if err != nil {
		return nil, err
	}
	e := newEra(&s.Protocol, &s.Metadata, s.Schema)
	h.keepEra(version, e)
	return e, nil
}

func (h *history) keepEra(version int64, e *era) {
	if before := h.eras[version-1]; len(h.eras) >= maxEras {
		clear(h.eras)
		if before != nil {
			h.eras[version-1] = before
		}
	}
	h.eras[version] = e
}

func (h *history) keep(v *version) {
	h.keepEra(v.number, v.era)
	if len(h.versions) >= maxVersions || h.adds+len(v.adds) > maxAdds {
		clear(h.versions)
		h.adds = 0
	}
	h.versions[v.number] = v
	h.adds += len(v.adds)
}

// snapshotLocked returns the live files of a version, in the order in which Spark streams them.
func (h *history) snapshotLocked(ctx context.Context, number int64) (*version, error) {
	if h.snapshot != nil && h.snapshot.number == number {
		return h.snapshot, nil
	}
	s, err := h.log.SnapshotAt(ctx, number)
	if err != nil {
		return nil, err
	}
	v := &version{number: number, era: newEra(&s.Protocol, &s.Metadata, s.Schema), adds: make([]*delta.Add, 0, s.NumFiles())}
	for a := range s.Files() {
		v.adds = append(v.adds, a)
	}
	slices.SortFunc(v.adds, func(a, b *delta.Add) int {
		return cmp.Or(cmp.Compare(a.ModificationTime, b.ModificationTime), strings.Compare(a.Path, b.Path))
	})
	h.keepEra(number, v.era)
	h.snapshot = v
	return v, nil
}

func (h *history) dropSnapshot() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.snapshot = nil
}

// object appends a row as a JSON object with all columns.
func (e *era) object(dst []byte, t *rows.Table, row int) []byte {
	for i, name := range e.names {
		dst = t.Column(i).AppendJSON(append(dst, name...), row)
	}
	return append(dst, '}')
}

// sameTable reports whether two eras are of one table.
func (e *era) sameTable(id string) bool { return e.meta.ID == id }

// goesOn reports whether what reads rows of one era can read those of the next: no column is gone, of another type, or null
// where it never was. Columns that may be null may come. This is Spark's rule, but for columns that come: Spark's rows have
// columns that are fixed while a query runs.
func (e *era) goesOn(next *era) error {
	if e.schema == nil || bytes.Equal([]byte(e.meta.SchemaString), []byte(next.meta.SchemaString)) && slices.Equal(e.parts, next.parts) {
		return nil
	}
	if !slices.Equal(e.parts, next.parts) {
		return fmt.Errorf("the partition columns are (%s) and were (%s)", strings.Join(next.parts, ", "), strings.Join(e.parts, ", "))
	}
	return fieldsGoOn(e.schema.Columns(), next.schema.Columns(), "")
}
