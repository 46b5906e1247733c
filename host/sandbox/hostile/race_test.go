//go:build race

package hostile

// With the race detector a process reserves far more than it uses, and all takes its time.
const (
	raceDetector = true
	slack        = 20
)
