package checkpoint

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// Report is the outcome of reading every record of a checkpoint.
type Report struct {
	Findings  []Finding `json:"findings"`
	Plans     int       `json:"plans"`     // readable ones
	Decisions int       `json:"decisions"` // readable ones
	Spark     bool      `json:"spark,omitempty"`
	Offers    []Offer   `json:"offers,omitempty"` // what repair can do about it
}

// OK reports whether nothing keeps the job from going on.
func (r *Report) OK() bool {
	for _, f := range r.Findings {
		if !f.Note {
			return false
		}
	}
	return true
}

func (r *Report) add(f Finding) { r.Findings = append(r.Findings, f) }

func (r *Report) note(code, file, wayOut, format string, args ...any) {
	f := newFinding(code, file, wayOut, format, args...)
	f.Note = true
	r.add(f)
}

// survey is what Verify has learned, for the offers of repair.
type survey struct {
	view      *dirView
	plans     map[BatchID]*Plan
	decisions map[BatchID]*Decision
	report    *Report
}

// Verify reads all of a checkpoint and says everything that is wrong with it, changing nothing. It does not ask the
// targets: whether they fit the checkpoint is found out when the job starts.
func Verify(ctx context.Context, files durable.Files, dir string) (*Report, error) {
	s, err := verify(ctx, files, dir)
	if err != nil {
		return nil, err
	}
	return s.report, nil
}

func verify(ctx context.Context, files durable.Files, dir string) (*survey, error) {
	if err := isCheckpoint(files, dir); err != nil {
		return nil, err
	}
	v, err := lookSteady(ctx, files, dir)
	if err != nil {
		return nil, err
	}
	s := &survey{view: v, plans: make(map[BatchID]*Plan), decisions: make(map[BatchID]*Decision), report: &Report{Findings: []Finding{}}}
	for _, f := range v.findings {
		if f.Code != CodeUnreadable || !s.isRecord(f.File) { // found again, with more detail, when it is read
			s.report.add(f)
		}
	}
	if err := s.readIdentity(ctx, files, dir); err != nil {
		return nil, err
	}
	if err := s.readRecords(ctx, files, dir); err != nil {
		return nil, err
	}
	s.compare()
	if err := s.artifacts(ctx, files, dir); err != nil {
		return nil, err
	}
	s.leftovers()
	s.report.Offers = s.offers()
	for i := range s.report.Findings {
		if f := &s.report.Findings[i]; f.WayOut == wayVerify {
			f.WayOut = wayRepair
		}
	}
	return s, nil
}

func (s *survey) isRecord(file string) bool {
	return slices.ContainsFunc(s.view.offsets.ids, func(id BatchID) bool { return s.view.offsets.name(id) == file }) ||
		slices.ContainsFunc(s.view.commits.ids, func(id BatchID) bool { return s.view.commits.name(id) == file })
}

// take adds an error about the checkpoint to the report and passes on one about reading it.
func (s *survey) take(err error) error {
	var coded *Error
	if err == nil || (errors.As(err, &coded) && (coded.ErrCode == CodeIO || coded.ErrCode == CodeDenied)) {
		return err
	}
	var torn *TornError
	if coded == nil && !errors.As(err, &torn) {
		return err
	}
	s.report.add(findingOf(err))
	return nil
}

func (s *survey) readIdentity(ctx context.Context, files durable.Files, dir string) error {
	if s.view.hasMetadata && !s.view.kindFound(metadataFile) {
		_, err := readMetadata(ctx, files, dir)
		if err := s.take(err); err != nil {
			return err
		}
	}
	if s.view.kindFound(ownerFile) {
		return nil
	}
	var owner ownerWire
	_, err := readNote(ctx, files, dir, ownerFile, &owner)
	return s.take(err)
}

// readRecords decodes every record. An incomplete one is torn if it is the last of its log, and unreadable otherwise.
func (s *survey) readRecords(ctx context.Context, files durable.Files, dir string) error {
	v := s.view
	lastPlan, lastDecision := v.offsets.last(), v.commits.last()
	for _, id := range v.offsets.ids {
		p, foreign, err := loadPlan(ctx, files, dir, id)
		if id != lastPlan || lastDecision >= id {
			err = whole(err)
		}
		if err == nil {
			s.plans[id] = p
			s.report.Spark = foreign
			continue
		}
		if err := s.take(err); err != nil {
			return err
		}
	}
	for _, id := range v.commits.ids {
		d, foreign, err := loadDecision(ctx, files, dir, id)
		if id != lastDecision || lastPlan > id {
			err = whole(err)
		}
		if err == nil && foreign && !s.report.Spark {
			err = errorf(CodeForeign, wayForeign, []string{recordName(commitsDir, id)}, "Spark has taken this batch over")
		}
		if err == nil {
			s.decisions[id] = d
			continue
		}
		if err := s.take(err); err != nil {
			return err
		}
	}
	s.report.Plans, s.report.Decisions = len(s.plans), len(s.decisions)
	return nil
}

// compare looks at neighbouring records: sources keep their numbers, watermarks never go back.
func (s *survey) compare() {
	var before *Plan
	for _, id := range s.view.offsets.ids {
		p := s.plans[id]
		if p == nil {
			before = nil
			continue
		}
		if before != nil {
			s.compareSources(before, p)
			if p.WatermarkMS < before.WatermarkMS {
				s.report.note(CodeUnreadable, recordName(offsetsDir, id), wayVerify,
					"its watermark %d is behind the one before, %d", p.WatermarkMS, before.WatermarkMS)
			}
		}
		before = p
	}
	last := s.plans[s.view.offsets.last()]
	if last == nil || !s.report.Spark {
		return
	}
	s.report.note(CodeForeign, recordName(offsetsDir, last.Batch), wayForeign, "a query of Spark's; wasmill reads it and writes nothing into it")
	if s.view.commits.last() < last.Batch {
		s.report.note(CodeForeign, recordName(offsetsDir, last.Batch), "let Spark finish the batch, or fork from the batch before it",
			"batch %d is planned and not done", last.Batch)
	}
}

func (s *survey) compareSources(before, p *Plan) {
	if len(p.Sources) < len(before.Sources) {
		s.report.add(newFinding(CodeUnreadable, recordName(offsetsDir, p.Batch), wayVerify,
			"%d sources, where the plan before has %d", len(p.Sources), len(before.Sources)))
		return
	}
	for i, src := range before.Sources {
		if p.Sources[i].Name != src.Name {
			s.report.add(newFinding(CodeUnreadable, recordName(offsetsDir, p.Batch), wayVerify,
				"source %d is %s, and was %s in the plan before", i, p.Sources[i].Name, src.Name))
		}
	}
}

var moduleRef = regexp.MustCompile(`"module":\s*"(?:sha256:)?([0-9a-f]{64})"`)

// artifacts checks that the revisions and modules of the decisions are there and whole. Without one its batches can
// still be published, but not run again.
func (s *survey) artifacts(ctx context.Context, files durable.Files, dir string) error {
	checked := make(map[string]bool)
	check := func(name, sha string, limit int64, batch BatchID) ([]byte, error) {
		if checked[name] {
			return nil, nil
		}
		checked[name] = true
		content, err := readArtifact(ctx, files, dir, name, sha, limit)
		var coded *Error
		if errors.As(err, &coded) && (coded.ErrCode == CodeMissing || coded.ErrCode == CodeDamaged || coded.ErrCode == CodeInvalid) {
			s.report.note(coded.ErrCode, name, "keep it from now on; batches that need it can be published but not replayed",
				"batch %d needs it: %v", batch, coded.Err)
			return nil, nil
		}
		return content, err
	}
	for _, id := range s.view.commits.ids {
		d := s.decisions[id]
		if d == nil || d.Revision == "" {
			continue
		}
		revision, err := check(revisionName(d.Revision), d.Revision, maxRevision, id)
		if err != nil {
			return err
		}
		for _, m := range moduleRef.FindAllSubmatch(revision, -1) {
			sha := string(m[1])
			if _, err := check(moduleName(sha), sha, maxModule, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// leftovers finds Hadoop's checksums without their record.
func (s *survey) leftovers() {
	for _, log := range []*logView{&s.view.offsets, &s.view.commits} {
		for _, id := range strayCRC(log) {
			s.report.note(CodeLeftover, crcName(log.dir, id), "run `wasmill checkpoint repair --choice clean`",
				"a checksum without its record: Spark could not write batch %d", id)
		}
	}
}

func strayCRC(log *logView) []BatchID {
	var list []BatchID
	for _, name := range log.side {
		id, ok := parseID(strings.TrimSuffix(strings.TrimPrefix(name, "."), ".crc"))
		if ok && strings.HasSuffix(name, ".crc") && !log.has(id) {
			list = append(list, id)
		}
	}
	return list
}
