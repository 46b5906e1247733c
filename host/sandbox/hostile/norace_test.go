//go:build !race

package hostile

const (
	raceDetector = false
	slack        = 1 // by what the bounds of the cases are multiplied
)
