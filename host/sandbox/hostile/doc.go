// Package hostile attacks the sandbox: its tests build modules that want to hang, crash, escape, differ from engine to
// engine, or use what nobody paid for, and hold what becomes of each to a verdict and to bounds of CPU time and memory.
//
// Each case runs in a child process, the test's own program again, so that a crash or a hang is one failed case. The modules
// are made from a table and never stored. The package has no code besides its tests and must never get any.
package hostile
