package delta

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/source"
)

const (
	// maxFiles and maxLost bound the files of one batch, and those that it leaves out: these stand in the position.
	maxFiles = 10_000
	maxLost  = 1000
	// maxQuiet is how many versions without a row are passed over before a position is planned that stands after them: from
	// one that lags too far behind, the log may be cleaned away.
	maxQuiet = 100
)

// quiet is how far the log holds nothing to read after a position.
type quiet struct {
	from checkpoint.Position
	at   place
}

// Latest plans on from a position: the rest of a version's files, then version by version. It reads the footers of the files
// that it plans. What cannot be read ends the batch before it, and is an error when it comes first.
func (s *Source) Latest(ctx context.Context, from checkpoint.Position, limit source.Limit) (checkpoint.Position, error) {
	if err := ctx.Err(); err != nil {
		return checkpoint.Position{}, err
	}
	p, err := s.planner(ctx, from, limit)
	if err != nil {
		return checkpoint.Position{}, err
	}
	whole, err := p.walk(ctx)
	if err != nil && (!p.left.any && len(p.lost) == 0 || ctx.Err() != nil) {
		return checkpoint.Position{}, err
	}
	to := from
	if p.planned() || p.at.version-p.from.version > maxQuiet {
		next := position{table: p.table, at: p.at, begin: p.begin, lost: p.lost}
		if to, err = next.format(); err != nil {
			return checkpoint.Position{}, err
		}
	}
	s.quiet = quiet{from: to, at: p.at}
	if whole && s.frozen != none {
		s.ended = to
	}
	return to, nil
}

// planner plans one batch.
type planner struct {
	s     *Source
	table string
	from  place
	at    place
	begin *place
	lost  []fileID
	files int
	left  budget
	pins  bool // the position must be kept even if nothing lies before it
}

// budget is what a batch may still take.
type budget struct {
	records, bytes int64
	any            bool // something was taken
}

func newBudget(l source.Limit) budget {
	b := budget{records: math.MaxInt64, bytes: math.MaxInt64}
	if l.Records > 0 {
		b.records = l.Records
	}
	if l.Bytes > 0 {
		b.bytes = l.Bytes
	}
	return b
}

// take takes as many as fit of so many rows, and one if nothing was taken before.
func (b *budget) take(rows, each int64) int64 {
	n := min(rows, b.records, b.bytes/each)
	if n <= 0 && !b.any {
		n = min(1, rows)
	}
	n = max(n, 0)
	b.records -= n
	b.bytes = max(0, b.bytes-n*each)
	b.any = b.any || n > 0
	return n
}

func (b *budget) spent() bool { return b.any && (b.records <= 0 || b.bytes <= 0) }

func (p *planner) planned() bool { return p.left.any || p.pins || len(p.lost) > 0 }

func (s *Source) planner(ctx context.Context, from checkpoint.Position, limit source.Limit) (*planner, error) {
	pos, err := parsePosition(from)
	if err != nil {
		return nil, err
	}
	if s.agreed == none {
		if s.agreed, err = s.newest(ctx); err != nil {
			return nil, err
		}
	}
	p := &planner{s: s, table: pos.table, from: pos.at, at: pos.at, left: newBudget(limit)}
	switch {
	case from.IsZero():
		err = p.start(ctx)
	case s.quiet.from == from:
		p.at = s.quiet.at
	default:
		err = p.sameTable(ctx)
	}
	return p, err
}

func (s *Source) newest(ctx context.Context) (int64, error) {
	if s.frozen != none {
		return s.frozen, nil
	}
	v, err := s.history.log.Latest(ctx, none)
	return v, missing(err)
}

// start finds the place where a source without progress begins.
func (p *planner) start(ctx context.Context) error {
	newest, err := p.s.newest(ctx)
	if err != nil {
		return err
	}
	p.pins = true
	start := p.s.cfg.Start
	switch {
	case start.Snapshot:
		p.at = place{version: newest, snapshot: true}
	case start.Latest:
		p.at = after(newest)
	case start.Version > newest+1:
		return fault.New(CodeStart, p.s.cfg.Dir, fmt.Errorf("the source begins at version %d, and the newest version of the table is %d", start.Version, newest),
			fmt.Sprintf("begin at version %d at most, or at latest", newest+1))
	default:
		p.at = place{version: start.Version}
	}
	p.from = p.at
	p.begin = &place{version: p.at.version, snapshot: p.at.snapshot}
	if p.at.snapshot {
		return p.whole(ctx)
	}
	e, err := p.s.history.era(ctx, newest)
	if err != nil {
		return err
	}
	p.table = e.meta.ID
	return e.refused
}

// whole refuses a snapshot of which one file could not be read, before the first is.
func (p *planner) whole(ctx context.Context) error {
	v, err := p.s.history.step(ctx, p.at)
	if err != nil {
		return err
	}
	p.table = v.era.meta.ID
	for _, a := range v.adds {
		if _, err := a.File(); err != nil {
			return err
		}
	}
	return nil
}

// sameTable makes sure that a position is one of this table.
func (p *planner) sameTable(ctx context.Context) error {
	e, err := p.s.history.eraAt(ctx, p.at)
	switch {
	case errors.Is(err, delta.ErrNoVersion):
		return p.someTable(ctx)
	case err != nil:
		return err
	case !e.sameTable(p.table):
		return p.s.otherTable(p.table, e.meta.ID)
	}
	return nil
}

// someTable says what is wrong with a position whose version cannot be made any more: that it is another table's, or that
// the log was cleaned. Where that may be, walk goes on from what is left.
func (p *planner) someTable(ctx context.Context) error {
	newest, err := p.s.newest(ctx)
	if err != nil {
		return err
	}
	e, err := p.s.history.era(ctx, newest)
	if err == nil && !e.sameTable(p.table) {
		err = p.s.otherTable(p.table, e.meta.ID)
	}
	if err != nil || p.s.cfg.SkipLost {
		return err
	}
	if newest < p.at.version {
		return noVersion(p.s.cfg.Dir, "the log ends at version %d, and version %d has been reached before", newest, p.at.version)
	}
	return noVersion(p.s.cfg.Dir, "version %d is to be read next, and the log was cleaned of what it takes", p.at.version)
}

// walk goes on until the budget is spent or the log ends; whole says that it did, at its end.
func (p *planner) walk(ctx context.Context) (whole bool, err error) {
	for {
		if f := p.s.frozen; f != none && p.at.version > f {
			return true, nil
		}
		v, err := p.s.history.step(ctx, p.at)
		if errors.Is(err, delta.ErrNoVersion) && p.s.cfg.SkipLost {
			if p.planned() && p.at != p.from {
				return false, nil
			}
			if err = p.jump(ctx, err); err == nil {
				continue
			}
		}
		if err != nil {
			return false, cleaned(err)
		}
		if v == nil {
			return true, nil
		}
		pass, err := p.admit(v)
		if err != nil {
			return false, err
		}
		if !pass {
			if done, err := p.take(ctx, v); err != nil || !done {
				return false, err
			}
		}
		p.at = after(v.number)
	}
}

// jump goes on at the oldest version that is left.
func (p *planner) jump(ctx context.Context, why error) error {
	from := p.at.version
	if p.at.snapshot {
		from++
	}
	to, err := p.s.history.log.Oldest(ctx, from)
	if err != nil {
		return errors.Join(why, err)
	}
	p.s.leftOut(p.s.cfg.Dir, fmt.Sprintf("it goes on at version %d, as what comes before it is lost: %s", to, detail(why)), -1)
	p.at = place{version: to}
	p.begin = &place{version: to}
	p.pins = true
	return nil
}

// admit holds a version against the rules; pass says that it is passed over.
func (p *planner) admit(v *version) (pass bool, err error) {
	s := p.s
	if !v.era.sameTable(p.table) {
		return false, s.otherTable(p.table, v.era.meta.ID)
	}
	if p.at.snapshot || p.at.index > 0 || p.at.rows > 0 {
		return false, nil
	}
	if v.number > s.agreed && v.before != nil {
		if err := v.before.goesOn(v.era); err != nil {
			return false, fault.New(CodeSchema, s.cfg.Dir, fmt.Errorf("version %d changes the table's schema: %w", v.number, err),
				"see that the job and its sinks can take such rows, then start it again: it goes on at this version")
		}
	}
	switch {
	case v.removes == "":
		return false, nil
	case s.cfg.OnChange == Skip, s.cfg.OnChange == IgnoreDeletes && len(v.adds) == 0:
		s.passed(v)
		return true, nil
	case len(v.adds) > 0:
		return false, removed(s.cfg.Dir, v, "and adds others, as an update, a merge or a rewriting deletion does",
			"go on without the whole version with `onChange: skip` of the source, or read the table anew with another checkpoint")
	}
	return false, removed(s.cfg.Dir, v, "and a stream of what is added cannot tell of it",
		"pass over versions that only remove with `onChange: ignore-deletes` of the source, or read the table anew with another checkpoint")
}

func removed(dir string, v *version, what, wayOut string) error {
	return fault.New(CodeRemoved, dir, fmt.Errorf("version %d removes rows (those of %s) %s", v.number, v.removes, what), wayOut)
}

// take plans files of a version; done says that none is left.
func (p *planner) take(ctx context.Context, v *version) (done bool, err error) {
	if p.at.index > int64(len(v.adds)) {
		return false, badPosition(fmt.Sprint(p.at.index), fmt.Errorf("version %d has %d files", v.number, len(v.adds)))
	}
	for p.at.index < int64(len(v.adds)) {
		if p.left.spent() || p.files == maxFiles || len(p.lost) == maxLost {
			return false, nil
		}
		a := v.adds[p.at.index]
		size, err := p.s.history.probe(ctx, a)
		switch {
		case err != nil && p.s.cfg.SkipLost && lost(err):
			if err := p.s.lostFile(a, p.at.rows, err); err != nil {
				return false, err
			}
			p.lost = append(p.lost, fileID{v.number, p.at.index})
			p.at.index, p.at.rows = p.at.index+1, 0
			continue
		case err != nil:
			return false, err
		case p.at.rows > size.rows:
			return false, badPosition(fmt.Sprint(p.at.rows), fmt.Errorf("%s has %d rows", a.Path, size.rows))
		}
		p.at.rows += p.left.take(size.rows-p.at.rows, size.each())
		if p.at.rows < size.rows {
			return false, nil
		}
		p.at.index, p.at.rows = p.at.index+1, 0
		p.files++
	}
	return true, nil
}
