package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sandbox"
)

// CodeBench is the code of a module that cannot be measured because it fails.
const CodeBench = "transform.bench"

// laneRecords is how many records an instance takes before a fresh one goes on: a lane's share of a full batch.
const laneRecords = 25_000

// freshInstances is how many instances are made to see what one costs.
const freshInstances = 100

// BenchOptions say what is measured.
type BenchOptions struct {
	Options
	Lines   [][]byte // the values of records, taken in turn; none for records made up from the manifest
	Records int      // how many are fed in all, at least 1
	// Now reads a clock that never goes back.
	Now func() time.Time
}

// Bench is what measuring came to. Times are in nanoseconds, sizes in bytes.
type Bench struct {
	Digest  string `json:"digest"`
	Engine  string `json:"engine"`
	Records int    `json:"records"`
	Lanes   int    `json:"lanes"`
	Calls   uint64 `json:"calls"` // those that end a lane included
	Emitted int64  `json:"emitted"`
	Letters int64  `json:"deadLetters"`
	// RecordTime is of the median lane, and RecordBest of the fastest one.
	RecordTime float64 `json:"nsPerRecord"`
	RecordBest float64 `json:"nsPerRecordBest"`
	Fuel       float64 `json:"fuelPerRecord"`
	In         float64 `json:"bytesInPerRecord"`    // of values
	Frame      float64 `json:"frameBytesPerRecord"` // with all that a record is handed over in
	Out        float64 `json:"bytesOutPerRecord"`
	Growth     float64 `json:"memoryGrowthPerRecord"`
	MemoryMin  int64   `json:"memoryAtFirst"`
	MemoryMax  int64   `json:"memoryAtMost"`
	// Instance is what a fresh instance takes, median and fastest, its end included; Start is the one start-up.
	Instance     int64 `json:"nsPerInstance"`
	InstanceBest int64 `json:"nsPerInstanceBest"`
	Start        int64 `json:"nsStart"`
}

// RunBench measures a module on an engine. A module that fails on the input is refused with CodeBench.
func RunBench(ctx context.Context, e sandbox.Engine, b sandbox.Binary, o BenchOptions) (bench *Bench, err error) {
	m, err := e.Compile(ctx, b)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close(ctx)) }()
	began := o.Now()
	p, err := m.Start(ctx, sandbox.Options{Transform: "bench", Config: o.Config, Limits: o.Limits})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close(ctx)) }()
	r := &benchRun{bench: &Bench{Digest: m.Info().Digest, Engine: e.Kind(), Start: o.Now().Sub(began).Nanoseconds()}, name: b.Name, now: o.Now, program: p}
	if err := r.instances(ctx); err != nil {
		return nil, err
	}
	in := benchInput(m.Info().Manifest, o.Lines)
	if in.keyed = keyed(m.Info().Stateful, m.Info().Manifest); in.keyed {
		giveKeys(in.records)
		r.state = &memory{}
	}
	for done := 0; done < o.Records; {
		n := min(laneRecords, o.Records-done)
		if err := r.lane(ctx, in, done, n); err != nil {
			return nil, err
		}
		done += n
	}
	return r.result(o.Records), nil
}

// benchInput are the records that are fed in turn to the first input port.
func benchInput(m *abi.Manifest, lines [][]byte) *input {
	port := &m.Inputs[0]
	in := &input{records: values(plausibleObjects(port.Fields, manyRecords))}
	if len(lines) > 0 {
		in.records = make([]abi.Record, len(lines))
		for i := range lines {
			in.records[i].Value = lines[i]
		}
	}
	in.prepare(port, 0)
	return in
}

// benchRun is one measurement.
type benchRun struct {
	bench   *Bench
	name    string
	now     func() time.Time
	program sandbox.Program
	state   *memory   // of all lanes, one after the other; nil without keys
	lanes   []float64 // nanoseconds a record of each lane
	fuel    uint64
	values  int64 // bytes
	frames  int64
	out     int64
	growth  int64
}

// instances measures what it takes to make an instance and to throw it away.
func (r *benchRun) instances(ctx context.Context) error {
	took := make([]int64, freshInstances)
	for i := range took {
		began := r.now()
		inst, err := r.program.New(ctx, sandbox.Lane{Seed: trialSeed, Time: trialTime})
		if err != nil {
			return err
		}
		r.bench.MemoryMin = inst.Usage().Memory
		if err := inst.Close(ctx); err != nil {
			return err
		}
		took[i] = r.now().Sub(began).Nanoseconds()
	}
	slices.Sort(took)
	r.bench.Instance, r.bench.InstanceBest = took[len(took)/2], took[0]
	return nil
}

// lane feeds n records to a fresh instance, beginning with the one that is next in turn, and ends the lane. With state it
// is the batch after the one before, a minute later, at a watermark that is a minute behind.
func (r *benchRun) lane(ctx context.Context, in *input, first, n int) (err error) {
	at := clock{time: trialTime}
	o := sandbox.Lane{Seed: trialSeed}
	if r.state != nil {
		at.time += int64(len(r.lanes)) * minute
		at.late, at.watermark = at.time-2*minute, at.time-minute
		r.state.written = 0
		r.state.begin(at)
		o.State, o.Lanes = r.state, 1
	}
	o.Time = at.time
	inst, err := r.program.New(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inst.Close(ctx)) }()
	part := &input{records: make([]abi.Record, n), nfields: in.nfields}
	for i := range part.records {
		part.records[i] = in.records[(first+i)%len(in.records)]
		part.records[i].Index, part.records[i].Offset = uint32(i), int64(first+i)
		r.values += int64(len(part.records[i].Value))
	}
	f := &benchLane{r: r, inst: inst, h: at.header(), first: first}
	for _, p := range append([]*input{part}, r.state.due()...) {
		for from := 0; from < len(p.records); {
			to := p.chunk(from)
			if err := f.call(ctx, p.records[from:to], p.nfields); err != nil {
				return err
			}
			from = to
		}
	}
	f.h.Flags = abi.FlagLast
	if err := f.call(ctx, nil, in.nfields); err != nil {
		return err
	}
	r.lanes = append(r.lanes, float64(f.took.Nanoseconds())/float64(n))
	u := inst.Usage()
	r.fuel, r.out, r.growth = r.fuel+u.Fuel, r.out+u.Output, r.growth+u.Memory-r.bench.MemoryMin
	r.bench.MemoryMax, r.bench.Calls = max(r.bench.MemoryMax, u.Memory), r.bench.Calls+u.Calls
	return nil
}

// benchLane is an instance that is measured.
type benchLane struct {
	r     *benchRun
	inst  sandbox.Instance
	h     abi.FrameHeader
	first int // number of the next record, for messages
	took  time.Duration
}

// call hands over the next frame.
func (f *benchLane) call(ctx context.Context, recs []abi.Record, nfields int) error {
	if f.h.Chunk == 0 {
		f.h.Flags |= abi.FlagFirst
	}
	f.r.frames += int64(abi.FrameSize(recs, nfields))
	began := f.r.now()
	err := f.inst.Call(ctx, sandbox.Call{Header: f.h, Records: recs, NFields: nfields}, f.r.emit)
	f.took += f.r.now().Sub(began)
	if err != nil {
		return f.r.failed(err, f.first, len(recs))
	}
	f.h.Chunk, f.h.Flags = f.h.Chunk+1, 0
	f.first += len(recs)
	return nil
}

func (r *benchRun) emit(rec *abi.Record) error {
	switch rec.Kind {
	case abi.KindRecord:
		r.bench.Emitted++
	case abi.KindFail:
		return &failRecord{string(rec.Value)}
	default:
		r.bench.Letters++
	}
	return nil
}

// failed says which records a module failed on, when it was the module.
func (r *benchRun) failed(err error, first, n int) error {
	var failure *sandbox.Failure
	var fail *failRecord
	if !errors.As(err, &failure) && !errors.As(err, &fail) && !errors.Is(err, sandbox.ErrAlloc) {
		return err
	}
	if failure != nil && failure.Where() != "" {
		err = fmt.Errorf("%w, %s", err, failure.Where())
	}
	return fault.New(CodeBench, r.name, fmt.Errorf("it fails on one of %d records from record %d on: %w", n, first, err),
		"see what `transform check` says of it, or give it records that it takes, with --input")
}

func (r *benchRun) result(records int) *Bench {
	b := r.bench
	slices.Sort(r.lanes)
	each := func(n int64) float64 { return float64(n) / float64(records) }
	b.Records, b.Lanes = records, len(r.lanes)
	b.RecordTime, b.RecordBest = r.lanes[len(r.lanes)/2], r.lanes[0]
	b.Fuel, b.In, b.Frame, b.Out, b.Growth = float64(r.fuel)/float64(records), each(r.values), each(r.frames), each(r.out), each(r.growth)
	return b
}
