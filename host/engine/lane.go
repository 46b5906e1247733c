package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sink"
)

// lane is one lane of the whole graph: what its stages put out, what its sinks took, in memory that is used again for
// every batch. Lanes share nothing, so their order of execution cannot show in the output.
type lane struct {
	r      *runner
	index  int
	read   []abi.RecordDigest // by source, over what was read
	newest []partTimes        // by source
	passes []int              // by source, completed passes over it in this batch
	reject []letters          // by source
	stages []*stageLane
	sinks  []*sinkLane
	stats  runStats
	most   int64 // of the batch, see input
	grown  int64 // bytes taken that the runner does not know of yet
	told   int64 // and that it knows of

	emitting *attempt // the run that has emitted last
	output   int64    // bytes that it has emitted, about
}

// sinkLane is one sink's part of a lane.
type sinkLane struct {
	node    *SinkNode
	lane    sink.Lane
	digest  abi.RecordDigest
	direct  bool // fed while its only stage runs, not from a buffer afterwards
	locate  []*abi.Locator
	fields  []abi.Field
	misfits letters
	came    int64                  // records that came for it
	left    []int64                // which of them it did not take, in order
	refused map[int64]*sink.Misfit // those that its target has refused before
	spool   *tape                  // nil: what was staged outlives the process, or can be made again
}

func newLane(r *runner, index int) (*lane, error) {
	l := &lane{
		r: r, index: index,
		read:   make([]abi.RecordDigest, len(r.g.Sources)),
		newest: make([]partTimes, len(r.g.Sources)),
		passes: make([]int, len(r.g.Sources)),
		reject: make([]letters, len(r.g.Sources)),
	}
	for i := range r.g.Stages {
		s, err := newStageLane(r.g, i)
		if err != nil {
			return nil, err
		}
		l.stages = append(l.stages, s)
	}
	for i := range r.g.Sinks {
		s, err := newSinkLane(r.g, i)
		if err != nil {
			return nil, err
		}
		l.sinks = append(l.sinks, s)
		l.connect(s)
	}
	for _, s := range l.stages {
		for entry, e := range s.node.Inputs {
			if e.Stage < 0 {
				continue
			}
			p := &l.stages[e.Stage].ports[e.Port]
			if s.node.Keyed() {
				p.sends = append(p.sends, s.sent[entry])
			} else {
				p.keep = true
			}
		}
	}
	return l, nil
}

func newSinkLane(g *Graph, i int) (*sinkLane, error) {
	node := &g.Sinks[i]
	rows, err := node.Target.NewLane(node.Name)
	if err != nil {
		return nil, fmt.Errorf("sink %s: new lane: %w", node.Name, err)
	}
	s := &sinkLane{node: node, lane: rows, locate: make([]*abi.Locator, len(node.Inputs))}
	for entry, e := range node.Inputs {
		if e.Source < 0 || g.Sources[e.Source].located() == nil {
			continue
		}
		if s.locate[entry], err = abi.NewLocator([]string{g.Sources[e.Source].EventTime.Pointer}); err != nil {
			return nil, fmt.Errorf("source %s: event time: %w", g.Sources[e.Source].Name, err)
		}
	}
	s.fields = make([]abi.Field, 1)
	return s, nil
}

// connect tells the stages which sinks read their ports. A sink with one input takes the rows while the stage runs; one
// with several takes them afterwards from buffers, entry by entry, because that is their order.
func (l *lane) connect(s *sinkLane) {
	in := s.node.Inputs
	if len(in) == 1 && in[0].Stage >= 0 {
		s.direct = true
		p := &l.stages[in[0].Stage].ports[in[0].Port]
		p.direct = append(p.direct, s)
		return
	}
	for _, e := range in {
		if e.Stage >= 0 {
			l.stages[e.Stage].ports[e.Port].keep = true
		}
	}
}

func (l *lane) reset() {
	for i := range l.read {
		l.read[i].Reset()
		l.passes[i] = 0
		l.newest[i].reset()
		l.reject[i].reset()
	}
	for _, s := range l.stages {
		s.begin()
	}
	for _, s := range l.sinks {
		s.reset()
		s.misfits.reset()
		s.refused = nil
	}
	l.stats = runStats{}
	l.grown, l.told = 0, 0
}

// holds counts what the lane keeps in memory, and gives a batch up that holds too much.
func (l *lane) holds(r *abi.Record) error { return l.holdsBytes(int64(len(r.Key) + len(r.Value))) }

func (l *lane) holdsBytes(n int64) error {
	if l.grown += n; l.grown < heldStep {
		return nil
	}
	total := l.r.held.Add(l.grown)
	l.told, l.grown = l.told+l.grown, 0
	if l.most > 0 && total > l.most {
		return errTooMuch
	}
	return nil
}

// drops forgets what was counted, as the lane starts again.
func (l *lane) drops() {
	l.r.held.Add(-l.told)
	l.grown, l.told = 0, 0
}

func (s *sinkLane) reset() {
	s.lane.Reset()
	s.digest.Reset()
	s.came, s.left = 0, s.left[:0]
	if s.spool != nil {
		s.spool.reset()
	}
}

// run drives one batch through the lane: stages in order, then the sinks that read buffers, then the dead letters. Between
// two rounds all lanes wait for each other, as a keyed stage reads what every lane has sent.
func (l *lane) run(ctx context.Context, b *batchRun, round int) error {
	if round == 0 {
		l.reset()
		l.most = b.most
		l.refuse(b)
		for _, s := range l.stages {
			if err := l.exchange(ctx, b, s); err != nil {
				return err
			}
		}
	}
	for i, s := range l.stages {
		if l.r.rounds[i] != round {
			continue
		}
		if err := l.runStage(ctx, b, s); err != nil {
			return err
		}
	}
	if round < l.r.lastRound() {
		return nil
	}
	for _, s := range l.sinks {
		if s.direct || len(s.node.Inputs) == 0 {
			continue
		}
		if err := l.fillSink(ctx, b, s); err != nil {
			return err
		}
	}
	return l.fillLetters(b)
}

// fillSink feeds a sink that reads sources or several ports.
func (l *lane) fillSink(ctx context.Context, b *batchRun, s *sinkLane) error {
	return l.feed(ctx, b, s.node.Inputs, func(entry int, split string, r *abi.Record) error {
		edge := s.node.Inputs[entry]
		if edge.Source >= 0 {
			r.Port = 0
			if loc := s.locate[entry]; loc != nil {
				setEventTime(r, loc.Locate(r.Value, s.fields), s.fields[0], l.r.g.Sources[edge.Source].EventTime.Unit)
			}
			l.saw(edge, split, r)
		}
		misfit, err := l.append(s, r)
		if misfit == nil {
			return err
		}
		from := origin{edge: edge, split: split, offset: r.Offset, partition: r.Partition}
		return l.setAside(&s.misfits, misfitLetter(s, misfit, from), r)
	})
}

// append gives a record to a sink. A record that does not fit is returned as a misfit, for the caller to set aside.
func (l *lane) append(s *sinkLane, r *abi.Record) (*sink.Misfit, error) {
	place := s.came
	s.came++
	if m := s.refused[place]; m != nil {
		s.left = append(s.left, place)
		return m, nil
	}
	err := s.lane.Append(r)
	if err == nil {
		return nil, l.taken(s, r)
	}
	var misfit *sink.Misfit
	if errors.As(err, &misfit) {
		s.left = append(s.left, place)
		return misfit, nil
	}
	return nil, fmt.Errorf("sink %s: take a record: %w", s.node.Name, err)
}

// taken counts a record in that a sink's lane has taken.
func (l *lane) taken(s *sinkLane, r *abi.Record) error {
	if err := l.holds(r); err != nil {
		return err
	}
	s.digest.Add(r)
	if s.spool != nil {
		s.spool.add(r)
	}
	if l.r.tee != nil {
		return l.r.tee.Record(s.node.Name, l.index, r)
	}
	return nil
}

// misfitLetter says why a record does not fit a sink.
func misfitLetter(s *sinkLane, misfit *sink.Misfit, from origin) letter {
	return letter{
		code: CodeMisfit, reason: "sink " + s.node.Name + ": " + misfit.Error(), word: misfit.Code, origin: from,
		misfits: field{s.node.Name, misfit.Column},
	}
}

// setAside does with a record what the error policy says.
func (l *lane) setAside(to *letters, lt letter, r *abi.Record) error {
	switch l.r.policy.Policy {
	case Skip:
		to.skipped++
	case DeadLetter:
		to.add(lt, r)
	default:
		return stopped(l.r.g, lt)
	}
	if lt.poison {
		to.poison++ // bounded by itself, a lane at a time
		return nil
	}
	to.alone++
	most := l.r.policy.Max
	if most <= 0 {
		return nil
	}
	if to.why.add(lt, 1); to.alone > most {
		return tooManyLetters(l.r.g, int64(to.alone), most, to.why.most())
	}
	return nil
}

// fillLetters writes what was set aside into the sink of the dead letters: sources first, then stages, then sinks.
func (l *lane) fillLetters(b *batchRun) error {
	for _, all := range l.allLetters() {
		l.stats.skipped += int64(all.skipped)
		l.stats.poison += int64(all.poison)
		l.stats.alone += int64(all.alone)
		for i := range all.list {
			lt := &all.list[i]
			l.stats.letters++
			if err := l.fillLetter(b, lt); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *lane) fillLetter(b *batchRun, lt *letter) error {
	dead := l.sinks[l.r.policy.Sink]
	var misfit *sink.Misfit
	form := formOf(dead.lane)
	for _, cut := range letterCuts {
		for _, form.plain = range []bool{false, true} {
			r, err := lt.record(l.r.g, b, cut, form)
			if err != nil {
				return err
			}
			err = dead.lane.Append(r)
			if err == nil {
				return l.taken(dead, r)
			}
			if !errors.As(err, &misfit) {
				return fmt.Errorf("sink %s: take a dead letter: %w", dead.node.Name, err)
			}
		}
	}
	return letterRefused(dead.node.Name, lt, misfit)
}

func (l *lane) allLetters() []*letters {
	var out []*letters
	for i := range l.reject {
		out = append(out, &l.reject[i])
	}
	for _, s := range l.stages {
		for _, x := range s.sent {
			out = append(out, &x.letters)
		}
		out = append(out, &s.letters)
	}
	for _, s := range l.sinks {
		out = append(out, &s.misfits)
	}
	return out
}

// setEventTime takes a record's event time from a located field. When it is not one the record has none.
func setEventTime(r *abi.Record, isJSON bool, f abi.Field, unit abi.TimeUnit) {
	r.Flags &^= abi.FlagEventTime
	r.EventTime = 0
	if !isJSON {
		return
	}
	if us, ok := abi.EventTimeOf(r.Value[f.Start:f.Start+f.Len], f.Kind, unit); ok {
		r.EventTime, r.Flags = us, r.Flags|abi.FlagEventTime
	}
}
