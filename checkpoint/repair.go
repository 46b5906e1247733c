package checkpoint

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// RepairRequest says what is to be done.
type RepairRequest struct {
	Choice  Choice
	ID      string // for RestoreMetadata: the query id
	Job     string // for Rename: the new name
	Apply   bool   // do it; otherwise only say what would be done
	Options Options
}

// RepairStep is one durable change.
type RepairStep struct {
	Do   string `json:"do"` // move, write or remove
	File string `json:"file"`
	To   string `json:"to,omitempty"`   // the new name of what is moved
	Text string `json:"text,omitempty"` // the new content of what is written
}

// Repairs is what a repair does or has done.
type Repairs struct {
	Version int          `json:"version"`
	Choice  Choice       `json:"choice"`
	TimeMS  int64        `json:"timeMs"`
	Steps   []RepairStep `json:"steps"`
	Applied bool         `json:"applied"`
	// Record is the file that the repair is written down in before its first step.
	Record string `json:"record,omitempty"`
}

// Repair finds the steps of a choice and, when told to, takes them in order, each durable before the next. After one that
// was interrupted Verify offers the rest. Nothing is deleted but checksums: records are moved aside. No process may be
// running on the checkpoint.
func Repair(ctx context.Context, files durable.Files, dir string, req RepairRequest) (*Repairs, error) {
	if req.Options.Unique == nil {
		req.Options.Unique = durable.Unique
	}
	if !req.Apply {
		return planRepair(ctx, files, dir, req)
	}
	if err := isCheckpoint(files, dir); err != nil {
		return nil, err
	}
	var done *Repairs
	err := withLock(files, dir, req.Options, func(objects durable.Objects) error {
		r, err := planRepair(ctx, files, dir, req)
		if err != nil {
			return err
		}
		if err := r.record(ctx, files, dir, objects, req.Options); err != nil {
			return err
		}
		for _, step := range r.Steps {
			if err := step.take(ctx, files, dir, objects); err != nil {
				return err
			}
		}
		done = r
		return nil
	})
	return done, err
}

func planRepair(ctx context.Context, files durable.Files, dir string, req RepairRequest) (*Repairs, error) {
	s, err := verify(ctx, files, dir)
	if err != nil {
		return nil, err
	}
	for _, f := range s.report.Findings {
		if f.Code == CodeKind || f.Code == CodeFuture {
			return nil, errorf(f.Code, f.WayOut, []string{f.File}, "nothing can be repaired before this is settled: %s", f.Message)
		}
	}
	offered := slices.ContainsFunc(s.report.Offers, func(o Offer) bool { return o.Choice == req.Choice })
	if !offered && req.Choice != Rename {
		return nil, errorf(CodeInvalid, "run `wasmill checkpoint verify` to see what is offered", nil,
			"%.40q does not fit this checkpoint: %s", req.Choice, s.offeredWords())
	}
	steps, err := s.steps(req)
	if err != nil {
		return nil, err
	}
	return &Repairs{Version: formatVersion, Choice: req.Choice, TimeMS: req.Options.Clock(), Steps: steps}, nil
}

func (s *survey) offeredWords() string {
	switch {
	case len(s.report.Offers) > 0:
		words := "offered is"
		for _, o := range s.report.Offers {
			words += " " + string(o.Choice)
		}
		return words
	case s.report.OK():
		return "there is nothing to repair"
	}
	return "no repair keeps its query id going; `wasmill checkpoint fork` goes on under a new one"
}

func (s *survey) steps(req RepairRequest) ([]RepairStep, error) {
	switch req.Choice {
	case MoveTorn:
		return s.moveTorn(req.Options.Unique()), nil
	case Forget:
		text, err := marshal(retainedWire{Version: formatVersion, From: s.tailRun()})
		return []RepairStep{{Do: "write", File: retainedFile, Text: string(text)}}, err
	case Rewind:
		return s.rewind(req.Options.Unique()), nil
	case RestoreMetadata:
		return s.restore(req)
	case Rename:
		if req.Job == "" {
			return nil, errorf(CodeInvalid, "give the job's new name", nil, "a job without a name")
		}
		text, err := marshal(ownerWire{Version: formatVersion, Job: req.Job})
		return []RepairStep{{Do: "write", File: ownerFile, Text: string(text)}}, err
	case Clean:
		var steps []RepairStep
		for _, log := range []*logView{&s.view.offsets, &s.view.commits} {
			for _, id := range strayCRC(log) {
				steps = append(steps, RepairStep{Do: "remove", File: crcName(log.dir, id)})
			}
		}
		return steps, nil
	}
	return nil, errorf(CodeInvalid, wayVerify, nil, "%.40q is no choice", req.Choice)
}

func (s *survey) moveTorn(attempt string) []RepairStep {
	last := s.view.offsets.last()
	if s.view.commits.last() == last && s.decisions[last] == nil {
		return []RepairStep{moveStep(commitsDir, last, "torn-"+attempt)}
	}
	return []RepairStep{moveStep(offsetsDir, last, "torn-"+attempt)}
}

// rewind moves records from the newest down, each decision before its plan, so that what is left after any step is a
// shorter log of the same kind.
func (s *survey) rewind(attempt string) []RepairStep {
	var steps []RepairStep
	to := s.lastPair()
	for id := max(s.view.offsets.last(), s.view.commits.last()); id > to; id-- {
		for _, log := range []*logView{&s.view.commits, &s.view.offsets} {
			if log.has(id) {
				steps = append(steps, moveStep(log.dir, id, "rewound-"+attempt))
			}
		}
	}
	return steps
}

func moveStep(log string, id BatchID, suffix string) RepairStep {
	name := strconv.FormatInt(int64(id), 10)
	return RepairStep{Do: "move", File: log + "/" + name, To: log + "/." + name + "." + suffix}
}

func (s *survey) restore(req RepairRequest) ([]RepairStep, error) {
	const wayOut = "give the query id that the targets know the job by with --query-id UUID: " + queryIDStands +
		"; `wasmill checkpoint repair` without --yes shows what else fits"
	switch {
	case req.ID == "":
		return nil, errorf(CodeInvalid, wayOut, nil, "%s needs the query id", RestoreMetadata)
	case !uuidForm.MatchString(req.ID):
		return nil, errorf(CodeInvalid, wayOut, nil, "the query id %.80q is no UUID", req.ID)
	}
	text, err := marshal(metadataWire{ID: req.ID})
	return []RepairStep{{Do: "write", File: metadataFile, Text: string(text)}}, err
}

// record writes the repair down before its first step.
func (r *Repairs) record(ctx context.Context, files durable.Files, dir string, objects durable.Objects, opts Options) error {
	if err := durable.MakeDir(files, path.Join(dir, repairsDir)); err != nil {
		return ioError("make the directory", repairsDir, err)
	}
	if err := files.SyncDir(dir); err != nil {
		return ioError("sync", dir, err)
	}
	r.Applied = true
	r.Record = fmt.Sprintf("%s/%d-%s.json", repairsDir, r.TimeMS, opts.Unique())
	text, err := marshal(r)
	if err != nil {
		return err
	}
	return ioError("write", r.Record, objects.PutIfAbsent(ctx, r.Record, text))
}

func (step RepairStep) take(ctx context.Context, files durable.Files, dir string, objects durable.Objects) error {
	switch step.Do {
	case "write":
		return ioError("write", step.File, objects.Replace(ctx, step.File, []byte(step.Text)))
	case "remove":
		return ioError("remove", step.File, objects.Remove(ctx, step.File))
	}
	log, name := path.Dir(step.File), path.Base(step.File)
	id, _ := parseID(name)
	return moveAside(files, dir, log, id, path.Base(step.To)[len(name)+2:])
}
