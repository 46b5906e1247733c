package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/wasmill/wasmill/host/rows"
)

// AsOf returns the job as it was under an earlier revision, as far as output depends on it: lanes, source formats,
// transforms with the modules that the checkpoint keeps, what feeds the sinks, the error policy. Paths and connections are
// those of j. A sink must still be there and have the form it had: what it wrote and what it will write must fit together. One
// whose columns are not in the job file has those that it had.
func (j *Job) AsOf(canonical []byte) (*Job, error) {
	var r revision
	if err := json.Unmarshal(canonical, &r); err != nil {
		return nil, fmt.Errorf("read the revision: %w", err)
	}
	old := *j
	old.Lanes = r.Lanes
	old.Errors = ErrorPolicy(r.Errors)
	var err error
	if old.Sources, err = j.sourcesAsOf(&r); err != nil {
		return nil, err
	}
	old.Transforms = nil
	for _, t := range r.Transforms {
		was, err := t.transform()
		if err != nil {
			return nil, err
		}
		was.Limits.Log = j.logLimit(t.Name)
		old.Transforms = append(old.Transforms, was)
	}
	old.Sinks, err = j.sinksAsOf(&r)
	return &old, err
}

func (j *Job) sourcesAsOf(r *revision) ([]Source, error) {
	var out []Source
	for i := range j.Sources {
		s := j.Sources[i]
		was, ok := r.Sources[s.Name]
		if !ok {
			continue
		}
		now := reviseSource(&s)
		now.EventTime, was.EventTime = nil, nil
		if !reflect.DeepEqual(now, was) {
			return nil, fmt.Errorf("source %s has another format than it had", s.Name)
		}
		s.EventTime = nil
		if e := r.Sources[s.Name].EventTime; e != nil {
			s.EventTime = &EventTime{
				JSON: e.JSON, Unit: e.Unit, Timestamp: e.JSON == "", Lateness: milliseconds(e.LatenessMS), Idle: milliseconds(e.IdleMS), Complete: e.Complete,
			}
		}
		out = append(out, s)
	}
	if len(out) != len(r.Sources) {
		return nil, errors.New("a source that it read is no longer in the job")
	}
	return out, nil
}

func (t *revisionTransform) transform() (Transform, error) {
	out := Transform{Name: t.Name, Config: t.Config, Module: Module{Ref: "sha256:" + t.Module, SHA256: t.Module}, Limits: t.Limits.limits()}
	for i, ref := range t.From {
		in := inputOf(ref)
		if i < len(t.KeyBy) && t.KeyBy[i] != nil {
			k := KeyBy(*t.KeyBy[i])
			in.KeyBy = &k
		}
		out.From = append(out.From, in)
	}
	if len(out.From) == 0 {
		return out, fmt.Errorf("transform %s has no input", t.Name)
	}
	return out, nil
}

func (l revisionLimits) limits() Limits {
	return Limits{Memory: l.Memory, FuelCall: l.FuelCall, FuelRecord: l.FuelRecord, Depth: l.Depth, Output: l.Output}
}

// logLimit is the log limit that the job gives a transform now: no revision holds it. It is 0, which stands for the
// default, when there is no such transform any more.
func (j *Job) logLimit(transform string) int64 {
	for i := range j.Transforms {
		if j.Transforms[i].Name == transform {
			return j.Transforms[i].Limits.Log
		}
	}
	return 0
}

// inputOf reads a reference: name or name.port.
func inputOf(ref string) Input {
	name, port, _ := strings.Cut(ref, ".")
	return Input{Name: name, Port: port}
}

// sinksAsOf are the sinks that a revision had. One that has come since got nothing of its batches.
func (j *Job) sinksAsOf(r *revision) ([]Sink, error) {
	was := map[string]revisionSink{}
	for _, s := range r.Sinks {
		was[s.Name] = s
	}
	var out []Sink
	for i := range j.Sinks {
		s := j.Sinks[i]
		old, ok := was[s.Name]
		if !ok {
			continue // it was not there
		}
		s.From = nil
		for _, ref := range old.From {
			s.From = append(s.From, inputOf(ref))
		}
		if s.found || s.mayTakeColumns() {
			columns, err := columnsAsOf(old.Schema)
			if err != nil {
				return nil, fmt.Errorf("sink %s: %w", s.Name, err)
			}
			s = s.withColumns(columns)
		}
		now := reviseSink(&s)
		now.From, old.From = nil, nil
		if !sameSink(now, old) {
			return nil, fmt.Errorf("sink %s has another schema or layout than it had", s.Name)
		}
		out = append(out, s)
		delete(was, s.Name)
	}
	if len(was) > 0 {
		return nil, fmt.Errorf("sink %s, which it wrote to, is no longer in the job", slices.Min(slices.Collect(maps.Keys(was))))
	}
	return out, nil
}

func columnsAsOf(was []revisionColumn) ([]Column, error) {
	var columns []Column
	for _, c := range was {
		t, err := rows.ParseType(c.Type)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.Name, err)
		}
		columns = append(columns, Column{Name: c.Name, Type: columnTypeOf(t)})
	}
	return columns, nil
}

// withColumns returns the sink with other columns.
func (s Sink) withColumns(columns []Column) Sink {
	switch {
	case s.Files != nil:
		f := *s.Files
		s.Files = &f
	case s.Delta != nil:
		d := *s.Delta
		s.Delta = &d
	case s.SQL != nil:
		q := *s.SQL
		s.SQL = &q
	}
	s.SetColumns(columns)
	return s
}

// WithColumns returns the job with the columns that its sinks had under an earlier revision, where its file has no schema
// for them. Sinks whose columns are not known even so are left out. A revision of nil knows none.
func (j *Job) WithColumns(canonical []byte) (*Job, error) {
	if !slices.ContainsFunc(j.Sinks, func(s Sink) bool { return s.mayTakeColumns() }) {
		return j, nil
	}
	var r revision
	if canonical != nil {
		if err := json.Unmarshal(canonical, &r); err != nil {
			return nil, fmt.Errorf("read the revision: %w", err)
		}
	}
	out := *j
	out.Sinks = nil
	for _, s := range j.Sinks {
		at := -1
		if s.mayTakeColumns() {
			at = slices.IndexFunc(r.Sinks, func(was revisionSink) bool { return was.Name == s.Name && was.Schema != nil })
		}
		if at < 0 && s.needsColumns() {
			continue
		}
		if at >= 0 {
			columns, err := columnsAsOf(r.Sinks[at].Schema)
			if err != nil {
				return nil, fmt.Errorf("sink %s: %w", s.Name, err)
			}
			s = s.withColumns(columns)
		}
		out.Sinks = append(out.Sinks, s)
	}
	return &out, nil
}

// sameSink compares the canonical texts: null and absent lists are the same.
func sameSink(a, b revisionSink) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
