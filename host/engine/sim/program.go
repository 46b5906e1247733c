package sim

import (
	"context"
	"fmt"
	"strings"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox"
)

// Guest is a transform written in Go: it gets each frame of one lane and emits records. An error that is a
// *sandbox.Failure is the guest's.
type Guest func(c sandbox.Call, emit sandbox.Emit) error

// Program makes a fresh guest for every lane.
type Program struct {
	Proc     *Process
	Outputs  []string
	Fields   []string
	Tables   []string
	NewGuest func(l sandbox.Lane) Guest
}

// Manifest declares one input "in" and the program's outputs.
func (p *Program) Manifest() *abi.Manifest {
	m := &abi.Manifest{ABI: 1, Name: "sim", Inputs: []abi.InputPort{{Name: "in", Fields: p.Fields}}}
	for _, o := range p.Outputs {
		m.Outputs = append(m.Outputs, abi.OutputPort{Name: o})
	}
	for _, t := range p.Tables {
		m.Tables = append(m.Tables, abi.Table{Name: t, Type: abi.TableBytes})
	}
	return m
}

// Image is a fixed text.
func (p *Program) Image() string { return strings.Repeat("0", 64) }

// New starts a lane.
func (p *Program) New(_ context.Context, l sandbox.Lane) (sandbox.Instance, error) {
	if err := p.Proc.Call("program.new"); err != nil {
		return nil, err
	}
	return &instance{p: p, guest: p.NewGuest(l)}, nil
}

// Close does nothing.
func (p *Program) Close(context.Context) error { return nil }

// What a simulated guest uses: so much fuel a call and a record, and a memory that does not grow.
const (
	FuelCall   = 100
	FuelRecord = 1
	Memory     = 64 << 10
)

type instance struct {
	p      *Program
	guest  Guest
	failed bool
	used   sandbox.Usage
}

func (i *instance) Call(_ context.Context, c sandbox.Call, emit sandbox.Emit) error {
	if i.failed {
		return fmt.Errorf("call after a failure")
	}
	if err := i.p.Proc.Call("program.call"); err != nil {
		return err
	}
	i.used.Calls++
	i.used.Fuel += FuelCall + FuelRecord*uint64(len(c.Records))
	err := i.guest(c, func(r *abi.Record) error {
		i.used.Output += int64(len(r.Value))
		return emit(r)
	})
	i.failed = err != nil
	return err
}

// Usage counts calls, fuel and the bytes of emitted values.
func (i *instance) Usage() sandbox.Usage {
	u := i.used
	u.Memory = Memory
	return u
}

func (i *instance) Close(context.Context) error { return nil }

// Words is a guest for tests. A value says what becomes of it: "drop", "trap", "status", "fail", "letter", "odd..." goes
// to port 1, "twice..." is emitted twice; everything else goes to port 0. At the end it emits how many it saw, to the
// last port, if it has more than two.
func Words(outputs int, progress bool) func(sandbox.Lane) Guest {
	return func(sandbox.Lane) Guest {
		seen := 0
		return func(c sandbox.Call, emit sandbox.Emit) error {
			for i := range c.Records {
				r := c.Records[i]
				seen++
				if err := word(&r, outputs, progress, emit); err != nil {
					return err
				}
			}
			if c.Header.Flags&abi.FlagLast != 0 && outputs > 2 {
				return emit(&abi.Record{Value: fmt.Appendf(nil, `{"seen":%d}`, seen), Port: uint16(outputs - 1), Index: abi.NoIndex})
			}
			return nil
		}
	}
}

func word(r *abi.Record, outputs int, progress bool, emit sandbox.Emit) error {
	v := string(r.Value)
	at := uint32(abi.NoIndex)
	if progress {
		at = r.Index
	}
	out := abi.Record{Key: r.Key, Value: r.Value, Headers: r.Headers, Index: r.Index, EventTime: r.EventTime, Flags: r.Flags & abi.FlagEventTime}
	switch {
	case strings.HasPrefix(v, "drop"):
		return nil
	case strings.HasPrefix(v, "trap"):
		return &sandbox.Failure{Trap: abi.TrapUnreachable, Progress: at}
	case strings.HasPrefix(v, "status"):
		return &sandbox.Failure{Status: 7, Text: "no good", Progress: at}
	case strings.HasPrefix(v, "fail"):
		return emit(&abi.Record{Kind: abi.KindFail, Index: r.Index, Partition: 9, Value: []byte("cannot")})
	case strings.HasPrefix(v, "letter"):
		return emit(&abi.Record{Kind: abi.KindDeadLetter, Index: r.Index, Partition: 3, Value: []byte("will not")})
	case strings.HasPrefix(v, "odd") && outputs > 1:
		out.Port = 1
		return emit(&out)
	case strings.HasPrefix(v, "twice"):
		if err := emit(&out); err != nil {
			return err
		}
	}
	return emit(&out)
}
