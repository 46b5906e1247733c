package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// shownBatches is how many of the newest batches a Summary lists.
const shownBatches = 20

// Standing says in a word where the last batch of a checkpoint stands.
type Standing string

// The standings.
const (
	Empty       Standing = "empty"       // no batch was planned yet
	Undecided   Standing = "undecided"   // planned; it will be run again
	Unpublished Standing = "unpublished" // decided, and not known to be published
	Done        Standing = "done"        // decided and published
	Broken      Standing = "broken"      // see the findings
)

// Summary is what a checkpoint holds, for people and programs.
type Summary struct {
	QueryID      string              `json:"queryId"`
	Job          string              `json:"job,omitempty"`
	Spark        bool                `json:"spark,omitempty"` // written by Spark
	Oldest       BatchID             `json:"oldest"`          // -1: none
	LastPlan     BatchID             `json:"lastPlan"`
	LastDecision BatchID             `json:"lastDecision"`
	Standing     Standing            `json:"standing"`
	Words        string              `json:"words"` // the standing in a sentence
	WatermarkMS  int64               `json:"watermarkMs"`
	Revision     string              `json:"revision,omitempty"`
	StateBatch   *BatchID            `json:"stateBatch,omitempty"` // the newest batch that changed the state; nil: there is none
	Sources      []SourceSummary     `json:"sources"`
	Targets      []TargetSummary     `json:"targets"`
	Batches      []BatchSummary      `json:"batches"` // the newest, oldest first
	Superseded   []string            `json:"superseded,omitempty"`
	Resolutions  []*ResolutionRecord `json:"resolutions,omitempty"`
	Findings     []Finding           `json:"findings,omitempty"` // what the names and the last records show; Verify reads everything
}

// SourceSummary is where a source stands in the last plan.
type SourceSummary struct {
	Number      int    `json:"number"`
	Name        string `json:"name"`
	Line        string `json:"line"`
	Extra       string `json:"extra,omitempty"`
	WatermarkMS int64  `json:"watermarkMs"`
	Idle        bool   `json:"idle,omitempty"`
}

// TargetSummary is where a target stands.
type TargetSummary struct {
	Name      string  `json:"name"`
	Last      BatchID `json:"last"`      // the last batch decided for it
	Published BatchID `json:"published"` // the last batch noted as published, -1 when none
}

// BatchSummary is one retained batch.
type BatchSummary struct {
	Batch    BatchID `json:"batch"`
	TimeMS   int64   `json:"timeMs"`
	Decided  bool    `json:"decided"`
	In       int64   `json:"in"`
	Out      int64   `json:"out"`
	Digest   string  `json:"digest,omitempty"`
	Revision string  `json:"revision,omitempty"`
	Attempt  string  `json:"attempt,omitempty"`
}

// Show reads a checkpoint without taking it over or changing it, while a job runs on it or not. What is wrong with it
// is in the summary's findings; only a directory that cannot be read is an error.
func Show(ctx context.Context, files durable.Files, dir string) (*Summary, error) {
	if err := isCheckpoint(files, dir); err != nil {
		return nil, err
	}
	v, err := lookSteady(ctx, files, dir)
	if err != nil {
		return nil, err
	}
	s := &Summary{
		Oldest: v.offsets.first(), LastPlan: v.offsets.last(), LastDecision: v.commits.last(),
		Findings: v.findings, Sources: []SourceSummary{}, Targets: []TargetSummary{}, Batches: []BatchSummary{},
	}
	s.identity(ctx, files, dir, v)
	d := s.records(ctx, files, dir, v)
	s.targets(readPublished(ctx, files, dir), d)
	s.standing(d)
	for _, log := range []*logView{&v.offsets, &v.commits} {
		for _, name := range log.side {
			if !strings.HasSuffix(name, ".crc") && !strings.HasSuffix(name, ".tmp") {
				s.Superseded = append(s.Superseded, log.dir+"/"+name)
			}
		}
	}
	return s, s.resolutions(ctx, files, dir)
}

// isCheckpoint refuses a directory that holds nothing of a checkpoint.
func isCheckpoint(files durable.Files, dir string) error {
	const wayOut = "give the directory that stands under `checkpoint` in the job file"
	entries, err := files.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return errorf(CodeMissing, wayOut, []string{dir}, "there is no such directory: %w", fs.ErrNotExist)
	}
	if err != nil {
		return ioError("list", dir, err)
	}
	for _, e := range entries {
		switch e.Name {
		case metadataFile, offsetsDir, commitsDir:
			return nil
		}
	}
	return errorf(CodeMissing, wayOut, []string{dir},
		"there is no checkpoint here: neither %s nor %s nor %s", metadataFile, offsetsDir, commitsDir)
}

func (s *Summary) identity(ctx context.Context, files durable.Files, dir string, v *dirView) {
	if v.hasMetadata && !v.kindFound(metadataFile) {
		id, err := readMetadata(ctx, files, dir)
		s.QueryID = id
		s.found(err)
	}
	if v.kindFound(ownerFile) {
		return
	}
	var owner ownerWire
	_, err := readNote(ctx, files, dir, ownerFile, &owner)
	s.found(err)
	s.Job = owner.Job
}

// found adds an error to the findings.
func (s *Summary) found(err error) {
	if err != nil {
		s.Findings = append(s.Findings, findingOf(err))
	}
}

// records reads the newest batches and returns the last decision.
func (s *Summary) records(ctx context.Context, files durable.Files, dir string, v *dirView) *Decision {
	ids := v.offsets.ids
	if len(ids) > shownBatches {
		ids = ids[len(ids)-shownBatches:]
	}
	var last *Decision
	for _, id := range ids {
		p, foreign, err := loadPlan(ctx, files, dir, id)
		if s.found(err); err != nil {
			continue
		}
		b := BatchSummary{Batch: id, TimeMS: p.TimeMS}
		s.Spark, s.WatermarkMS = foreign, p.WatermarkMS
		s.Sources = sourceSummaries(p)
		if v.commits.has(id) {
			d, _, err := loadDecision(ctx, files, dir, id)
			if s.found(err); err == nil {
				last = d
				b.decide(d)
				s.WatermarkMS = max(s.WatermarkMS, d.NextWatermarkMS)
			}
		}
		s.Batches = append(s.Batches, b)
	}
	if last != nil {
		s.Revision, s.StateBatch = last.Revision, last.StateLast
		for i, src := range s.Sources {
			s.Sources[i].WatermarkMS, s.Sources[i].Idle = last.Sources[src.Name].WatermarkMS, last.Sources[src.Name].Idle
		}
	}
	return last
}

func sourceSummaries(p *Plan) []SourceSummary {
	list := make([]SourceSummary, len(p.Sources))
	for i, src := range p.Sources {
		list[i] = SourceSummary{Number: i, Name: src.Name, Line: src.End.Line, Extra: src.End.Extra}
	}
	return list
}

func (b *BatchSummary) decide(d *Decision) {
	b.Decided, b.Digest, b.Revision, b.Attempt = true, d.Digest, d.Revision, d.Attempt
	for _, in := range d.Inputs {
		b.In += in.Records
	}
	for _, out := range d.Outputs {
		b.Out += out.Records
	}
}

func (s *Summary) targets(published map[string]PublishedMark, d *Decision) {
	if d == nil {
		return
	}
	for _, name := range sortedKeys(d.Targets) {
		mark, ok := published[name]
		if !ok {
			mark.Batch = NoBatch
		}
		s.Targets = append(s.Targets, TargetSummary{Name: name, Last: d.Targets[name].Last, Published: mark.Batch})
	}
}

// standing finds the words for the tail.
func (s *Summary) standing(d *Decision) {
	broken := len(s.Findings) > 0
	switch {
	case broken:
		s.Standing, s.Words = Broken, "something is wrong: "+s.Findings[0].File+": "+s.Findings[0].Message
	case s.LastPlan == NoBatch:
		s.Standing, s.Words = Empty, "no batch was planned yet"
	case s.LastDecision < s.LastPlan && s.Spark:
		s.Standing, s.Words = Undecided, fmt.Sprintf("batch %d is planned and not done: Spark will run it again", s.LastPlan)
	case s.LastDecision < s.LastPlan:
		s.Standing, s.Words = Undecided, fmt.Sprintf("batch %d is planned and not decided: the next start runs it again", s.LastPlan)
	case s.Spark:
		s.Standing, s.Words = Done, fmt.Sprintf("batch %d is done", s.LastPlan)
	case s.unpublished(d) != "":
		s.Standing, s.Words = Unpublished, fmt.Sprintf("batch %d is decided but maybe not published in %s: the next start makes sure; "+
			"Spark would take it for done", s.LastPlan, s.unpublished(d))
	default:
		s.Standing, s.Words = Done, fmt.Sprintf("batch %d is decided and published", s.LastPlan)
	}
}

// unpublished names the targets that are not known to have published the last batch.
func (s *Summary) unpublished(d *Decision) string {
	var list []string
	for _, t := range s.Targets {
		if d != nil && t.Last == d.Batch && t.Published < d.Batch {
			list = append(list, t.Name)
		}
	}
	return strings.Join(list, ", ")
}

func (s *Summary) resolutions(ctx context.Context, files durable.Files, dir string) error {
	infos, err := files.List(path.Join(dir, resolvedDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return ioError("list", resolvedDir, err)
	}
	for _, e := range infos {
		if !e.Regular || strings.HasPrefix(e.Name, ".") {
			continue
		}
		var r ResolutionRecord
		_, err := readNote(ctx, files, dir, resolvedDir+"/"+e.Name, &r)
		if s.found(err); err == nil {
			s.Resolutions = append(s.Resolutions, &r)
		}
	}
	return nil
}
