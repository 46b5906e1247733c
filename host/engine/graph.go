package engine

import (
	"fmt"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/statestore"
)

// Graph is a job's data flow: sources feed stages, stages feed stages and sinks. Stages stand in topological order.
type Graph struct {
	Lanes   int // L, the unit of parallelism and of order
	Sources []SourceNode
	Stages  []StageNode
	Sinks   []SinkNode
}

// SourceNode is one input of the job.
type SourceNode struct {
	Name      string
	Source    source.Source
	Limit     source.Limit
	EventTime *EventTime // nil: the source's own, if it has one, without lateness
	// Reads is a mark of the settings that say what is read and how. An undecided batch is planned anew when they have changed: a
	// mistake in them does not stick.
	Reads string
	// SkipLost: what a planned batch can no longer read is left out, by an amended plan, instead of stopping the job.
	SkipLost bool
}

// EventTime says where a source's event time stands and what it says about the watermark. Durations are milliseconds.
type EventTime struct {
	Pointer string       // RFC 6901, into the value; "" when the source gives its records a time of their own
	Unit    abi.TimeUnit // of an integer; abi.NoUnit when only RFC 3339 texts are expected
	// LatenessMS is how far the watermark stays behind the newest event time.
	LatenessMS int64
	// IdleMS is after how long without a record the watermark goes on with the clock; 0 never.
	IdleMS int64
	// Complete: when the source has come to its end, nothing is to come any more and the watermark goes to the end of time.
	Complete bool
}

// StageNode is one transform.
type StageNode struct {
	Name    string
	Program sandbox.Program
	Module  string // sha256, named in dead letters
	Fuel    Fuel
	Inputs  []Edge // by `from` entry; all of them with a key, or none
	// DelayMS is how far what it emits may lie behind its watermark, in milliseconds of event time.
	DelayMS int64
	behind  int64 // how far its watermark lies behind the job's
}

// Keyed reports whether the stage has keys, and so state.
func (s *StageNode) Keyed() bool { return len(s.Inputs) > 0 && s.Inputs[0].KeyBy != nil }

// Fuel is what a call of a guest may use, for the call and for each record.
type Fuel struct {
	Call, Record uint64
}

// SinkNode is one output of the job.
type SinkNode struct {
	Name   string
	Target sink.Target
	Inputs []Edge // by `from` entry; none for the sink of the dead letters
}

// Edge is where an input comes from: a source, or a port of a stage.
type Edge struct {
	Source int // index into Sources, or -1
	Stage  int // index into Stages, or -1
	Port   int // of the stage
	KeyBy  *KeyBy
}

// KeyBy says what a keyed stage takes as the key of its input. One of its fields is set.
type KeyBy struct {
	Key    bool     // the record's own key
	Header string   // the value of the first header of that name
	JSON   []string // pointers into the value, RFC 6901
}

// FromSource is the edge out of source i.
func FromSource(i int) Edge { return Edge{Source: i, Stage: -1} }

// FromPort is the edge out of a port of stage i.
func FromPort(i, port int) Edge { return Edge{Source: -1, Stage: i, Port: port} }

// ErrorPolicy says what becomes of a record that cannot be processed.
type ErrorPolicy struct {
	Policy Policy
	Sink   int // index into Sinks of the dead letters, or -1
	Max    int // records set aside alone in one batch before it fails
}

// Policy is the choice for records that cannot be processed.
type Policy string

// The policies.
const (
	Stop       Policy = "stop"
	DeadLetter Policy = "dead-letter"
	Skip       Policy = "skip"
)

// maxPoison bounds how many records a lane of a batch is started again without.
const maxPoison = 16

// inputPort returns the manifest's input port that a stage's `from` entry feeds: one declared input takes all entries,
// else they match by position.
func (s *StageNode) inputPort(entry int) *abi.InputPort {
	in := s.Program.Manifest().Inputs
	switch {
	case len(in) == 0:
		return &abi.InputPort{}
	case len(in) == 1:
		return &in[0]
	case entry < len(in):
		return &in[entry]
	}
	return &abi.InputPort{}
}

// rounds says by stage how many exchanges lie before it: stages of one round need no lane but their own.
func (g *Graph) rounds() []int {
	out := make([]int, len(g.Stages))
	for i := range g.Stages {
		for _, e := range g.Stages[i].Inputs {
			if e.Stage >= 0 {
				out[i] = max(out[i], out[e.Stage])
			}
		}
		if g.Stages[i].Keyed() {
			out[i]++
		}
	}
	return out
}

// keyed lists what state the stages with keys have, in the order of the graph.
func (g *Graph) keyed() []statestore.Stage {
	var out []statestore.Stage
	for i := range g.Stages {
		st := &g.Stages[i]
		if !st.Keyed() {
			continue
		}
		s := statestore.Stage{Name: st.Name}
		for _, t := range st.Program.Manifest().Tables {
			s.Tables = append(s.Tables, t.Name)
		}
		out = append(out, s)
	}
	return out
}

// check completes a graph and reports one that the engine cannot run. The job's own validation has better words; this guards the seam.
func (g *Graph) check() error {
	if g.Lanes < 1 {
		return fmt.Errorf("check graph: %d lanes", g.Lanes)
	}
	g.delays()
	for i := range g.Stages {
		st := &g.Stages[i]
		if len(st.Inputs) == 0 {
			return fmt.Errorf("check graph: stage %s has no input", st.Name)
		}
		for _, e := range st.Inputs {
			if err := g.checkEdge(e, i); err != nil {
				return fmt.Errorf("check graph: stage %s: %w", st.Name, err)
			}
			if (e.KeyBy != nil) != st.Keyed() {
				return fmt.Errorf("check graph: stage %s has a key for some inputs only", st.Name)
			}
		}
	}
	for i := range g.Sinks {
		for _, e := range g.Sinks[i].Inputs {
			if err := g.checkEdge(e, len(g.Stages)); err != nil {
				return fmt.Errorf("check graph: sink %s: %w", g.Sinks[i].Name, err)
			}
		}
	}
	return nil
}

func (g *Graph) checkEdge(e Edge, before int) error {
	if e.Stage < 0 {
		if e.Source < 0 || e.Source >= len(g.Sources) {
			return fmt.Errorf("no source %d", e.Source)
		}
		return nil
	}
	if e.Stage >= before {
		return fmt.Errorf("stage %d does not come earlier", e.Stage)
	}
	if n := len(g.Stages[e.Stage].Program.Manifest().Outputs); e.Port < 0 || e.Port >= n {
		return fmt.Errorf("stage %s has no port %d", g.Stages[e.Stage].Name, e.Port)
	}
	return nil
}

// targets returns the distinct targets in order of first use by a sink.
func (g *Graph) targets() []sink.Target {
	var out []sink.Target
	seen := map[string]bool{}
	for i := range g.Sinks {
		t := g.Sinks[i].Target
		if !seen[t.ID()] {
			seen[t.ID()] = true
			out = append(out, t)
		}
	}
	return out
}
