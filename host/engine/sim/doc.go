// Package sim stands in for everything around the engine: a source, programs, targets and a clock in memory, each with
// the faults that the real ones have. Tests and the simulator build an engine from it and drive the real batch protocol.
//
// A World is what outlives a process: inputs, what targets hold, time. A process is an engine opened on it; Kill ends the
// process at once, after which every call of its parts fails. The package is not linked into the program.
package sim
