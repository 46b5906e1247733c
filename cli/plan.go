package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/pipeline"
)

func planCommand(e *Env) *ucli.Command {
	return &ucli.Command{
		Name:      "plan",
		Usage:     "show what a job would do next, its guarantees, and whether its checkpoint fits it",
		ArgsUsage: "[JOB.yaml]",
		Description: "Takes nothing over and writes nothing; the job may be running. Exits with 3 when the job has changed in a way that needs " +
			"your word (`wasmill run --allow-changes`) or a fresh checkpoint, and when a sink is not as the job and the checkpoint have it: tables are looked at.\nA server that is away is said to be so, and is no reason for a 3. Without a name it takes " + DefaultJobFile + ".",
		Flags:  append(engineFlags(), outputFlag()),
		Action: func(c *ucli.Context) error { return e.plan(c) },
	}
}

// planShown is what plan prints as JSON.
type planShown struct {
	Job        string       `json:"job"`
	Checkpoint string       `json:"checkpoint"`
	QueryID    string       `json:"queryId,omitempty"`
	Revision   string       `json:"revision"`
	Decided    string       `json:"decidedRevision,omitempty"`
	Compatible bool         `json:"compatible"`
	Changes    []planChange `json:"changes"`
	Unknown    string       `json:"changesUnknown,omitempty"`
	Waiting    *planWaiting `json:"waiting,omitempty"`
	Next       planNext     `json:"next"`
	Paths      []planPath   `json:"paths"`
	Unread     []string     `json:"unreadPorts"`
	// State are the stages that keep state; StateBatch is the last batch that changed it.
	State      []job.KeyedStage `json:"state,omitempty"`
	StateBatch *int64           `json:"stateBatch,omitempty"`
	// Stock are the modules that come with wasmill.
	Stock     []planStock `json:"stock,omitempty"`
	GoneSinks []string    `json:"goneSinks,omitempty"`
	// Findings are sinks that the next start refuses.
	Findings []checkpoint.Finding `json:"findings"`
	// Unseen are sinks that are away.
	Unseen []checkpoint.Finding `json:"unseen,omitempty"`
	// Clusters are those that the job publishes to.
	Clusters []planCluster `json:"clusters,omitempty"`
	// Shared are tables that several sinks write to, one of them by a key.
	Shared []pipeline.SharedTable `json:"sharedTables,omitempty"`
}

type planStock struct {
	Transform string `json:"transform"`
	Module    string `json:"module"`
	Digest    string `json:"digest"`
	Newer     string `json:"newer,omitempty"` // digest of what this program has
}

type planChange struct {
	Path     string `json:"path"`
	What     string `json:"what"`
	Severity string `json:"severity"`
}

type planWaiting struct {
	Batch   int64    `json:"batch"`
	What    string   `json:"what"`
	Targets []string `json:"targets,omitempty"`
}

type planNext struct {
	Batch   int64        `json:"batch"`
	Planned bool         `json:"planned"` // what it reads is settled
	Sources []planSource `json:"sources"`
}

type planSource struct {
	Name    string          `json:"name"`
	New     bool            `json:"new"` // there is something to read
	From    json.RawMessage `json:"from"`
	To      json.RawMessage `json:"to"`
	Parts   *int64          `json:"parts,omitempty"`
	Records *int64          `json:"records,omitempty"`
	Lines   *int64          `json:"lines,omitempty"`   // in place of records: blank ones count
	Offsets *int64          `json:"offsets,omitempty"` // in place of records: not each holds one
	Bytes   *int64          `json:"bytes,omitempty"`
	Remark  string          `json:"remark,omitempty"`
}

type planPath struct {
	Steps     []string `json:"steps"`
	Guarantee string   `json:"guarantee"`
	Why       string   `json:"why"`
}

func (e *Env) plan(c *ucli.Context) (err error) {
	output, err := outputOf(c)
	if err != nil {
		return err
	}
	file, err := jobFileOf(c)
	if err != nil {
		return err
	}
	j, err := e.loadJob(file)
	if err != nil {
		return err
	}
	eng, err := e.newEngine(c)
	if err != nil {
		return err
	}
	ctx := c.Context
	defer func() { err = errors.Join(err, eng.Close(context.WithoutCancel(ctx))) }()
	program, err := pipeline.Load(ctx, j, e.pipelineEnv(c, eng, nil))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, program.Close(context.WithoutCancel(ctx))) }()
	v, err := program.Preview(ctx)
	if err != nil {
		return err
	}
	shown := showPlan(j.Name, j.Checkpoint, v)
	if output == outputJSON {
		err = e.printJSON(shown)
	} else {
		err = shown.page(j.Errors.Policy).print(e.Stdout)
	}
	if err == nil && (!v.Compatible() || len(v.Findings) > 0) {
		return errFindings
	}
	return err
}

func showPlan(name, dir string, v *pipeline.Preview) *planShown {
	s := &planShown{
		Job: name, Checkpoint: dir, QueryID: v.QueryID, Revision: v.Revision, Decided: v.Before, Compatible: v.Compatible(),
		Changes: []planChange{}, Unknown: v.Unknown, Paths: []planPath{}, Unread: append([]string{}, v.Unread...), GoneSinks: v.Gone,
		Findings: append([]checkpoint.Finding{}, v.Findings...), Unseen: v.Unseen, Shared: v.Shared,
		Next: planNext{Batch: int64(v.Batch), Planned: v.Planned, Sources: []planSource{}},
	}
	s.State = v.State
	if v.StateBatch != checkpoint.NoBatch {
		n := int64(v.StateBatch)
		s.StateBatch = &n
	}
	for _, m := range v.Stock {
		s.Stock = append(s.Stock, planStock(m))
	}
	for _, c := range v.Changes {
		s.Changes = append(s.Changes, planChange{c.Path, c.What, string(c.Severity)})
	}
	if w := v.Waiting; w != nil {
		s.Waiting = &planWaiting{int64(w.Batch), w.Words, w.Targets}
	}
	for i := range v.Sources {
		u := &v.Sources[i]
		src := planSource{Name: u.Source, New: u.From != u.To, From: offset(u.From.Line), To: offset(u.To.Line), Remark: u.Remark}
		if u.Measured {
			src.Parts, src.Records, src.Bytes = &u.Extent.Parts, &u.Extent.Records, &u.Extent.Bytes
			if u.Extent.Lines {
				src.Records, src.Lines = nil, src.Records
			}
			if u.Extent.Offsets {
				src.Records, src.Offsets = nil, src.Records
			}
		}
		s.Next.Sources = append(s.Next.Sources, src)
	}
	for i := range v.Clusters {
		s.Clusters = append(s.Clusters, showCluster(&v.Clusters[i]))
	}
	for _, p := range v.Paths {
		s.Paths = append(s.Paths, planPath{p.Steps, string(p.Guarantee), p.Why})
	}
	return s
}

func (s *planShown) page(policy string) *page {
	p := &page{}
	p.row("job", s.Job)
	p.row("checkpoint", s.Checkpoint)
	if s.QueryID == "" {
		p.row("query", "none yet: the first start makes one")
	} else {
		p.row("query", s.QueryID)
	}
	p.row("revision", s.Revision)
	p.row("errors", policy)
	p.line("")
	if w := s.Waiting; w != nil {
		p.line("WAITING")
		p.line("batch %d is %s", w.Batch, w.What)
		if len(w.Targets) > 0 {
			p.line("targets not known to have it: %s", strings.Join(w.Targets, ", "))
		}
		p.line("Where the job is running, this is the batch that it is at.")
		p.line("")
	}
	s.targetRows(p)
	s.Next.rows(p)
	p.line("")
	for i := range s.Clusters {
		s.Clusters[i].rows(p)
	}
	p.line("GUARANTEES")
	for _, path := range s.Paths {
		p.row(strings.Join(path.Steps, " -> "), path.Guarantee, path.Why)
	}
	p.line("")
	s.sharedRows(p)
	s.stateRows(p)
	s.stockRows(p)
	s.unreadRows(p)
	s.changes(p)
	return p
}

// unreadRows name the ports that nothing reads. Those of late records come first: of the others a transform may use none.
func (s *planShown) unreadRows(p *page) {
	var late, others []string
	for _, port := range s.Unread {
		if strings.HasSuffix(port, "."+pipeline.LatePort) {
			late = append(late, port)
		} else {
			others = append(others, port)
		}
	}
	if len(late) > 0 {
		p.line("LATE RECORDS ARE DROPPED, as nothing reads %s", strings.Join(late, ", "))
	}
	if len(others) > 0 {
		p.line("NOT READ BY ANYTHING, so what is sent there, if anything, is dropped: %s", strings.Join(others, ", "))
	}
	if len(s.Unread) > 0 {
		p.line("")
	}
}

// stateRows say what the job keeps.
func (s *planShown) stateRows(p *page) {
	if len(s.State) == 0 {
		return
	}
	p.line("STATE, decided with the output of each batch, and as it was before a batch when that is run again")
	for _, st := range s.State {
		var tables []string
		for _, t := range st.Tables {
			tables = append(tables, t.Name+" ("+t.Type+")")
		}
		text := "no tables"
		if len(tables) > 0 {
			text = strings.Join(tables, ", ")
		}
		p.row(st.Name, "by "+st.KeyBy, text)
	}
	if s.StateBatch != nil {
		p.line("last changed in batch %d", *s.StateBatch)
	}
	p.line("")
}

// stockRows name the stock modules that this program has another one of.
func (s *planShown) stockRows(p *page) {
	shown := false
	for _, m := range s.Stock {
		if m.Newer == "" {
			continue
		}
		p.line("transform %s goes on with the %s that ran first, sha256:%.12s; this wasmill has sha256:%.12s, which `wasmill run --update %s` takes",
			m.Transform, m.Module, m.Digest, m.Newer, m.Transform)
		shown = true
	}
	if shown {
		p.line("")
	}
}

func (n *planNext) rows(p *page) {
	title := fmt.Sprintf("NEXT, batch %d", n.Batch)
	if n.Planned {
		title += ", as it is planned"
	}
	p.line("%s", title)
	for i := range n.Sources {
		src := &n.Sources[i]
		if _, ok := topicsOf(src.To); ok {
			p.row(src.Name, src.amountOrNone())
			topicRows(p, src.From, src.To)
			continue
		}
		if !src.New {
			p.row(src.Name, "nothing new", "at "+standing(src.From))
			if src.Remark != "" {
				p.line("%s: %s", src.Name, src.Remark)
			}
			continue
		}
		p.row(src.Name, src.amount(), "from "+standing(src.From)+" to "+standing(src.To))
	}
}

func (s *planSource) amountOrNone() string {
	if !s.New {
		return "nothing new"
	}
	return s.amount()
}

// amount says how much there is to read.
func (s *planSource) amount() string {
	if s.Parts == nil {
		return "new input"
	}
	var parts []string
	if *s.Parts > 0 {
		parts = append(parts, plural(*s.Parts, "file"))
	}
	switch {
	case s.Lines != nil:
		parts = append(parts, plural(*s.Lines, "line"))
	case s.Offsets != nil:
		parts = append(parts, plural(*s.Offsets, "offset"))
	default:
		parts = append(parts, plural(*s.Records, "record"))
	}
	if *s.Bytes > 0 {
		parts = append(parts, plural(*s.Bytes, "byte"))
	}
	return strings.Join(parts, ", ")
}

func (s *planShown) changes(p *page) {
	switch {
	case s.Decided == "":
		p.line("No batch was decided by an earlier revision: nothing to be compatible with.")
	case s.Unknown != "":
		p.line("CHANGES since revision %.12s cannot be told: %s", s.Decided, s.Unknown)
	case len(s.Changes) == 0:
		p.line("The revision is the one that decided the last batch.")
	default:
		p.line("CHANGES since revision %.12s", s.Decided)
	}
	for _, c := range s.Changes {
		p.row(c.Severity, c.Path, c.What)
	}
	for _, g := range s.GoneSinks {
		p.line("sink %s is no longer in the job, and the last batch, %d, is decided for it: put it back for one start, or `wasmill checkpoint resolve %d --sink %s --skip`",
			g, s.Next.Batch-1, s.Next.Batch-1, g)
	}
	if s.has(job.NeedsConsent) && len(s.Findings) > 0 {
		p.line("First mend what the next start refuses, above: no flag does.")
	}
	if s.has(job.NeedsConsent) {
		p.line("What needs consent is made only with `wasmill run --allow-changes`; or take it back, or give the job a checkpoint of its own.")
	}
	if s.has(job.Impossible) {
		p.line("What is impossible is made with no flag: take it back, do as it says, or give the job a checkpoint of its own, which begins anew.")
	}
}

// has reports whether a change of that severity was made.
func (s *planShown) has(severity job.Severity) bool {
	return slices.ContainsFunc(s.Changes, func(c planChange) bool { return c.Severity == string(severity) })
}

// batchOf parses the number of a batch.
func batchOf(c *ucli.Context, text string) (checkpoint.BatchID, error) {
	var n int64
	if _, err := fmt.Sscanf(text, "%d", &n); err != nil || n < 0 || fmt.Sprint(n) != text {
		return 0, usagef(c, "%q is not the number of a batch", text)
	}
	return checkpoint.BatchID(n), nil
}

// standing is a position for people.
func standing(line json.RawMessage) string {
	if string(line) == "null" {
		return "the beginning"
	}
	return string(line)
}
