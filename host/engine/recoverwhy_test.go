package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/engine/sim"
	"github.com/wasmill/wasmill/host/sandbox"
)

// TestRecoverySaysWhatChanged: a decided batch whose staged output is lost runs again and comes to something else. What
// recovery says of it names source, transform and host, as a replay does.
func TestRecoverySaysWhatChanged(t *testing.T) {
	other := bent(2, func(r *abi.Record, emit sandbox.Emit) error {
		c := *r
		c.Value = append([]byte("new "), c.Value...)
		return emit(&c)
	})
	changed := func(w *world, guest func(sandbox.Lane) sim.Guest, c engine.Changes) {
		w.revision = strings.Repeat("2", 64)
		w.revive = func(context.Context, string) (*engine.Revived, error) {
			g, policy := w.graph(&sim.Process{})
			if guest != nil {
				g.Stages[0].Program.(*sim.Program).NewGuest = guest
			}
			return &engine.Revived{Graph: g, Errors: policy, Changes: c}, nil
		}
	}
	for _, tt := range []struct {
		name   string
		change func(w *world)
		words  []string
	}{
		{"source", func(w *world) { w.in.Replace(1, "x") }, []string{
			"batch 0: the source changed: in has 3 records ", `, read from the beginning to {"offset":3}`,
		}},
		{"transform", func(w *world) {
			changed(w, other, engine.Changes{Transform: []string{"transforms.words.module is b, decided was a"}})
		}, []string{"batch 0: the transform changed: transforms.words.module is b, decided was a"}},
		{"host", func(w *world) { w.guest = other; w.host.Version = "2" }, []string{
			"batch 0: the host changed: the same input and revision gave other output: main has 3 records ",
			"it was decided by wasmill 1 (compiler, amd64) and run again by wasmill 2 (compiler, amd64)",
		}},
		{"all", func(w *world) {
			w.in.Replace(1, "x")
			w.host.Version = "2"
			changed(w, other, engine.Changes{Transform: []string{"transforms.words.config differs"}, Host: []string{"abi is 2, decided was 1"}})
		}, []string{"the source changed: ", "; and the transform changed: transforms.words.config differs", "; and the host changed: abi is 2, decided was 1; it was decided by wasmill 1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.host = checkpoint.Host{Version: "1", Engine: "compiler", Arch: "amd64"}
			w.in.Append("a", "b", "c")
			p := &sim.Process{}
			p.Hook = func(_ int, call string) error {
				if call == "target.publish main" {
					return sim.ErrKilled
				}
				return nil
			}
			if err := w.run(p); err == nil {
				t.Fatal("it published")
			}
			w.stores["main"].DropStaged()
			tt.change(w)
			var why []string
			w.events = &engine.Events{Recovered: func(r engine.Recovery) {
				if r.Rung == "undecided" {
					why = append(why, r.Detail)
				}
			}}
			w.mustRun()
			if len(why) != 1 {
				t.Fatalf("un-decided for %q", why)
			}
			for _, word := range tt.words {
				if !strings.Contains(why[0], word) {
					t.Errorf("un-decided because\n%s\nwithout\n%s", why[0], word)
				}
			}
			if got := w.stores["main"].Values("main"); len(got) != 3 {
				t.Errorf("main holds %q", got)
			}
		})
	}
}
