// Package sandbox runs user modules: checked before they run, with a pinned clock and seeded randomness, bounded memory,
// and a fresh instance for every lane of every batch, so that a batch that runs again gives the same bytes.
//
// It stands behind the seam Engine -> Module -> Program -> Instance; wazero is the engine behind it and no type of it
// leaves the package. The package knows nothing of batches, files or sinks, and trusts no pointer, length or count of a
// guest. What a guest does wrong is a *Failure from a closed list; any other error is the host's own trouble.
//
// A module goes through three packages before an engine sees it: binary reads all of it strictly and holds it to limits,
// check.go holds its imports and exports to the ABI, and rewriter writes it anew, so that it pays for what it runs, cannot
// call too deep, and computes the same bits everywhere. Compiling may be done in another process first (Config.Apart).
//
// Start-up runs once; a module that can change nothing but its memory and numeric globals is then copied, copy-on-write
// where the system can, and any other one runs its start-up again for each instance.
//
// A guest that runs without end is stopped when its fuel is used up, after the same instruction on every engine. It gets
// the fuel in slices, and between two of them it is in Go code: so it holds up neither the garbage collector nor a cancelled
// context for longer than a slice lasts, some ten microseconds.
package sandbox

import (
	"context"
	"fmt"

	"github.com/wasmill/wasmill/abi"
)

// Binary is a module as it was found.
type Binary struct {
	Name    string // path or reference, for messages
	Wasm    []byte
	Sidecar []byte // <module>.json, nil when there is none
}

// Engine checks and compiles modules. It is safe for concurrent use.
type Engine interface {
	Compile(ctx context.Context, b Binary) (Module, error)
	// Kind is "compiler" or "interpreter".
	Kind() string
	Close(ctx context.Context) error
}

// Module is checked and compiled, but has not run.
type Module interface {
	Info() *Info
	// Start runs the module's start-up once, under the virtual WASI at a fixed time, and keeps what it left.
	Start(ctx context.Context, o Options) (Program, error)
	Close(ctx context.Context) error
}

// Info is what can be said of a module without running it.
type Info struct {
	Digest   string // sha256 of the module, with its sidecar when there is one, 64 hex digits
	Size     int
	Imports  []string // "module.name (params) -> results", sorted
	Exports  []string
	Manifest *abi.Manifest
	Stateful bool // it imports a function of state. In a stage without keys calling one is a trap
	Default  bool // neither the module nor a file beside it has a manifest: Manifest is the default one
	// MemoryMin and MemoryMax are in 64 KiB pages; MemoryMax is 0 when the module declares none.
	MemoryMin, MemoryMax uint32
}

// Options fix what a program does besides its code.
type Options struct {
	Transform string // name, for messages and logs
	Config    []byte // canonical JSON
	Limits    Limits
	// Log takes the guest's log lines, already cut and escaped. It must not block, and is called by all instances at once.
	// May be nil.
	Log func(level int, text string)
}

// Limits bound a program. Zero values stand for the defaults.
type Limits struct {
	Memory     int64 // bytes, a multiple of 64 KiB; default 64 MiB
	FuelCall   uint64
	FuelRecord uint64
	Depth      int
	Output     int64 // bytes of emitted records a lane; default 64 MiB
	Log        int64 // bytes of log text a lane, and a line for each 64 of them; default 64 KiB. What is over it is dropped, which changes no output
}

// Usage is what an instance has used since it was made.
type Usage struct {
	Calls  uint64 // of Instance.Call
	Fuel   uint64
	Memory int64 // bytes it has now; memory never shrinks
	Output int64 // bytes of emitted records
	Log    int64 // bytes of log text that were heard
	Lost   int64 // log lines that were dropped
}

// Program is a started module: what every instance begins as. It is safe for concurrent use.
type Program interface {
	Manifest() *abi.Manifest
	// Image is the digest of what start-up left, 64 hex digits; part of the revision.
	Image() string
	New(ctx context.Context, l Lane) (Instance, error)
	Close(ctx context.Context) error
}

// Lane pins what an instance may see of time and chance, and is its way to state.
type Lane struct {
	Seed [2]uint64
	Time int64 // the batch's time, microseconds since 1970
	// State is the lane's part of the stage's state, nil in a stage without keys: there any call of state_read or
	// state_write is a trap, one of no operations included. The instance uses it only inside of Instance.Call, from the
	// goroutine that called.
	State State
	// Index is the lane's number of Lanes. The keys of all its groups, and no others, are its own. Not looked at without State.
	Index, Lanes int
}

// State is the state of one lane, the writes that it was told of included.
//
// The sandbox has checked each operation before: its sizes, its table, and that its key belongs to the lane. What an
// operation points to are views of guest memory, valid during the call and not to be changed: what State keeps, it copies.
// The value that Get returns stays as it is until the next Write or the end of Instance.Call, whichever is first, and
// belongs to State; what Scan hands to visit is used only during visit.
//
// An error that is a *abi.Violation stops the guest as that trap. Any other one is the host's own trouble: Instance.Call
// returns it wrapped, no record is to blame, and the batch fails.
type State interface {
	abi.StateReader
	// Write carries out a put, delete, delete-prefix, timer-set or timer-delete; later reads see it. entries is how many
	// entries a delete-prefix visited to remove them, 0 for all else. The guest pays for them.
	Write(op *abi.StateOp) (entries int, err error)
}

// Call is one frame for a guest.
type Call struct {
	Header  abi.FrameHeader
	Records []abi.Record
	NFields int
}

// Emit takes one emitted record; its bytes lie in guest memory and are valid only during the call. The record's form is
// already checked; a *Failure it returns stops the guest as a trap, any other error stops it as host trouble.
type Emit func(r *abi.Record) error

// Instance serves one lane of one batch and is then closed. It is not safe for concurrent use, and after an error from
// Call it must only be closed.
type Instance interface {
	Call(ctx context.Context, c Call, emit Emit) error
	// Usage is exact after a call that succeeded; a call that failed counts up to its last host call.
	Usage() Usage
	Close(ctx context.Context) error
}

// Failure is what a guest did wrong. Exactly one of Trap and Status is set.
type Failure struct {
	Trap     abi.TrapName
	Status   int32
	Text     string // the guest's own error text, or what the host saw; escaped, at most 1 KiB
	Progress uint32 // lane-wide index of the record the guest was at; abi.NoIndex when unset
	Stack    []string
}

func (f *Failure) Error() string {
	what := fmt.Sprintf("status %d", f.Status)
	if f.Trap != "" {
		what = "trap " + string(f.Trap)
	}
	if f.Text == "" {
		return what
	}
	return what + ": " + f.Text
}
