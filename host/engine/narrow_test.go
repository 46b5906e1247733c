package engine_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/engine/sim"
	"github.com/wasmill/wasmill/host/sandbox"
)

// hungry is a guest to which each record costs what its value says. A call may use 50,000,000 and 2,000,000 a record.
func hungry(progress bool) func(sandbox.Lane) sim.Guest {
	return func(sandbox.Lane) sim.Guest {
		return func(c sandbox.Call, emit sandbox.Emit) error {
			left := 50_000_000 + 2_000_000*int64(len(c.Records))
			for i := range c.Records {
				cost, err := strconv.ParseInt(string(c.Records[i].Value), 10, 64)
				if err != nil {
					return err
				}
				if left -= cost; left < 0 {
					f := &sandbox.Failure{Trap: abi.TrapFuel, Text: "it has used its fuel", Progress: abi.NoIndex}
					if progress {
						f.Progress = c.Records[i].Index
					}
					return f
				}
				r := c.Records[i]
				if err := emit(&r); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

// TestFuelOfNeighbours: a record is poison only when it takes more than a call for it alone may use.
func TestFuelOfNeighbours(t *testing.T) {
	const dear, endless = "4400000", "999999999999"
	many := func(n int, more ...string) []string {
		var values []string
		for range n {
			values = append(values, dear)
		}
		return append(values, more...)
	}
	tests := []struct {
		name   string
		values []string
		poison int
	}{
		{"a few more than a call may have", many(35 * 4), 0},
		{"many", many(1003 * 4), 0},
		{"one that never ends", append([]string{dear, endless}, many(120)...), 1},
		{"two that never end, among many", append(many(400, endless), many(600, endless)...), 2},
		{"cheap ones and one that never ends", []string{"1", "1", endless, "1"}, 1},
	}
	for _, tt := range tests {
		for _, progress := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, progress %v", tt.name, progress), func(t *testing.T) {
				w := newWorld(t)
				w.guest, w.batch = hungry(progress), 100_000
				var restarts, poison int64
				w.events = &engine.Events{Batch: func(s engine.BatchStats) { restarts, poison = s.Restarts, s.Poison }}
				w.in.Append(tt.values...)
				w.mustRun()
				if got := len(w.stores["main"].Values("main")); got != len(tt.values)-tt.poison || int(poison) != tt.poison {
					t.Errorf("%d of %d records got through, %d were poison, want %d", got, len(tt.values), poison, tt.poison)
				}
				if restarts > 4*24 {
					t.Errorf("%d restarts of 4 lanes", restarts)
				}
				t.Logf("%d restarts of 4 lanes", restarts)
			})
		}
	}
}
