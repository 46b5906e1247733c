package sandbox

import (
	"errors"
	"fmt"
	"slices"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sandbox/binary"
	"github.com/wasmill/wasmill/host/sandbox/wasi"
)

// StartUp is what the start-up of a program took.
type StartUp struct {
	Memory int64 // bytes that it left, with which every instance begins
	// Fuel is that of the step that used most, and MostFuel what a step may use. The steps are the start section,
	// _initialize and wasmill_init.
	Fuel, MostFuel uint64
}

// StartUpOf says what a program of this package took to start, nil for one of another.
func StartUpOf(p Program) *StartUp {
	own, ok := p.(*program)
	if !ok {
		return nil
	}
	return &StartUp{Memory: own.left, Fuel: own.step, MostFuel: fuelStart}
}

// refuseStart says why a module did not start: what the guest did and where, and its last log line as the reason it gives.
func (p *program) refuseStart(in *instance, err error) error {
	var failed *Failure
	if !errors.As(err, &failed) && !errors.Is(err, ErrAlloc) {
		return fmt.Errorf("start %s: %w", p.module.name, err)
	}
	wrong := fmt.Errorf("its start-up failed: %w", err)
	if failed != nil && failed.Where() != "" {
		wrong = fmt.Errorf("%w, %s", wrong, failed.Where())
	}
	if last := in.log.last; last != "" {
		wrong = fmt.Errorf("%w: %s", wrong, last)
	}
	return fault.New(CodeStart, p.module.name, wrong, p.startWayOut(in, err))
}

// startWayOut is the way out of a start-up that failed.
func (p *program) startWayOut(in *instance, err error) string {
	var failed *Failure
	var bad badAddress
	trap := abi.TrapName("")
	if errors.As(err, &failed) {
		trap = failed.Trap
	}
	switch {
	case trap != "" && isCommand(p.module.form):
		return "build it as a reactor: in Go with -buildmode=c-shared, in C with -mexec-model=reactor; it has _start and no _initialize, so its runtime is never started"
	case trap == abi.TrapFuel:
		return fmt.Sprintf("look for a loop without end in the start-up, or let it do less: a step of it has %d of fuel and %s %d, whatever the job's limits are", fuelStart, exportAlloc, fuelAlloc)
	case trap == abi.TrapDepth:
		return "raise limits.depth of the transform"
	case errors.As(err, &bad) && bad.ptr != 0:
		return mendAlloc
	case bad.n != 0, trap != "" && in.memoryFull() != "":
		return raiseMemory + ", or let its start-up take less"
	}
	return "look at the transform's config, and at what the module logs when it starts"
}

// isCommand says whether a module is a program of WASI that runs once from _start, and not a reactor, which is initialized
// and then called.
func isCommand(form *binary.Module) bool {
	exports := func(name string) bool {
		return slices.ContainsFunc(form.Exports, func(e binary.Export) bool { return e.Kind == binary.KindFunc && e.Name == name })
	}
	ofWASI := slices.ContainsFunc(form.Imports, func(im binary.Import) bool { return im.Module == wasi.Module })
	return ofWASI && exports("_start") && !exports(exportStart)
}
