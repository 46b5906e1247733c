package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/sandbox"
)

// Codes of the faults of transforms that come with the program.
const (
	CodeStockUnknown = "stock.unknown" // the program has no such transform
	CodeStockLost    = "stock.lost"    // the checkpoint no longer keeps the module that it has locked
)

// StockModule is a transform's module that comes with the program, as the checkpoint has locked it.
type StockModule struct {
	Transform string
	Module    string // stock:name
	Digest    string // of what runs
	// Newer is the digest of what this program has, "" when that is what runs.
	Newer string
}

// stockModules are the modules of a job that come with the program. What ran first goes on to run, whatever a later program
// has, until it is told to take its own: so an upgrade of the program changes no output.
type stockModules struct {
	locked map[string]checkpoint.LockedModule // by transform, as the checkpoint has it
	used   map[string]StockModule             // by transform
}

// readLocked reads what the checkpoint has locked, where the job asks for it.
func (p *Program) readLocked(ctx context.Context) (err error) {
	p.stock.used = map[string]StockModule{}
	if !slices.ContainsFunc(p.Job.Transforms, func(t job.Transform) bool { return t.Module.Stock != "" }) {
		return nil
	}
	p.stock.locked, err = checkpoint.ReadLocked(ctx, p.env.Files, p.Job.Checkpoint)
	return err
}

// stockBinary finds a module that comes with the program: the one that is locked, else the program's own.
func (p *Program) stockBinary(t *job.Transform) (sandbox.Binary, error) {
	var own sandbox.Binary
	known := false
	if p.env.Stock != nil {
		own, known = p.env.Stock(t.Module.Stock)
	}
	if !known {
		return own, fault.New(CodeStockUnknown, "transform "+t.Name, fmt.Errorf("this program has no transform %s", t.Module.Ref), "`wasmill transform stock` lists those that there are")
	}
	own.Name = t.Module.Ref
	use := StockModule{Transform: t.Name, Module: t.Module.Ref, Digest: DigestOf(own)}
	lock, locked := p.stock.locked[t.Name]
	if !locked || lock.Module != t.Module.Ref || lock.Digest == use.Digest || slices.Contains(p.env.Update, t.Name) {
		p.stock.used[t.Name] = use
		return own, nil
	}
	use.Digest, use.Newer = lock.Digest, use.Digest
	p.stock.used[t.Name] = use
	kept, err := ReadBinary(p.env.Files, path.Join(p.Job.Checkpoint, "modules", lock.Digest+".wasm"))
	if f, ok := errors.AsType[*fault.Error](err); ok && f.ErrCode == CodeModuleMissing {
		return kept, fault.New(CodeStockLost, f.Place, fmt.Errorf("transform %s runs the %s that ran first, and the checkpoint no longer keeps it", t.Name, t.Module.Ref),
			fmt.Sprintf("put the file back, or take the one of this program with `wasmill run --update %s`", t.Name))
	}
	return kept, err
}

// DigestOf is what a module is known by: the sha256 of it with its sidecar.
func DigestOf(b sandbox.Binary) string {
	sum := sha256.Sum256(b.Stored())
	return hex.EncodeToString(sum[:])
}

// lock writes down which modules the job's stock transforms run from now on. They are kept before.
func (pl *Pipeline) lock(ctx context.Context) error {
	stock := &pl.program.stock
	now := maps.Clone(stock.locked)
	if now == nil {
		now = map[string]checkpoint.LockedModule{}
	}
	for name, m := range stock.used {
		now[name] = checkpoint.LockedModule{Module: m.Module, Digest: m.Digest}
	}
	if maps.Equal(now, stock.locked) {
		return nil
	}
	if err := pl.log.LockModules(ctx, now); err != nil {
		return err
	}
	stock.locked = now
	return nil
}

// stockShown lists the job's stock modules in the order of its transforms.
func (p *Program) stockShown() []StockModule {
	var out []StockModule
	for i := range p.Job.Transforms {
		if m, ok := p.stock.used[p.Job.Transforms[i].Name]; ok {
			out = append(out, m)
		}
	}
	return out
}
