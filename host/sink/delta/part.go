package delta

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/partition"
)

const writeBuffer = 256 << 10

// A row group ends at these bounds.
const (
	groupRows  = 1 << 20
	groupBytes = 128 << 20
)

// partWriter writes the data files of one batch, one at a time, at their final places.
type partWriter struct {
	t     *Target
	ctx   context.Context
	id    identity
	meta  *delta.Metadata // tells which columns have statistics
	now   int64
	parts []part
	names int // files begun

	enc  *parquetfile.Writer
	file durable.File // nil between files
	buf  *bufio.Writer
	hash hash.Hash // of the file's content
	size int64
	rows int64
	raw  int64 // bytes of the rows as they lie in memory, where the caller counts them
	open part
}

func (p *partWriter) full() string { return path.Join(p.t.dir, p.open.Path) }

// begin makes a file in a folder of the table.
func (p *partWriter) begin(enc *parquetfile.Writer, dir string, values map[string]*string) error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	name := p.id.partName(p.t.tag, p.names, ext(p.t.cfg.Codec))
	p.names++
	p.enc, p.size, p.rows, p.raw = enc, 0, 0, 0
	p.open = part{Path: path.Join(dir, name), Time: p.now, Values: values}
	if err := p.t.makeDir(path.Dir(p.full())); err != nil {
		return err
	}
	var err error
	if p.file, err = p.create(); err != nil {
		return err
	}
	p.t.fresh[p.open.Path] = p.id.batch
	if p.t.buf == nil {
		p.t.buf = bufio.NewWriterSize(nil, writeBuffer)
	}
	if p.hash == nil {
		p.buf, p.hash = p.t.buf, sha256.New()
	}
	p.buf.Reset(p.file)
	p.hash.Reset()
	return p.enc.Reset(p)
}

// create opens the file. One that is there already is of this attempt, and gives way; a file of the table never does.
func (p *partWriter) create() (durable.File, error) {
	f, err := p.t.files.Create(p.full())
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	if p.t.base != nil {
		if _, live := p.t.base.File(p.open.Path); live {
			return nil, p.t.fail(CodeConflict, whoElse, "%s is in the table already", p.open.Path)
		}
	}
	if err := p.t.files.Remove(p.full()); err != nil {
		return nil, err
	}
	return p.t.files.Create(p.full())
}

// write adds rows to the file.
func (p *partWriter) write(from []parquetfile.Rows) error {
	for _, piece := range partition.Cut(from, groupRows, groupBytes) {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		if err := p.enc.WriteRowGroup(piece); err != nil {
			return err
		}
		for _, r := range piece {
			p.rows += int64(r.Len())
		}
	}
	return nil
}

// end finishes the file, durably but for its name.
func (p *partWriter) end() error {
	err := p.enc.Close()
	if err == nil {
		err = p.buf.Flush()
	}
	if err == nil {
		err = p.file.Sync()
	}
	if closeErr := p.file.Close(); err == nil {
		err = closeErr
	}
	p.file = nil
	if err != nil {
		return err
	}
	stats := p.enc.Stats()
	if stats.Rows != p.rows {
		return fmt.Errorf("file %s has %d rows of %d", p.open.Path, stats.Rows, p.rows)
	}
	p.open.Size, p.open.Rows, p.open.SHA256 = p.size, p.rows, hex.EncodeToString(p.hash.Sum(nil))
	p.open.Stats = delta.Stats(stats, p.meta)
	p.parts = append(p.parts, p.open)
	return nil
}

// drop gives up on the batch: what was written goes, as far as it can.
func (p *partWriter) drop() {
	if p.file != nil {
		_ = p.file.Close()
	}
	_ = p.t.forget(p.id.batch) // what is left is swept
}

// Write takes the encoder's output.
func (p *partWriter) Write(b []byte) (int, error) {
	n, err := p.buf.Write(b)
	p.hash.Write(b[:n])
	p.size += int64(n)
	return n, err
}

func ext(codec parquetfile.Codec) string {
	if codec == parquetfile.None {
		return "parquet"
	}
	return string(codec) + ".parquet"
}

// makeDir makes a folder of the table. Its name is durable on return.
func (t *Target) makeDir(dir string) error {
	if t.known[dir] {
		return nil
	}
	if err := t.files.MkdirAll(dir); err != nil {
		return err
	}
	// One that is there may be an earlier process's, which died before it was durable.
	for d := dir; d != t.dir && !t.known[d]; d = path.Dir(d) {
		if err := t.files.SyncDir(path.Dir(d)); err != nil {
			return err
		}
		t.known[d] = true
	}
	return nil
}

// syncDirs makes the names of parts durable.
func (t *Target) syncDirs(parts []part) error {
	seen := map[string]bool{}
	for i := range parts {
		dir := path.Dir(path.Join(t.dir, parts[i].Path))
		if seen[dir] {
			continue
		}
		seen[dir] = true
		if err := t.files.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// holds reports whether a part is there with its content.
func (t *Target) holds(p *part) (bool, error) {
	f, err := t.files.Open(path.Join(t.dir, p.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, p.Size+1))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err == nil && n == p.Size && hex.EncodeToString(h.Sum(nil)) == p.SHA256, err
}

// stands reports whether a part is there with its size. That is enough for what this process has written or read: the batch may
// have waited for long since then, for another target or for other writers, and VACUUM takes files that no entry names.
func (t *Target) stands(p *part) (bool, error) {
	info, err := t.files.Stat(path.Join(t.dir, p.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.Regular && info.Size == p.Size, err
}
