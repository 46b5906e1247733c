package delta

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/parquet-go/parquet-go"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// maxCheckpointBytes bounds one file of a checkpoint.
const maxCheckpointBytes = 2 << 30

// readCheckpoint makes a state from a classic checkpoint and checks all that can be known of it: each row is one action, there
// is one protocol and one metaData, no file is there twice, and the numbers are those of _last_checkpoint when that is about it.
func (l *Log) readCheckpoint(ctx context.Context, c checkpointFiles, h *hint) (*state, error) {
	var actions []Action
	for _, name := range c.names {
		name = path.Join(logDir, name)
		content, err := l.objects.Read(ctx, name, maxCheckpointBytes)
		if err != nil {
			return nil, wrap("read checkpoint", l.place(name), err)
		}
		part, err := parseCheckpoint(content)
		if err != nil {
			return nil, damaged(l.place(name), "the checkpoint cannot be read: %w", err)
		}
		actions = append(actions, part...)
	}
	s, err := checkpointState(c, h, actions)
	if err != nil {
		return nil, damaged(l.place(path.Join(logDir, c.names[0])), "the checkpoint is wrong: %w", err)
	}
	s.timestamp = c.modTime
	if e, err := l.Entry(ctx, c.version); err == nil {
		s.setTime(e)
	}
	return s, nil
}

func checkpointState(c checkpointFiles, h *hint, actions []Action) (*state, error) {
	var protocols, metadatas, adds, txns int
	for i := range actions {
		switch a := &actions[i]; {
		case a.Protocol != nil:
			protocols++
		case a.Metadata != nil:
			metadatas++
		case a.Add != nil:
			adds++
		case a.Txn != nil:
			txns++
		}
	}
	if protocols != 1 || metadatas != 1 {
		return nil, fmt.Errorf("it holds %d protocols and %d metaDatas, not one of each", protocols, metadatas)
	}
	if h.about(c) {
		if h.Size != int64(len(actions)) {
			return nil, fmt.Errorf("it holds %d actions, and %s says %d", len(actions), hintName, h.Size)
		}
		if h.NumOfAddFiles != nil && *h.NumOfAddFiles != int64(adds) {
			return nil, fmt.Errorf("it holds %d files, and %s says %d", adds, hintName, *h.NumOfAddFiles)
		}
	}
	s := &state{version: c.version}
	s.take(actions)
	if s.files.len() != adds || s.txns.len() != txns {
		return nil, errors.New("a file or an application is there twice")
	}
	return s, nil
}

// parseCheckpoint reads the actions of one parquet file. The library may panic on files that others have made.
func parseCheckpoint(content []byte) (actions []Action, err error) {
	defer func() {
		if r := recover(); r != nil {
			actions, err = nil, fmt.Errorf("not a sound parquet file: %v", r)
		}
	}()
	f, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)), parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return nil, err
	}
	if f.NumRows() > maxActions {
		return nil, fmt.Errorf("%w of %d actions", durable.ErrTooLarge, maxActions)
	}
	for _, g := range f.RowGroups() {
		if actions, err = readGroup(actions, f.Root(), g); err != nil {
			return nil, err
		}
	}
	if int64(len(actions)) != f.NumRows() {
		return nil, fmt.Errorf("the footer counts %d rows; %d are there", f.NumRows(), len(actions))
	}
	return actions, nil
}

func readGroup(actions []Action, root *parquet.Column, g parquet.RowGroup) ([]Action, error) {
	n := g.NumRows()
	if n < 0 || int64(len(actions))+n > maxActions {
		return nil, fmt.Errorf("%w of %d actions", durable.ErrTooLarge, maxActions)
	}
	group := make([]Action, n)
	r := groupReader{root: root, chunks: g.ColumnChunks(), rows: int(n)}
	for _, path := range secondKind {
		kind2 := false
		if err := r.leaf(path, func(int, parquet.Value) { kind2 = true }); err != nil {
			return nil, err
		}
		if kind2 {
			return nil, errors.New("it is of the kind v2 (feature v2Checkpoint)")
		}
	}
	for _, f := range checkpointLeaves {
		if err := r.leaf(f.path, func(row int, v parquet.Value) { f.set(&group[row], v) }); err != nil {
			return nil, err
		}
	}
	for _, f := range checkpointMaps {
		if err := r.textMap(f.path, func(row int, m map[string]*string) { f.set(&group[row], m) }); err != nil {
			return nil, err
		}
	}
	for _, f := range checkpointLists {
		if err := r.list(f.path, func(row int, texts []string) { f.set(&group[row], texts) }); err != nil {
			return nil, err
		}
	}
	for i := range group {
		a := &group[i]
		settle(a)
		err := a.check()
		switch {
		case err != nil:
		case *a == (Action{}):
			err = errors.New("no action that is known")
		case a.Add != nil && a.Add.Size < 0:
			err = errors.New("an add without size")
		}
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", len(actions)+i, err)
		}
	}
	return append(actions, group...), nil
}

// settle takes away what a column format cannot leave out: empty lists of features where the protocol has none.
func settle(a *Action) {
	if p := a.Protocol; p != nil {
		if p.MinReader != 3 && len(p.ReaderFeatures) == 0 {
			p.ReaderFeatures = nil
		}
		if p.MinWriter != 7 && len(p.WriterFeatures) == 0 {
			p.WriterFeatures = nil
		}
	}
	if a.Add != nil && a.Add.PartitionValues == nil {
		a.Add.PartitionValues = map[string]*string{}
	}
}

// groupReader reads columns of one row group, by place and not by the names that writers give to the insides of lists and maps.
type groupReader struct {
	root   *parquet.Column
	chunks []parquet.ColumnChunk
	rows   int
}

func (r *groupReader) find(path []string) *parquet.Column {
	c := r.root
	for _, name := range path {
		if c = c.Column(name); c == nil {
			return nil
		}
	}
	return c
}

// leaf calls set for each row in which the column, which does not repeat, has a value. A column that the file lacks is null.
func (r *groupReader) leaf(path []string, set func(row int, v parquet.Value)) error {
	c := r.find(path)
	if c == nil {
		return nil
	}
	if !c.Leaf() || c.Type().Kind() == parquet.Int96 {
		return fmt.Errorf("column %v is of another type", path)
	}
	return r.values(c, func(row, at int, v parquet.Value) error {
		if at > 0 {
			return fmt.Errorf("column %v repeats", path)
		}
		if !v.IsNull() {
			set(row, v)
		}
		return nil
	})
}

// textMap calls set for each row in which the map is not null.
func (r *groupReader) textMap(path []string, set func(row int, m map[string]*string)) error {
	c := r.find(path)
	if c == nil {
		return nil
	}
	if c.Leaf() || len(c.Columns()) != 1 || len(c.Columns()[0].Columns()) != 2 {
		return fmt.Errorf("column %v is not a map", path)
	}
	depth := definition(r.root, path)
	inner := c.Columns()[0].Columns()
	keys := make([][]string, r.rows)
	err := r.values(inner[0], func(row, _ int, v parquet.Value) error {
		switch {
		case !v.IsNull():
			keys[row] = append(keys[row], text(v))
		case v.DefinitionLevel() >= depth:
			keys[row] = []string{}
		}
		return nil
	})
	if err != nil {
		return err
	}
	maps := make([]map[string]*string, r.rows)
	err = r.values(inner[1], func(row, at int, v parquet.Value) error {
		if keys[row] == nil {
			return nil
		}
		if maps[row] == nil {
			maps[row] = make(map[string]*string, len(keys[row]))
		}
		if at >= len(keys[row]) {
			if len(keys[row]) == 0 && v.IsNull() {
				return nil
			}
			return fmt.Errorf("column %v has more values than keys", path)
		}
		if v.IsNull() {
			maps[row][keys[row][at]] = nil
			return nil
		}
		s := text(v)
		maps[row][keys[row][at]] = &s
		return nil
	})
	if err != nil {
		return err
	}
	for row, m := range maps {
		if m != nil {
			set(row, m)
		}
	}
	return nil
}

// list calls set for each row in which the list of texts is not null. Both layouts are read, of three levels and of two.
func (r *groupReader) list(path []string, set func(row int, texts []string)) error {
	c := r.find(path)
	if c == nil {
		return nil
	}
	depth := definition(r.root, path)
	leaf := c
	for !leaf.Leaf() {
		if len(leaf.Columns()) != 1 {
			return fmt.Errorf("column %v is not a list of texts", path)
		}
		leaf = leaf.Columns()[0]
	}
	lists := make([][]string, r.rows)
	err := r.values(leaf, func(row, _ int, v parquet.Value) error {
		switch {
		case !v.IsNull():
			lists[row] = append(lists[row], text(v))
		case v.DefinitionLevel() >= depth && lists[row] == nil:
			lists[row] = []string{}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for row, texts := range lists {
		if texts != nil {
			set(row, texts)
		}
	}
	return nil
}

// definition counts the levels down to a path that can be null.
func definition(root *parquet.Column, path []string) int {
	depth := 0
	for c, i := root, 0; i < len(path); i++ {
		c = c.Column(path[i])
		if !c.Required() {
			depth++
		}
	}
	return depth
}

// values calls each for all values of a leaf, with the row and the place in the row, and insists on as many rows as the group
// has.
func (r *groupReader) values(leaf *parquet.Column, each func(row, at int, v parquet.Value) error) error {
	pages := r.chunks[leaf.Index()].Pages()
	defer pages.Close()
	row, at := -1, 0
	buf := make([]parquet.Value, 1024)
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("column %v: %w", leaf.Path(), err)
		}
		for values := page.Values(); err == nil; {
			var n int
			n, err = values.ReadValues(buf)
			for _, v := range buf[:n] {
				if at++; v.RepetitionLevel() == 0 {
					row, at = row+1, 0
				}
				if row < 0 || row >= r.rows {
					return fmt.Errorf("column %v has more rows than the %d of its group", leaf.Path(), r.rows)
				}
				if err := each(row, at, v); err != nil {
					return err
				}
			}
		}
		parquet.Release(page)
		if !errors.Is(err, io.EOF) {
			return fmt.Errorf("column %v: %w", leaf.Path(), err)
		}
	}
	if row+1 != r.rows {
		return fmt.Errorf("column %v has %d rows; its group has %d", leaf.Path(), row+1, r.rows)
	}
	return nil
}

// text copies a value's bytes.
func text(v parquet.Value) string { return string(v.ByteArray()) }

func integer(v parquet.Value) int64 {
	switch v.Kind() {
	case parquet.Int32:
		return int64(v.Int32())
	case parquet.Int64:
		return v.Int64()
	}
	return -1
}

func integerPointer(v parquet.Value) *int64 {
	n := integer(v)
	return &n
}

func small(v parquet.Value) int32 { return int32(min(max(integer(v), -1), 1<<31-1)) }

func boolPointer(v parquet.Value) *bool {
	b := v.Kind() == parquet.Boolean && v.Boolean()
	return &b
}
