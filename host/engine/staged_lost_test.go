package engine_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/engine/sim"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
)

// TestWhyStagedIsLost: what was staged and is lost is made again by the next start; that a target knows what it was lost by is told
// to whoever can mend that.
func TestWhyStagedIsLost(t *testing.T) {
	full := fault.New("sql.full", "connection db", errors.New("disk full"), "make room")
	for name, c := range map[string]struct {
		err       error
		code, way string
	}{
		"without a reason": {sink.ErrLost, engine.CodeStagedLost, "start again: the batch is decided, and recovery brings it to the target"},
		"with a reason":    {fmt.Errorf("not committed: %w (%w)", sink.ErrLost, full), "sql.full", "make room"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.in.Append(numbered("v", 7)...)
			err := w.run(&sim.Process{Hook: func(_ int, call string) error {
				if call == "target.publish main" {
					return c.err
				}
				return nil
			}})
			var f *fault.Error
			if !errors.As(err, &f) || f.Code() != c.code || f.Hint() != c.way || f.Place != "target main" || !f.Passes || !errors.Is(err, sink.ErrLost) {
				t.Fatalf("%v: %+v", err, f)
			}
			w.mustRun()
			w.wantValues("main", numbered("v", 7)...)
			w.wantConsistent()
		})
	}
}
