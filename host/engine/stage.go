package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox"
)

// stageLane is one stage's part of a lane.
type stageLane struct {
	node    *StageNode
	index   int
	entries []stageEntry
	sent    []*sent    // by `from` entry, what this lane has sent to all lanes; none of a stage without keys
	state   *laneState // of the batch that runs; nil in a stage without keys
	left    bool       // more timers were due than it was given
	held    bool       // time stands still for it, see lane.hold
	// watermark is the stage's in this batch, in milliseconds.
	watermark int64
	ports     []portOut
	chunk     chunk
	glance    []abi.Field // room for the fields of a record that no guest gets
	letters   letters
	stats     StageStats
	// excluded are the records that the lane is started again without, by their number in the lane.
	excluded map[uint32]letter
	// alone are the records that travel in a chunk of their own, because their guest pointed at them when a chunk had used
	// up its fuel.
	alone map[uint32]bool
}

// stageEntry is how one `from` entry's records are prepared.
type stageEntry struct {
	locator *abi.Locator
	nfields int // that the guest declared; the event time's may follow
	event   *EventTime
	located int  // fields that the locator fills
	scanned bool // nothing is to be located, and the exchange has seen whether the value is JSON
}

// portOut is where a port's records go.
type portOut struct {
	keep    bool // someone reads the records afterwards
	kept    tape
	direct  []*sinkLane
	sends   []*sent
	emitted int64
}

func newStageLane(g *Graph, i int) (*stageLane, error) {
	node := &g.Stages[i]
	s := &stageLane{node: node, index: i, ports: make([]portOut, len(node.Program.Manifest().Outputs))}
	most := 0
	for entry, e := range node.Inputs {
		pointers := append([]string(nil), node.inputPort(entry).Fields...)
		en := stageEntry{nfields: len(pointers)}
		if node.Keyed() {
			x, err := newSent(g, node, e)
			if err != nil {
				return nil, err
			}
			s.sent = append(s.sent, x) // it finds event times on the way
			en.scanned = x.key.locator != nil && len(pointers) == 0
		} else if e.Source >= 0 && g.Sources[e.Source].located() != nil {
			en.event = g.Sources[e.Source].EventTime
			pointers = append(pointers, en.event.Pointer)
		}
		en.located = len(pointers)
		most = max(most, en.located)
		var err error
		if en.locator, err = abi.NewLocator(pointers); err != nil {
			return nil, fmt.Errorf("stage %s: input %d: %w", node.Name, entry, err)
		}
		s.entries = append(s.entries, en)
	}
	s.chunk.fields = make([]abi.Field, abi.MaxChunkRecords*most)
	s.chunk.most = most
	s.glance = make([]abi.Field, most)
	s.begin()
	return s, nil
}

// begin makes the stage ready for another batch.
func (s *stageLane) begin() {
	s.reset()
	for _, x := range s.sent {
		x.reset()
	}
	s.excluded, s.alone, s.stats, s.left, s.held = nil, nil, StageStats{}, false, false
	s.chunk.records = abi.MaxChunkRecords
}

// reset forgets everything but the exclusions and what was used.
func (s *stageLane) reset() {
	for i := range s.ports {
		p := &s.ports[i]
		p.kept.reset()
		p.emitted = 0
		for _, d := range p.direct {
			d.reset()
		}
		for _, x := range p.sends {
			x.reset()
		}
	}
	s.chunk.reset()
	s.letters.reset()
	if s.state != nil {
		s.state.reset()
	}
}

// runStage runs one stage in this lane, and starts the whole lane again without a record that the guest cannot take,
// until it gets through: a half-run lane may hold good records in guest memory.
func (l *lane) runStage(ctx context.Context, b *batchRun, s *stageLane) error {
	l.hold(s)
	s.watermark = s.node.watermark(b.plan.WatermarkMS)
	if s.held {
		s.watermark = s.node.lateOf(b.plan, b.prev)
	}
	if s.state != nil {
		s.state.lane.HoldWatermark(s.watermark)
	}
	for {
		failed, err := l.attempt(ctx, b, s, noProbe)
		if err != nil {
			return err
		}
		if failed == nil {
			return nil
		}
		if s.narrow(failed) {
			l.stats.restarts++
			s.reset()
			l.drops()
			l.teeAgain(s)
			continue
		}
		index, lt, err := l.findPoison(ctx, b, s, failed)
		if err != nil {
			return err
		}
		if l.r.policy.Policy == Stop || l.r.policy.Policy == "" {
			return stopped(l.r.g, lt)
		}
		if len(s.excluded) == maxPoison {
			return tooMuchPoison(s.node.Name, l.index, lt)
		}
		if s.excluded == nil {
			s.excluded = map[uint32]letter{}
		}
		s.excluded[index] = lt
		s.stats.failed(&lt)
		l.stats.restarts++
		s.reset()
		l.drops()
		l.teeAgain(s)
	}
}

// narrow makes the chunks of the next run smaller when several records together have used up a chunk's fuel: that is not
// the fault of any one of them. The record that the guest pointed at is tried alone first. If one that was tried so has
// got through, chunks are halved instead, so that a lane starts again at most ten times for it.
func (s *stageLane) narrow(f *failure) bool {
	if f.guest == nil || f.guest.Trap != abi.TrapFuel || len(f.indexes) < 2 {
		return false
	}
	if index, ok := f.pointed(); ok && s.onlyPoisonAlone() {
		if s.alone == nil {
			s.alone = map[uint32]bool{}
		}
		s.alone[index] = true
		return true
	}
	s.chunk.records = len(f.indexes) / 2
	return true
}

// onlyPoisonAlone says whether all records that were tried alone failed.
func (s *stageLane) onlyPoisonAlone() bool {
	for index := range s.alone {
		if _, out := s.excluded[index]; !out {
			return false
		}
	}
	return true
}

// teeAgain tells who looks on that what a stage has sent in this lane does not count.
func (l *lane) teeAgain(s *stageLane) {
	if l.r.trace != nil {
		l.r.trace.again(s.index, l.index)
	}
	if l.r.tee == nil {
		return
	}
	for i := range s.ports {
		for _, d := range s.ports[i].direct {
			l.r.tee.Again(d.node.Name, l.index)
		}
	}
}

// attempt feeds the stage's input through a fresh instance. A *failure is the guest's; an error is not.
func (l *lane) attempt(ctx context.Context, b *batchRun, s *stageLane, upTo int64) (*failure, error) {
	a := &attempt{ctx: ctx, l: l, b: b, s: s, upTo: upTo}
	err := l.feedStage(ctx, b, s, a.take)
	if errors.Is(err, errProbeEnd) {
		err = nil
	}
	if err == nil {
		err = a.flush()
	}
	if err == nil && upTo == noProbe {
		err = a.timers()
	}
	if err == nil && a.inst != nil && upTo == noProbe {
		err = a.last()
	}
	if closeErr := a.close(); err == nil {
		err = closeErr
	}
	if err == nil && upTo == noProbe {
		s.stats.count(s, a)
	}
	if errors.Is(err, errLaneFailed) {
		return a.failed, nil
	}
	if err == nil && len(a.missing) > 0 {
		err = a.fetchMissing()
	}
	return nil, err
}

// errLaneFailed and errProbeEnd travel from a taker through Read and back; they never leave the package.
var (
	errLaneFailed = errors.New("the guest failed")
	errProbeEnd   = errors.New("the probe has seen enough")
)

// noProbe: the attempt is a real one and runs to the end of the input.
const noProbe = -1

// attempt is one run of one stage over one lane's input.
type attempt struct {
	ctx      context.Context
	l        *lane
	b        *batchRun
	s        *stageLane
	upTo     int64 // number of the last record to feed, or noProbe
	inst     sandbox.Instance
	next     uint32 // number of the next record in the lane
	emitted  int64  // records on ports
	timed    int64  // timers handed over
	handed   uint32 // records below it, but the excluded, were handed to the guest
	chunks   uint32
	disposed map[uint32]bool // set aside by the guest
	missing  map[uint32]int  // dead letters by record number whose record is no longer at hand
	failed   *failure
}

func (a *attempt) close() error {
	if a.inst == nil {
		return nil
	}
	a.s.stats.used(a.inst.Usage())
	if err := a.inst.Close(a.ctx); err != nil {
		return fmt.Errorf("stage %s: close the instance: %w", a.s.node.Name, err)
	}
	return nil
}

// take numbers a record, leaves out the excluded ones and puts the others into chunks.
func (a *attempt) take(entry int, split string, r *abi.Record) error {
	index := a.next
	if a.upTo != noProbe && int64(index) > a.upTo {
		return errProbeEnd
	}
	a.next++
	if err := a.start(); err != nil {
		return err
	}
	en := &a.s.entries[entry]
	if lt, bad := a.s.excluded[index]; bad {
		a.pass(en, entry, split, r)
		lt.origin = a.origin(entry, split, r)
		return a.letter(lt, r)
	}
	size := r.Size(en.nfields)
	if size > abi.MaxRecord {
		a.pass(en, entry, split, r)
		return a.letter(letter{
			code: CodeTooLarge, word: "too_large", stage: a.s.node.Name, module: a.s.node.Module,
			reason: fmt.Sprintf("a record of %d bytes, the most is %d", size, abi.MaxRecord),
			origin: a.origin(entry, split, r),
		}, r)
	}
	alone := a.s.alone[index]
	if alone || !a.s.chunk.fits(entry, size) {
		if err := a.flush(); err != nil {
			return err
		}
	}
	c := a.s.chunk.add(entry, split, size, r)
	a.s.chunk.closed = alone
	c.Index, c.Input, c.Port, c.Kind = index, uint16(entry), 0, abi.KindRecord
	a.locate(en, c)
	a.l.saw(a.s.node.Inputs[entry], split, c)
	return nil
}

// pass takes note of the event time of a record that the guest does not get: the watermark does not hang on that.
func (a *attempt) pass(en *stageEntry, entry int, split string, r *abi.Record) {
	c := *r
	if en.event != nil {
		fields := a.s.glance[:en.located]
		isJSON := c.Value != nil && en.locator.Locate(c.Value, fields)
		setEventTime(&c, isJSON, fields[en.nfields], en.event.Unit)
	}
	a.l.saw(a.s.node.Inputs[entry], split, &c)
}

// locate finds the declared fields and the event time in one scan of the value.
func (a *attempt) locate(en *stageEntry, c *abi.Record) {
	c.Fields = a.s.chunk.slot()[:en.located]
	if en.scanned {
		return
	}
	isJSON := c.Value != nil && en.locator.Locate(c.Value, c.Fields)
	if !isJSON {
		clear(c.Fields)
		c.Flags |= abi.FlagNotJSON
	}
	if en.event != nil {
		setEventTime(c, isJSON, c.Fields[en.nfields], en.event.Unit)
		c.Fields = c.Fields[:en.nfields]
	}
}

// start makes the lane's instance when its first record comes: a lane without work is not started.
func (a *attempt) start() error {
	if a.inst != nil {
		return nil
	}
	seed := abi.Seed(a.b.query, uint64(a.b.plan.Batch), a.s.node.Name, uint32(a.l.index))
	lane := sandbox.Lane{Seed: seed, Time: a.b.plan.TimeMS * 1000, Index: a.l.index, Lanes: a.l.r.g.Lanes}
	if a.s.state != nil {
		lane.State = a.s.state
	}
	inst, err := a.s.node.Program.New(a.ctx, lane)
	if err != nil {
		return fmt.Errorf("stage %s: new instance: %w", a.s.node.Name, err)
	}
	a.inst = inst
	return nil
}

// flush hands the chunk over.
func (a *attempt) flush() error {
	c := &a.s.chunk
	if len(c.recs.recs) == 0 {
		return nil
	}
	a.handed = c.recs.recs[len(c.recs.recs)-1].Index + 1
	err := a.call(0, c.recs.recs, a.s.entries[c.entry].nfields)
	if err == nil {
		c.reset()
	}
	return err
}

// last sends the lane's closing frame, so that the guest can flush what it holds.
func (a *attempt) last() error { return a.call(abi.FlagLast, nil, 0) }

func (a *attempt) call(flags uint16, recs []abi.Record, nfields int) error {
	if a.chunks == 0 {
		flags |= abi.FlagFirst
	}
	n := uint64(len(recs))
	if flags&abi.FlagLast != 0 {
		n = abi.MaxChunkRecords
	}
	plan := a.b.plan
	h := abi.FrameHeader{
		Flags: flags, Batch: uint64(plan.Batch), BatchTime: plan.TimeMS * 1000, Watermark: a.s.watermark * 1000,
		Seed: abi.Seed(a.b.query, uint64(plan.Batch), a.s.node.Name, uint32(a.l.index)),
		Lane: uint32(a.l.index), Chunk: a.chunks, Fuel: a.s.node.Fuel.Call + n*a.s.node.Fuel.Record,
	}
	h.LateWatermark = a.s.node.lateOf(plan, a.b.prev) * 1000
	a.chunks++
	err := a.inst.Call(a.ctx, sandbox.Call{Header: h, Records: recs, NFields: nfields}, a.emit)
	return a.classify(err, recs)
}

// classify tells the guest's failures from the host's trouble.
func (a *attempt) classify(err error, recs []abi.Record) error {
	if err == nil {
		return nil
	}
	f := &failure{named: -1}
	var fail *failRecord
	switch {
	case errors.As(err, &fail):
		f.named, f.code, f.reason = int64(fail.index), fail.code, fail.reason
	case errors.As(err, &f.guest):
	default:
		return fmt.Errorf("stage %s: lane %d: %w", a.s.node.Name, a.l.index, err)
	}
	for i := range recs {
		if recs[i].Kind == abi.KindRecord { // a timer cannot be set aside: it fails the batch
			f.indexes = append(f.indexes, recs[i].Index)
		}
	}
	if f.guest != nil && f.guest.Trap != "" && a.upTo == noProbe {
		a.s.stats.trapped(f.guest.Trap)
	}
	a.failed = f
	return errLaneFailed
}
