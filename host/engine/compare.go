package engine

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
)

// Compare proves that a batch that ran again came to what its decision says. The error names which of source, transform
// or host changed, as far as the digests tell.
func Compare(d *checkpoint.Decision, inputs, outputs map[string]checkpoint.Digest, digest string) error {
	in := differing(d.Inputs, inputs)
	out := differing(d.Outputs, outputs)
	if len(in) == 0 && len(out) == 0 && digest == d.Digest {
		return nil
	}
	var what, hint string
	switch {
	case len(in) > 0:
		what = "the source gave other records: " + strings.Join(in, "; ")
		hint = "bring the input back as it was when the batch was planned"
	case len(out) > 0:
		what = "the same input gave other output: " + strings.Join(out, "; ")
		hint = "the transform is not deterministic or the host changed: run the version that decided the batch"
	default:
		what = fmt.Sprintf("the parts agree, the batch digest is %s and not %s", digest, d.Digest)
		hint = "the revision or the query is not the one that decided the batch"
	}
	return fault.New(CodeReplayDiffers, fmt.Sprintf("batch %d", d.Batch), errors.New(what), hint)
}

// differing describes the names whose digests differ.
func differing(want, got map[string]checkpoint.Digest) []string {
	var out []string
	for name, w := range want {
		if g := got[name]; g != w {
			out = append(out, fmt.Sprintf("%s has %d records %.8s, decided were %d records %.8s", name, g.Records, g.XXH3, w.Records, w.XXH3))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			out = append(out, name+" was not there")
		}
	}
	sort.Strings(out)
	return out
}
