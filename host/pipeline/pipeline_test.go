package pipeline

import (
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/sandbox"
)

func TestRetention(t *testing.T) {
	p := newPlace(t)
	const max, day = 10_000, 24 * 60 * 60 * 1000
	for text, want := range map[string]checkpoint.Policy{
		"":                                     checkpoint.DefaultPolicy(),
		"  retention: {age: 0s}\n":             {Keep: 100, AgeMS: 0, Max: max},
		"  retention: {batches: 2}\n":          {Keep: 2, AgeMS: day, Max: max},
		"  retention: {batches: 7, age: 2d}\n": {Keep: 7, AgeMS: 2 * day, Max: max},
	} {
		if got := retention(p.job(text)); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

// TestDepthIsTheSandboxes: the job file allows what the sandbox takes.
func TestDepthIsTheSandboxes(t *testing.T) {
	if job.MaxDepth != sandbox.MaxDepth {
		t.Errorf("a job file may ask for %d, the sandbox takes %d", job.MaxDepth, sandbox.MaxDepth)
	}
}
