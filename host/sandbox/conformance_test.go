package sandbox

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/abi/kit"
	"github.com/wasmill/wasmill/host/fault"
)

// engines are both kinds of engine, so that each test sees that they agree.
func engines(t testing.TB) map[string]Engine {
	t.Helper()
	all := map[string]Engine{}
	for name, config := range map[string]Config{"compiler": {}, "interpreter": {Interpreter: true}} {
		e, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := e.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		all[name] = e
	}
	return all
}

func TestConformance(t *testing.T) {
	cases, err := kit.Load()
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range engines(t) {
		t.Run(name, func(t *testing.T) {
			for i := range cases {
				c := &cases[i]
				t.Run(c.Name, func(t *testing.T) {
					if name == "interpreter" && endlessStart[c.Name] {
						t.Skip("the fuel of a start lasts minutes here")
					}
					if err := c.Check(kitHost{t, e}); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}

// endlessStart are the cases that use up the fuel of a start-up, 20 times that of a batch.
var endlessStart = map[string]bool{"start-init-loop": true, "start-section-loop": true}

// kitHost lets the conformance kit drive this package.
type kitHost struct {
	t *testing.T
	e Engine
}

type kitProgram struct {
	Program
	m Module
}

type kitLane struct{ in Instance }

func (h kitHost) Start(c *kit.Case, log func(kit.Log)) (kit.Program, error) {
	ctx := h.t.Context()
	m, err := h.e.Compile(ctx, Binary{Name: c.Name, Wasm: c.Wasm, Sidecar: c.Sidecar})
	if err != nil {
		return nil, kitRefusal(h.t, c, "compile", err)
	}
	config, err := abi.CanonicalJSON(c.Config)
	if err != nil {
		return nil, err
	}
	p, err := m.Start(ctx, Options{
		Transform: c.Name, Config: config, Limits: Limits{Memory: c.Limits.Memory, Output: c.Limits.Output},
		Log: func(level int, text string) { log(kit.Log{Level: level, Text: kit.Bytes(text)}) },
	})
	if err != nil {
		return nil, errors.Join(kitRefusal(h.t, c, "start", err), m.Close(ctx))
	}
	return kitProgram{p, m}, nil
}

// kitRefusal reads the kit's word from a fault. Where the kit expects a module to be refused when it starts, it may be
// refused without running it.
func kitRefusal(t *testing.T, c *kit.Case, at string, err error) error {
	t.Logf("%v", err)
	var f *fault.Error
	if !errors.As(err, &f) || f.WayOut == "" {
		return err
	}
	r := &kit.Refusal{At: at, Word: strings.TrimPrefix(f.ErrCode, "module."), Message: f.Error()}
	var failed *Failure
	switch {
	case f.ErrCode == CodeMemory:
		r.At = "compile" // the limit is known only when it starts, but nothing of it ran
	case f.ErrCode == CodeMalformed && c.Refuse != nil:
		r.At = c.Refuse.At
	case f.ErrCode == CodeManifest && strings.Contains(r.Message, `"/abi"`):
		r.Word = "abi"
	case f.ErrCode == CodeInvalid:
		r.Word = "malformed"
	case f.ErrCode != CodeStart:
	case errors.As(err, &failed) && failed.Trap != "":
		r.Word, r.Trap = "trap", failed.Trap
	case errors.As(err, &failed):
		r.Word = "init"
	case errors.Is(err, ErrAlloc):
		r.Word = "alloc"
	}
	return r
}

func (p kitProgram) Lane(o kit.LaneOptions) (kit.Lane, error) {
	in, err := p.New(context.Background(), Lane{Seed: o.Seed, Time: o.BatchTime, State: o.State, Index: o.Index, Lanes: o.Lanes})
	return kitLane{in}, err
}

func (p kitProgram) Close() error {
	ctx := context.Background()
	return errors.Join(p.Program.Close(ctx), p.m.Close(ctx))
}

func (l kitLane) Call(h abi.FrameHeader, recs []abi.Record, nfields int, emit func(*abi.Record) error) error {
	err := l.in.Call(context.Background(), Call{Header: h, Records: recs, NFields: nfields}, emit)
	var failed *Failure
	if errors.As(err, &failed) {
		return &kit.Outcome{Trap: failed.Trap, Status: failed.Status, Text: failed.Text, Progress: failed.Progress}
	}
	return err
}

func (l kitLane) Close() error { return l.in.Close(context.Background()) }
