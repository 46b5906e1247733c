package spectest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmill/wasmill/host/sandbox/rewriter"
)

// run is one script on one engine.
type run struct {
	dir       string
	options   rewriter.Options
	runtime   wazero.Runtime
	meter     *meter
	instances []api.Module
	named     map[string]api.Module
	last      api.Module
	counts    counts
	// results are what each action gave, bit by bit, with the fuel it used. They are the same on all engines.
	results []string
}

// counts are how many commands of each sort were checked.
type counts map[string]int

// runScript runs all commands. It calls failed for each that gives another answer than the specification's.
func runScript(ctx context.Context, s script, dir string, v variant, failed func(c command, err error)) (*run, error) {
	r := &run{
		dir: dir, options: options(v.plain), runtime: wazero.NewRuntimeWithConfig(ctx, v.config().WithCoreFeatures(api.CoreFeaturesV2)),
		meter: &meter{}, named: map[string]api.Module{}, counts: counts{},
	}
	if err := instantiateHost(ctx, r.runtime, r.meter); err != nil {
		return nil, errors.Join(err, r.runtime.Close(ctx))
	}
	for i, c := range s.Commands {
		as := ""
		if i+1 < len(s.Commands) && s.Commands[i+1].Type == "register" {
			as = s.Commands[i+1].As
		}
		sort, err := r.command(ctx, c, as)
		if err != nil {
			failed(c, err)
			continue
		}
		r.counts[sort]++
	}
	return r, r.runtime.Close(ctx)
}

// command runs one command and returns by what it is counted. as is the name under which a module is registered next: the
// engine wants to know it when it instantiates.
func (r *run) command(ctx context.Context, c command, as string) (string, error) {
	switch c.Type {
	case "module":
		return c.Type, r.module(ctx, c, as)
	case "register":
		if r.last == nil || r.last.Name() != c.As {
			return "", fmt.Errorf("register %q follows no module", c.As)
		}
		return c.Type, nil
	case "action", "assert_return":
		return c.Type, r.assertReturn(ctx, c)
	case "assert_trap", "assert_exhaustion":
		return c.Type, r.assertTrap(ctx, c)
	case "assert_invalid", "assert_malformed":
		return r.assertRefused(ctx, c)
	case "assert_unlinkable":
		return c.Type, r.assertUnlinkable(ctx, c)
	case "assert_uninstantiable":
		return r.assertUninstantiable(ctx, c)
	}
	return "", fmt.Errorf("a command of type %q", c.Type)
}

func (r *run) read(c command) ([]byte, error) {
	return os.ReadFile(filepath.Join(r.dir, c.Filename))
}

// refused is an error of who took a module for invalid.
type refused struct {
	by  string
	err error
}

func (e *refused) Error() string { return e.by + " refused it: " + e.err.Error() }

// compile takes a module through decoder, rewriter and the engine's validation.
func (r *run) compile(ctx context.Context, c command) (wazero.CompiledModule, error) {
	b, err := r.read(c)
	if err != nil {
		return nil, err
	}
	wasm, err := prepare(b, r.options)
	if err != nil {
		return nil, err
	}
	compiled, err := r.runtime.CompileModule(ctx, wasm)
	if err != nil {
		return nil, &refused{"engine", err}
	}
	return compiled, nil
}

// instantiate makes an instance and runs its start function.
func (r *run) instantiate(ctx context.Context, compiled wazero.CompiledModule, as string) (api.Module, error) {
	r.meter.reset(r.instances)
	in, err := r.runtime.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(as).WithStartFunctions())
	if err != nil {
		return nil, err
	}
	r.instances = append(r.instances, in)
	r.meter.reset(r.instances)
	if start := in.ExportedFunction(rewriter.Start); start != nil {
		_, err = start.Call(ctx)
	}
	return in, err
}

func (r *run) module(ctx context.Context, c command, as string) error {
	r.last = nil
	compiled, err := r.compile(ctx, c)
	if err != nil {
		return err
	}
	in, err := r.instantiate(ctx, compiled, as)
	if err != nil {
		return err
	}
	r.last = in
	if c.Name != "" {
		r.named[c.Name] = in
	}
	return nil
}

// act runs an action and returns what it left, cut to the size of each type: the upper half of a slot that holds 32 bits is
// undefined.
func (r *run) act(ctx context.Context, a action) ([]uint64, error) {
	in := r.last
	if a.Module != "" {
		in = r.named[a.Module]
	}
	if in == nil {
		return nil, fmt.Errorf("there is no module %q", a.Module)
	}
	if a.Type == "get" {
		g := in.ExportedGlobal(a.Field)
		if g == nil {
			return nil, fmt.Errorf("there is no global %q", a.Field)
		}
		return []uint64{cut(g.Get(), g.Type())}, nil
	}
	f := in.ExportedFunction(a.Field)
	if f == nil {
		return nil, fmt.Errorf("there is no function %q", a.Field)
	}
	var args []uint64
	for _, v := range a.Args {
		slots, err := v.slots()
		if err != nil {
			return nil, err
		}
		args = append(args, slots...)
	}
	r.meter.reset(r.instances)
	out, err := f.Call(ctx, args...)
	if err != nil {
		return nil, &trap{err}
	}
	at := 0
	for _, t := range f.Definition().ResultTypes() {
		if t == 0x7b {
			at++
		} else {
			out[at] = cut(out[at], t)
		}
		at++
	}
	return out, nil
}

// trap is an error with which a call ended.
type trap struct{ error }

func cut(slot uint64, t api.ValueType) uint64 {
	if t == api.ValueTypeI32 || t == api.ValueTypeF32 {
		return uint64(uint32(slot))
	}
	return slot
}

func (r *run) assertReturn(ctx context.Context, c command) error {
	out, err := r.act(ctx, c.Action)
	if err != nil {
		return err
	}
	used := int64(0)
	if c.Action.Type == "invoke" {
		used = r.meter.used(r.instances)
	}
	r.results = append(r.results, fmt.Sprintf("%d %s %x %d", c.Line, c.Action.Field, out, used))
	at := 0
	for i, want := range c.Expected {
		if at+want.width() > len(out) {
			return fmt.Errorf("%d slots of results: %x", len(out), out)
		}
		have := out[at : at+want.width()]
		if ok, err := want.matches(have); !ok || err != nil {
			return fmt.Errorf("result %d is %x, want %s %s (%v)", i, have, want.Type, want.Value, err)
		}
		at += want.width()
	}
	if at != len(out) {
		return fmt.Errorf("%d slots of results, want %d", len(out), at)
	}
	return nil
}

// assertTrap checks that a call ends with the right trap.
func (r *run) assertTrap(ctx context.Context, c command) error {
	_, err := r.act(ctx, c.Action)
	var t *trap
	if !errors.As(err, &t) {
		return fmt.Errorf("it should trap with %q: %w", c.Text, orNone(err))
	}
	kind := r.kindOf(t)
	r.results = append(r.results, fmt.Sprintf("%d %s %s", c.Line, c.Action.Field, kind))
	if want := r.engineText(c.Text); kind != want {
		return fmt.Errorf("the trap is %q, want %q (%q)", kind, want, c.Text)
	}
	return nil
}

var errNone = errors.New("no error")

func orNone(err error) error {
	if err == nil {
		return errNone
	}
	return err
}

// kindOf is the engine's text of a trap, without what stands before and behind it.
func (r *run) kindOf(err error) string {
	if r.meter.stopped != nil {
		return r.meter.stopped.Error()
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimPrefix(text, "wasm error: ")
}

// engineText is what the engine says of a trap of the suite.
func (r *run) engineText(text string) string {
	switch text {
	case "call stack exhausted":
		if r.options.Plain {
			return "stack overflow"
		}
		return errDepth.Error()
	case "undefined element", "out of bounds table access":
		return "invalid table access"
	}
	if strings.HasPrefix(text, "uninitialized element") {
		return "invalid table access"
	}
	return text
}

// assertRefused checks that a module is refused before it is instantiated. One in the text format is none for us.
func (r *run) assertRefused(ctx context.Context, c command) (string, error) {
	if c.ModuleType == "text" {
		return c.Type + " (text)", nil
	}
	_, err := r.compile(ctx, c)
	var by *refused
	if !errors.As(err, &by) {
		return "", fmt.Errorf("it should be refused for %q: %w", c.Text, orNone(err))
	}
	return c.Type + " by " + by.by, nil
}

// assertUnlinkable checks that a module is valid, but its imports do not fit.
func (r *run) assertUnlinkable(ctx context.Context, c command) error {
	compiled, err := r.compile(ctx, c)
	if err != nil {
		return err
	}
	if _, err := r.instantiate(ctx, compiled, ""); err == nil {
		return fmt.Errorf("it should not link for %q", c.Text)
	}
	return nil
}

// assertUninstantiable checks that a module traps while it is instantiated, or is refused before that.
func (r *run) assertUninstantiable(ctx context.Context, c command) (string, error) {
	compiled, err := r.compile(ctx, c)
	var by *refused
	if errors.As(err, &by) {
		return c.Type + " by " + by.by, nil
	}
	if err != nil {
		return "", err
	}
	if _, err := r.instantiate(ctx, compiled, ""); err == nil {
		return "", fmt.Errorf("it should trap with %q", c.Text)
	}
	return c.Type, nil
}
