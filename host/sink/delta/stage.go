package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/partition"
	"github.com/wasmill/wasmill/host/sink"
)

// stamp is by what an entry of the log is known to be the one that was there before: a table that was removed and made anew
// has other files under the same names.
type stamp struct {
	version int64
	size    int64
	time    time.Time
}

func (t *Target) stampOf(version int64) (stamp, error) {
	info, err := t.files.Stat(path.Join(t.dir, logName, fmt.Sprintf("%020d.json", version)))
	return stamp{version: version, size: info.Size, time: info.ModTime}, err
}

// refresh reads the log on to its newest version.
func (t *Target) refresh(ctx context.Context) error {
	if t.log == nil {
		return errors.New("the target is not open")
	}
	if t.stamp != (stamp{}) {
		now, err := t.stampOf(t.stamp.version)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if now != t.stamp { // cleaned up, or another table: what is known of the log is not to be built on
			t.log = delta.OpenLog(t.files, t.dir, t.cfg.Clock)
		}
	}
	base, err := t.log.Snapshot(ctx)
	if errors.Is(err, delta.ErrNoTable) {
		t.base, t.stamp, err = nil, stamp{}, nil
		if t.table != "" {
			err = t.fail(CodeRecreated, "put the table back; or "+beginAnew, "the table with id %s is gone", t.table)
		}
		return err
	}
	if err != nil {
		return err
	}
	t.base = base
	if t.stamp, err = t.stampOf(base.Version); errors.Is(err, fs.ErrNotExist) {
		t.stamp, err = stamp{}, nil
	}
	if err != nil {
		return err
	}
	if t.table != "" && t.table != base.Metadata.ID {
		return t.fail(CodeRecreated, "put the table back as it was; or "+beginAnew, "the table was made anew: its id is %s, it was %s", base.Metadata.ID, t.table)
	}
	return nil
}

// sameTable reports whether all that decides how rows are written is the same.
func sameTable(a, b *delta.Snapshot) bool {
	return a == b || a.Metadata.ID == b.Metadata.ID && a.Metadata.SchemaString == b.Metadata.SchemaString &&
		slices.Equal(a.Metadata.PartitionColumns, b.Metadata.PartitionColumns) &&
		maps.Equal(a.Metadata.Configuration, b.Metadata.Configuration) && reflect.DeepEqual(a.Protocol, b.Protocol)
}

// Stage writes the batch's data files and checks that the table takes them.
func (t *Target) Stage(ctx context.Context, out sink.Output) (sink.Staged, error) {
	if !attemptForm.MatchString(out.Attempt) || !digestForm.MatchString(out.Digest) {
		return nil, fmt.Errorf("stage batch %d: %q is no attempt or %q no digest", out.Batch, out.Attempt, out.Digest)
	}
	st, err := t.stage(ctx, out)
	if err != nil {
		return nil, t.wrap(fmt.Sprintf("stage batch %d", out.Batch), err)
	}
	return json.Marshal(st)
}

func (t *Target) stage(ctx context.Context, out sink.Output) (*staged, error) {
	if err := t.refresh(ctx); err != nil {
		return nil, err
	}
	l, err := t.layoutFor(t.base, t.want())
	if err != nil {
		return nil, err
	}
	st := &staged{
		Version: stagedVersion, Attempt: out.Attempt, Read: -1, Schema: t.schema, Partition: l.partition, AddColumns: t.cfg.AddColumns, Parts: []part{},
	}
	if t.base != nil {
		st.Table, st.Read = t.base.Metadata.ID, t.base.Version
	}
	var lanes []sink.Lane
	for _, s := range out.Sinks {
		if s.Name != t.cfg.Sink {
			return nil, fmt.Errorf("target %s has no sink %q", t.cfg.Sink, s.Name)
		}
		lanes = append(lanes, s.Lanes...)
	}
	if err := durable.MakeDir(t.files, t.dir); err != nil {
		return nil, err
	}
	w := &partWriter{t: t, ctx: ctx, now: t.now().UnixMilli(), id: identity{t.marks.app, out.Batch, out.Digest, out.Attempt}, meta: &delta.Metadata{}}
	if t.base != nil {
		w.meta = &t.base.Metadata
	}
	if len(t.key) > 0 {
		err = t.stageUpsert(w, st, l, lanes)
	} else {
		err = t.stageAppend(w, l, lanes)
	}
	if err == nil {
		err = t.syncDirs(w.parts)
	}
	if err != nil {
		w.drop()
		return nil, err
	}
	st.Parts = append(st.Parts, w.parts...)
	return st, nil
}

// stageAppend writes the lanes' rows in their order, by partition.
func (t *Target) stageAppend(w *partWriter, l *layout, lanes []sink.Lane) error {
	if err := t.checkRows(l, lanes); err != nil {
		return err
	}
	var tables []*rows.Table
	for _, lane := range lanes {
		a, ok := lane.(*partition.Lane)
		if !ok {
			return fmt.Errorf("a lane of another target: %T", lane)
		}
		tables = append(tables, a.Table)
	}
	enc, err := t.encoder(t.cfg.Schema, l.by)
	if err != nil {
		return err
	}
	for _, g := range partition.GroupRows(tables, l.by) {
		table, row := g.First()
		values, err := l.values(table, l.by, row)
		if err != nil {
			return err
		}
		for _, piece := range partition.Cut(g.Rows, t.cfg.MaxPartRows, t.cfg.MaxPartBytes) {
			if err := w.begin(enc, g.Dir, values); err != nil {
				return err
			}
			if err := w.write(piece); err != nil {
				return err
			}
			if err := w.end(); err != nil {
				return err
			}
		}
	}
	return nil
}

// values are the partition values of a row, as the log has them. columns are those of the partition that the row has.
func (l *layout) values(table *rows.Table, columns []int, row int) (map[string]*string, error) {
	if len(l.partition) == 0 {
		return nil, nil
	}
	values := make(map[string]*string, len(l.partition))
	for _, name := range l.partition {
		values[name] = nil
	}
	for _, c := range columns {
		v := table.Column(c)
		if v.Valid[row] == 0 {
			continue
		}
		text, err := delta.PartitionText(nil, v, row)
		if err != nil {
			return nil, err
		}
		s := string(text)
		values[table.Schema().Column(c).Name] = &s
	}
	return values, nil
}

// encoder returns a writer of files for rows of a schema, without some columns. Writers are kept for their buffers.
func (t *Target) encoder(schema *rows.Schema, skip []int) (*parquetfile.Writer, error) {
	key := fmt.Sprintf("%p %v", schema, skip)
	if w := t.enc[key]; w != nil {
		return w, nil
	}
	w, err := parquetfile.New(schema, parquetfile.Options{Codec: t.cfg.Codec, CreatedBy: t.cfg.CreatedBy, Skip: skip})
	if err != nil {
		return nil, err
	}
	if len(t.enc) >= 4 {
		clear(t.enc)
	}
	t.enc[key] = w
	return w, nil
}

// Abort drops what this process has staged for a batch. What an earlier one has is swept, as it may still be at work.
func (t *Target) Abort(_ context.Context, batch checkpoint.BatchID) error {
	return t.wrap("drop staged files", t.forget(batch))
}

// forget removes the files of a batch that this process has written and not published.
func (t *Target) forget(batch checkpoint.BatchID) error {
	var errs error
	for name, of := range t.fresh {
		if of != batch {
			continue
		}
		err := t.files.Remove(path.Join(t.dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = errors.Join(errs, err)
			continue
		}
		delete(t.fresh, name)
	}
	return errs
}
