package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/source"
)

// CodeIncompatible is the code of a change that loses, repeats or mixes something.
const CodeIncompatible = "job.incompatible"

// Preview is what a job would do at its next start.
type Preview struct {
	QueryID  string             // "" when the job has not run yet
	Batch    checkpoint.BatchID // the batch that would be read next
	Planned  bool               // it is planned already: what it reads is settled
	Waiting  *Waiting           // nil when the last batch is done
	Sources  []Upcoming
	Paths    []Path
	Unread   []string // ports that nobody reads, as name.port
	Revision string
	// Before is the revision of the last decision, "" when there is none.
	Before  string
	Changes []job.Change // from Before to Revision
	// Unknown says why the changes cannot be told, "" when they can.
	Unknown string
	// Gone are the targets that the last batch is decided for and the job no longer has: the next start cannot ask them.
	Gone []string
	// Findings are the targets that the next start refuses, Unseen those that are away, so that nothing is known of them.
	Findings, Unseen []checkpoint.Finding
	// Stock are the modules that come with the program.
	Stock []StockModule
	// State are the stages that keep state, and StateBatch the last batch that changed it, NoBatch for none.
	State      []job.KeyedStage
	StateBatch checkpoint.BatchID
	// Clusters are those that the job publishes to.
	Clusters []Cluster
	// Shared are tables that several sinks write to, one of them by a key.
	Shared []SharedTable
}

// SharedTable is a table of a connection that several sinks write to, in the order of the job file.
type SharedTable struct {
	Connection string   `json:"connection"`
	Table      string   `json:"table"`
	Sinks      []string `json:"sinks"`
}

// sharedTables goes by the names of tables as they are written.
func sharedTables(j *job.Job) []SharedTable {
	var all []SharedTable
	keyed := map[string]bool{}
	for i := range j.Sinks {
		q := j.Sinks[i].SQL
		if q == nil || q.Table == "" {
			continue
		}
		at := slices.IndexFunc(all, func(t SharedTable) bool { return t.Connection == q.Connection && t.Table == q.Table })
		if at < 0 {
			at = len(all)
			all = append(all, SharedTable{Connection: q.Connection, Table: q.Table})
		}
		all[at].Sinks = append(all[at].Sinks, j.Sinks[i].Name)
		keyed[q.Connection+"/"+q.Table] = keyed[q.Connection+"/"+q.Table] || len(q.Key) > 0
	}
	return slices.DeleteFunc(all, func(t SharedTable) bool { return len(t.Sinks) < 2 || !keyed[t.Connection+"/"+t.Table] })
}

// Waiting is a last batch that is not known to be done.
type Waiting struct {
	Batch   checkpoint.BatchID
	Words   string   // where it stands, and what the next start does with it
	Targets []string // decided for them, and not known to be published
}

// Upcoming is what the next batch reads of a source.
type Upcoming struct {
	Source   string
	From, To checkpoint.Position
	Measured bool // Extent is known
	Extent   source.Extent
	// Remark is what a person should know of a source that has nothing new, "" for nothing.
	Remark string
}

// Compatible reports whether nothing has changed in a way that needs the user's word.
func (p *Preview) Compatible() bool {
	return len(having(p.Changes, job.NeedsConsent)) == 0 && len(having(p.Changes, job.Impossible)) == 0 && len(p.Gone) == 0
}

// having lists the changes of a severity in words.
func having(changes []job.Change, s job.Severity) []string {
	var out []string
	for _, c := range changes {
		if c.Severity == s {
			out = append(out, c.Path+": "+c.What)
		}
	}
	return out
}

// Preview finds out what the job would do next. It takes nothing over and writes nothing, so the job may be running.
func (p *Program) Preview(ctx context.Context) (*Preview, error) {
	g, policy, err := p.sketch()
	if err != nil {
		return nil, err
	}
	v := &Preview{Revision: p.Revision, Unread: UnreadPorts(g), Paths: paths(g, policy), Stock: p.stockShown(), Shared: sharedTables(p.Job)}
	tail, found, err := p.standing(ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		if f.Note {
			v.Unseen = append(v.Unseen, f)
		} else {
			v.Findings = append(v.Findings, f)
		}
	}
	if v.State, err = job.KeyedStages(p.Canonical); err != nil {
		return nil, err
	}
	v.StateBatch = checkpoint.NoBatch
	if tail.before != nil && tail.before.StateLast != nil {
		v.StateBatch = *tail.before.StateLast
	}
	v.QueryID = tail.query
	if err := v.compare(ctx, p, tail); err != nil {
		return nil, err
	}
	if err := v.wait(ctx, g, tail); err != nil {
		return nil, err
	}
	if err := v.upcoming(ctx, p, tail); err != nil {
		return nil, err
	}
	return v, v.clusters(ctx, p)
}

// tail is where a checkpoint stands.
type tail struct {
	reader   *checkpoint.Reader // nil when there is no checkpoint yet
	query    string
	torn     *checkpoint.TornError
	plan     *checkpoint.Plan // the last one, nil before the first batch
	prev     *checkpoint.Plan // the one before, where the last is undecided
	decision *checkpoint.Decision
	before   *checkpoint.Decision // the last decision
	marks    map[string]checkpoint.PublishedMark
}

// lookAtTail reads the end of the job's checkpoint.
func (p *Program) lookAtTail(ctx context.Context) (*tail, error) {
	r, err := checkpoint.OpenReader(ctx, p.env.Files, p.Job.Checkpoint)
	if missing(err) {
		return &tail{}, nil
	}
	if err != nil {
		return nil, err
	}
	if err := r.CheckJob(p.Job.Name); err != nil {
		return nil, err
	}
	t := &tail{reader: r, query: r.QueryID(), marks: r.Published(ctx)}
	t.plan, t.decision, err = r.Tail(ctx)
	if err != nil && !errors.As(err, &t.torn) {
		return nil, err
	}
	t.before = t.decision
	if t.plan == nil || t.decision != nil || t.plan.Batch == 0 {
		return t, nil
	}
	if t.prev, err = r.Plan(ctx, t.plan.Batch-1); err != nil {
		return nil, err
	}
	t.before, err = r.Decision(ctx, t.plan.Batch-1)
	return t, err
}

// changes lists what has changed since the last decision. Where that cannot be told, unknown says why.
func (p *Program) changes(ctx context.Context, t *tail) (changes []job.Change, unknown string, err error) {
	guarantees, err := p.guarantees(t)
	if err != nil || t.before == nil || t.before.Revision == "" || t.before.Revision == p.Revision {
		return guarantees, "", err
	}
	was, err := t.reader.Revision(ctx, t.before.Revision)
	if coded, ok := errors.AsType[*checkpoint.Error](err); ok && (coded.ErrCode == checkpoint.CodeMissing || coded.ErrCode == checkpoint.CodeDamaged) {
		return guarantees, err.Error(), nil
	}
	if err != nil {
		return nil, "", err
	}
	changes, err = job.Compare(was, p.Canonical)
	if errors.Is(err, job.ErrNoRevision) {
		return guarantees, err.Error(), nil
	}
	return append(changes, guarantees...), "", err
}

func (v *Preview) compare(ctx context.Context, p *Program, t *tail) (err error) {
	if t.before != nil {
		v.Before = t.before.Revision
	}
	v.Changes, v.Unknown, err = p.changes(ctx, t)
	return err
}

// consent refuses a job that has changed in a way that needs the user's word, and one whose change cannot be made. It reports
// whether there is a change that was allowed.
func (p *Program) consent(ctx context.Context) (allowed bool, err error) {
	t, err := p.lookAtTail(ctx)
	if err != nil {
		return false, err
	}
	changes, _, err := p.changes(ctx, t)
	if err != nil {
		return false, err
	}
	if never := having(changes, job.Impossible); len(never) > 0 {
		return false, fault.New(CodeIncompatible, p.Job.File, fmt.Errorf("the job has changed since batch %d in a way that its checkpoint cannot take: %s", t.before.Batch, strings.Join(never, "; ")),
			"take the change back, or do as it says; or go on in a new checkpoint with `wasmill checkpoint fork --to DIR`, which carries no state")
	}
	found := having(changes, job.NeedsConsent)
	if len(found) == 0 || p.env.AllowChanges {
		return len(found) > 0, nil
	}
	accept, err := p.acceptance(ctx)
	if err != nil {
		return false, err
	}
	return false, fault.New(CodeIncompatible, p.Job.File, fmt.Errorf("the job has changed since batch %d: %s", t.before.Batch, strings.Join(found, "; ")),
		"take the change back, give the job a checkpoint of its own, or "+accept+"; `wasmill plan` shows all changes")
}

// acceptance says what it takes to accept a change: what a target refuses goes through with no flag.
func (p *Program) acceptance(ctx context.Context) (string, error) {
	_, found, err := p.standing(ctx)
	if err != nil {
		return "", err
	}
	var first []string
	for _, f := range found {
		if !f.Note {
			first = append(first, fmt.Sprintf("[%s] %s: %s", f.Code, f.File, f.Message))
		}
	}
	const flag = "accept it with `wasmill run --allow-changes`"
	if len(first) == 0 {
		return flag, nil
	}
	return "first mend what no flag lets through (" + strings.Join(first, "; ") + ") and then " + flag, nil
}

// wait finds what is left half-way.
func (v *Preview) wait(ctx context.Context, g *engine.Graph, t *tail) error {
	switch {
	case t.torn != nil:
		v.Waiting = &Waiting{Batch: t.torn.Batch, Words: "torn, in " + t.torn.File + ": the next start asks the targets, and when " +
			"none has published the batch it sets the record aside"}
		return nil
	case t.plan == nil:
		return nil
	case t.decision == nil:
		v.Waiting = &Waiting{Batch: t.plan.Batch, Words: "planned, not decided: the next start drops what was staged and runs it again from the " +
			"same plan, under the revision of this job file"}
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(t.decision.Targets)) {
		o := t.decision.Targets[id]
		if o.Last != t.decision.Batch {
			continue
		}
		mark, noted := t.marks[id]
		done := noted && mark.Batch == o.Last && mark.Digest == o.Digest
		if !hasTarget(g, id) && !done {
			r, err := t.reader.Resolution(ctx, o.Last, id)
			if err != nil {
				return err
			}
			if r == nil || r.Action != checkpoint.Skip {
				v.Gone = append(v.Gone, id)
			}
		}
		if !noted || mark.Batch < o.Last {
			v.waitFor(t, id)
		}
	}
	return nil
}

func (v *Preview) waitFor(t *tail, target string) {
	if v.Waiting == nil {
		v.Waiting = &Waiting{Batch: t.decision.Batch, Words: "decided, maybe not published everywhere: the next start asks each target and publishes " +
			"what is staged there; what is lost is run again under the revision that decided it, and must come to the same digests"}
	}
	v.Waiting.Targets = append(v.Waiting.Targets, target)
}

func hasTarget(g *engine.Graph, id string) bool {
	for i := range g.Sinks {
		if g.Sinks[i].Target.ID() == id {
			return true
		}
	}
	return false
}

// upcoming finds what the next batch reads: what its plan says, or what the sources have.
func (v *Preview) upcoming(ctx context.Context, p *Program, t *tail) (err error) {
	dir := func(string) (string, error) { return p.Job.Checkpoint + "/sources/0", nil }
	if t.reader != nil {
		dir = t.reader.SourceDir
	}
	allowing := *p // what needs consent is shown, not refused
	allowing.env.AllowChanges = true
	sources, err := allowing.sources(p.Job, dir, true)
	if err != nil {
		return err
	}
	defer func() {
		for _, s := range sources {
			err = errors.Join(err, s.Close())
		}
	}()
	from, planned := t.plan, t.plan != nil && t.decision == nil
	if t.plan != nil {
		v.Batch = t.plan.Batch + 1
	}
	if planned {
		v.Batch, from = t.plan.Batch, t.prev
	}
	v.Planned = planned
	for i := range p.Job.Sources {
		s := &p.Job.Sources[i]
		settled := planned && !engine.Outdated(t.plan, s.Name, reads(s))
		if planned && !settled {
			v.Planned, v.Waiting.Words = false, "planned, not decided, with other settings of a source: the next start plans it anew"
		}
		at := t.plan.Position(s.Name)
		if planned && !settled {
			at = t.prev.Position(s.Name) // it is planned anew
		}
		err = v.moved(sources[s.Name], s.Name, at)
		u := Upcoming{Source: s.Name, From: from.Position(s.Name), To: t.plan.Position(s.Name)}
		if err == nil && !settled {
			u.To, err = p.latest(ctx, sources[s.Name], s, u.From)
		}
		if err == nil {
			err = u.look(ctx, sources[s.Name], settled)
		}
		if err != nil {
			return fmt.Errorf("source %s: %w", s.Name, err)
		}
		v.Sources = append(v.Sources, u)
	}
	return nil
}

// look asks the source about the range. What is settled to be empty needs no remark.
func (u *Upcoming) look(ctx context.Context, s source.Source, settled bool) (err error) {
	if m, ok := s.(source.Measurer); ok && u.To != (checkpoint.Position{}) {
		if u.Extent, err = m.Measure(ctx, source.Range{From: u.From, To: u.To}); err != nil {
			return err
		}
		u.Measured = true
	}
	if r, ok := s.(source.Remarker); ok && u.From == u.To && !settled {
		u.Remark = r.Remark(u.From)
	}
	return nil
}

// moved adds the change of a source that does not lie where it was planned.
func (v *Preview) moved(s source.Source, name string, at checkpoint.Position) error {
	placed, ok := s.(source.Placed)
	if !ok {
		return nil
	}
	err := placed.Moved(at)
	if f, ok := errors.AsType[*source.MovedError](err); ok {
		v.Changes = append(v.Changes, job.Change{Path: "sources." + name + ".path", What: f.Error(), Severity: job.NeedsConsent})
		return nil
	}
	return err
}

func (p *Program) latest(ctx context.Context, s source.Source, conf *job.Source, from checkpoint.Position) (checkpoint.Position, error) {
	if p.Job.Trigger.AvailableNow {
		if err := s.Freeze(ctx); err != nil {
			return checkpoint.Position{}, err
		}
	}
	return s.Latest(ctx, from, source.Limit{Records: conf.Batch.MaxRecords, Bytes: conf.Batch.MaxBytes})
}
