package delta

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/partition"
	"github.com/wasmill/wasmill/host/sink"
)

// Rows that are read back are handed on in pieces of these bounds, which is the memory that copying takes.
const (
	copyRows  = 64 << 10
	copyBytes = 32 << 20
	readRows  = 4096
)

// touched is a file that holds rows of changed keys.
type touched struct {
	add  *delta.Add
	path string
	rows int64 // of changed keys
}

// stageUpsert writes the files with changed rows anew, and the new rows with them.
func (t *Target) stageUpsert(w *partWriter, st *staged, l *layout, lanes []sink.Lane) error {
	c, err := t.gather(lanes)
	if err != nil {
		return err
	}
	if err := t.checkRows(l, lanes); err != nil {
		return err
	}
	if st.TableSchema = l.schemaString(t.base); t.base == nil {
		st.TableSchema = t.schema
	}
	u := &upsert{t: t, w: w, l: l, c: c, find: newFinder(c, t.cfg.Schema, l.partition, t.spans)}
	t.reads = reads{attempt: st.Attempt, find: u.find}
	if err := u.open(); err != nil {
		return err
	}
	byDir := map[string][]touched{}
	if t.base != nil {
		t.spans.trim(t.base.NumFiles())
		for a := range t.base.Files() {
			if !u.find.may(a) {
				continue
			}
			f, err := u.look(a)
			if err != nil {
				return err
			}
			if f.rows > 0 {
				st.Removed = append(st.Removed, f.path)
				dir, err := u.dirOf(a)
				if err != nil {
					return err
				}
				byDir[dir] = append(byDir[dir], f)
			}
		}
	}
	return u.write(byDir)
}

// upsert is the work of one batch.
type upsert struct {
	t    *Target
	w    *partWriter
	l    *layout
	c    *changes
	find *finder

	key    []int // the key's columns in the table
	enc    *parquetfile.Writer
	keys   *rows.Table // the key's columns alone, read to look for changed keys
	folder *rows.Table // one row of the partition's columns
	copied *rows.Table // what is kept of old files
	index  []uint32    // which rows of it
	fresh  *rows.Table // new rows
	buf    []byte
	values map[string]*string // of the partition being written
	dir    string
}

func (u *upsert) open() error {
	for _, name := range u.t.cfg.Key {
		u.key = append(u.key, u.l.table.Index(name))
	}
	var err error
	if u.keys, err = u.some(u.key); err != nil {
		return err
	}
	if len(u.l.skip) > 0 {
		if u.folder, err = u.some(u.l.skip); err != nil {
			return err
		}
	}
	if u.enc, err = u.t.encoder(u.l.table, u.l.skip); err != nil {
		return err
	}
	u.copied, u.fresh = rows.NewTable(u.l.table), rows.NewTable(u.l.table)
	return nil
}

// some returns an empty table of some columns, in which anything may be null.
func (u *upsert) some(places []int) (*rows.Table, error) {
	var columns []rows.Column
	for _, c := range places {
		column := u.l.table.Column(c)
		column.Type.Required = false
		columns = append(columns, column)
	}
	schema, err := rows.NewSchema(columns)
	if err != nil {
		return nil, err
	}
	return rows.NewTable(schema), nil
}

// openFile opens a file of the table for its rows.
func (u *upsert) openFile(a *delta.Add, schema *rows.Schema) (r *parquetfile.Reader, name string, closeFile func() error, err error) {
	if name, err = a.File(); err != nil {
		return nil, "", nil, err
	}
	fixed := map[int]rows.Value{}
	for _, column := range u.l.partition {
		c := schema.Index(column)
		if c < 0 {
			continue
		}
		if fixed[c], err = delta.PartitionValue(schema.Column(c).Type, a.PartitionValues[column]); err != nil {
			return nil, name, nil, err
		}
	}
	f, err := u.t.files.Open(path.Join(u.t.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, name, nil, u.broken(name, "the log names the file and it is not there")
	}
	if err != nil {
		return nil, name, nil, err
	}
	if r, err = parquetfile.OpenReader(f, a.Size, schema, parquetfile.ReadOptions{Fixed: fixed}); err != nil {
		return nil, name, nil, errors.Join(u.unreadable(name, err), f.Close())
	}
	return r, name, func() error { return errors.Join(r.Close(), f.Close()) }, nil
}

func (u *upsert) broken(name, format string, args ...any) error {
	return u.t.fail(CodeDamaged, "restore the file from a backup, or the table to a version without it; nothing is lost meanwhile",
		"file %s: %w", name, fmt.Errorf(format, args...))
}

func (u *upsert) unreadable(name string, err error) error {
	if no, ok := errors.AsType[*parquetfile.UnsupportedError](err); ok {
		return u.t.fail(CodeTable, no.Hint()+"; nothing is lost meanwhile", "file %s is whole, but %w", name, no)
	}
	return u.broken(name, "it cannot be read: %w", err)
}

// look counts the rows of changed keys in a file.
func (u *upsert) look(a *delta.Add) (touched, error) {
	r, name, closeFile, err := u.openFile(a, u.keys.Schema())
	if err != nil {
		return touched{}, err
	}
	f := touched{add: a, path: name}
	for err == nil {
		u.keys.Reset()
		var n int
		if n, err = r.Read(u.keys, readRows); err != nil && err != io.EOF {
			err = u.unreadable(name, err)
		}
		for row := range n {
			if u.changed(u.keys, u.c.keyOnly, row) {
				f.rows++
			}
		}
		if err == nil {
			err = u.w.ctx.Err()
		}
	}
	if err == io.EOF {
		err = nil
	}
	return f, errors.Join(err, closeFile())
}

func (u *upsert) changed(t *rows.Table, columns []int, row int) bool {
	key, ok := appendKey(u.buf[:0], t, columns, row)
	u.buf = key
	if !ok {
		return false
	}
	_, ok = u.c.last[string(key)]
	return ok
}

// dirOf is the folder of a file's rows, named as for new ones.
func (u *upsert) dirOf(a *delta.Add) (string, error) {
	if len(u.l.partition) == 0 {
		return "", nil
	}
	var values []rows.Value
	var all []int
	for i, column := range u.l.partition {
		v, err := delta.PartitionValue(u.l.table.Column(u.l.skip[i]).Type, a.PartitionValues[column])
		if err != nil {
			return "", err
		}
		values, all = append(values, v), append(all, i)
	}
	u.folder.Reset()
	if err := u.folder.AppendValues(values); err != nil {
		return "", err
	}
	return string(partition.AppendDir(nil, u.folder, all, 0)), nil
}

// write goes through the partitions, the old rows of each first.
func (u *upsert) write(byDir map[string][]touched) error {
	groups, err := u.groups()
	if err != nil {
		return err
	}
	for _, dir := range dirs(byDir, groups) {
		u.dir, u.values = dir, nil
		for _, f := range byDir[dir] {
			u.values = f.add.PartitionValues
			if err := u.copyFile(f); err != nil {
				return err
			}
		}
		if g := groups[dir]; g != nil {
			table, row := g.First()
			if u.values, err = u.l.values(table, u.l.skip, row); err != nil {
				return err
			}
			if err := u.flush(g.Rows); err != nil {
				return err
			}
		} else if err := u.flush(nil); err != nil {
			return err
		}
		if err := u.end(); err != nil {
			return err
		}
	}
	return nil
}

// dirs are the folders in which something changes, sorted.
func dirs(byDir map[string][]touched, groups map[string]*partition.Group) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(byDir)), maps.Keys(groups))
	slices.Sort(all)
	return slices.Compact(all)
}

// groups are the new rows, as rows of the table, by folder.
func (u *upsert) groups() (map[string]*partition.Group, error) {
	for _, r := range u.c.rows() {
		for _, row := range r.Index {
			if err := u.fresh.AppendRow(r.Table, int(row), u.l.from); err != nil {
				return nil, err
			}
		}
	}
	groups := map[string]*partition.Group{}
	for _, g := range partition.GroupRows([]*rows.Table{u.fresh}, u.l.skip) {
		groups[g.Dir] = g
	}
	return groups, nil
}

// copyFile takes over the rows of a file that are not changed.
func (u *upsert) copyFile(f touched) error {
	r, name, closeFile, err := u.openFile(f.add, u.l.table)
	if err != nil {
		return err
	}
	for err == nil {
		if u.copied.Len() >= copyRows || u.copied.Bytes() >= copyBytes {
			if err = u.flush(nil); err != nil {
				break
			}
		}
		at := u.copied.Len()
		if _, err = r.Read(u.copied, readRows); err != nil && err != io.EOF {
			err = u.unreadable(name, err)
			break
		}
		for row := at; row < u.copied.Len(); row++ {
			if !u.changed(u.copied, u.key, row) {
				u.index = append(u.index, uint32(row))
			}
		}
		if err == nil {
			err = u.w.ctx.Err()
		}
	}
	if err == io.EOF {
		err = nil
	}
	return errors.Join(err, closeFile())
}

// flush writes what is copied, then more, into the partition's file, and begins another when that is full.
func (u *upsert) flush(more []parquetfile.Rows) error {
	from := more
	if len(u.index) > 0 {
		from = append([]parquetfile.Rows{{Table: u.copied, Index: u.index}}, more...)
	}
	defer func() {
		u.copied.Reset()
		u.index = u.index[:0]
	}()
	if len(from) == 0 {
		return nil
	}
	for _, piece := range partition.Cut(from, u.t.cfg.MaxPartRows, u.t.cfg.MaxPartBytes) {
		if err := u.piece(piece); err != nil {
			return err
		}
	}
	return nil
}

func (u *upsert) piece(from []parquetfile.Rows) error {
	var count, size int64
	for _, r := range from {
		count += int64(r.Len())
		for k := range r.Len() {
			row := k
			if r.Index != nil {
				row = int(r.Index[k])
			}
			size += r.Table.RowBytes(row)
		}
	}
	if u.w.file != nil && (u.w.rows+count > u.t.cfg.MaxPartRows || u.w.raw+size > u.t.cfg.MaxPartBytes) {
		if err := u.end(); err != nil {
			return err
		}
	}
	if u.w.file == nil {
		if err := u.w.begin(u.enc, u.dir, u.values); err != nil {
			return err
		}
	}
	u.w.raw += size
	return u.w.write(from)
}

func (u *upsert) end() error {
	if u.w.file == nil {
		return nil
	}
	return u.w.end()
}
