package pipeline

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/job"
)

// TestLimits gives real guests smaller limits than a record needs: the dead letter's reason and the error of a stopped job
// name the limit and its value, and the way out says how to raise it.
func TestLimits(t *testing.T) {
	const traps = "../sandbox/guests/debug/trap-c.wasm"
	for _, tt := range []struct {
		name, module, word, limits string
		words, raise               string
	}{
		{
			name: "fuel", module: traps, word: "fuel", limits: "fuel: {call: 30000, record: 70}",
			words: "trap fuel: it has used its fuel, 30070 for this call (limits.fuel)", raise: "raise `limits.fuel` of transform t in the job file if it needs that much, or ",
		},
		{
			name: "depth", module: traps, word: "depth", limits: "depth: 77",
			words: "trap depth: calls are nested deeper than 77 (limits.depth)", raise: "raise `limits.depth` of transform t in the job file if it needs that much, or ",
		},
		{
			name: "memory", module: traps, word: "memory", limits: "memory: 1MiB",
			words: "trap memory: out of bounds memory access", raise: "raise `limits.memory` of transform t in the job file if it ran out of memory, or ",
		},
		{
			name: "output", module: "../../abi/kit/wasm/echo.wasm", word: `"` + strings.Repeat("x", 1_100_000) + `"`, limits: "output: 1MiB",
			words: "trap quota: output of the lane is over 1048576 bytes (limits.output)", raise: "raise `limits.output` of transform t in the job file if it needs that much, or ",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			err := p.run(p.limited(tt.module, tt.word, tt.limits, "stop"))
			var f *fault.Error
			if !errors.As(err, &f) || f.ErrCode != engine.CodeRecordStopped || !strings.Contains(f.Error(), tt.words) || !strings.HasPrefix(f.WayOut, tt.raise+"mend ") {
				t.Fatalf("it stops with %v, %+v", err, f)
			}
			if err := p.run(p.limited(tt.module, tt.word, tt.limits, "dead-letter, deadLetters: dead")); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(p.screen.String(), `"reason":"`+tt.words+`"`) {
				t.Errorf("the dead letters are %.2000s", p.screen.String())
			}
		})
	}
}

// limited parses a job over one file, whose transform has limits; dead letters are printed.
func (p *place) limited(module, content, limits, policy string) *job.Job {
	p.t.Helper()
	path, err := filepath.Abs(module)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write("a.txt", []byte(content+"\n"))
	dead := ""
	if strings.Contains(policy, "dead") {
		dead = "    - {name: dead, stdout: {}}\n"
	}
	j, err := job.Parse("job.yaml", fmt.Appendf(nil, "apiVersion: wasmill/v1\nkind: Job\nmetadata: {name: limited}\nspec:\n  checkpoint: ./checkpoint\n"+
		"  trigger: {availableNow: true}\n  lanes: 1\n  sources: [{name: in, files: {path: ./a.txt, format: lines}}]\n"+
		"  transforms: [{name: t, from: [in], module: %s, limits: {%s}}]\n"+
		"  sinks:\n    - {name: out, from: [t], files: {path: ./out, format: jsonl}}\n%s  errors: {policy: %s}\n", path, limits, dead, policy), job.Env{Dir: p.dir})
	if err != nil {
		p.t.Fatal(err)
	}
	return j
}

// TestLimitsAreLimits: the record that is over a small limit passes under the usual one.
func TestLimitsAreLimits(t *testing.T) {
	p := newPlace(t)
	word := `"` + strings.Repeat("x", 600_000) + "\"\n\"" + strings.Repeat("y", 600_000) + `"`
	if err := p.run(p.limited("../../abi/kit/wasm/echo.wasm", word, "log: 1KiB", "stop")); err != nil {
		t.Errorf("with the usual limit of output: %v", err)
	}
}
