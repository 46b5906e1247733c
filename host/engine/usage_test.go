package engine_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/engine/sim"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sandbox"
)

// TestUsage counts what a transform did and used: in the runs that count, and in all.
func TestUsage(t *testing.T) {
	w := newWorld(t)
	w.workers, w.batch = 3, 12
	w.progress = true
	// Four lanes of three records. The trap of lane 1 costs one more instance, the nonzero status of lane 2 as well.
	w.in.Append("a", "odd", "drop", "b", "trap", "c", "status", "twice", "d", "e", "letter", "f")
	var got []engine.BatchStats
	w.events = &engine.Events{Batch: func(s engine.BatchStats) { got = append(got, s) }}
	w.mustRun()
	want := engine.StageStats{
		Name: "words", Records: 10, Emitted: 9, Ports: []int64{8, 1}, Instances: 6, Calls: 4*2 + 2,
		Fuel:   (4*2+2)*sim.FuelCall + (3+3+2+3+2+3)*sim.FuelRecord,
		Output: int64(len("aodd") + len("b") + len("bc") + len("twicetwiced") + len("ewill notf")),
		Memory: sim.Memory, Traps: map[abi.TrapName]int64{abi.TrapUnreachable: 1},
		Failures: []string{"offset 4: trap unreachable", "offset 6: status 7: no good"},
	}
	if len(got) != 1 || !reflect.DeepEqual(got[0].Stages, []engine.StageStats{want}) {
		t.Errorf("the stages are\n%+v, want\n%+v", got[0].Stages, want)
	}

	// What recovery publishes without running has used nothing.
	w.progress = false
	w.in.Append("g", "trap")
	w.mustRun()
	if len(got) != 2 || got[1].Stages[0].Traps[abi.TrapUnreachable] != 1 || got[1].Stages[0].Records != 1 {
		t.Errorf("without the progress cell a trap counts as %+v", got[1].Stages)
	}
	if s := got[1].Stages[0]; s.Instances <= 3 {
		t.Errorf("the search for the record took %d instances", s.Instances)
	}
}

// TestLimitsAreNamed has traps about limits: the dead letter, the error and its way out say which, and how to raise it.
func TestLimitsAreNamed(t *testing.T) {
	for trap, limit := range map[abi.TrapName]string{
		abi.TrapFuel: "raise `limits.fuel` of transform words in the job file if it needs that much, or ", abi.TrapDepth: "raise `limits.depth` of transform words in the job file if it needs that much, or ",
		abi.TrapMemory: "raise `limits.memory` of transform words in the job file if it ran out of memory, or ", abi.TrapQuota: "raise `limits.output` of transform words in the job file if it needs that much, or ",
		abi.TrapDivide: "",
	} {
		for _, where := range []string{"a record", "the last frame", "too many records"} {
			w := newWorld(t)
			w.batch = 40
			values := []string{"a", "bad", "b"}
			if where == "too many records" {
				values = nil
				for range 40 {
					values = append(values, "bad", "bad")
				}
				w.batch = 80
			}
			w.in.Append(values...)
			w.guest = func(sandbox.Lane) sim.Guest {
				return func(c sandbox.Call, _ sandbox.Emit) error {
					fail := &sandbox.Failure{Trap: trap, Text: "52,000,000 for a call of 1 record", Progress: abi.NoIndex}
					if where == "the last frame" && c.Header.Flags&abi.FlagLast != 0 {
						return fail
					}
					for i := range c.Records {
						if string(c.Records[i].Value) == "bad" && where != "the last frame" {
							fail.Progress = c.Records[i].Index
							return fail
						}
					}
					return nil
				}
			}
			if where == "a record" {
				w.policy = engine.Stop
			}
			err := w.run(&sim.Process{})
			var f *fault.Error
			code := map[string]string{"a record": engine.CodeRecordStopped, "the last frame": engine.CodeGuestFailed, "too many records": engine.CodeTooMuchPoison}[where]
			if !errors.As(err, &f) || f.ErrCode != code || !strings.Contains(f.Error(), "trap "+string(trap)+": 52,000,000 for a call of 1 record") ||
				!strings.HasPrefix(f.WayOut, limit+"mend ") {
				t.Errorf("%s of %s: %v, way out %+v", trap, where, err, f)
			}
			if where != "a record" {
				continue
			}
			w.policy = engine.DeadLetter
			w.mustRun()
			letters := w.stores["dead"].Values("dead")
			if len(letters) != 1 || !strings.Contains(letters[0], `"reason":"trap `+string(trap)+`: 52,000,000 for a call of 1 record"`) {
				t.Errorf("%s: the dead letters are %v", trap, letters)
			}
		}
	}
}
