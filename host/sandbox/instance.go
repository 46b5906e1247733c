package sandbox

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sandbox/rewriter"
	"github.com/wasmill/wasmill/host/sandbox/wasi"
)

// startKey is the key of the random stream during start-up.
var startKey [2]uint64

// errFailed is what a call of an instance gets that has failed before.
var errFailed = errors.New("the instance has failed before and can only be closed")

// instance is an Instance. The context that its guest runs in leads host functions back to it.
type instance struct {
	program *program
	ctx     guestContext
	mod     api.Module
	region  *region
	alloc   api.Function
	batch   api.Function
	wasi    *wasi.State
	log     guestLog
	stack   [3]uint64

	inBatch bool
	failed  bool
	stopped error // why a host function stopped the guest
	emit    Emit
	rules   abi.OutputRules
	visit   func(*abi.Record) error
	indexes indexes
	state   laneState
	tank    tank
	used    Usage
	step    uint64 // fuel of the step of the start-up that used most
}

// guestContext is the context a guest runs in.
type guestContext struct {
	context.Context
	in *instance
}

// guest is the instance that calls a host function. wazero hands its functions the very context of the call.
func guest(ctx context.Context) *instance { return ctx.(*guestContext).in }

func (p *program) newInstance(log func(int, string)) *instance {
	in := &instance{program: p}
	in.ctx.in = in
	in.visit = in.take
	in.log.sink, in.log.most = log, int(p.options.Limits.Log)
	in.rules = abi.OutputRules{Ports: len(p.module.info.Manifest.Outputs), MaxBytes: p.options.Limits.Output}
	in.wasi = wasi.New(startTime, startKey, in.log.output, in.pay)
	return in
}

// Allocate gives wazero the linear memory of this instance.
func (in *instance) Allocate(_, _ uint64) experimental.LinearMemory {
	return in.region
}

// memory is the guest's memory as it is now.
func (in *instance) memory() []byte { return in.region.used }

// instantiate makes the module's instance in wazero. No code of the guest runs in it.
func (in *instance) instantiate(ctx context.Context) error {
	m := in.program.module
	var err error
	if in.region, err = in.program.regions.take(); err != nil {
		return err
	}
	in.ctx.Context = importsOf(ctx, in.program.resolve, in)
	mod, err := m.runtime.InstantiateModule(&in.ctx, m.compiled, anonymous)
	if err != nil {
		return in.failure(err)
	}
	in.mod = mod
	if err := in.tank.open(mod, in.program.options.Limits.Depth); err != nil {
		return err
	}
	in.alloc, in.batch = mod.ExportedFunction(exportAlloc), mod.ExportedFunction(exportBatch)
	return nil
}

// resume makes the instance what the program's image was taken of.
func (in *instance) resume(ctx context.Context) error {
	if err := in.instantiate(ctx); err != nil {
		return err
	}
	return in.program.image.restore(in)
}

// start runs what a module runs once: the start section, _initialize, and wasmill_init with the config.
func (in *instance) start(ctx context.Context) error {
	if err := in.instantiate(ctx); err != nil {
		return err
	}
	if in.program.module.capturable {
		memory := in.memory()
		in.program.module.form.EachSegment(func(offset uint32, data []byte) { copy(memory[offset:], data) })
	}
	for _, name := range []string{rewriter.Start, exportStart} {
		if f := in.mod.ExportedFunction(name); f != nil {
			if err := in.startStep(ctx, f); err != nil {
				return err
			}
		}
	}
	config := in.program.options.Config
	ptr, err := in.allocate(ctx, len(config))
	if err != nil {
		return err
	}
	copy(in.room(ptr, len(config)), config)
	in.stack = [3]uint64{uint64(ptr), uint64(len(config)), abi.MaxFrame}
	if err := in.startStep(ctx, in.mod.ExportedFunction(exportInit)); err != nil {
		return err
	}
	if status := int32(uint32(in.stack[0])); status != 0 {
		return &Failure{Status: status, Progress: abi.NoIndex}
	}
	in.log.flush()
	return nil
}

// startStep calls one of the functions that a module runs once.
func (in *instance) startStep(ctx context.Context, f api.Function) error {
	err := in.call(ctx, f, fuelStart, "a step of the start-up, which no limit of a job changes")
	in.step = max(in.step, in.tank.used())
	return err
}

// enter sets what the instance sees of time and chance to a lane's, and lets its log be heard.
func (in *instance) enter(l Lane, log func(int, string)) {
	in.wasi.Enter(l.Time, l.Seed)
	in.log.open(log)
}

// call runs a guest's function on in.stack. Its error is a *Failure when it is the guest's doing.
func (in *instance) call(ctx context.Context, f api.Function, fuel uint64, what string) error {
	in.ctx.Context = ctx
	in.tank.fill(fuel, what)
	err := f.CallWithStack(&in.ctx, in.stack[:])
	in.used.Fuel += in.tank.used()
	if err != nil {
		return in.failure(err)
	}
	return nil
}

// Call hands the guest one frame. Its error is a *Failure for what the guest did wrong, a fault with CodeAlloc when it gave
// no memory for the frame, and the host's own trouble otherwise.
func (in *instance) Call(ctx context.Context, c Call, emit Emit) error {
	if in.failed {
		return errFailed
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("call guest: %w", err)
	}
	in.emit = emit
	in.used.Calls++
	err := in.runBatch(ctx, &c)
	in.emit = nil
	in.log.flush()
	in.failed = err != nil
	return err
}

func (in *instance) runBatch(ctx context.Context, c *Call) error {
	size := abi.FrameSize(c.Records, c.NFields)
	ptr, err := in.allocate(ctx, size)
	if err != nil {
		return in.allocFailed(err, c, size)
	}
	c.Header.Fuel = in.program.fuel(&c.Header, len(c.Records))
	if err := abi.PutFrame(in.room(ptr, size), ptr, c.Header, c.Records, c.NFields); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	for i := range c.Records {
		in.indexes.hand(c.Records[i].Index)
	}
	in.stack = [3]uint64{uint64(ptr), uint64(size)}
	in.inBatch = true
	err = in.call(ctx, in.batch, c.Header.Fuel, "this call (limits.fuel)")
	in.inBatch = false
	if err == nil {
		status := int32(uint32(in.stack[0]))
		if status == 0 {
			return nil
		}
		err = &Failure{Status: status, Progress: abi.NoIndex}
	}
	var failed *Failure
	if errors.As(err, &failed) {
		in.explain(failed, ptr, c.Records)
	}
	return err
}

// explain adds to a failure what the guest left in the frame: where it was, and its own words.
func (in *instance) explain(f *Failure, ptr uint32, records []abi.Record) {
	if f.Trap == "" { // a trap has words of the host
		f.Text = abi.FrameErrorText(in.memory(), ptr)
	}
	progress := abi.FrameProgress(in.memory(), ptr)
	for i := range records {
		if records[i].Index == progress {
			f.Progress = progress
			return
		}
	}
}

// badAddress is an answer of wasmill_alloc that cannot be used: for n bytes in a memory of so many.
type badAddress struct {
	ptr       uint32
	n, memory uint64
}

func (b badAddress) Error() string {
	switch {
	case b.ptr == 0:
		return exportAlloc + " gave no memory"
	case b.ptr%abi.Alignment != 0:
		return fmt.Sprintf("%s gave the address %d, which is no multiple of %d", exportAlloc, b.ptr, abi.Alignment)
	}
	return fmt.Sprintf("%s gave the address %d for %d bytes, which do not lie inside memory: it has %d bytes", exportAlloc, b.ptr, b.n, b.memory)
}

// fits says whether the address can be used.
func (b badAddress) fits() bool {
	return b.ptr != 0 && b.ptr%abi.Alignment == 0 && uint64(b.ptr)+b.n <= b.memory
}

// Ways out of an allocation that failed.
const (
	raiseMemory = "raise limits.memory of the transform"
	mendAlloc   = "mend the module's " + exportAlloc + ": it gives the address of so many bytes in its memory, a multiple of 16, or 0 for none"
)

// Unwrap says that the allocation failed.
func (b badAddress) Unwrap() error { return ErrAlloc }

// allocate asks the guest for n bytes and the overrun behind them.
func (in *instance) allocate(ctx context.Context, n int) (uint32, error) {
	if uint64(n)+abi.Overrun > math.MaxUint32 {
		return 0, fmt.Errorf("a frame of %d bytes has no room in a 32-bit memory", n)
	}
	in.stack[0] = uint64(n) + abi.Overrun
	if err := in.call(ctx, in.alloc, fuelAlloc, exportAlloc); err != nil {
		return 0, fmt.Errorf("call %s: %w", exportAlloc, err)
	}
	ptr := uint32(in.stack[0])
	if a := (badAddress{ptr, uint64(n) + abi.Overrun, uint64(len(in.memory()))}); !a.fits() {
		return 0, a
	}
	return ptr, nil
}

// allocFailed says what a failed allocation in a batch means: nothing that a record can be blamed for, but for a lone
// record that is larger than the guest was promised.
func (in *instance) allocFailed(err error, c *Call, size int) error {
	var failed *Failure
	var bad badAddress
	isTrap, isBad := errors.As(err, &failed), errors.As(err, &bad)
	if !isTrap && !isBad {
		return err
	}
	if len(c.Records) == 1 && size > abi.MaxFrame && (isTrap || bad.ptr == 0) {
		return &Failure{
			Trap: abi.TrapTooLarge, Progress: abi.NoIndex,
			Text: fmt.Sprintf("the guest has no room for a frame of %d bytes", size),
		}
	}
	if isTrap {
		err = fmt.Errorf("%w: %w", ErrAlloc, errors.New(failed.Error()))
	}
	wayOut := raiseMemory
	if isBad && bad.ptr != 0 {
		wayOut = mendAlloc
	}
	return fault.New(CodeAlloc, in.program.module.name, fmt.Errorf("for a frame of %d bytes: %w", size, err), wayOut)
}

// room is n bytes at an address that allocate returned, with the zero bytes behind them written.
func (in *instance) room(ptr uint32, n int) []byte {
	dst := in.memory()[ptr : uint64(ptr)+uint64(n)+abi.Overrun]
	clear(dst[n:])
	return dst[:n:n]
}

// take checks the index of an emitted record and hands the record on.
func (in *instance) take(r *abi.Record) error {
	if !in.indexes.allows(r) {
		return abi.BadIndex(r.Index)
	}
	return in.emit(r)
}

// Usage is what the instance has used so far.
func (in *instance) Usage() Usage {
	u := in.used
	u.Output = in.rules.Used
	u.Log, u.Lost = int64(in.log.bytes), int64(in.log.dropped)
	if in.region != nil {
		u.Memory = int64(len(in.memory()))
	}
	return u
}

// Close throws the instance and its memory away. It may be called twice.
func (in *instance) Close(ctx context.Context) error {
	in.failed = true
	in.log.close()
	var err error
	if in.mod != nil {
		err = in.mod.Close(ctx)
		in.mod = nil
	}
	if in.region != nil {
		in.program.regions.give(in.region)
		in.region = nil
	}
	if err != nil {
		return fmt.Errorf("close instance: %w", err)
	}
	return nil
}
