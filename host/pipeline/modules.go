package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/sandbox"
)

// Codes of the faults of module files.
const (
	CodeModuleMissing    = "module.missing"
	CodeModuleUnreadable = "module.unreadable"
)

// maxModuleFile is more than the largest module that the sandbox takes.
const maxModuleFile = 64 << 20

// loaded is one transform's module, compiled and started.
type loaded struct {
	binary  sandbox.Binary
	module  sandbox.Module
	program sandbox.Program
}

func (l *loaded) close(ctx context.Context) error {
	var errs []error
	if l.program != nil {
		errs = append(errs, l.program.Close(ctx))
	}
	if l.module != nil {
		errs = append(errs, l.module.Close(ctx))
	}
	return errors.Join(errs...)
}

// ReadBinary reads a module file and the sidecar beside it, if there is one.
func ReadBinary(files durable.Files, path string) (sandbox.Binary, error) {
	wasm, err := readFile(files, path)
	if err != nil {
		return sandbox.Binary{}, moduleUnreadable(path, err)
	}
	b := sandbox.Binary{Name: path, Wasm: wasm}
	sidecar := path + ".json"
	if b.Sidecar, err = readFile(files, sidecar); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return sandbox.Binary{}, moduleUnreadable(sidecar, err)
	}
	return b, nil
}

func moduleUnreadable(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(CodeModuleMissing, path, errors.New("there is no such module"),
			"build the transform first, or mend `module:` in the job file; paths are relative to the job file")
	}
	if errors.Is(err, syscall.EISDIR) {
		return fault.New(CodeModuleUnreadable, path, errors.New("this is a folder"), "name the file of a module, which ends with .wasm")
	}
	return fault.New(CodeModuleUnreadable, path, err, "make the file readable for this user")
}

func readFile(files durable.Files, path string) (content []byte, err error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	content, err = io.ReadAll(io.LimitReader(f, maxModuleFile+1))
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if len(content) > maxModuleFile {
		return nil, fmt.Errorf("over %d bytes", maxModuleFile)
	}
	return content, nil
}

// start compiles and starts one transform's module.
func start(ctx context.Context, eng sandbox.Engine, t *job.Transform, b sandbox.Binary, log func(level int, text string)) (*loaded, error) {
	l := &loaded{binary: b}
	var err error
	if l.module, err = eng.Compile(ctx, b); err != nil {
		return nil, fmt.Errorf("transform %s: %w", t.Name, err)
	}
	l.program, err = l.module.Start(ctx, sandbox.Options{
		Transform: t.Name, Config: t.Config, Log: log,
		Limits: sandbox.Limits{
			Memory: t.Limits.Memory, FuelCall: t.Limits.FuelCall, FuelRecord: t.Limits.FuelRecord,
			Depth: t.Limits.Depth, Output: t.Limits.Output, Log: t.Limits.Log,
		},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("transform %s: %w", t.Name, err), l.close(ctx))
	}
	return l, nil
}
