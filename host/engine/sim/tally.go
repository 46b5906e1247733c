package sim

import (
	"fmt"
	"strconv"
	"time"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox"
)

// WindowMS is the size of the windows of Tally.
const WindowMS = 5_000

// TallyTables are the tables of Tally.
var TallyTables = []string{"totals", "windows"}

// Tally is a keyed guest for tests. For each record it emits "<key> <n>" on port 0, where n counts the records of the key
// for ever, and counts the key's records by windows of event time. When the watermark has passed a window it emits
// "<key> <window> <n>" on port 1. What is late goes to port 2. A value that begins with "trap" or "fail" does what it says.
func Tally(l sandbox.Lane) Guest {
	t := tally{state: l.State}
	return func(c sandbox.Call, emit sandbox.Emit) error {
		for i := range c.Records {
			if err := t.record(&c.Header, &c.Records[i], emit); err != nil {
				return err
			}
		}
		return nil
	}
}

type tally struct {
	state sandbox.State
}

func (t *tally) record(h *abi.FrameHeader, r *abi.Record, emit sandbox.Emit) error {
	if r.Kind == abi.KindEventTimer {
		return t.close(r, emit)
	}
	n, err := t.count(&abi.StateOp{Table: 0, Key: r.Key})
	if err != nil {
		return err
	}
	if len(r.Value) > 3 && string(r.Value[:4]) == "trap" {
		return &sandbox.Failure{Trap: abi.TrapUnreachable, Progress: abi.NoIndex}
	}
	if len(r.Value) > 3 && string(r.Value[:4]) == "fail" {
		return emit(&abi.Record{Kind: abi.KindFail, Index: r.Index, Partition: 9, Value: []byte("cannot")})
	}
	if err := emit(&abi.Record{Key: r.Key, Value: fmt.Appendf(nil, "%s %d", r.Key, n), Index: r.Index}); err != nil {
		return err
	}
	end := (r.EventTime/1000/WindowMS + 1) * WindowMS
	if h.LateWatermark > 0 && end*1000 <= h.LateWatermark {
		return emit(&abi.Record{Key: r.Key, Value: r.Value, Port: 2, Index: r.Index})
	}
	window := strconv.AppendInt(nil, end-WindowMS, 10)
	if _, err = t.count(&abi.StateOp{Table: 1, Key: r.Key, Sub: window}); err != nil {
		return err
	}
	_, err = t.state.Write(&abi.StateOp{Op: abi.OpTimerSet, Domain: abi.DomainEvent, Key: r.Key, Sub: window, At: end * 1000})
	return err
}

// count adds one to an entry.
func (t *tally) count(op *abi.StateOp) (int64, error) {
	op.Op = abi.OpGet
	value, _, err := t.state.Get(op)
	if err != nil {
		return 0, err
	}
	n := int64(1)
	if len(value) > 0 {
		was, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("a count: %w", err)
		}
		n = was + 1
	}
	op.Op, op.Value = abi.OpPut, strconv.AppendInt(nil, n, 10)
	_, err = t.state.Write(op)
	return n, err
}

// close emits a window whose end the watermark has passed.
func (t *tally) close(r *abi.Record, emit sandbox.Emit) error {
	op := abi.StateOp{Op: abi.OpGet, Table: 1, Key: r.Key, Sub: r.Value}
	value, found, err := t.state.Get(&op)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("a timer for window %s of %s, which is not there", r.Value, r.Key)
	}
	text := fmt.Appendf(nil, "%s %s %s", r.Key, r.Value, value)
	op.Op = abi.OpDelete
	if _, err := t.state.Write(&op); err != nil {
		return err
	}
	return emit(&abi.Record{Key: r.Key, Value: text, Port: 1, Index: abi.NoIndex})
}

// Alarm returns a keyed guest that sets a timer by the clock for each record, so long after the batch's time, and emits
// "<key> at <milliseconds since the epoch's start>" on port 1 when it fires.
func Alarm(l sandbox.Lane, after time.Duration) Guest {
	return func(c sandbox.Call, emit sandbox.Emit) error {
		for i := range c.Records {
			r := &c.Records[i]
			if r.Kind == abi.KindProcessingTimer {
				text := fmt.Appendf(nil, "%s at %d", r.Key, r.EventTime/1000-Epoch)
				if err := emit(&abi.Record{Key: r.Key, Value: text, Port: 1, Index: abi.NoIndex}); err != nil {
					return err
				}
				continue
			}
			_, err := l.State.Write(&abi.StateOp{
				Op: abi.OpTimerSet, Domain: abi.DomainProcessing, Key: r.Key, At: c.Header.BatchTime + after.Microseconds(),
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// Swarm returns a keyed guest that sets n timers at the event time of each record, and emits "<key> <number>" on port 1 for
// each that fires.
func Swarm(l sandbox.Lane, n int) Guest {
	return func(c sandbox.Call, emit sandbox.Emit) error {
		for i := range c.Records {
			r := &c.Records[i]
			if r.Kind == abi.KindEventTimer {
				text := fmt.Appendf(nil, "%s %s", r.Key, r.Value)
				if err := emit(&abi.Record{Key: r.Key, Value: text, Port: 1, Index: abi.NoIndex}); err != nil {
					return err
				}
				continue
			}
			for k := range n {
				op := abi.StateOp{Op: abi.OpTimerSet, Key: r.Key, Sub: strconv.AppendInt(nil, int64(k), 10), At: r.EventTime}
				if _, err := l.State.Write(&op); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// Marks is a guest that emits "<watermark> <late watermark>", in milliseconds, once in each lane that has something.
func Marks(sandbox.Lane) Guest {
	return func(c sandbox.Call, emit sandbox.Emit) error {
		if c.Header.Flags&abi.FlagLast == 0 {
			return nil
		}
		text := fmt.Appendf(nil, "%d %d", c.Header.Watermark/1000, c.Header.LateWatermark/1000)
		return emit(&abi.Record{Value: text, Index: abi.NoIndex})
	}
}
