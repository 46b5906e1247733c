package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// ForkRequest says what a new checkpoint begins with.
type ForkRequest struct {
	// Batch is the decided batch of the old checkpoint whose end is the new one's beginning; NoBatch: the last one.
	Batch BatchID
	// Names are the sources' names by number. They are needed for a checkpoint of Spark's, and must be nil otherwise.
	Names []string
	// Ends are positions that replace those of the old checkpoint, by name.
	Ends    map[string]Position
	Options Options
}

// Origin is a query that a forked checkpoint came from, and the last of its batches that the fork stands for.
type Origin struct {
	Query string  `json:"query"`
	Batch BatchID `json:"batch"`
	// Last is, by target, the last batch that it was called for up to Batch.
	Last map[string]BatchID `json:"last,omitempty"`
}

// Origins says where a forked checkpoint came from, which its plan 0 knows: the query that was forked, then the one that this was
// forked from, and so on. A checkpoint that is no fork has none.
func (p *Plan) Origins() []Origin {
	var all []Origin
	if json.Unmarshal([]byte(p.Conf[confOrigins]), &all) == nil {
		return all
	}
	query, at, ok := strings.Cut(p.Conf[confFork], "@")
	batch, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil {
		return nil
	}
	return []Origin{{Query: query, Batch: BatchID(batch)}}
}

// origins are those of a fork that is made after a decision.
func origins(ctx context.Context, files durable.Files, from, id string, batch BatchID, d *Decision) (string, error) {
	own := Origin{Query: id, Batch: batch, Last: map[string]BatchID{}}
	for target, o := range d.Targets {
		own.Last[target] = o.Last
	}
	all := []Origin{own}
	if first, _, err := loadPlan(ctx, files, from, 0); err == nil {
		all = append(all, first.Origins()...)
	}
	text, err := marshal(all)
	return string(text), err
}

// Forked says what was made.
type Forked struct {
	QueryID string          `json:"queryId"`
	From    string          `json:"from"` // the old query id and batch
	Sources []SourceSummary `json:"sources"`
}

// Fork makes a new checkpoint, with a query id of its own, that goes on where a batch of another one ended. The old one
// is only read; what its sources remember is copied. In the new one batch 0 stands for all that was read before: it is
// decided and has no output. Targets take the new query for another one: it must not write to the same places unless
// they say that they allow it. to must be new or empty; a fork that was interrupted has no metadata and is refused by
// every command.
func Fork(ctx context.Context, files durable.Files, from, to string, req ForkRequest) (*Forked, error) {
	plan, decision, err := forkPoint(ctx, files, from, req)
	if err != nil {
		return nil, err
	}
	oldID, err := readMetadata(ctx, files, from)
	if err != nil {
		return nil, err
	}
	first, err := firstPlan(plan, decision, req)
	if err != nil {
		return nil, err
	}
	origin := fmt.Sprintf("%s@%d", oldID, plan.Batch)
	first.Conf[confFork] = origin
	if first.Conf[confOrigins], err = origins(ctx, files, from, oldID, plan.Batch, decision); err != nil {
		return nil, err
	}
	if err := durable.MakeDir(files, to); err != nil {
		return nil, ioError("make the directory", to, err)
	}
	if infos, err := files.List(to); err != nil || len(infos) > 0 {
		if err == nil {
			err = fs.ErrExist
		}
		return nil, errorf(CodeInvalid, "give a directory that is new or empty", []string{to}, "the fork's directory is in use: %w", err)
	}
	out := &Forked{From: origin, Sources: sourceSummaries(first)}
	err = withLock(files, to, req.Options, func(objects durable.Objects) (err error) {
		out.QueryID, err = writeFork(ctx, files, from, to, objects, first, forkedDecision(decision, first), req.Options)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// forkPoint reads the plan and the decision that the fork begins after.
func forkPoint(ctx context.Context, files durable.Files, from string, req ForkRequest) (*Plan, *Decision, error) {
	if err := isCheckpoint(files, from); err != nil {
		return nil, nil, err
	}
	batch := req.Batch
	if batch == NoBatch {
		v, err := look(ctx, files, from)
		if err != nil {
			return nil, nil, err
		}
		batch = v.commits.last()
	}
	if batch < 0 {
		return nil, nil, errorf(CodeMissing, "start a new checkpoint instead", []string{from}, "no batch was decided yet")
	}
	p, foreign, err := loadPlan(ctx, files, from, batch)
	if err != nil {
		return nil, nil, whole(err)
	}
	d, _, err := loadDecision(ctx, files, from, batch)
	if err != nil {
		return nil, nil, whole(err)
	}
	if foreign != (req.Names != nil) || (foreign && len(req.Names) != len(p.Sources)) {
		return nil, nil, errorf(CodeForeign, fmt.Sprintf("name the %d sources in the order of their numbers, for a checkpoint of Spark's only", len(p.Sources)),
			[]string{recordName(offsetsDir, batch)}, "the plan has %d sources, and %d names were given", len(p.Sources), len(req.Names))
	}
	return p, d, nil
}

func firstPlan(p *Plan, d *Decision, req ForkRequest) (*Plan, error) {
	first := &Plan{
		Batch: 0, TimeMS: req.Options.Clock(), WatermarkMS: max(p.WatermarkMS, d.NextWatermarkMS),
		Conf: make(map[string]string),
	}
	for i, s := range p.Sources {
		if req.Names != nil {
			s.Name = req.Names[i]
		}
		if end, ok := req.Ends[s.Name]; ok {
			s.End = end
		}
		if _, err := offsetLine(s); err != nil {
			return nil, errorf(CodeInvalid, "give a position as the source writes it, such as a line of offsets/N", nil, "%w", err)
		}
		first.Sources = append(first.Sources, s)
	}
	for name := range req.Ends {
		if !slices.ContainsFunc(first.Sources, func(s SourcePosition) bool { return s.Name == name }) {
			return nil, errorf(CodeInvalid, "name one of the plan's sources", nil, "there is no source %.80q", name)
		}
	}
	return first, nil
}

// forkedDecision settles batch 0 without output.
func forkedDecision(d *Decision, first *Plan) *Decision {
	out := &Decision{Batch: 0, NextWatermarkMS: first.WatermarkMS, Sources: make(map[string]SourceOutcome)}
	for name, s := range d.Sources {
		out.Sources[name] = SourceOutcome{WatermarkMS: s.WatermarkMS, Idle: s.Idle}
	}
	return out
}

// writeFork writes the new checkpoint: its plan first, so that what an interrupted fork leaves is not taken for a new
// checkpoint, and its query id last, so that it is not taken for a whole one.
func writeFork(ctx context.Context, files durable.Files, from, to string, objects durable.Objects, p *Plan, d *Decision, opts Options) (string, error) {
	for _, dir := range []string{offsetsDir, commitsDir, sourcesDir} {
		if err := durable.MakeDir(files, path.Join(to, dir)); err != nil {
			return "", ioError("make the directory", dir, err)
		}
	}
	text, err := encodePlan(p)
	if err == nil {
		err = objects.PutIfAbsent(ctx, recordName(offsetsDir, 0), text)
	}
	if err != nil {
		return "", ioError("write", recordName(offsetsDir, 0), err)
	}
	for i := range p.Sources {
		sub := path.Join(sourcesDir, strconv.Itoa(i))
		if err := copyTree(ctx, files, path.Join(from, sub), path.Join(to, sub), maxSourceDepth); err != nil {
			return "", ioError("copy", sub, err)
		}
	}
	if text, err = encodeDecision(d); err == nil {
		err = objects.PutIfAbsent(ctx, recordName(commitsDir, 0), text)
	}
	if err != nil {
		return "", ioError("write", recordName(commitsDir, 0), err)
	}
	if err := writeOwner(ctx, objects.PutIfAbsent, opts.Job); err != nil {
		return "", err
	}
	return writeMetadata(ctx, objects, opts.NewID())
}

// copyTree copies the regular files of a directory durably; hidden ones, links and devices are left out. A directory
// that is not there is none to copy.
func copyTree(ctx context.Context, files durable.Files, from, to string, depth int) error {
	infos, err := files.List(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if depth == 0 {
		return &fs.PathError{Op: "copy", Path: from, Err: errTooDeep}
	}
	if err := durable.MakeDir(files, to); err != nil {
		return err
	}
	for _, e := range infos {
		if err := ctx.Err(); err != nil {
			return err
		}
		oldName, newName := path.Join(from, e.Name), path.Join(to, e.Name)
		switch {
		case strings.HasPrefix(e.Name, "."):
		case e.Dir:
			err = copyTree(ctx, files, oldName, newName, depth-1)
		case e.Regular:
			err = copyFile(files, oldName, newName)
		}
		if err != nil {
			return err
		}
	}
	return files.SyncDir(to)
}

func copyFile(files durable.Files, from, to string) (err error) {
	in, err := files.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = firstOf(err, in.Close()) }()
	out, err := files.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = firstOf(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Sync()
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
