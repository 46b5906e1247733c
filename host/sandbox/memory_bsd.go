//go:build unix && !linux

package sandbox

const noReserve = 0

// reset cannot make pages zero cheaply here, so a region serves once.
func reset([]byte) bool { return false }
