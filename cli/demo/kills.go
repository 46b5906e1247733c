package demo

import (
	"math/rand/v2"
	"time"
)

// schedule says when engines are killed without a key being pressed: at random shares of the run, one in each of equal
// parts of it, so that kills fall at any moment of a batch and yet something is done between them.
type schedule struct {
	at   []float64 // shares of the run, in order
	dice *rand.Rand
}

func newSchedule(kills int, seed uint64) *schedule {
	s := &schedule{dice: rand.New(rand.NewPCG(seed, uint64(kills)))}
	for i := range kills {
		s.at = append(s.at, (float64(i)+s.dice.Float64())/float64(kills))
	}
	return s
}

// due takes the next kill off the schedule when its time has come.
func (s *schedule) due(share float64) bool {
	if len(s.at) == 0 || share < s.at[0] {
		return false
	}
	s.at = s.at[1:]
	return true
}

// victims are the jobs to kill: all, or any one.
func (s *schedule) victims() []int {
	if one := s.dice.IntN(len(jobs) + 1); one < len(jobs) {
		return []int{one}
	}
	return everyJob()
}

func everyJob() []int {
	out := make([]int, len(jobs))
	for i := range out {
		out[i] = i
	}
	return out
}

// done is the share of a run that has passed: by orders or by time, whichever is further.
func done(orders, total int64, elapsed, limit time.Duration) float64 {
	share := 0.0
	if total > 0 {
		share = float64(orders) / float64(total)
	}
	if limit > 0 {
		share = max(share, elapsed.Seconds()/limit.Seconds())
	}
	return min(share, 1)
}
