package engine

import (
	"maps"
	"math"
	"slices"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

// Watermarks. A decision keeps of each source with an event time how far its own watermark has come and when it last gave a
// record. The watermark of the job is the least over its sources, and never goes back: it stands in plans and decisions,
// and a batch that runs again has the watermark of its plan, whatever came later.

const (
	// endOfTime is the watermark of input that is complete, in milliseconds: everything closes, every timer is due.
	endOfTime = abi.MaxTime / 1000
	// noTime stands for no event time at all.
	noTime = math.MinInt64
)

// located is how event times are found in a source's values; nil when they are not.
func (s *SourceNode) located() *EventTime {
	if s.EventTime == nil || s.EventTime.Pointer == "" {
		return nil
	}
	return s.EventTime
}

// partTimes are the latest event times, in microseconds, of the parts of a source that a lane has read.
type partTimes struct {
	names []string
	times []int64
}

func (p *partTimes) reset() { p.names, p.times = p.names[:0], p.times[:0] }

// saw takes note of the event time of a record. Records of a part come one after the other.
func (p *partTimes) saw(part string, us int64) {
	if n := len(p.names); n > 0 && p.names[n-1] == part {
		p.times[n-1] = max(p.times[n-1], us)
		return
	}
	p.names, p.times = append(p.names, part), append(p.times, us)
}

// into adds the times to those of other lanes, in milliseconds.
func (p *partTimes) into(all map[string]int64) {
	for i, name := range p.names {
		ms, seen := all[name]
		if t := p.times[i] / 1000; !seen || t > ms {
			all[name] = t
		}
	}
}

// saw takes note of the event time of a record that a part of a source gave.
func (l *lane) saw(e Edge, part string, r *abi.Record) {
	if e.Source >= 0 && r.Flags&abi.FlagEventTime != 0 {
		l.newest[e.Source].saw(part, r.EventTime)
	}
}

// latest is how far a source has come after a batch in which its parts came to the event times seen, in milliseconds or
// noTime, and the times of the parts that lag behind. A source with parts that go forward side by side has come as far as
// the least of those that gave something or lag behind; while nothing is known of one that does, it stands still.
func (s *SourceNode) latest(before checkpoint.SourceOutcome, at checkpoint.Position, seen map[string]int64) (int64, map[string]int64) {
	p, ok := s.Source.(source.Partitioned)
	if !ok {
		most := int64(noTime)
		for _, ms := range seen {
			most = max(most, ms)
		}
		return most, nil
	}
	behind, known := p.Behind(at)
	if !known {
		all := maps.Clone(before.Parts)
		if all == nil {
			all = map[string]int64{}
		}
		maps.Copy(all, seen)
		return noTime, all
	}
	least := int64(math.MaxInt64)
	for _, ms := range seen {
		least = min(least, ms)
	}
	parts := map[string]int64{}
	for _, name := range behind {
		ms, ok := seen[name]
		if !ok {
			ms, ok = before.Parts[name]
		}
		if !ok {
			least = noTime
			continue
		}
		parts[name] = ms
		least = min(least, ms)
	}
	if least == math.MaxInt64 {
		least = noTime
	}
	return least, parts
}

// moves reports whether a batch reads on in a source.
func (s *SourceNode) moves(p, prev *checkpoint.Plan) bool {
	return p.Position(s.Name) != prev.Position(s.Name)
}

// after is what the decision of a batch keeps of a source. seen are the latest event times in the batch by part.
func (s *SourceNode) after(before checkpoint.SourceOutcome, p, prev *checkpoint.Plan, records int64, seen map[string]int64) checkpoint.SourceOutcome {
	o := checkpoint.SourceOutcome{Records: records, WatermarkMS: before.WatermarkMS, LastMS: before.LastMS}
	if s.EventTime == nil {
		return o
	}
	if s.moves(p, prev) || o.LastMS == 0 {
		o.LastMS = p.TimeMS
	}
	ms, parts := s.latest(before, p.Position(s.Name), seen)
	if o.Parts = parts; ms != noTime {
		o.WatermarkMS = max(o.WatermarkMS, ms-s.EventTime.LatenessMS)
	}
	if e, ok := s.Source.(source.Ender); ok && s.EventTime.Complete && e.Ended(p.Position(s.Name)) {
		o.WatermarkMS = endOfTime
	}
	o.Idle = s.idle(o, p.TimeMS) > 0
	return o
}

// A stage that has more timers due than one batch hands over fires the others in the batches after it. Until then time
// stands still for the stages behind it: their watermark in that batch is what decides what is late, their timers are not
// due, and what decides what is late in the next batch is the same again. Else they would take for late, or close before,
// what the timers still give.

// lateOf is the watermark that decides in a batch what is late for a stage, in milliseconds: that which the stage had in
// the batch before.
func (s *StageNode) lateOf(p, prev *checkpoint.Plan) int64 {
	if ms, held := p.Late[s.Name]; held {
		return ms
	}
	if prev != nil {
		return s.watermark(prev.WatermarkMS)
	}
	return 0
}

// A stage may give what lies behind its watermark, as a window that waits for what is late. Its watermark is no watermark
// for the stages behind it: theirs lies so much before it. At the end of time nothing is behind anything.

// watermark is that of a stage, where that of the job is ms.
func (s *StageNode) watermark(ms int64) int64 {
	if ms == 0 || ms == endOfTime {
		return ms
	}
	return max(ms-s.behind, 0)
}

// delays sets how far the watermark of each stage lies behind the job's.
func (g *Graph) delays() {
	for i := range g.Stages {
		s := &g.Stages[i]
		s.behind = 0
		for _, e := range s.Inputs {
			if e.Stage >= 0 {
				s.behind = max(s.behind, g.Stages[e.Stage].behind+g.Stages[e.Stage].DelayMS)
			}
		}
	}
}

// watermarks returns the watermark of each stage by name, where that of the job is ms; 0 for a name that no stage has.
func (g *Graph) watermarks(ms int64) func(stage string) int64 {
	return func(stage string) int64 {
		for i := range g.Stages {
			if g.Stages[i].Name == stage {
				return g.Stages[i].watermark(ms)
			}
		}
		return 0
	}
}

// held tells by stage whether time stands still for it when timers are left of the named ones.
func (g *Graph) held(left []string) []bool {
	out := make([]bool, len(g.Stages))
	for i := range g.Stages {
		for _, e := range g.Stages[i].Inputs {
			if e.Stage >= 0 && (out[e.Stage] || slices.Contains(left, g.Stages[e.Stage].Name)) {
				out[i] = true
			}
		}
	}
	return out
}

// holdLate keeps what is late where it was for the stages behind those that have timers left of the last batch.
func (e *Engine) holdLate(p *checkpoint.Plan) {
	if e.last == nil || len(e.last.TimersLeft) == 0 {
		return
	}
	for i, held := range e.cfg.Graph.held(e.last.TimersLeft) {
		if !held {
			continue
		}
		if p.Late == nil {
			p.Late = map[string]int64{}
		}
		s := &e.cfg.Graph.Stages[i]
		p.Late[s.Name] = s.lateOf(e.plan, e.before)
	}
}

// hold lets time stand still for a stage in this lane if a stage before it has timers left: in any lane for a stage that
// reads from all of them, which have run by then.
func (l *lane) hold(s *stageLane) {
	lanes := l.r.lanes
	if !s.node.Keyed() {
		lanes = lanes[l.index : l.index+1]
	}
	s.held = false
	for _, e := range s.node.Inputs {
		if e.Stage < 0 {
			continue
		}
		for _, from := range lanes {
			up := from.stages[e.Stage]
			s.held = s.held || up.held || up.left
		}
	}
}

// idle is how many milliseconds past its limit a source has been without a record at that time; 0 when it is not idle.
func (s *SourceNode) idle(o checkpoint.SourceOutcome, nowMS int64) int64 {
	if s.EventTime.IdleMS == 0 || o.LastMS == 0 || o.WatermarkMS == endOfTime {
		return 0
	}
	return max(nowMS-o.LastMS-s.EventTime.IdleMS, 0)
}

// watermark is that of the job at the time of a plan, after what is known of its sources: the least of those that are neither
// idle nor complete. One that the plan reads on in is not idle, however long the job was away. When none is left, an idle
// source may still wake up, and it goes on with the clock from the one that had come furthest; when all are complete it is
// the end of time.
func (g *Graph) watermark(of map[string]checkpoint.SourceOutcome, p, prev *checkpoint.Plan) int64 {
	least, furthest, complete := int64(math.MaxInt64), int64(noTime), false
	for i := range g.Sources {
		s := &g.Sources[i]
		if s.EventTime == nil {
			continue
		}
		o := of[s.Name]
		past := s.idle(o, p.TimeMS)
		if s.moves(p, prev) {
			past = 0
		}
		switch {
		case o.WatermarkMS == endOfTime:
			complete = true
		case past == 0:
			least = min(least, o.WatermarkMS)
		case o.WatermarkMS == 0:
			furthest = max(furthest, 0)
		default:
			furthest = max(furthest, min(o.WatermarkMS+past, endOfTime-1))
		}
	}
	switch {
	case least != math.MaxInt64:
		return max(least, 0)
	case furthest != noTime:
		return furthest
	case complete:
		return endOfTime
	}
	return 0
}
