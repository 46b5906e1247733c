// Package apart has modules compiled in a child process, so that one that a compiler chokes on costs a refusal and not the
// process: the child has limits of processor time, memory and time, no environment and no descriptors but its three, and
// ends with its parent. What comes of it is a verdict, kept by digest; a crash or a kill of the child is a verdict too. A
// child that cannot be started is the host's trouble.
//
// Code that the child compiled goes into the cache of the engine, which only loads it then. That cache guards its entries
// with a weak checksum of a part of them, so a verdict holds the sha256 of the whole entry, and an entry that differs is
// compiled again. Nothing here guards against whoever can write to the folder: that is for the folder's mode.
//
// Limits are hard on Linux: the kernel ends the child at its processor time, and gives it no more memory. On other Unix
// systems memory is bounded by what the child sees of its own use, many times a second. Elsewhere only the time is.
//
// The package compiles nothing itself, and knows no job and no instance.
package apart

import (
	"time"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// Limits bound one child. They are part of what a verdict is kept under.
type Limits struct {
	CPU    time.Duration `json:"cpu"`    // user and system time of all its threads
	Memory int64         `json:"memory"` // bytes
	Time   time.Duration `json:"time"`   // by the clock
}

// DefaultLimits are those for modules of unknown origin.
var DefaultLimits = Limits{CPU: 10 * time.Second, Memory: 1 << 30, Time: time.Minute}

// Config says how modules are compiled apart.
type Config struct {
	// Command starts a process that calls Child and exits with what it returns: a program, its name and its arguments. It
	// must be this very program, for what it compiles is run here.
	Program string
	Args    []string
	Limits  Limits
	Files   durable.Files
}
