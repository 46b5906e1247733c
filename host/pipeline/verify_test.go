package pipeline

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/sandbox"
)

// interpreter is a second engine for a place.
func (p *place) interpreter() sandbox.Engine {
	p.t.Helper()
	eng, err := sandbox.New(sandbox.Config{Interpreter: true})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if err := eng.Close(context.Background()); err != nil {
			p.t.Error(err)
		}
	})
	return eng
}

// The saboteur is an engine whose instances change one record on its way out, or whose programs have another image.
type (
	saboteur struct {
		sandbox.Engine
		bend  func(*abi.Record)
		image string
	}
	bentModule struct {
		sandbox.Module
		by *saboteur
	}
	bentProgram struct {
		sandbox.Program
		by *saboteur
	}
	bentInstance struct {
		sandbox.Instance
		by *saboteur
	}
)

func (s *saboteur) Compile(ctx context.Context, b sandbox.Binary) (sandbox.Module, error) {
	m, err := s.Engine.Compile(ctx, b)
	return &bentModule{m, s}, err
}

func (m *bentModule) Start(ctx context.Context, o sandbox.Options) (sandbox.Program, error) {
	p, err := m.Module.Start(ctx, o)
	return &bentProgram{p, m.by}, err
}

func (p *bentProgram) Image() string {
	if p.by.image != "" {
		return p.by.image
	}
	return p.Program.Image()
}

func (p *bentProgram) New(ctx context.Context, l sandbox.Lane) (sandbox.Instance, error) {
	in, err := p.Program.New(ctx, l)
	return &bentInstance{in, p.by}, err
}

func (i *bentInstance) Call(ctx context.Context, c sandbox.Call, emit sandbox.Emit) error {
	return i.Instance.Call(ctx, c, func(r *abi.Record) error {
		bent := *r
		if i.by.bend != nil {
			i.by.bend(&bent)
		}
		return emit(&bent)
	})
}

func TestVerifyOnTheOtherEngine(t *testing.T) {
	p := newPlace(t)
	var verified []checkpoint.BatchID
	p.env.Other, p.env.VerifyShare = p.interpreter(), 1
	p.env.Events = &engine.Events{Verified: func(id checkpoint.BatchID, differs error) {
		verified = append(verified, id)
		if differs != nil {
			t.Error(differs)
		}
	}}
	if err := p.run(p.job("")); err != nil {
		t.Fatal(err)
	}
	if len(verified) != 2 || bytes.Count(p.screen.Bytes(), []byte("\n")) != 5000 {
		t.Errorf("verified %v, printed %d lines", verified, bytes.Count(p.screen.Bytes(), []byte("\n")))
	}
}

// TestVerifyCatchesASaboteur: a record that comes out otherwise on the other engine ends the batch, and nothing of it is
// seen or decided.
func TestVerifyCatchesASaboteur(t *testing.T) {
	p := newPlace(t)
	bend := func(r *abi.Record) {
		if bytes.Contains(r.Value, []byte(`"order_id":4000,`)) {
			r.Value = bytes.Replace(r.Value, []byte("4000"), []byte("4001"), 1)
		}
	}
	p.env.Workers = 1
	p.env.Other, p.env.VerifyShare = &saboteur{Engine: p.interpreter(), bend: bend}, 1
	var failed []error
	p.env.Events = &engine.Events{Verified: func(_ checkpoint.BatchID, differs error) { failed = append(failed, differs) }}
	j := p.job("")
	err := p.run(j)
	if codeOf(err) != engine.CodeEnginesDiffer || len(failed) != 2 || failed[0] != nil || failed[1] == nil {
		t.Fatalf("the saboteur passes: %v; verified %v", err, failed)
	}
	for _, w := range []string{
		"batch 1: run: ", "the compiler and the interpreter come to different results: on the interpreter screen has 2000 records ",
		"transform pass, lane 0: ", "port 0 value {\"order_id\":4000,", "port 0 value {\"order_id\":4001,", "on the interpreter; nothing of the batch is staged",
	} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error is %v, without %q", err, w)
		}
	}
	if n := bytes.Count(p.screen.Bytes(), []byte("\n")); n != 3000 {
		t.Errorf("%d lines are printed, want those of batch 0", n)
	}
	r, err := checkpoint.OpenReader(t.Context(), p.env.Files, j.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	plan, decision, err := r.Tail(t.Context())
	if err != nil || plan.Batch != 1 || decision != nil {
		t.Errorf("the checkpoint ends with plan %+v and decision %+v, %v", plan, decision, err)
	}
	p.env.Other = nil
	if err := p.run(j); err != nil || bytes.Count(p.screen.Bytes(), []byte("\n")) != 5000 {
		t.Errorf("without the check: %v", err)
	}
}

// TestVerifyNeedsTwoEnginesThatStartAlike.
func TestVerifyNeedsTwoEnginesThatStartAlike(t *testing.T) {
	p := newPlace(t)
	p.env.VerifyShare = 1
	for words, other := range map[string]sandbox.Engine{
		"both are the " + p.env.Sandbox.Kind():                   p.env.Sandbox,
		"transform pass: it does not start alike on two engines": &saboteur{Engine: p.interpreter(), image: strings.Repeat("0", 64)},
	} {
		p.env.Other = other
		if _, err := Load(t.Context(), p.job(""), p.env); codeOf(err) != CodeEngines || !strings.Contains(err.Error(), words) {
			t.Errorf("with %T: %v", other, errors.Unwrap(err))
		}
	}
}
