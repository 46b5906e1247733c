package demo

import "time"

const (
	// sampleEvery is between two samples of the meter, window how far back a rate looks.
	sampleEvery = 250 * time.Millisecond
	window      = 2 * time.Second
	// remembered is how many samples the history has.
	remembered = 240
)

// meter makes rates of counts: records in the first topic, in the second and in the table.
type meter struct {
	samples []sample
	history []float64 // records a second in the second topic
}

type sample struct {
	at     time.Time
	counts [3]int64
}

// sample takes the counts, now and then. It says whether one has grown.
func (m *meter) sample(now time.Time, counts ...int64) (grown bool) {
	next := sample{at: now, counts: [3]int64(counts)}
	if len(m.samples) == 0 {
		m.samples = append(m.samples, next)
		return false
	}
	before := m.samples[len(m.samples)-1]
	passed := now.Sub(before.at)
	if passed < sampleEvery {
		return false
	}
	for i := range next.counts {
		grown = grown || next.counts[i] > before.counts[i]
	}
	m.history = append(m.history, float64(next.counts[1]-before.counts[1])/passed.Seconds())
	m.history = m.history[max(0, len(m.history)-remembered):]
	m.samples = append(m.samples, next)
	for len(m.samples) > 2 && now.Sub(m.samples[1].at) >= window {
		m.samples = m.samples[1:]
	}
	return grown
}

// rate is how many records a second one of the counts has grown by lately.
func (m *meter) rate(i int) float64 {
	if len(m.samples) < 2 {
		return 0
	}
	from, to := m.samples[0], m.samples[len(m.samples)-1]
	return max(0, float64(to.counts[i]-from.counts[i])/to.at.Sub(from.at).Seconds())
}
