//go:build race

package apart

// raceDetector: with it a process reserves memory in ways of its own.
const raceDetector = true
