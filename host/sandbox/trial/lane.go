package trial

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox"
)

// The pinned circumstances of every run: 2026-01-01T00:00:00Z.
const trialTime = 1_767_225_600_000_000

var trialSeed = [2]uint64{1, 2}

// outcome is what one input came to.
type outcome struct {
	digest  [16]byte // of all that was emitted, in order
	out     int64
	letters int64
	ports   [abi.MaxPorts]int64
	rows    [abi.MaxPorts]rowCount
	failed  string // "" when it came to its end
	used    sandbox.Usage
	highest float64 // the largest share that a call used of its fuel
	trap    abi.TrapName
	alloc   bool // it gave no memory for a frame
	atEnd   bool // it failed in the last frame
}

func (o *outcome) counts(in int) string {
	s := fmt.Sprintf("%d in, %d out", in, o.out)
	if o.letters > 0 {
		s += fmt.Sprintf(", %d set aside", o.letters)
	}
	return s
}

// lane is one run of one input.
type lane struct {
	outcome
	limits *sandbox.Limits
	state  *memory // nil without keys
	checks *rowChecks
	hash   xxh3.Hasher
	one    abi.RecordDigest
}

// failRecord is the guest's word that it cannot process a record.
type failRecord struct{ reason string }

func (f *failRecord) Error() string { return f.reason }

// run feeds the input through a fresh instance, chunk by chunk, and ends the lane. What keeps state gets batches after
// that, so that its timers fire.
func (in *input) run(ctx context.Context, p sandbox.Program, limits *sandbox.Limits) (out outcome, err error) {
	l := &lane{limits: limits, checks: in.rows}
	if !in.keyed {
		err = l.batch(ctx, p, in, clock{time: trialTime})
	} else {
		l.state = &memory{}
		for i := 0; i < len(trialClocks) && l.failed == "" && err == nil; i++ {
			part := in
			if i > 0 {
				part = &input{}
			}
			err = l.batch(ctx, p, part, trialClocks[i])
		}
		l.state.digest(&l.hash)
	}
	l.digest = l.hash.Sum128().Bytes()
	return l.outcome, err
}

// batch is one lane of one batch.
func (l *lane) batch(ctx context.Context, p sandbox.Program, in *input, at clock) (err error) {
	o := sandbox.Lane{Seed: trialSeed, Time: at.time}
	if l.state != nil {
		l.state.begin(at)
		o.State, o.Lanes = l.state, 1
	}
	inst, err := p.New(ctx, o)
	if err != nil {
		return err
	}
	defer func() {
		l.use(inst.Usage())
		err = errors.Join(err, inst.Close(ctx))
	}()
	h := at.header()
	if err := l.feed(ctx, inst, &h, in); err != nil || l.failed != "" {
		return err
	}
	for _, due := range l.state.due() {
		if err := l.feed(ctx, inst, &h, due); err != nil || l.failed != "" {
			return err
		}
	}
	h.Flags = abi.FlagLast
	err = l.call(ctx, inst, &h, nil, 0)
	l.atEnd = l.failed != ""
	return err
}

// feed hands over an input chunk by chunk.
func (l *lane) feed(ctx context.Context, inst sandbox.Instance, h *abi.FrameHeader, in *input) error {
	for from := 0; from < len(in.records) && l.failed == ""; {
		to := in.chunk(from)
		if err := l.call(ctx, inst, h, in.records[from:to], in.nfields); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// use adds what an instance has used.
func (l *lane) use(u sandbox.Usage) {
	all := &l.used
	all.Calls, all.Fuel, all.Output, all.Memory = all.Calls+u.Calls, all.Fuel+u.Fuel, max(all.Output, u.Output), max(all.Memory, u.Memory)
	all.Log, all.Lost = all.Log+u.Log, all.Lost+u.Lost
}

// chunk returns the end of the chunk that begins with a record, as the host cuts them.
func (in *input) chunk(from int) int {
	size, to := 0, from
	for to < len(in.records) && to-from < abi.MaxChunkRecords {
		size += in.records[to].Size(in.nfields)
		if size > abi.MaxChunkBytes && to > from {
			break
		}
		to++
	}
	return to
}

// call hands over one frame, and makes the header that of the next one. What the guest does wrong is kept; an error is the
// host's trouble.
func (l *lane) call(ctx context.Context, inst sandbox.Instance, h *abi.FrameHeader, recs []abi.Record, nfields int) error {
	if h.Chunk == 0 {
		h.Flags |= abi.FlagFirst
	}
	n := uint64(len(recs))
	if h.Flags&abi.FlagLast != 0 {
		n = abi.MaxChunkRecords
	}
	before := inst.Usage().Fuel
	err := inst.Call(ctx, sandbox.Call{Header: *h, Records: recs, NFields: nfields}, l.emit)
	h.Chunk, h.Flags = h.Chunk+1, 0
	budget := float64(l.limits.FuelCall) + float64(n)*float64(l.limits.FuelRecord)
	l.highest = max(l.highest, float64(inst.Usage().Fuel-before)/budget)
	var failure *sandbox.Failure
	var fail *failRecord
	switch {
	case err == nil:
	case errors.As(err, &fail):
		l.failed = "it says that it cannot process the record: " + fail.reason
	case errors.As(err, &failure):
		l.failed, l.trap = failure.Error(), failure.Trap
	case errors.Is(err, sandbox.ErrAlloc):
		l.failed, l.alloc = err.Error(), true
	default:
		return err
	}
	return nil
}

// emit digests one emitted record, whose form and origin the sandbox has checked.
func (l *lane) emit(r *abi.Record) error {
	var head [9]byte
	head[0] = byte(r.Kind)
	binary.LittleEndian.PutUint32(head[1:], uint32(r.Partition))
	binary.LittleEndian.PutUint32(head[5:], r.Index)
	_, _ = l.hash.Write(head[:]) // never fails
	l.one.Reset()
	l.one.Add(r)
	sum := l.one.Sum()
	_, _ = l.hash.Write(sum[:])
	switch r.Kind {
	case abi.KindRecord:
		l.out++
		l.ports[r.Port]++
		if l.checks != nil {
			l.rows[r.Port].look(l.checks[r.Port], r.Value)
		}
	case abi.KindFail:
		return &failRecord{string(r.Value)}
	default:
		l.letters++
	}
	return nil
}
