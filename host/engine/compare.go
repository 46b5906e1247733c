package engine

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
)

// Changes are how what ran again differs from the revision that decided a batch, each as a sentence that names the part,
// its old and its new value.
type Changes struct {
	// Transform are those that people make: module, manifest, config, limits, the wiring of the job.
	Transform []string
	// Host are those that the host alone makes: what a module's start leaves, the version of the ABI.
	Host []string
}

// maxPlace is how many bytes of a source's position are shown.
const maxPlace = 200

// Compare proves that a batch that ran again came to what its decision says. The error names all that changed of source,
// transform and host, and has the code of the first of them: what comes of other input or other code is not the host's
// doing. now is who ran it again.
func Compare(p *Past, got *Replayed, now checkpoint.Host, changes Changes) error {
	d := p.Decision
	in := differing(d.Inputs, got.Inputs)
	out := differing(d.Outputs, got.Outputs)
	if d.State != got.State {
		out = append(out, difference{text: fmt.Sprintf("the state changes are %.8s, decided were %.8s", got.State, d.State)})
	}
	if len(in) == 0 && len(out) == 0 && got.Digest == d.Digest {
		return nil
	}
	v := verdict{}
	if len(in) > 0 {
		v.add(CodeReplaySource, "the source changed: "+strings.Join(placed(p, in), "; "), "bring the input back as it was when the batch was planned")
	}
	if len(changes.Transform) > 0 {
		v.add(CodeReplayTransform, "the transform changed: "+strings.Join(changes.Transform, "; "), "replay it with the modules and the job that decided it")
	}
	if len(changes.Host) > 0 {
		v.add(CodeReplayHost, "the host changed: "+strings.Join(changes.Host, "; ")+"; "+hosts(d.Host, now), wayOutHost(d.Host, now))
	}
	if v.code == "" && len(out) > 0 {
		v.add(CodeReplayHost, "the host changed: the same input and revision gave other output: "+strings.Join(texts(out), "; ")+"; "+hosts(d.Host, now),
			wayOutHost(d.Host, now))
	}
	if v.code == "" {
		v.add(CodeReplayDiffers, fmt.Sprintf("all parts agree, the batch digest is %s and not %s", got.Digest, d.Digest),
			"the decision is of another query or was edited: look at the checkpoint with `wasmill checkpoint verify`")
	}
	return fault.New(v.code, fmt.Sprintf("batch %d", d.Batch), errors.New(strings.Join(v.words, "; and ")), strings.Join(v.ways, "; "))
}

// verdict collects what changed.
type verdict struct {
	code        string // of the first
	words, ways []string
}

func (v *verdict) add(code, words, way string) {
	if v.code == "" {
		v.code = code
	}
	v.words, v.ways = append(v.words, words), append(v.ways, way)
}

// difference is one name whose digest differs.
type difference struct{ name, text string }

// differing describes the names whose digests differ.
func differing(want, got map[string]checkpoint.Digest) []difference {
	var out []difference
	for name, w := range want {
		if g := got[name]; g != w {
			out = append(out, difference{name, fmt.Sprintf("%s has %d records %.8s, decided were %d records %.8s", name, g.Records, g.XXH3, w.Records, w.XXH3)})
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			out = append(out, difference{name, name + " was not there"})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].name < out[j].name })
	return out
}

func texts(ds []difference) []string {
	var out []string
	for _, d := range ds {
		out = append(out, d.text)
	}
	return out
}

// placed says where in its source the batch reads.
func placed(p *Past, in []difference) []string {
	var out []string
	for _, d := range in {
		from, to := p.Prev.Position(d.name), p.Plan.Position(d.name)
		out = append(out, fmt.Sprintf("%s, read from %s to %s", d.text, positionText(from), positionText(to)))
	}
	return out
}

func positionText(p checkpoint.Position) string {
	if p.Line == "" {
		return "the beginning"
	}
	if len(p.Line) > maxPlace {
		return strings.ToValidUTF8(p.Line[:maxPlace], "") + "..."
	}
	return p.Line
}

// HostText names who ran a batch.
func HostText(h checkpoint.Host) string {
	if h == (checkpoint.Host{}) {
		return "a version that did not say which"
	}
	return fmt.Sprintf("wasmill %s (%s, %s)", h.Version, h.Engine, h.Arch)
}

func hosts(was, now checkpoint.Host) string {
	if was == now {
		return "it was decided and run again by " + HostText(now)
	}
	return fmt.Sprintf("it was decided by %s and run again by %s", HostText(was), HostText(now))
}

// wayOutHost says what to do about a host that does not give the same again.
func wayOutHost(was, now checkpoint.Host) string {
	switch {
	case was == (checkpoint.Host{}):
		return "replay it with the version of wasmill that decided it"
	case was.Version != now.Version:
		return fmt.Sprintf("replay it with wasmill %s, which decided it; when it still differs, report this with the module", was.Version)
	case was.Engine != now.Engine:
		return fmt.Sprintf("replay it with the %s, which decided it, and report this with the module: the engines must agree", was.Engine)
	case was.Arch != now.Arch:
		return fmt.Sprintf("replay it on %s, where it was decided, and report this with the module: all processors must agree", was.Arch)
	}
	return "look at the checkpoint with `wasmill checkpoint verify`; when it is whole, report this with the module: it is a fault of wasmill or of the machine"
}
