package files

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/partition"
	"github.com/wasmill/wasmill/host/sink"
)

const (
	stagedVersion = 1
	writeBuffer   = 256 << 10
)

// staged is what a decision keeps of a batch.
type staged struct {
	Version int    `json:"version"`
	Dir     string `json:"dir"` // below _wasmill
	Parts   []part `json:"parts"`
}

// part is one staged file.
type part struct {
	File   string `json:"file"` // in the staging directory
	Path   string `json:"path"` // its final place, relative to the sink's directory
	Size   int64  `json:"size"`
	Rows   int64  `json:"rows"`
	Time   int64  `json:"time"` // milliseconds since 1970, the manifest's modificationTime
	SHA256 string `json:"sha256"`
}

var (
	attemptForm = regexp.MustCompile(`^[0-9a-f]{8}$`)
	stageForm   = regexp.MustCompile(`^([0-9]{1,19})-[0-9a-f]{8}$`)
	fileForm    = regexp.MustCompile(`^part-[0-9]{5,}$`)
	partForm    = regexp.MustCompile(`^part-[0-9]{5,}-([^-/]{8})-([0-9]{1,19})-([0-9a-f]{16})\.c000\.[a-z.]+$`)
)

// Stage writes the batch's rows as parts into a directory of their own and syncs each part.
func (t *Target) Stage(ctx context.Context, out sink.Output) (sink.Staged, error) {
	if !attemptForm.MatchString(out.Attempt) {
		return nil, fmt.Errorf("stage batch %d: %q is no attempt", out.Batch, out.Attempt)
	}
	p := &partWriter{
		t: t, ctx: ctx, batch: out.Batch, now: t.now().UnixMilli(),
		st: staged{Version: stagedVersion, Dir: fmt.Sprintf("%d-%s", out.Batch, out.Attempt), Parts: []part{}},
	}
	err := t.files.MkdirAll(t.stage(p.st.Dir))
	for _, s := range out.Sinks {
		if s.Name != t.cfg.Sink {
			err = fmt.Errorf("target %s has no sink %q", t.cfg.Sink, s.Name)
		}
		if err == nil {
			err = p.lanes(s.Lanes)
		}
	}
	if err != nil {
		return nil, t.wrap(fmt.Sprintf("stage batch %d", out.Batch), err)
	}
	return json.Marshal(p.st)
}

// partWriter writes the parts of one batch, one at a time.
type partWriter struct {
	t     *Target
	ctx   context.Context
	batch checkpoint.BatchID
	now   int64
	st    staged

	file durable.File
	size int64
}

func (p *partWriter) lanes(lanes []sink.Lane) error {
	var tables []*rows.Table
	var raw []*rawLane
	for _, l := range lanes {
		switch l := l.(type) {
		case *partition.Lane:
			tables = append(tables, l.Table)
		case *rawLane:
			raw = append(raw, l)
		default:
			return fmt.Errorf("a lane of another target: %T", l)
		}
	}
	for _, g := range partition.GroupRows(tables, p.t.partition) {
		for _, piece := range partition.Cut(g.Rows, p.t.cfg.MaxPartRows, p.t.cfg.MaxPartBytes) {
			count := int64(0)
			for _, r := range piece {
				count += int64(r.Len())
			}
			if err := p.write(g.Dir, count, func(e encoder) error { return e.rows(piece) }); err != nil {
				return err
			}
		}
	}
	return p.rawParts(raw)
}

// rawParts cuts lines into parts.
func (p *partWriter) rawParts(lanes []*rawLane) error {
	var piece [][]byte
	var count, size int64
	flush := func() error {
		if count == 0 {
			return nil
		}
		err := p.write("", count, func(e encoder) error {
			for _, b := range piece {
				if err := e.lines(b); err != nil {
					return err
				}
			}
			return nil
		})
		piece, count, size = piece[:0], 0, 0
		return err
	}
	for _, l := range lanes {
		data := l.lines.Data()
		start, prev := 0, 0
		for _, end := range l.lines.Ends() {
			if n := int64(end - prev); count > 0 && (count == p.t.cfg.MaxPartRows || size+n > p.t.cfg.MaxPartBytes) {
				if prev > start {
					piece = append(piece, data[start:prev])
				}
				if err := flush(); err != nil {
					return err
				}
				start = prev
			}
			count++
			size += int64(end - prev)
			prev = end
		}
		if prev > start {
			piece = append(piece, data[start:prev])
		}
	}
	return flush()
}

// write makes one part.
func (p *partWriter) write(dir string, count int64, fill func(encoder) error) error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	name := fmt.Sprintf("part-%05d", len(p.st.Parts))
	full := p.t.stage(path.Join(p.st.Dir, name))
	err := p.create(full)
	if err == nil {
		err = p.fill(fill)
	}
	if err != nil {
		return err
	}
	sum := hex.EncodeToString(p.t.hash.Sum(nil))
	final := fmt.Sprintf("%s-%s-%d-%s.c000.%s", name, p.t.tag, p.batch, sum[:16], p.t.enc.ext())
	p.st.Parts = append(p.st.Parts, part{
		File: name, Path: path.Join(dir, final), Size: p.size, Rows: count, Time: p.now, SHA256: sum,
	})
	p.t.fresh[full] = true
	return nil
}

// create opens the file. One that is there already is of this attempt, and gives way.
func (p *partWriter) create(full string) error {
	var err error
	if p.file, err = p.t.files.Create(full); errors.Is(err, fs.ErrExist) {
		if err = p.t.files.Remove(full); err == nil {
			p.file, err = p.t.files.Create(full)
		}
	}
	if err != nil {
		return err
	}
	if p.t.buf == nil {
		p.t.buf, p.t.hash = bufio.NewWriterSize(nil, writeBuffer), sha256.New()
	}
	p.t.buf.Reset(p.file)
	p.t.hash.Reset()
	p.size = 0
	return nil
}

func (p *partWriter) fill(fill func(encoder) error) error {
	err := p.t.enc.reset(p)
	if err == nil {
		err = fill(p.t.enc)
	}
	if err == nil {
		err = p.t.enc.close()
	}
	if err == nil {
		err = p.t.buf.Flush()
	}
	if err == nil {
		err = p.file.Sync()
	}
	if closeErr := p.file.Close(); err == nil {
		err = closeErr
	}
	return err
}

// Write takes the encoder's output.
func (p *partWriter) Write(b []byte) (int, error) {
	n, err := p.t.buf.Write(b)
	p.t.hash.Write(b[:n])
	p.size += int64(n)
	return n, err
}

// parseStaged reads a decision's record of a batch and trusts none of its names.
func parseStaged(s sink.Staged) (*staged, error) {
	var st staged
	if err := json.Unmarshal(s, &st); err != nil {
		return nil, fmt.Errorf("the record of what was staged cannot be read: %w", err)
	}
	if st.Version != stagedVersion {
		return nil, fmt.Errorf("the record of what was staged has format %d, this program knows %d", st.Version, stagedVersion)
	}
	if !stageForm.MatchString(st.Dir) {
		return nil, fmt.Errorf("the record of what was staged names %q", st.Dir)
	}
	for _, p := range st.Parts {
		inside := path.Clean(p.Path) == p.Path && !path.IsAbs(p.Path) && !strings.HasPrefix(p.Path, "..")
		if !inside || !fileForm.MatchString(p.File) || !partForm.MatchString(path.Base(p.Path)) || len(p.SHA256) != 64 {
			return nil, fmt.Errorf("the record of what was staged names %q and %q", p.File, p.Path)
		}
	}
	return &st, nil
}
