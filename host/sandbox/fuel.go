package sandbox

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero/api"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox/rewriter"
)

// slice is how much fuel a guest gets at a time. In between it is in the host's code, where Go's garbage collector can
// stop it: a guest alone would hold the collector up until it returns.
const slice = 50_000

// costHostCall is what a call of the host costs besides 1 for each byte that it moves.
const costHostCall = 1000

// Fuel that a step of the start-up and a call of wasmill_alloc may use.
const (
	fuelStart = 1_000_000_000
	fuelAlloc = 10_000_000
)

// tank is the fuel of one call into the guest. What is left of the slice lies in a global of the guest; below zero it is
// what was used beyond the slice.
type tank struct {
	fuel   api.MutableGlobal
	budget uint64 // of the call
	rest   uint64 // of it, besides the slice
	what   string // what the call is and which limit it has, for messages
}

// open finds the globals of a fresh guest, and gives it room for calls as deep as its limit: a call that returns gives back
// what it took, and after one that does not the guest is thrown away.
func (t *tank) open(mod api.Module, depth int) error {
	fuel, ok1 := mod.ExportedGlobal(rewriter.Fuel).(api.MutableGlobal)
	room, ok2 := mod.ExportedGlobal(rewriter.Depth).(api.MutableGlobal)
	if !ok1 || !ok2 {
		return fmt.Errorf("the module has no count of fuel and depth")
	}
	t.fuel = fuel
	room.Set(uint64(depth))
	return nil
}

// fill gives the guest fuel for a call.
func (t *tank) fill(budget uint64, what string) {
	t.budget, t.what = budget, what
	first := min(budget, slice)
	t.rest = budget - first
	t.fuel.Set(first)
}

// used is what the call has used so far. It may be more than its budget: a charge comes before a check.
func (t *tank) used() uint64 { return t.budget - t.rest - t.fuel.Get() }

// more gives another slice on top of what is left, or says that there is none.
func (t *tank) more(left int64) (int64, bool) {
	for left < 0 {
		next := min(t.rest, slice)
		if next == 0 {
			return left, false
		}
		t.rest -= next
		left += int64(next)
	}
	return left, true
}

// hostYield is what a guest calls when its slice of fuel or its depth is below zero.
func hostYield(ctx context.Context, _ api.Module, stack []uint64) {
	in := guest(ctx)
	if int64(stack[1]) < 0 {
		in.stop(&Failure{
			Trap: abi.TrapDepth, Progress: abi.NoIndex,
			Text: fmt.Sprintf("calls are nested deeper than %d (limits.depth)", in.program.options.Limits.Depth),
		})
	}
	stack[0] = uint64(in.refuel(int64(stack[0])))
}

// pay charges for what the host does for the guest, before it is done.
func (in *instance) pay(n uint64) {
	left := int64(in.tank.fuel.Get()) - int64(n)
	if left < 0 {
		left = in.refuel(left)
	}
	in.tank.fuel.Set(uint64(left))
}

// refuel returns what a guest has after another slice. It ends the guest when there is none.
func (in *instance) refuel(left int64) int64 {
	left, err := in.refill(left)
	if err != nil {
		in.tank.fuel.Set(uint64(left))
		in.stop(err)
	}
	return left
}

// refill returns what a guest has after another slice. Its error is why the guest must end: nothing is left, or nobody
// waits for it any more.
func (in *instance) refill(left int64) (int64, error) {
	if err := in.ctx.Err(); err != nil {
		return left, fmt.Errorf("call guest: %w", err)
	}
	left, ok := in.tank.more(left)
	if !ok {
		return left, &Failure{Trap: abi.TrapFuel, Progress: abi.NoIndex, Text: fmt.Sprintf("it has used its fuel, %d for %s", in.tank.budget, in.tank.what)}
	}
	return left, nil
}
