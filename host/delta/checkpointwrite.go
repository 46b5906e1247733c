package delta

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/parquet-go/parquet-go"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
)

func checkpointName(version int64) string {
	return path.Join(logDir, fmt.Sprintf("%020d.checkpoint.parquet", version))
}

// groupRows is how many actions are in one row group of a checkpoint.
const groupRows = 64 << 10

// WriteCheckpoint writes a classic checkpoint of a snapshot and then _last_checkpoint. The same snapshot makes the same bytes.
// They are read back before they are published. It is to be called after the commit of that version; when it fails, the table
// is as good as without it. A sound checkpoint of the version that is there already stays.
func (l *Log) WriteCheckpoint(ctx context.Context, s *Snapshot) error {
	if err := l.writeCheckpoint(ctx, s); err != nil {
		if _, known := errors.AsType[*fault.Error](err); known {
			return err
		}
		return fault.New(CodeCheckpoint, l.place(checkpointName(s.Version)), err, "the table is whole without it; readers are slower until the next one is written")
	}
	return nil
}

func (l *Log) writeCheckpoint(ctx context.Context, s *Snapshot) error {
	there := checkpointFiles{version: s.Version, names: []string{path.Base(checkpointName(s.Version))}}
	if _, err := l.readCheckpoint(ctx, there, nil); err == nil {
		return nil
	}
	actions := s.checkpointActions()
	content, err := encodeCheckpoint(actions)
	if err != nil {
		return err
	}
	if len(content) > maxCheckpointBytes {
		return durable.ErrTooLarge
	}
	h := &hint{Version: s.Version, Size: int64(len(actions)), SizeInBytes: int64(len(content))}
	files := int64(s.NumFiles())
	h.NumOfAddFiles = &files
	back, err := parseCheckpoint(content)
	if err == nil {
		_, err = checkpointState(there, h, back)
	}
	if err != nil {
		return fmt.Errorf("read it back: %w", err)
	}
	if err := l.objects.Replace(ctx, checkpointName(s.Version), content); err != nil {
		return wrap("write checkpoint", l.place(checkpointName(s.Version)), err)
	}
	return l.writeHint(ctx, h)
}

// writeHint replaces _last_checkpoint unless it already tells of a later one.
func (l *Log) writeHint(ctx context.Context, h *hint) error {
	if old := l.hint(ctx); old != nil && old.Version > h.Version && l.checkpointThere(ctx, old.Version) {
		return nil
	}
	content, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("write %s: %w", hintName, err)
	}
	name := path.Join(logDir, hintName)
	return wrap("write the hint", l.place(name), l.objects.Replace(ctx, name, content))
}

// checkpointThere reports whether there is some file of a classic checkpoint of that version, or it cannot be told.
func (l *Log) checkpointThere(ctx context.Context, version int64) bool {
	_, err := l.objects.Read(ctx, checkpointName(version), 0)
	return !errors.Is(err, fs.ErrNotExist)
}

// checkpointActions returns what a checkpoint holds, in a fixed order. What has expired is measured by the time of the version
// and not by the clock.
func (s *Snapshot) checkpointActions() []Action {
	protocol, metadata := s.Protocol, s.Metadata
	actions := []Action{{Protocol: &protocol}, {Metadata: &metadata}}
	keep, limited := s.TxnRetention()
	for _, t := range s.state.txns.all() {
		if limited && t.LastUpdated != nil && *t.LastUpdated <= s.TimestampMS-keep.Milliseconds() {
			continue
		}
		actions = append(actions, Action{Txn: &t})
	}
	for _, d := range s.state.domains.all() {
		actions = append(actions, Action{Domain: &d})
	}
	oldest := s.TimestampMS - s.Metadata.fileRetention().Milliseconds()
	for _, r := range s.state.removed.all() {
		if r.DeletionTimestamp == nil || *r.DeletionTimestamp <= oldest {
			continue
		}
		tombstone := *r
		tombstone.Stats, tombstone.Tags, tombstone.DataChange = "", nil, false
		actions = append(actions, Action{Remove: &tombstone})
	}
	for _, a := range s.state.files.all() {
		live := *a
		live.DataChange = false
		actions = append(actions, Action{Add: &live})
	}
	return actions
}

func encodeCheckpoint(actions []Action) ([]byte, error) {
	var out bytes.Buffer
	w := parquet.NewGenericWriter[any](
		&out, parquet.SchemaOf(checkpointRow{}), parquet.DataPageVersion(1), parquet.Compression(&parquet.Snappy),
		parquet.DefaultEncodingFor(parquet.ByteArray, &parquet.Plain), parquet.CreatedBy("wasmill", "delta", "1"),
	)
	rows := make([]parquet.Row, min(len(actions), 1024)) // used again and again: the writer copies what it takes
	n := 0
	for i := range actions {
		rows[n] = appendRow(rows[n][:0], &actions[i])
		if n++; n == len(rows) || i == len(actions)-1 {
			if _, err := w.WriteRows(rows[:n]); err != nil && !errors.Is(err, io.EOF) {
				return nil, fmt.Errorf("encode actions: %w", err)
			}
			n = 0
		}
		if (i+1)%groupRows == 0 {
			if err := w.Flush(); err != nil {
				return nil, fmt.Errorf("encode a row group: %w", err)
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encode the footer: %w", err)
	}
	return out.Bytes(), nil
}

// shredder makes one row of an action. Every group, every leaf, and the values of maps and lists are optional, keys are not.
type shredder struct {
	row parquet.Row
	def int // levels of groups that are there
	col int
}

func appendRow(row parquet.Row, a *Action) parquet.Row {
	s := &shredder{row: row}
	t, d := a.Txn, a.Domain
	s.group(t != nil, func() {
		t := or(t)
		s.text(&t.AppID)
		s.integer(&t.Version)
		s.integer(t.LastUpdated)
	})
	s.group(a.Add != nil, func() { s.addFields(or(a.Add)) })
	s.group(a.Remove != nil, func() { s.removeFields(or(a.Remove)) })
	s.group(a.Metadata != nil, func() { s.metadataFields(or(a.Metadata)) })
	s.group(a.Protocol != nil, func() {
		p := or(a.Protocol)
		s.small(&p.MinReader)
		s.small(&p.MinWriter)
		s.list(p.ReaderFeatures)
		s.list(p.WriterFeatures)
	})
	s.group(d != nil, func() {
		d := or(d)
		s.text(&d.Domain)
		s.text(&d.Configuration)
		s.boolean(&d.Removed)
	})
	return s.row
}

// or returns what p points at, or an empty one.
func or[T any](p *T) *T {
	if p == nil {
		p = new(T)
	}
	return p
}

func (s *shredder) addFields(a *Add) {
	s.text(&a.Path)
	s.textMap(a.PartitionValues)
	s.integer(&a.Size)
	s.integer(&a.ModificationTime)
	s.boolean(&a.DataChange)
	s.textMap(a.Tags)
	s.vector(a.DeletionVector)
	s.integer(a.BaseRowID)
	s.integer(a.DefaultRowCommitVersion)
	s.text(some(a.ClusteringProvider))
	s.text(some(a.Stats))
}

func (s *shredder) removeFields(r *Remove) {
	s.text(&r.Path)
	s.integer(r.DeletionTimestamp)
	s.boolean(&r.DataChange)
	s.boolean(r.ExtendedFileMetadata)
	s.textMap(r.PartitionValues)
	s.integer(r.Size)
	s.vector(r.DeletionVector)
	s.integer(r.BaseRowID)
	s.integer(r.DefaultRowCommitVersion)
}

func (s *shredder) metadataFields(m *Metadata) {
	s.text(&m.ID)
	s.text(some(m.Name))
	s.text(some(m.Description))
	s.group(true, func() {
		s.text(&m.Format.Provider)
		s.textMap(pointers(m.Format.Options))
	})
	s.text(&m.SchemaString)
	columns := m.PartitionColumns
	if columns == nil {
		columns = []string{}
	}
	s.list(columns)
	s.textMap(pointers(m.Configuration))
	s.integer(m.CreatedTime)
}

func (s *shredder) vector(d *DeletionVector) {
	s.group(d != nil, func() {
		d := or(d)
		s.text(&d.StorageType)
		s.text(&d.PathOrInlineDV)
		s.small(d.Offset)
		s.small(&d.SizeInBytes)
		s.integer(&d.Cardinality)
		s.integer(d.MaxRowIndex)
	})
}

// some is nil for an empty text: absent.
func some(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func pointers(m map[string]string) map[string]*string {
	out := make(map[string]*string, len(m))
	for k, v := range m {
		out[k] = &v
	}
	return out
}

// group appends the columns of a group that is there or null.
func (s *shredder) group(there bool, fields func()) {
	before := s.def
	switch {
	case there && s.def >= 0:
		s.def++
	case s.def >= 0:
		s.def = ^s.def // a complement marks that a group above is null, and keeps how deep that was
	}
	fields()
	s.def = before
}

// value appends a leaf that is there or null.
func (s *shredder) value(there bool, v parquet.Value) {
	switch {
	case s.def < 0:
		s.row = append(s.row, parquet.NullValue().Level(0, ^s.def, s.col))
	case !there:
		s.row = append(s.row, parquet.NullValue().Level(0, s.def, s.col))
	default:
		s.row = append(s.row, v.Level(0, s.def+1, s.col))
	}
	s.col++
}

func (s *shredder) text(p *string) { s.value(p != nil, parquet.ByteArrayValue([]byte(*or(p)))) }

func (s *shredder) integer(p *int64) { s.value(p != nil, parquet.Int64Value(*or(p))) }

func (s *shredder) small(p *int32) { s.value(p != nil, parquet.Int32Value(*or(p))) }

func (s *shredder) boolean(p *bool) { s.value(p != nil, parquet.BooleanValue(*or(p))) }

// empty appends the levels of a list or map that is null or empty.
func (s *shredder) empty(there bool) {
	def := s.def
	switch {
	case s.def < 0:
		def = ^s.def
	case there:
		def++
	}
	s.row = append(s.row, parquet.NullValue().Level(0, def, s.col))
	s.col++
}

// element appends element i of a list or map: def counts the group, the list, its entry and, for what may be null, the value.
func (s *shredder) element(i, def int, v parquet.Value) {
	s.row = append(s.row, v.Level(min(i, 1), def, s.col))
}

func (s *shredder) textMap(m map[string]*string) {
	if s.def < 0 || len(m) == 0 {
		s.empty(m != nil)
		s.empty(m != nil)
		return
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for i, k := range keys {
		s.element(i, s.def+2, parquet.ByteArrayValue([]byte(k)))
	}
	s.col++
	for i, k := range keys {
		if m[k] == nil {
			s.element(i, s.def+2, parquet.NullValue())
			continue
		}
		s.element(i, s.def+3, parquet.ByteArrayValue([]byte(*m[k])))
	}
	s.col++
}

func (s *shredder) list(texts []string) {
	if s.def < 0 || len(texts) == 0 {
		s.empty(texts != nil)
		return
	}
	for i, t := range texts {
		s.element(i, s.def+3, parquet.ByteArrayValue([]byte(t)))
	}
	s.col++
}
