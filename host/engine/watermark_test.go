package engine

import (
	"reflect"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

// ending is a source that ends at a position.
type ending struct {
	source.Source
	end string
}

func (e ending) Ended(at checkpoint.Position) bool { return at.Line == e.end }

func TestSourceAfterABatch(t *testing.T) {
	timed := func(et EventTime) *SourceNode {
		return &SourceNode{Name: "in", Source: ending{end: "9"}, EventTime: &et}
	}
	type outcome = checkpoint.SourceOutcome
	for name, tc := range map[string]struct {
		node            *SourceNode
		before          outcome
		at              string
		records, newest int64 // milliseconds
		want            outcome
	}{
		"no event time":    {&SourceNode{Name: "in"}, outcome{}, "1", 3, noTime, outcome{Records: 3}},
		"first records":    {timed(EventTime{LatenessMS: 2000}), outcome{}, "1", 3, 50_000, outcome{Records: 3, WatermarkMS: 48_000, LastMS: 100_000}},
		"first, no record": {timed(EventTime{}), outcome{}, "1", 0, noTime, outcome{LastMS: 100_000}},
		"never back":       {timed(EventTime{}), outcome{WatermarkMS: 60_000, LastMS: 90_000}, "1", 1, 50_000, outcome{Records: 1, WatermarkMS: 60_000, LastMS: 100_000}},
		"records without":  {timed(EventTime{}), outcome{WatermarkMS: 60_000, LastMS: 90_000}, "1", 1, noTime, outcome{Records: 1, WatermarkMS: 60_000, LastMS: 100_000}},
		"nothing came":     {timed(EventTime{IdleMS: 20_000}), outcome{WatermarkMS: 60_000, LastMS: 90_000}, "1", 0, noTime, outcome{WatermarkMS: 60_000, LastMS: 90_000}},
		"too long nothing": {timed(EventTime{IdleMS: 5_000}), outcome{WatermarkMS: 60_000, LastMS: 90_000}, "1", 0, noTime, outcome{WatermarkMS: 60_000, LastMS: 90_000, Idle: true}},
		"ended, but open":  {timed(EventTime{}), outcome{}, "9", 1, 50_000, outcome{Records: 1, WatermarkMS: 50_000, LastMS: 100_000}},
		"complete":         {timed(EventTime{Complete: true}), outcome{}, "9", 1, 50_000, outcome{Records: 1, WatermarkMS: endOfTime, LastMS: 100_000}},
		"not complete yet": {timed(EventTime{Complete: true}), outcome{}, "8", 1, 50_000, outcome{Records: 1, WatermarkMS: 50_000, LastMS: 100_000}},
	} {
		plan := &checkpoint.Plan{TimeMS: 100_000, Sources: []checkpoint.SourcePosition{{Name: "in", End: checkpoint.Position{Line: tc.at}}}}
		prev := plan
		if tc.records > 0 {
			prev = nil
		}
		seen := map[string]int64{"a": tc.newest, "b": tc.newest - 1}
		if tc.newest == noTime {
			seen = nil
		}
		if got := tc.node.after(tc.before, plan, prev, tc.records, seen); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestWatermarkOfAJob(t *testing.T) {
	type outcome = checkpoint.SourceOutcome
	const idle = 5_000
	for name, tc := range map[string]struct {
		now     int64
		sources map[string]outcome // those without an event time are not in the graph's minimum
		want    int64
	}{
		"nothing known":             {100_000, nil, 0},
		"the least":                 {100_000, map[string]outcome{"a": {WatermarkMS: 70_000, LastMS: 99_000}, "b": {WatermarkMS: 60_000, LastMS: 99_000}}, 60_000},
		"one gave nothing yet":      {100_000, map[string]outcome{"a": {WatermarkMS: 70_000, LastMS: 99_000}, "b": {LastMS: 99_000}}, 0},
		"one is idle":               {100_000, map[string]outcome{"a": {WatermarkMS: 70_000, LastMS: 99_000}, "b": {WatermarkMS: 60_000, LastMS: 90_000}}, 70_000},
		"one is idle since ever":    {100_000, map[string]outcome{"a": {WatermarkMS: 70_000, LastMS: 99_000}, "b": {LastMS: 90_000}}, 70_000},
		"all are idle":              {100_000, map[string]outcome{"a": {WatermarkMS: 70_000, LastMS: 93_000}, "b": {WatermarkMS: 60_000, LastMS: 90_000}}, 72_000},
		"all are idle, no time":     {100_000, map[string]outcome{"a": {LastMS: 90_000}, "b": {LastMS: 90_000}}, 0},
		"one is complete":           {100_000, map[string]outcome{"a": {WatermarkMS: endOfTime, LastMS: 90_000}, "b": {WatermarkMS: 60_000, LastMS: 99_000}}, 60_000},
		"complete, the other idle":  {100_000, map[string]outcome{"a": {WatermarkMS: endOfTime, LastMS: 90_000}, "b": {WatermarkMS: 60_000, LastMS: 90_000}}, 65_000},
		"all are complete":          {100_000, map[string]outcome{"a": {WatermarkMS: endOfTime, LastMS: 90_000}, "b": {WatermarkMS: endOfTime, LastMS: 90_000}}, endOfTime},
		"idle for a very long time": {1 << 60, map[string]outcome{"a": {WatermarkMS: 70_000, LastMS: 93_000}, "b": {WatermarkMS: 60_000, LastMS: 90_000}}, endOfTime - 1},
		"clock set back":            {10_000, map[string]outcome{"a": {WatermarkMS: 70_000, LastMS: 93_000}, "b": {WatermarkMS: 60_000, LastMS: 90_000}}, 60_000},
		"before 1970":               {100_000, map[string]outcome{"a": {WatermarkMS: -70_000, LastMS: 99_000}, "b": {WatermarkMS: 60_000, LastMS: 99_000}}, 0},
	} {
		g := &Graph{Sources: []SourceNode{
			{Name: "a", EventTime: &EventTime{IdleMS: idle}}, {Name: "b", EventTime: &EventTime{IdleMS: idle}}, {Name: "none"},
		}}
		at := &checkpoint.Plan{TimeMS: tc.now}
		if got := g.watermark(tc.sources, at, at); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// sideBySide is a source whose parts go forward side by side.
type sideBySide struct {
	source.Source
	behind  []string
	unknown bool
}

func (s sideBySide) Behind(checkpoint.Position) ([]string, bool) { return s.behind, !s.unknown }

func TestPartsThatLagBehindHoldTheWatermark(t *testing.T) {
	type times = map[string]int64
	for name, tc := range map[string]struct {
		source sideBySide
		before times
		seen   times
		want   int64
		parts  times
	}{
		"all gave":                {sideBySide{}, nil, times{"a": 90, "b": 80}, 80, times{}},
		"none gave":               {sideBySide{}, nil, nil, noTime, times{}},
		"one is caught up":        {sideBySide{behind: []string{"a"}}, nil, times{"a": 90}, 90, times{"a": 90}},
		"one lags behind":         {sideBySide{behind: []string{"b"}}, times{"b": 40}, times{"a": 90}, 40, times{"b": 40}},
		"it went on":              {sideBySide{behind: []string{"b"}}, times{"b": 40}, times{"a": 90, "b": 50}, 50, times{"b": 50}},
		"it gave nothing yet":     {sideBySide{behind: []string{"b"}}, nil, times{"a": 90}, noTime, times{}},
		"it is caught up now":     {sideBySide{}, times{"b": 40}, times{"a": 90}, 90, times{}},
		"planned by another":      {sideBySide{unknown: true}, times{"b": 40}, times{"a": 90}, noTime, times{"a": 90, "b": 40}},
		"planned by another, new": {sideBySide{unknown: true}, nil, nil, noTime, times{}},
	} {
		s := &SourceNode{Source: tc.source, EventTime: &EventTime{}}
		got, parts := s.latest(checkpoint.SourceOutcome{Parts: tc.before}, checkpoint.Position{}, tc.seen)
		if got != tc.want || len(parts) != len(tc.parts) || len(parts) > 0 && !reflect.DeepEqual(parts, tc.parts) {
			t.Errorf("%s: %d %v, want %d %v", name, got, parts, tc.want, tc.parts)
		}
	}
}

func TestASourceThatGivesSomethingIsNotIdle(t *testing.T) {
	g := &Graph{Sources: []SourceNode{{Name: "a", EventTime: &EventTime{IdleMS: 1}}, {Name: "b", EventTime: &EventTime{IdleMS: 1}}}}
	of := map[string]checkpoint.SourceOutcome{"a": {WatermarkMS: 60, LastMS: 10}, "b": {WatermarkMS: 50, LastMS: 10}}
	plan := &checkpoint.Plan{TimeMS: 1_000, Sources: []checkpoint.SourcePosition{{Name: "b", End: checkpoint.Position{Line: "1"}}}}
	if got := g.watermark(of, plan, nil); got != 50 {
		t.Errorf("the watermark is %d, want 50: b reads on", got)
	}
}

// TestWatermarksOfStages: what a stage gives late by its nature is not late for the stages behind it.
func TestWatermarksOfStages(t *testing.T) {
	g := &Graph{Stages: []StageNode{
		{Name: "windows", Inputs: []Edge{FromSource(0)}, DelayMS: 10_000},
		{Name: "plain", Inputs: []Edge{FromSource(0)}},
		{Name: "join", Inputs: []Edge{FromPort(1, 0), FromPort(0, 0)}, DelayMS: 500},
		{Name: "last", Inputs: []Edge{FromPort(1, 0), FromPort(2, 0)}},
	}}
	g.delays()
	for _, tc := range []struct {
		job  int64
		want []int64
	}{
		{0, []int64{0, 0, 0, 0}},
		{1, []int64{1, 1, 0, 0}},
		{60_000, []int64{60_000, 60_000, 50_000, 49_500}},
		{endOfTime - 1, []int64{endOfTime - 1, endOfTime - 1, endOfTime - 10_001, endOfTime - 10_501}},
		{endOfTime, []int64{endOfTime, endOfTime, endOfTime, endOfTime}},
	} {
		of := g.watermarks(tc.job)
		for i, want := range tc.want {
			s := &g.Stages[i]
			if got := of(s.Name); got != want {
				t.Errorf("the job's watermark is %d: that of %s is %d, want %d", tc.job, s.Name, got, want)
			}
			prev := &checkpoint.Plan{WatermarkMS: tc.job}
			if got := s.lateOf(&checkpoint.Plan{}, prev); got != want {
				t.Errorf("the job's watermark was %d: late for %s is %d, want %d", tc.job, s.Name, got, want)
			}
			if got := s.lateOf(&checkpoint.Plan{Late: map[string]int64{s.Name: 7}}, prev); got != 7 {
				t.Errorf("late for %s, which was held at 7, is %d", s.Name, got)
			}
		}
		if got := of("gone"); got != 0 {
			t.Errorf("a stage that is not there has watermark %d", got)
		}
	}
}
