package pipeline

import (
	"fmt"
	"strings"

	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/job"
)

// guarantees lists the targets that promise something else than when the last decision was made. It is no part of a revision,
// as it changes no output.
func (p *Program) guarantees(t *tail) ([]job.Change, error) {
	if t.before == nil {
		return nil, nil
	}
	g, _, err := p.sketch()
	if err != nil {
		return nil, err
	}
	var out []job.Change
	seen := map[string]bool{}
	for i := range g.Sinks {
		target := g.Sinks[i].Target
		id, traits := target.ID(), target.Traits()
		was := t.before.Targets[id]
		if seen[id] || !traits.Chosen || was.Guarantee == "" || was.Guarantee == string(traits.Guarantee) {
			continue
		}
		seen[id] = true
		what := fmt.Sprintf("%s becomes %s for %s: ", was.Guarantee, traits.Guarantee, sinksOn(g, id))
		switch {
		case !engine.Raised(target, t.before):
			what += "from now on a batch that is cut off may be published twice, also the last one of before"
		case was.Last < 0:
			what += "it holds for all batches, as none was published before"
		default:
			what += fmt.Sprintf("it holds from now on. That everything up to batch %d is published is taken for granted: what an older copy of the output lacks is not published again, "+
				"and what is there twice, as the last batch may be, stays", was.Last)
		}
		out = append(out, job.Change{Path: "connections." + id, What: what, Severity: job.NeedsConsent})
	}
	return out, nil
}

// sinksOn names the sinks of a target.
func sinksOn(g *engine.Graph, target string) string {
	var names []string
	for i := range g.Sinks {
		if g.Sinks[i].Target.ID() == target {
			names = append(names, g.Sinks[i].Name)
		}
	}
	if len(names) == 1 {
		return "the sink " + names[0]
	}
	return "the sinks " + strings.Join(names, ", ")
}
