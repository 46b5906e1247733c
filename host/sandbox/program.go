package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmill/wasmill/abi"
)

// startTime is what the wall clock shows during start-up: 2000-01-01 in microseconds.
const startTime = 946_684_800_000_000

// program is a Program. An instance of a capturable module begins as a copy of what the one start-up left. For any other
// module the start-up runs again for each instance, under the same clock and random stream: what it leaves in tables,
// dropped segments and references cannot be read from outside, so nothing less is sure to be the same.
type program struct {
	module  *module
	options Options
	resolve experimental.ImportResolver
	regions *regions
	// captured is set when image holds what the start-up left.
	captured bool
	image    image
	digest   string
	left     int64  // bytes of memory after the start-up
	step     uint64 // fuel of the step of the start-up that used most
}

func (p *program) Manifest() *abi.Manifest { return p.module.info.Manifest }

func (p *program) Image() string { return p.digest }

// firstStart runs the start-up with the guest's log shown, and keeps what it left.
func (p *program) firstStart(ctx context.Context) error {
	p.regions = newRegions(uint64(p.options.Limits.Memory), backing{})
	in := p.newInstance(p.options.Log)
	if err := in.start(ctx); err != nil {
		return errors.Join(p.refuseStart(in, err), in.Close(ctx), p.Close(ctx))
	}
	p.digest, p.left, p.step = digestOfImage(in), int64(len(in.memory())), in.step
	if p.module.capturable {
		var err error
		p.image, err = capture(in)
		p.captured = err == nil // a system without files of memory: the start-up runs again each time
	}
	if err := in.Close(ctx); err != nil || !p.captured {
		return err
	}
	p.regions.close()
	p.regions = newRegions(uint64(p.options.Limits.Memory), p.image.backing)
	return nil
}

// New makes an instance for a lane.
func (p *program) New(ctx context.Context, l Lane) (Instance, error) {
	in := p.newInstance(nil)
	begin := in.start
	if p.captured {
		begin = in.resume
	}
	err := begin(ctx)
	if err == nil {
		err = in.enterState(&l)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start an instance of %s: %w", p.module.name, err), in.Close(ctx))
	}
	in.enter(l, p.options.Log)
	return in, nil
}

// Close gives back the memory kept for instances. The module stays.
func (p *program) Close(context.Context) error {
	p.regions.close()
	return nil
}

// fuel is what a call may use.
func (p *program) fuel(h *abi.FrameHeader, records int) uint64 {
	if h.Flags&abi.FlagLast != 0 {
		records = abi.MaxChunkRecords
	}
	return p.options.Limits.FuelCall + p.options.Limits.FuelRecord*uint64(records)
}

// anonymous names no module and starts nothing by itself: wazero's own default is to call _start, and to seed a source of
// random numbers for each instance, which takes longer than all the rest.
var anonymous = wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(bytes.NewReader(nil))
