package pipeline

import (
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/sink"
)

// Path is one way that records take through a job.
type Path struct {
	Steps     []string // source, transforms as name.port, sink
	Guarantee sink.Guarantee
	Why       string
}

// maxPaths bounds how many ways are listed: a graph of transforms that join again has more of them than anyone reads.
const maxPaths = 200

// deadLetters stands for where the records come from that a sink of dead letters takes.
const deadLetters = "(set aside anywhere)"

// paths lists the ways from sources to sinks, in the order of the sinks.
func paths(g *engine.Graph, policy engine.ErrorPolicy) []Path {
	var out []Path
	for i := range g.Sinks {
		s := &g.Sinks[i]
		add := func(steps []string) {
			t := s.Target.Traits()
			if len(out) < maxPaths {
				out = append(out, Path{Steps: append(steps, s.Name), Guarantee: t.Guarantee, Why: t.Why})
			}
		}
		if policy.Sink == i {
			add([]string{deadLetters})
		}
		for _, e := range s.Inputs {
			for _, steps := range waysTo(g, e, maxPaths) {
				add(steps)
			}
		}
	}
	return out
}

// waysTo lists the ways that end with an edge, at most so many.
func waysTo(g *engine.Graph, e engine.Edge, most int) [][]string {
	if e.Source >= 0 {
		return [][]string{{g.Sources[e.Source].Name}}
	}
	stage := &g.Stages[e.Stage]
	step := stage.Name
	if outputs := stage.Program.Manifest().Outputs; len(outputs) > 1 {
		step += "." + outputs[e.Port].Name
	}
	var out [][]string
	for _, in := range stage.Inputs {
		if len(out) >= most {
			break
		}
		for _, way := range waysTo(g, in, most-len(out)) {
			out = append(out, append(way, step))
		}
	}
	return out
}
