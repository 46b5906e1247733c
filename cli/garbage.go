package cli

import (
	"runtime"
	"runtime/debug"
)

const (
	// collectAt is the garbage collector's percentage: a batch lives in memory, and a quarter as much again for garbage costs
	// nothing that could be measured.
	collectAt = 25
	// ballast is memory that is never touched, so that it takes none, and that the collector counts: without it a job of small
	// batches, which holds little, would collect at every second batch.
	ballast = 16 << 20
)

// collectLater sets the collector up for a job that runs. What it returns puts it back.
func collectLater() (restore func()) {
	was := debug.SetGCPercent(collectAt)
	weight := make([]byte, ballast)
	return func() {
		runtime.KeepAlive(weight)
		debug.SetGCPercent(was)
	}
}
