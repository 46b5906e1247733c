package engine

import (
	"fmt"
	"maps"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox"
)

// StageStats is what a transform did in a batch, and what it used.
type StageStats struct {
	Name string
	// Records that it took and Emitted records on its ports, in the lane runs that count; Ports are the latter by port.
	Records, Emitted int64
	Ports            []int64
	Timers           int64 // that fired
	// Updated and Removed are entries of its state that the batch changed; State is how many bytes its lanes held of it.
	Updated, Removed int64
	State            int64
	// Everything that ran is in what follows: also lanes that were started again, and the search for a record that a guest
	// failed on.
	Instances int64
	Calls     uint64
	Fuel      uint64
	Memory    int64 // bytes, the most that one instance had
	Output    int64 // bytes of emitted records
	Log       int64 // bytes of log text that were heard
	Lost      int64 // log lines that were dropped
	// Traps counts why guests were stopped, but not again for each step of the search. Nil when none was.
	Traps map[abi.TrapName]int64
	// Failures are the first records that it failed on, what it failed with, and where in the guest: for logs.
	Failures []string
}

// maxFailures is how many failures of a transform are told in a batch.
const maxFailures = 3

// failed takes a record that a guest failed on.
func (s *StageStats) failed(lt *letter) {
	if len(s.Failures) < maxFailures {
		s.Failures = append(s.Failures, fmt.Sprintf("offset %d: %s", lt.origin.offset, lt.said()))
	}
}

// used adds what one instance has used.
func (s *StageStats) used(u sandbox.Usage) {
	s.Instances++
	s.Calls += u.Calls
	s.Fuel += u.Fuel
	s.Output += u.Output
	s.Log += u.Log
	s.Lost += u.Lost
	s.Memory = max(s.Memory, u.Memory)
}

func (s *StageStats) trapped(name abi.TrapName) {
	if s.Traps == nil {
		s.Traps = map[abi.TrapName]int64{}
	}
	s.Traps[name]++
}

// add adds what another lane of the same stage did.
func (s *StageStats) add(t *StageStats) {
	s.Records += t.Records
	s.Emitted += t.Emitted
	s.Timers += t.Timers
	s.State += t.State
	if s.Ports == nil {
		s.Ports = make([]int64, len(t.Ports))
	}
	for i, n := range t.Ports {
		s.Ports[i] += n
	}
	s.Instances += t.Instances
	s.Calls += t.Calls
	s.Fuel += t.Fuel
	s.Output += t.Output
	s.Log += t.Log
	s.Lost += t.Lost
	s.Memory = max(s.Memory, t.Memory)
	s.Failures = append(s.Failures, t.Failures[:min(len(t.Failures), maxFailures-len(s.Failures))]...)
	if s.Traps == nil {
		s.Traps = maps.Clone(t.Traps)
		return
	}
	for name, n := range t.Traps {
		s.Traps[name] += n
	}
}

// count takes over what a lane run that counts has come to.
func (s *StageStats) count(l *stageLane, a *attempt) {
	s.Records, s.Emitted, s.Timers = int64(a.next)-int64(len(l.excluded)), a.emitted, a.timed
	s.Ports = make([]int64, len(l.ports))
	for i := range l.ports {
		s.Ports[i] = l.ports[i].emitted
	}
	if l.state != nil {
		s.State = l.state.lane.Held()
	}
}
