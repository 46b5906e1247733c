package job

import (
	"fmt"
	"slices"
	"strings"
)

// graph knows what the names of a job refer to.
type graph struct {
	sources    map[string]bool
	transforms map[string]int // index in Job.Transforms
	sinks      map[string]int
	names      []string // of sources and transforms, in file order
}

// graph checks that names are unique, that references resolve, and that no transform feeds itself. Sources and
// transforms share one set of names, because `from` refers to both; sinks have their own.
func (c *checker) graph(j *Job, spec *value) *graph {
	g := &graph{sources: map[string]bool{}, transforms: map[string]int{}, sinks: map[string]int{}}
	owner := map[string]string{}
	for i, s := range spec.at("sources").items {
		if c.claim(s, owner, "source") {
			g.sources[j.Sources[i].Name] = true
			g.names = append(g.names, j.Sources[i].Name)
		}
	}
	for i, t := range spec.at("transforms").items {
		if c.claim(t, owner, "transform") {
			g.transforms[j.Transforms[i].Name] = i
			g.names = append(g.names, j.Transforms[i].Name)
		}
	}
	sinkOwner := map[string]string{}
	for i, s := range spec.at("sinks").items {
		if c.claim(s, sinkOwner, "sink") {
			g.sinks[j.Sinks[i].Name] = i
		}
	}
	for _, t := range spec.at("transforms").items {
		for _, in := range t.at("from").items {
			c.refer(g, in.at("input"))
		}
	}
	for _, s := range spec.at("sinks").items {
		c.unique(s.at("from"), "input")
		for _, in := range s.at("from").items {
			c.refer(g, in)
		}
	}
	c.cycles(g, j, spec)
	return g
}

// claim takes the name of a source, transform or sink.
func (c *checker) claim(v *value, owner map[string]string, what string) bool {
	n := v.at("name")
	if !n.good() {
		return false
	}
	if other, taken := owner[n.text]; taken {
		c.wrongAt(n.path, CodeDuplicate, fmt.Sprintf("the name %q is already taken by a %s", n.text, other), "")
		return false
	}
	owner[n.text] = what
	return true
}

// refer demands that a ref names a source, a transform or a transform's port. Which ports a transform has is only known
// from its module.
func (c *checker) refer(g *graph, v *value) {
	if !v.good() {
		return
	}
	name, port, hasPort := strings.Cut(v.text, ".")
	switch {
	case g.sources[name] && hasPort:
		c.wrongAt(v.path, CodeReference, fmt.Sprintf("%q is a source and has no ports", name), fmt.Sprintf("%q", name))
	case g.sources[name]:
	default:
		if _, ok := g.transforms[name]; ok {
			return
		}
		suggestion := closest(name, g.names)
		if hasPort && suggestion != "" {
			suggestion = strings.TrimSuffix(suggestion, `"`) + "." + port + `"`
		}
		message := fmt.Sprintf("no source or transform is called %q", name)
		if suggestion == "" && len(g.names) > 0 && len(g.names) <= 8 {
			message += "; there are " + strings.Join(g.names, ", ")
		}
		c.wrongAt(v.path, CodeReference, message, suggestion)
	}
}

// cycles reports each loop of transforms once, at the entry of `from` that closes it.
func (c *checker) cycles(g *graph, j *Job, spec *value) {
	state := make([]int, len(j.Transforms)) // 0 new, 1 on the path, 2 done
	var path []string
	var visit func(i int)
	visit = func(i int) {
		state[i] = 1
		path = append(path, j.Transforms[i].Name)
		for k, in := range j.Transforms[i].From {
			up, ok := g.transforms[in.Name]
			if !ok {
				continue
			}
			switch state[up] {
			case 0:
				visit(up)
			case 1:
				loop := slices.Clone(path[slices.Index(path, in.Name):])
				slices.Reverse(loop) // the path runs against the records
				loop = append([]string{in.Name}, loop[:len(loop)-1]...)
				loop = append(loop, in.Name)
				from := spec.at("transforms").items[i].at("from").items[k]
				c.wrongAt(from.path, CodeCycle, "transforms feed each other in a loop: "+strings.Join(loop, " -> "), "")
			}
		}
		path = path[:len(path)-1]
		state[i] = 2
	}
	for i := range j.Transforms {
		if at, ok := g.transforms[j.Transforms[i].Name]; ok && at == i && state[i] == 0 {
			visit(i)
		}
	}
}

// errorPolicy checks that dead letters have a sink of their own, and that every other sink is fed.
func (c *checker) errorPolicy(j *Job, spec *value, g *graph) {
	v := spec.at("errors")
	dead, policy := v.at("deadLetters"), v.at("policy")
	switch {
	case policy.bad || dead.bad || v.bad:
	case policy.text == PolicyDeadLetter && !dead.set:
		c.wrongAt(v.path, CodeMissing, "the policy dead-letter needs deadLetters: <name of a sink>", "")
	case policy.text != PolicyDeadLetter && dead.set:
		c.wrongAt(dead.path, CodeConflict, "deadLetters is for policy: dead-letter, and the policy is "+policy.text, "")
	case dead.set:
		c.deadLetterSink(dead, spec, g)
	}
	for _, s := range spec.at("sinks").items {
		isDead := dead.good() && s.at("name").text == dead.text
		if from := s.at("from"); !from.set && !isDead && s.fields != nil {
			c.wrongAt(s.path, CodeMissing, "nothing feeds this sink; give from: [..], or name it in errors.deadLetters", "")
		}
	}
}

func (c *checker) deadLetterSink(dead, spec *value, g *graph) {
	i, ok := g.sinks[dead.text]
	if !ok {
		names := make([]string, 0, len(g.sinks))
		for _, s := range spec.at("sinks").items {
			names = append(names, s.at("name").text)
		}
		c.wrongAt(dead.path, CodeReference, fmt.Sprintf("no sink is called %q", dead.text), closest(dead.text, names))
		return
	}
	if from := spec.at("sinks").items[i].at("from"); from.set {
		c.wrongAt(from.path, CodeConflict, "this sink takes the dead letters, so it has no from", "")
	}
}
