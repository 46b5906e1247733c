//go:build !race

package apart

const raceDetector = false
