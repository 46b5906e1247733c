package determinism

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/abi/kit"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sandbox/guests"
)

// engines are both kinds of engine.
func engines(t *testing.T) []sandbox.Engine {
	t.Helper()
	var all []sandbox.Engine
	for _, config := range []sandbox.Config{{}, {Interpreter: true}} {
		e, err := sandbox.New(config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := e.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		all = append(all, e)
	}
	return all
}

// picked says whether a short run takes the case with that number: one of n, another one for each WASMILL_PICK.
func picked(i, n int) bool {
	pick, _ := strconv.Atoi(os.Getenv("WASMILL_PICK"))
	return !testing.Short() || i%n == pick%n
}

// ledger writes down all that can be seen of a run.
type ledger struct{ h hash.Hash }

func (l ledger) note(format string, args ...any) { fmt.Fprintf(l.h, format+"\n", args...) }

// record notes an emitted record.
func (l ledger) record(r *abi.Record) {
	l.note("record %d %d %d %d %d %t %q %t %q", r.Kind, r.Index, r.Port, r.EventTime, r.Flags, r.Key == nil, r.Key, r.Value == nil, r.Value)
	for _, h := range r.Headers {
		l.note("header %q %q", h.Name, h.Value)
	}
}

// end notes how a call ended, and what the instance is then.
func (l ledger) end(in sandbox.Instance, err error) {
	var failed *sandbox.Failure
	var fine *fault.Error
	switch {
	case errors.As(err, &failed):
		l.note("trap %q status %d at %d: %s", failed.Trap, failed.Status, failed.Progress, failed.Text)
	case errors.As(err, &fine):
		l.note("fault %s", fine.ErrCode)
	case err != nil:
		l.note("error %v", err)
	}
	u := in.Usage()
	l.note("fuel %d memory %d output %d log %d lost %d image %s", u.Fuel, u.Memory, u.Output, u.Log, u.Lost, sandbox.Inspect(in))
}

// kitHost runs the cases of the conformance kit and writes down what they do.
type kitHost struct {
	e sandbox.Engine
	l ledger
}

type kitProgram struct {
	sandbox.Program
	m sandbox.Module
	l ledger
}

type kitLane struct {
	in sandbox.Instance
	l  ledger
}

func (h kitHost) Start(c *kit.Case, log func(kit.Log)) (kit.Program, error) {
	ctx := context.Background()
	m, err := h.e.Compile(ctx, sandbox.Binary{Name: c.Name, Wasm: c.Wasm, Sidecar: c.Sidecar})
	if err != nil {
		h.l.note("refused: %v", err)
		return nil, err
	}
	config, err := abi.CanonicalJSON(c.Config)
	if err != nil {
		return nil, errors.Join(err, m.Close(ctx))
	}
	p, err := m.Start(ctx, sandbox.Options{
		Transform: c.Name, Config: config, Limits: sandbox.Limits{Memory: c.Limits.Memory, Output: c.Limits.Output},
		Log: func(level int, text string) { h.l.note("log %d %q", level, text) },
	})
	if err != nil {
		h.l.note("did not start: %v", err)
		return nil, errors.Join(err, m.Close(ctx))
	}
	h.l.note("image %s", p.Image())
	return kitProgram{p, m, h.l}, nil
}

func (p kitProgram) Lane(o kit.LaneOptions) (kit.Lane, error) {
	lane := sandbox.Lane{Seed: o.Seed, Time: o.BatchTime, Index: o.Index, Lanes: o.Lanes}
	if o.State != nil {
		lane.State = notedState{o.State, p.l}
	}
	in, err := p.New(context.Background(), lane)
	return kitLane{in, p.l}, err
}

func (p kitProgram) Close() error {
	ctx := context.Background()
	return errors.Join(p.Program.Close(ctx), p.m.Close(ctx))
}

func (l kitLane) Call(h abi.FrameHeader, recs []abi.Record, nfields int, emit func(*abi.Record) error) error {
	err := l.in.Call(context.Background(), sandbox.Call{Header: h, Records: recs, NFields: nfields}, func(r *abi.Record) error {
		l.l.record(r)
		return emit(r)
	})
	l.l.end(l.in, err)
	var failed *sandbox.Failure
	if errors.As(err, &failed) {
		return &kit.Outcome{Trap: failed.Trap, Status: failed.Status, Text: failed.Text, Progress: failed.Progress}
	}
	return err
}

func (l kitLane) Close() error { return l.in.Close(context.Background()) }

// notedState notes what a guest does with state.
type notedState struct {
	kit.State
	l ledger
}

func (s notedState) Write(op *abi.StateOp) (int, error) {
	s.l.note("state %d: domain %d table %d key %q sub %q value %q at %d", op.Op, op.Domain, op.Table, op.Key, op.Sub, op.Value, op.At)
	return s.State.Write(op)
}

// TestKitIsTheSame runs every case of the conformance kit. What the kit thinks of it is looked at elsewhere.
func TestKitIsTheSame(t *testing.T) {
	cases, err := kit.Load()
	if err != nil {
		t.Fatal(err)
	}
	all := engines(t)
	g := golden{name: "kit.txt"}
	for i := range cases {
		c := &cases[i]
		endless := strings.Contains(c.Name, "loop") // until its fuel is used up
		if endless && testing.Short() || !picked(i, 8) {
			continue
		}
		var sums []string
		for _, e := range all {
			if endless && e.Kind() == "interpreter" && strings.HasPrefix(c.Name, "start") {
				continue // minutes
			}
			l := ledger{newDigest()}
			if err := c.Check(kitHost{e, l}); err != nil {
				l.note("not as the kit says")
			}
			sums = append(sums, digest(l.h))
		}
		if sums[0] != sums[len(sums)-1] {
			t.Errorf("%s differs: %s on the compiler, %s on the interpreter", c.Name, sums[0], sums[1])
		}
		g.add("%s: %s", c.Name, sums[0])
	}
	g.check(t)
}

// TestGuestsAreTheSame runs the real guests of every toolchain. Those that the Go toolchain builds here are compared with
// the digests where it built the same module.
func TestGuestsAreTheSame(t *testing.T) {
	all := engines(t)
	g := golden{name: "guests.txt"}
	dir := t.TempDir()
	for i, guest := range guests.All() {
		if testing.Short() && !guest.Built() || !picked(i, 8) || guest.Work == guests.Traps {
			continue
		}
		wasm, err := guest.Wasm(dir)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(wasm)
		var sums []string
		for _, e := range all {
			l := ledger{newDigest()}
			runGuest(t, e, guest, wasm, l)
			sums = append(sums, digest(l.h))
		}
		if sums[0] != sums[1] {
			t.Errorf("%s differs: %s on the compiler, %s on the interpreter", guest.Name, sums[0], sums[1])
		}
		g.add("%s, module %s: %s", guest.Name, hex.EncodeToString(sum[:6]), sums[0])
	}
	g.known(t)
	g.check(t)
}

// known leaves out what other modules than those of the golden file came to.
func (g *golden) known(t *testing.T) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + g.name)
	if *update || err != nil {
		return
	}
	have := map[string]bool{}
	for _, l := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		have[keyOf(l)] = true
	}
	g.partial = true
	g.lines = filter(g.lines, func(l string) bool {
		if !have[keyOf(l)] {
			t.Logf("no digest of that module: %s", l)
		}
		return have[keyOf(l)]
	})
	if len(g.lines) == 0 && !testing.Short() {
		t.Error("no digest of any module")
	}
}

// runGuest feeds a guest two frames in each of two instances.
func runGuest(t *testing.T, e sandbox.Engine, guest guests.Guest, wasm []byte, l ledger) {
	t.Helper()
	ctx := context.Background()
	m, err := e.Compile(ctx, sandbox.Binary{Name: guest.Name, Wasm: wasm, Sidecar: guest.Sidecar()})
	if err != nil {
		t.Fatalf("%s: %v", guest.Name, err)
	}
	p, err := m.Start(ctx, sandbox.Options{Limits: sandbox.Limits{Memory: 256 << 20}, Log: func(level int, text string) { l.note("log %d %q", level, text) }})
	if err != nil {
		t.Fatalf("%s: %v", guest.Name, err)
	}
	l.note("image %s", p.Image())
	for range 2 {
		in, err := p.New(ctx, sandbox.Lane{Seed: [2]uint64{1, 2}, Time: 1_700_000_000_000_000})
		if err != nil {
			t.Fatalf("%s: %v", guest.Name, err)
		}
		recs := guestRecords(t, guest, 20)
		for at := 0; at < len(recs); at += 10 {
			err := in.Call(ctx, sandbox.Call{Records: recs[at : at+10], NFields: len(guest.Fields)}, func(r *abi.Record) error {
				l.record(r)
				return nil
			})
			l.end(in, err)
			if err != nil {
				t.Errorf("%s on the %s: %v", guest.Name, e.Kind(), err)
			}
		}
		if err := in.Close(ctx); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(p.Close(ctx), m.Close(ctx)); err != nil {
		t.Error(err)
	}
}

func guestRecords(t *testing.T, guest guests.Guest, n int) []abi.Record {
	t.Helper()
	recs := make([]abi.Record, n)
	for i, v := range guests.Values(n) {
		recs[i] = abi.Record{Key: fmt.Appendf(nil, "c-%09d", i), Value: v, Index: uint32(i)}
	}
	if guest.Fields == nil {
		return recs
	}
	locator, err := abi.NewLocator(guest.Fields)
	if err != nil {
		t.Fatal(err)
	}
	for i := range recs {
		recs[i].Fields = make([]abi.Field, locator.Len())
		if !locator.Locate(recs[i].Value, recs[i].Fields) {
			t.Fatalf("order %d is not JSON", i)
		}
	}
	return recs
}
