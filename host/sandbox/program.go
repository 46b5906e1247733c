package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sandbox/binary"
)

// startTime is what the wall clock shows during start-up: 2000-01-01 in microseconds.
const startTime = 946_684_800_000_000

// program is a Program. Each instance runs the start-up again under the same clock and random stream: what start-up
// leaves in globals, tables and dropped segments cannot be read from outside, so nothing less is sure to be the same.
type program struct {
	module  *module
	options Options
	resolve experimental.ImportResolver
	regions *regions
	image   string
}

func (p *program) Manifest() *abi.Manifest { return p.module.info.Manifest }

func (p *program) Image() string { return p.image }

// firstStart runs the start-up with the guest's log shown, and returns the digest of what it left.
func (p *program) firstStart(ctx context.Context) (string, error) {
	in := p.newInstance(p.options.Log)
	if err := in.start(ctx); err != nil {
		return "", errors.Join(p.refuseStart(in, err), in.Close(ctx))
	}
	image := imageOf(in)
	if err := in.Close(ctx); err != nil {
		return "", err
	}
	return image, nil
}

// refuseStart says why a module did not start: what the guest did, and its last log line as the reason it gives.
func (p *program) refuseStart(in *instance, err error) error {
	var failed *Failure
	if !errors.As(err, &failed) && !errors.Is(err, ErrAlloc) {
		return fmt.Errorf("start %s: %w", p.module.name, err)
	}
	wrong := fmt.Errorf("its start-up failed: %w", err)
	if last := in.log.last; last != "" {
		wrong = fmt.Errorf("its start-up failed: %w: %s", err, last)
	}
	return fault.New(CodeStart, p.module.name, wrong, "look at the transform's config, and at what the module logs when it starts")
}

// New makes an instance for a lane.
func (p *program) New(ctx context.Context, l Lane) (Instance, error) {
	in := p.newInstance(nil)
	if err := in.start(ctx); err != nil {
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

// imageOf is the digest of an instance's memory and of those of its globals that can be seen.
func imageOf(in *instance) string {
	h := sha256.New()
	memory := in.memory()
	fmt.Fprintf(h, "wasmill image 1\n%d\n", len(memory)/binary.PageSize)
	hashGlobals(h, in)
	h.Write(memory)
	return hex.EncodeToString(h.Sum(nil))
}

func hashGlobals(h hash.Hash, in *instance) {
	form := in.program.module.form
	var names []string
	for _, e := range form.Exports {
		if e.Kind != binary.KindGlobal || !numeric(form.Globals[e.Index].Type) {
			continue
		}
		names = append(names, e.Name)
	}
	slices.Sort(names)
	for _, name := range names {
		if g := in.mod.ExportedGlobal(name); g != nil {
			fmt.Fprintf(h, "%q %d\n", name, g.Get())
		}
	}
}

// numeric says whether a global's value is a number of at most 64 bits, and so all of it can be read.
func numeric(t binary.ValueType) bool {
	return t == binary.I32 || t == binary.I64 || t == binary.F32 || t == binary.F64
}

// anonymous names no module and starts nothing by itself: wazero's own default is to call _start.
var anonymous = wazero.NewModuleConfig().WithName("").WithStartFunctions()
