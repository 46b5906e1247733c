package engine_test

import (
	"testing"

	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/engine/sim"
)

// TestOtherSettings: a batch that is planned and not decided is planned anew when what the job says of its source has changed, and
// stays as it was planned otherwise. The input that it would read then is not the one that it was planned over.
func TestOtherSettings(t *testing.T) {
	const earlier = 10 // of one batch
	for name, c := range map[string]struct {
		decided bool   // a batch before
		was, is string // marks of the settings
		call    string // at which the process is killed
		renewed bool
		gone    bool // another source of the batch is no longer in the job
	}{
		"others, killed when it runs":             {was: "a", is: "b", call: "program.call", renewed: true},
		"others, killed when it stages":           {was: "a", is: "b", call: "target.stage main", renewed: true},
		"others, without another source":          {was: "a", is: "b", call: "program.call", renewed: true, gone: true},
		"the same":                                {was: "a", is: "a", call: "program.call"},
		"of a version that did not note them":     {is: "b", call: "program.call"},
		"others, after a batch that is decided":   {decided: true, was: "a", is: "b", call: "program.call", renewed: true},
		"the same, after a batch that is decided": {decided: true, was: "a", is: "a", call: "program.call"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.reads = c.was
			before := 0
			if c.decided {
				w.in.Append(numbered("v", earlier)...)
				w.mustRun()
				before = earlier
			}
			w.in.Append(numbered("v-wrong", 3)...)
			if c.gone {
				w.in2 = &sim.Input{}
				w.in2.Append("v-gone")
			}
			w.die(c.call, 1)
			w.in.Truncate(before)
			w.in.Append(numbered("v-right", 5)...)
			w.reads, w.in2 = c.is, nil
			amended := 0
			w.events = &engine.Events{Recovered: func(r engine.Recovery) {
				if r.Rung == "amended" {
					amended++
				}
			}}
			w.mustRun()
			w.mustRun()
			w.wantConsistent()
			first, want := w.stores["main"].Batches()[before/earlier].Rows, 3
			if c.renewed {
				want = 5
			}
			if len(first) != want || (amended > 0) != c.renewed {
				t.Errorf("the batch has %d records, planned anew %d times; want %d, renewed %t", len(first), amended, want, c.renewed)
			}
			if all := w.stores["main"].Values("main"); len(all) != before+5 {
				t.Errorf("%d records are published, want %d: %q", len(all), before+5, all)
			}
		})
	}
}
