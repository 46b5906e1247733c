package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/source"
)

// parts are what a graph is wired from, by name.
type parts struct {
	sources  map[string]source.Source
	programs map[string]sandbox.Program
	modules  map[string]string // sha256
	targets  map[string]sink.Target
}

// wire makes the engine's graph of a job. The job's transforms may stand in any order in the file; the graph's stages are
// in topological order, ties in the order of the file.
func wire(j *job.Job, p parts) (*engine.Graph, engine.ErrorPolicy, error) {
	g := &engine.Graph{Lanes: j.Lanes}
	policy := engine.ErrorPolicy{Policy: engine.Policy(j.Errors.Policy), Sink: -1, Max: int(j.Errors.Max)}
	w := wirer{job: j, parts: p, graph: g, sources: map[string]int{}, stages: map[string]int{}}
	for i := range j.Sources {
		w.source(&j.Sources[i])
	}
	if err := w.transforms(); err != nil {
		return nil, policy, err
	}
	for i := range j.Sinks {
		s := &j.Sinks[i]
		node := engine.SinkNode{Name: s.Name, Target: p.targets[s.Name]}
		for _, in := range s.From {
			e, err := w.edge(in)
			if err != nil {
				return nil, policy, err
			}
			node.Inputs = append(node.Inputs, e)
		}
		if s.Name == j.Errors.DeadLetters {
			policy.Sink = i
		}
		g.Sinks = append(g.Sinks, node)
	}
	return g, policy, nil
}

type wirer struct {
	job     *job.Job
	parts   parts
	graph   *engine.Graph
	sources map[string]int
	stages  map[string]int
}

func (w *wirer) source(s *job.Source) {
	node := engine.SourceNode{
		Name: s.Name, Source: w.parts.sources[s.Name], Reads: reads(s),
		Limit: source.Limit{Records: s.Batch.MaxRecords, Bytes: s.Batch.MaxBytes},
	}
	node.SkipLost = s.Files != nil && s.Files.OnDataLoss == "skip" || s.Delta != nil && s.Delta.OnDataLoss == "skip" ||
		s.Kafka != nil && s.Kafka.OnDataLoss == "skip"
	node.EventTime = eventTime(s)
	w.sources[s.Name] = len(w.graph.Sources)
	w.graph.Sources = append(w.graph.Sources, node)
}

// reads is a mark of what a job file says of a source that decides what a plan holds: where the input lies and how it is cut. What is
// done about input that is lost is not of it, as a plan that was made anew would not miss what was lost since.
func reads(s *job.Source) string {
	mark := job.Source{Name: s.Name, Generator: s.Generator}
	if s.Files != nil {
		f := *s.Files
		f.OnDataLoss, f.Settle = "", 0
		mark.Files = &f
	}
	if s.Kafka != nil {
		k := *s.Kafka
		k.OnDataLoss, k.Group, k.Formats = "", "", job.Formats{}
		mark.Kafka = &k
	}
	if s.Delta != nil {
		d := *s.Delta
		d.OnDataLoss, d.OnChange = "", ""
		mark.Delta = &d
	}
	text, err := json.Marshal(mark)
	if err != nil {
		return "" // nothing in it can be without JSON: without a mark a plan is never outdated
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// eventTime is where a source's event time stands. Topics and the generator give records one of their own; files and tables
// without a pointer have none, and are left out of the watermark.
func eventTime(s *job.Source) *engine.EventTime {
	e := s.EventTime
	switch {
	case e != nil:
		return &engine.EventTime{
			Pointer: e.JSON, Unit: abi.TimeUnit(e.Unit),
			LatenessMS: e.Lateness.Milliseconds(), IdleMS: e.Idle.Milliseconds(), Complete: e.Complete,
		}
	case s.Files != nil, s.Delta != nil:
		return nil
	}
	return &engine.EventTime{}
}

// transforms adds the stages whose inputs are there until none is left. The job has no cycle, so each round adds one.
func (w *wirer) transforms() error {
	for len(w.stages) < len(w.job.Transforms) {
		before := len(w.stages)
		for i := range w.job.Transforms {
			t := &w.job.Transforms[i]
			if _, done := w.stages[t.Name]; done || !w.ready(t) {
				continue
			}
			if err := w.transform(t); err != nil {
				return err
			}
			break
		}
		if len(w.stages) == before {
			return fmt.Errorf("wire transforms: a cycle among them")
		}
	}
	return nil
}

func (w *wirer) ready(t *job.Transform) bool {
	for _, in := range t.From {
		_, src := w.sources[in.Name]
		_, stage := w.stages[in.Name]
		if !src && !stage {
			return false
		}
	}
	return true
}

func (w *wirer) transform(t *job.Transform) error {
	program := w.parts.programs[t.Name]
	node := engine.StageNode{
		Name: t.Name, Program: program, Module: w.parts.modules[t.Name],
		Fuel: engine.Fuel{Call: t.Limits.FuelCall, Record: t.Limits.FuelRecord},
	}
	var err error
	if node.DelayMS, err = job.Delay(program.Manifest(), t.Config); err != nil {
		return fmt.Errorf("transform %s: %w", t.Name, err)
	}
	for _, in := range t.From {
		e, err := w.edge(in)
		if err != nil {
			return err
		}
		e.KeyBy = keyBy(in.KeyBy)
		node.Inputs = append(node.Inputs, e)
	}
	w.stages[t.Name] = len(w.graph.Stages)
	w.graph.Stages = append(w.graph.Stages, node)
	return nil
}

func keyBy(k *job.KeyBy) *engine.KeyBy {
	if k == nil {
		return nil
	}
	return &engine.KeyBy{Key: k.Key, Header: k.Header, JSON: k.JSON}
}

// edge resolves a reference. CheckModules has found the ports that no manifest declares, in better words.
func (w *wirer) edge(in job.Input) (engine.Edge, error) {
	if i, ok := w.sources[in.Name]; ok {
		return engine.FromSource(i), nil
	}
	stage, ok := w.stages[in.Name]
	if !ok {
		return engine.Edge{}, fmt.Errorf("wire %s: there is no such source or transform", in.Ref())
	}
	if in.Port == "" {
		return engine.FromPort(stage, 0), nil
	}
	for p, o := range w.graph.Stages[stage].Program.Manifest().Outputs {
		if o.Name == in.Port {
			return engine.FromPort(stage, p), nil
		}
	}
	return engine.Edge{}, fmt.Errorf("wire %s: there is no such port", in.Ref())
}

// LatePort is the port that transforms send records to that come too late.
const LatePort = "late"

// LatePorts finds the ports for late records that nobody reads, so that what is sent there is dropped: the number of the
// port by transform.
func (p *Program) LatePorts() (map[string]int, error) {
	g, _, err := p.sketch()
	if err != nil {
		return nil, err
	}
	unread := UnreadPorts(g)
	out := map[string]int{}
	for i := range g.Stages {
		for port, o := range g.Stages[i].Program.Manifest().Outputs {
			if o.Name == LatePort && slices.Contains(unread, g.Stages[i].Name+"."+LatePort) {
				out[g.Stages[i].Name] = port
			}
		}
	}
	return out, nil
}

// UnreadPorts lists the ports, as name.port, that nobody in the job reads: what is sent there is dropped.
func UnreadPorts(g *engine.Graph) []string {
	read := map[engine.Edge]bool{}
	for i := range g.Stages {
		for _, e := range g.Stages[i].Inputs {
			e.KeyBy = nil
			read[e] = true
		}
	}
	for i := range g.Sinks {
		for _, e := range g.Sinks[i].Inputs {
			read[e] = true
		}
	}
	var out []string
	for i := range g.Stages {
		for p, o := range g.Stages[i].Program.Manifest().Outputs {
			if !read[engine.FromPort(i, p)] {
				out = append(out, g.Stages[i].Name+"."+o.Name)
			}
		}
	}
	return out
}
