package engine

import (
	"math"

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

// saw takes note of the event time of a record that a source gave.
func (l *lane) saw(e Edge, r *abi.Record) {
	if e.Source >= 0 && r.Flags&abi.FlagEventTime != 0 {
		l.newest[e.Source] = max(l.newest[e.Source], r.EventTime)
	}
}

// after is what the decision of a batch keeps of a source: newest is the latest event time in the batch, in microseconds,
// or noTime.
func (s *SourceNode) after(before checkpoint.SourceOutcome, p *checkpoint.Plan, records, newest int64) checkpoint.SourceOutcome {
	o := checkpoint.SourceOutcome{Records: records, WatermarkMS: before.WatermarkMS, LastMS: before.LastMS}
	if s.EventTime == nil {
		return o
	}
	if records > 0 || o.LastMS == 0 {
		o.LastMS = p.TimeMS
	}
	if newest != noTime {
		o.WatermarkMS = max(o.WatermarkMS, newest/1000-s.EventTime.LatenessMS)
	}
	if e, ok := s.Source.(source.Ender); ok && s.EventTime.Complete && e.Ended(p.Position(s.Name)) {
		o.WatermarkMS = endOfTime
	}
	o.Idle = s.idle(o, p.TimeMS) > 0
	return o
}

// lateOf is the watermark that decides in a batch what is late, in milliseconds: that of the batch before. While timers that
// were due are still left it stays where it was: what they give would otherwise be late for the stages behind.
func lateOf(p, prev *checkpoint.Plan) int64 {
	switch {
	case p.LateMS != nil:
		return *p.LateMS
	case prev != nil:
		return prev.WatermarkMS
	}
	return 0
}

// idle is how many milliseconds past its limit a source has been without a record at that time; 0 when it is not idle.
func (s *SourceNode) idle(o checkpoint.SourceOutcome, nowMS int64) int64 {
	if s.EventTime.IdleMS == 0 || o.LastMS == 0 || o.WatermarkMS == endOfTime {
		return 0
	}
	return max(nowMS-o.LastMS-s.EventTime.IdleMS, 0)
}

// watermark is that of the job at a time: the least of the sources that are neither idle nor complete. When none is left, an
// idle source may still wake up, and it goes on with the clock from the one that had come furthest; when all are complete
// it is the end of time.
func (g *Graph) watermark(of map[string]checkpoint.SourceOutcome, nowMS int64) int64 {
	least, furthest, complete := int64(math.MaxInt64), int64(noTime), false
	for i := range g.Sources {
		s := &g.Sources[i]
		if s.EventTime == nil {
			continue
		}
		o := of[s.Name]
		past := s.idle(o, nowMS)
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
