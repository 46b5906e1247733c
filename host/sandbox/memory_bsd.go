//go:build unix && !linux

package sandbox

const noReserve = 0
