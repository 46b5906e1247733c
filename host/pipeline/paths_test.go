package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sink"
)

// manifestOnly is a program that only says what it declares.
type manifestOnly struct {
	sandbox.Program
	outputs []string
}

func (m manifestOnly) Manifest() *abi.Manifest {
	out := &abi.Manifest{}
	for _, name := range m.outputs {
		out.Outputs = append(out.Outputs, abi.OutputPort{Name: name})
	}
	return out
}

// traitsOnly is a target that only says what it promises.
type traitsOnly struct{ sink.Target }

func (traitsOnly) Traits() sink.Traits {
	return sink.Traits{Guarantee: sink.ExactlyOnce, Why: "because"}
}

func stage(name string, outputs []string, inputs ...engine.Edge) engine.StageNode {
	return engine.StageNode{Name: name, Program: manifestOnly{outputs: outputs}, Inputs: inputs}
}

func TestPaths(t *testing.T) {
	g := &engine.Graph{
		Sources: []engine.SourceNode{{Name: "a"}, {Name: "b"}},
		Stages: []engine.StageNode{
			stage("split", []string{"good", "bad"}, engine.FromSource(0)),
			stage("join", []string{"out"}, engine.FromPort(0, 0), engine.FromSource(1)),
		},
		Sinks: []engine.SinkNode{
			{Name: "table", Target: traitsOnly{}, Inputs: []engine.Edge{engine.FromPort(1, 0)}},
			{Name: "raw", Target: traitsOnly{}, Inputs: []engine.Edge{engine.FromSource(1), engine.FromPort(0, 1)}},
			{Name: "dead", Target: traitsOnly{}},
		},
	}
	var got []string
	for _, p := range paths(g, engine.ErrorPolicy{Policy: engine.DeadLetter, Sink: 2}) {
		if p.Guarantee != sink.ExactlyOnce || p.Why != "because" {
			t.Errorf("%v is %s: %s", p.Steps, p.Guarantee, p.Why)
		}
		got = append(got, strings.Join(p.Steps, ">"))
	}
	want := []string{"a>split.good>join>table", "b>join>table", "b>raw", "a>split.bad>raw", "(set aside anywhere)>dead"}
	if !slices.Equal(got, want) {
		t.Errorf("paths are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if unread := UnreadPorts(g); len(unread) != 0 {
		t.Errorf("unread are %v", unread)
	}
}

// TestPathsAreBounded: a graph that splits and joins again forty times has 2^40 ways through it.
func TestPathsAreBounded(t *testing.T) {
	g := &engine.Graph{Sources: []engine.SourceNode{{Name: "a"}}}
	from := engine.FromSource(0)
	for i := range 40 {
		g.Stages = append(g.Stages, stage(fmt.Sprint("s", i), []string{"x", "y"}, from, from))
		from = engine.FromPort(i, 0)
	}
	g.Sinks = []engine.SinkNode{{Name: "out", Target: traitsOnly{}, Inputs: []engine.Edge{from}}}
	if got := paths(g, engine.ErrorPolicy{Sink: -1}); len(got) != maxPaths || len(got[0].Steps) != 42 {
		t.Errorf("%d paths of %d steps", len(got), len(got[0].Steps))
	}
	if unread := UnreadPorts(g); len(unread) != 40 || unread[0] != "s0.y" {
		t.Errorf("unread are %v", unread)
	}
}
