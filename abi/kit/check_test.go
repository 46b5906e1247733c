package kit

import (
	"errors"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/abi/statemap"
)

// mutant is the reference host with one defect.
type mutant struct {
	reference
	start  func(p Program, err error) (Program, error)
	lane   func(p Program, o LaneOptions) (Lane, error)
	before func(h *abi.FrameHeader, recs []abi.Record)
	emit   func(r *abi.Record)
	after  func(error) error
}

type mutantProgram struct {
	Program
	m *mutant
}

type mutantLane struct {
	Lane
	m *mutant
}

func (m *mutant) Start(c *Case, log func(Log)) (Program, error) {
	p, err := m.reference.Start(c, log)
	if m.start != nil {
		p, err = m.start(p, err)
	}
	return mutantProgram{p, m}, err
}

func (p mutantProgram) Close() error {
	if p.Program == nil {
		return nil
	}
	return p.Program.Close()
}

func (p mutantProgram) Lane(o LaneOptions) (Lane, error) {
	open := p.Program.Lane
	if p.m.lane != nil {
		open = func(o LaneOptions) (Lane, error) { return p.m.lane(p.Program, o) }
	}
	in, err := open(o)
	return mutantLane{in, p.m}, err
}

func (l mutantLane) Call(h abi.FrameHeader, recs []abi.Record, nfields int, emit func(*abi.Record) error) error {
	if l.m.before != nil {
		l.m.before(&h, recs)
	}
	err := l.Lane.Call(h, recs, nfields, func(r *abi.Record) error {
		if l.m.emit != nil {
			l.m.emit(r)
		}
		return emit(r)
	})
	if l.m.after != nil {
		err = l.m.after(err)
	}
	return err
}

// outcome changes how calls fail.
func outcome(change func(*Outcome) error) func(error) error {
	return func(err error) error {
		if o := (*Outcome)(nil); errors.As(err, &o) {
			return change(o)
		}
		return err
	}
}

// TestCheckFindsDefects gives hosts one defect each and wants the kit to find it, in the case that is there for it.
func TestCheckFindsDefects(t *testing.T) {
	for _, d := range []struct {
		name, found string
		m           mutant
	}{
		{"takes every module", "no-batch", mutant{start: func(p Program, _ error) (Program, error) { return p, nil }}},
		{"refuses with the wrong word", "abi-2", mutant{start: func(p Program, err error) (Program, error) {
			if r := (*Refusal)(nil); errors.As(err, &r) {
				r.Word = "import"
			}
			return p, err
		}}},
		{"refuses without saying what", "import-name", mutant{start: func(p Program, err error) (Program, error) {
			if r := (*Refusal)(nil); errors.As(err, &r) {
				r.Message = "no"
			}
			return p, err
		}}},
		{"seeds nothing", "virtual", mutant{lane: func(p Program, o LaneOptions) (Lane, error) {
			o.Seed = [2]uint64{}
			return p.Lane(o)
		}}},
		{"pins no clock", "virtual", mutant{lane: func(p Program, o LaneOptions) (Lane, error) {
			o.BatchTime += 5e6
			return p.Lane(o)
		}}},
		{"says last with every frame", "context", mutant{before: func(h *abi.FrameHeader, _ []abi.Record) { h.Flags |= abi.FlagLast }}},
		{"locates no field", "fields", mutant{before: func(_ *abi.FrameHeader, recs []abi.Record) {
			for i := range recs {
				recs[i].Fields = nil
			}
		}}},
		{"hands over no offset", "frame-shape", mutant{before: func(_ *abi.FrameHeader, recs []abi.Record) {
			for i := range recs {
				recs[i].Offset = 0
			}
		}}},
		{"loses headers", "echo", mutant{emit: func(r *abi.Record) { r.Headers = nil }}},
		{"takes null for empty", "nulls", mutant{emit: func(r *abi.Record) {
			if r.Value == nil {
				r.Value = []byte{}
			}
		}}},
		{"mixes up ports", "ports", mutant{emit: func(r *abi.Record) { r.Port = 0 }}},
		{"floors no time", "times", mutant{emit: func(r *abi.Record) { r.EventTime++ }}},
		{"loses a dead letter's code", "dead", mutant{emit: func(r *abi.Record) { r.Partition = 0 }}},
		{"loses the index", "odd", mutant{emit: func(r *abi.Record) { r.Index = abi.NoIndex }}},
		{"hears no failure", "end-divide", mutant{after: outcome(func(*Outcome) error { return nil })}},
		{"calls every trap memory", "end-table", mutant{after: outcome(func(o *Outcome) error { o.Trap = abi.TrapMemory; return o })}},
		{"reads no progress", "poison-progress", mutant{after: outcome(func(o *Outcome) error { o.Progress = abi.NoIndex; return o })}},
		{"believes any progress", "poison-wild-progress", mutant{after: outcome(func(o *Outcome) error { o.Progress = 123456; return o })}},
		{"reads no error text", "end-status-text", mutant{after: outcome(func(o *Outcome) error { o.Text = ""; return o })}},
		{"has no state", "state-get", mutant{lane: func(p Program, o LaneOptions) (Lane, error) {
			o.State = nil
			return p.Lane(o)
		}}},
		{"has state where there are no keys", "state-put", mutant{lane: func(p Program, o LaneOptions) (Lane, error) {
			if o.State == nil {
				o.State, o.Lanes = &statemap.Map{}, 1
			}
			return p.Lane(o)
		}}},
		{"gives every key to a lane", "state-get", mutant{lane: func(p Program, o LaneOptions) (Lane, error) {
			o.Index, o.Lanes = 0, 1
			return p.Lane(o)
		}}},
		{"forgets what it is told", "state-count", mutant{lane: func(p Program, o LaneOptions) (Lane, error) {
			o.State = forgetful{o.State}
			return p.Lane(o)
		}}},
		{"scans upwards only", "state", mutant{lane: func(p Program, o LaneOptions) (Lane, error) {
			o.State = upwards{o.State}
			return p.Lane(o)
		}}},
		{"hands over no timers", "state", mutant{before: func(_ *abi.FrameHeader, recs []abi.Record) {
			for i := range recs {
				recs[i].Kind = abi.KindRecord
			}
		}}},
		{"blames a record for bad memory", "batch-alloc-0", mutant{after: func(err error) error {
			if err != nil {
				return &Outcome{Trap: abi.TrapTooLarge, Progress: 0}
			}
			return nil
		}}},
	} {
		t.Run(d.name, func(t *testing.T) {
			for _, c := range load(t) {
				if c.Name != d.found {
					continue
				}
				if err := c.Check(&d.m); err == nil {
					t.Errorf("case %s does not find it", c.Name)
				}
				return
			}
			t.Errorf("there is no case %s", d.found)
		})
	}
}

type forgetful struct{ State }

func (forgetful) Write(*abi.StateOp) (int, error) { return 0, nil }

type upwards struct{ State }

func (u upwards) Scan(op *abi.StateOp, visit func(sub, value []byte) bool) error {
	up := *op
	up.Descending = false
	return u.State.Scan(&up, visit)
}

// TestCheckFindsSharedMemory keeps one instance for all lanes, which no host may do.
func TestCheckFindsSharedMemory(t *testing.T) {
	var kept Lane
	m := &mutant{lane: func(p Program, o LaneOptions) (Lane, error) {
		var err error
		if kept == nil {
			kept, err = p.Lane(o)
		}
		return unclosed{kept}, err
	}}
	for _, c := range load(t) {
		if c.Name == "count" {
			err := c.Check(m)
			if err == nil || !strings.Contains(err.Error(), "8 records") {
				t.Errorf("got %v", err)
			}
			return
		}
	}
	t.Error("there is no case count")
}

type unclosed struct{ Lane }

func (unclosed) Close() error { return nil }
