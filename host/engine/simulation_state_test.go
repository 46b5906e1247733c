package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/engine/sim"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/statestore"
	"github.com/wasmill/wasmill/statestore/mem"
)

// kept is a backend that outlives the processes that open it, as a database on a disk does.
type kept struct{ statestore.Backend }

func (kept) Close() error { return nil }

// openState opens the state of a life with a keyed stage.
func (l *life) openState(ctx context.Context, files durable.Files) (*statestore.Store, error) {
	if !l.keyed {
		return nil, nil
	}
	return statestore.Open(ctx, statestore.Config{
		Files: files, Dir: "ck/state", Query: simQuery, BackendName: "mem", ApplyBatches: 1, // a life waits for what it has sealed
		Backend: func(ctx context.Context, cfg statestore.BackendConfig) (statestore.Backend, error) {
			if l.backend == nil {
				b, err := mem.Open(ctx, cfg)
				if err != nil {
					return nil, err
				}
				l.backend = kept{b}
			}
			return l.backend, nil
		},
	})
}

// addTally lets a keyed stage count what goes to "main": counts and closed windows go to a target of their own.
func (l *life) addTally(g *engine.Graph, p *sim.Process, target func(string) sink.Target) {
	in := engine.FromPort(0, 0)
	in.KeyBy = &engine.KeyBy{Key: true}
	g.Sources[0].EventTime = &engine.EventTime{LatenessMS: 2_000, IdleMS: 600_000}
	g.Stages = append(g.Stages, engine.StageNode{
		Name: "tally", Module: "k", Inputs: []engine.Edge{in},
		Program: &sim.Program{Proc: p, Outputs: []string{"counts", "windows", "late"}, Tables: sim.TallyTables, NewGuest: sim.Tally},
	})
	main := g.Sinks[0].Target
	for port, name := range []string{"counts", "windows", "late"} {
		g.Sinks = append(g.Sinks, engine.SinkNode{Name: name, Target: main, Inputs: []engine.Edge{engine.FromPort(1, port)}})
	}
}

// checkTally compares counts and windows with those of the values that came through. A window may be open; one that is
// late came after the clock had closed its window, and only then.
func (l *life) checkTally(values []string) error {
	counts := map[string]int{}
	var want []string
	for _, v := range values {
		key := v[len(v)-1:]
		counts[key]++
		want = append(want, fmt.Sprintf("%s %d", key, counts[key]))
	}
	got := l.stores["main"].Values("counts")
	byKey := func(a, b string) int { return strings.Compare(a[:1], b[:1]) }
	slices.SortStableFunc(want, byKey)
	slices.SortStableFunc(got, byKey)
	if !slices.Equal(got, want) {
		return fmt.Errorf("counts are\n%v, want\n%v", got, want)
	}
	seen, total := map[string]bool{}, len(l.stores["main"].Values("late"))
	for _, v := range l.stores["main"].Values("windows") {
		cut := strings.LastIndexByte(v, ' ')
		n, err := strconv.Atoi(v[cut+1:])
		if err != nil || seen[v[:cut]] {
			return fmt.Errorf("window %q came twice, or is none", v)
		}
		seen[v[:cut]] = true
		total += n
	}
	if total > len(values) {
		return fmt.Errorf("%d values are in closed windows or late, %d came", total, len(values))
	}
	return nil
}
