package determinism

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/abi/kit"
	"github.com/wasmill/wasmill/abi/statemap"
	"github.com/wasmill/wasmill/host/sandbox"
)

// stateRun is all that can be seen of a lane that used state.
type stateRun struct {
	Emitted []string
	Failure string
	Usage   sandbox.Usage
	Entries []statemap.Entry
	Timers  []statemap.Timer
}

// TestStateIsTheSame lets a guest do random things with state, with more or less fuel: both engines see the same, to the
// operation at which the fuel is used up.
func TestStateIsTheSame(t *testing.T) {
	var wasm []byte
	cases, err := kit.Load()
	if err != nil {
		t.Fatal(err)
	}
	for i := range cases {
		if cases[i].Name == "state" {
			wasm = cases[i].Wasm
		}
	}
	all := engines(t)
	modules := make([]sandbox.Module, len(all))
	for i, e := range all {
		if modules[i], err = e.Compile(t.Context(), sandbox.Binary{Name: "state", Wasm: wasm}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := modules[i].Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	ended, trapped := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		records := drawStateRecords(t)
		scarce := uint64(rapid.IntRange(5_000, 400_000).Draw(t, "fuel"))
		for _, fuel := range []uint64{scarce, plenty} {
			limits := sandbox.Limits{FuelCall: fuel, FuelRecord: 1}
			first, err := runState(modules[0], records, limits)
			if err != nil {
				t.Fatal(err)
			}
			second, err := runState(modules[len(modules)-1], records, limits)
			if err != nil {
				t.Fatal(err)
			}
			if !cmp.Equal(first, second) {
				t.Fatal(cmp.Diff(first, second))
			}
			if first.Failure == "" {
				ended++
			} else {
				trapped++
			}
		}
	})
	if ended < 5 || trapped < 5 { // also of the few that an emulated processor runs
		t.Errorf("%d ended and %d were stopped: one of both is not tried", ended, trapped)
	}
}

// drawStateRecords makes records for the kit's guest state, which says what their lines mean.
func drawStateRecords(t *rapid.T) []abi.Record {
	sub := rapid.SampledFrom([]string{"~", "a", "ab", "b", "ba", "bb", "long-" + strings.Repeat("x", 300)})
	none := rapid.SampledFrom([]string{"-", "~", "a", "b"})
	line := rapid.Custom(func(t *rapid.T) string {
		s, n := sub.Draw(t, "sub"), rapid.IntRange(0, 1).Draw(t, "number")
		switch rapid.IntRange(0, 8).Draw(t, "line") {
		case 0:
			return fmt.Sprintf("g %d %s", n, s)
		case 1:
			return fmt.Sprintf("s %d %s %s %d", n, none.Draw(t, "prefix"), none.Draw(t, "after"), rapid.IntRange(0, 3).Draw(t, "limit"))
		case 2:
			return fmt.Sprintf("S %d ~ %s %d", n, none.Draw(t, "after"), rapid.IntRange(0, 3).Draw(t, "limit"))
		case 3, 4, 5:
			return fmt.Sprintf("p %d %s %s %d", n, s, strings.Repeat("v", rapid.IntRange(1, 200).Draw(t, "size")), n*2_000_000_000_000_000)
		case 6:
			return fmt.Sprintf("x %d %s %s", n, none.Draw(t, "prefix"), none.Draw(t, "before"))
		case 7:
			return fmt.Sprintf("b %d", rapid.IntRange(0, 600).Draw(t, "room"))
		}
		return fmt.Sprintf("t %d %s %d", n, s, rapid.Int64Range(-1000, 1000).Draw(t, "at"))
	})
	records := make([]abi.Record, rapid.IntRange(1, 30).Draw(t, "records"))
	for i := range records {
		lines := rapid.SliceOfN(line, 1, 30).Draw(t, "lines")
		records[i] = abi.Record{
			Key: []byte(rapid.SampledFrom([]string{"", "k", "other"}).Draw(t, "key")), Value: []byte(strings.Join(lines, "\n")), Index: uint32(i),
		}
	}
	return records
}

func runState(m sandbox.Module, records []abi.Record, limits sandbox.Limits) (run stateRun, err error) {
	ctx := context.Background()
	p, err := m.Start(ctx, sandbox.Options{Limits: limits})
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, p.Close(ctx)) }()
	var state statemap.Map
	state.Begin(1_700_000_000_000_000, 0)
	in, err := p.New(ctx, sandbox.Lane{State: &state, Lanes: 1})
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, in.Close(ctx)) }()
	err = in.Call(ctx, sandbox.Call{Records: records}, func(r *abi.Record) error {
		run.Emitted = append(run.Emitted, string(r.Value))
		return nil
	})
	var failed *sandbox.Failure
	if errors.As(err, &failed) {
		run.Failure, err = failed.Error()+strings.Join(failed.Stack, "\n"), nil
	}
	run.Usage, run.Entries, run.Timers = in.Usage(), state.Entries(), state.Timers()
	return run, err
}
