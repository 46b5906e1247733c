// Package wasmill is the guest SDK for Wasmill transforms in Go: it turns a function of a record into a WebAssembly module
// that speaks ABI 1. README.md has a complete example and the command that builds it.
//
// A transform embeds its manifest, names the fields and ports it uses, and registers itself:
//
//	//go:embed manifest.json
//	var manifest string
//
//	var (
//		m     = wasmill.Manifest(manifest)
//		delay = m.Field("/arr_delay")
//		late  = m.Port("late")
//	)
//
//	func init() { wasmill.Register(wasmill.Transform{Record: onlyLate}) }
//
//	func onlyLate(r *wasmill.Record, out *wasmill.Out) error {
//		if d := r.Int(delay); d.Valid && d.N >= 15 {
//			out.Pass(r, late)
//		}
//		return r.Err()
//	}
//
//	func main() {}
//
// A module has one thread and one transform, so the SDK keeps its arenas in package variables. What lies in package
// variables of the transform lives for one lane of one batch: the host starts every lane from the image that [Transform.Init]
// left. Records, values and byte slices that the SDK gives out lie in the host's frame and are valid only during the call.
//
// The package must not import encoding/json, fmt or reflect: they make a module large and slow.
package wasmill

import "github.com/wasmill/wasmill/abi/sdk/go/internal/mem"

// Transform is what a module does.
type Transform struct {
	// Init runs once, before any record, with the job's configuration: an object. An error refuses the module. Optional.
	Init func(config Value) error

	// Record handles one record. An error sets the record aside as a dead letter, or as poison: see [DeadLetter] and [Fail].
	// What it has written to state by then stays written, so whatever can be refused is refused first.
	Record func(r *Record, out *Out) error

	// Timer handles one timer that is due, after the records: its key, [Record.EventTime], and its sub-key as the value. An
	// error fails the batch. Without it, Record gets the timers too: see [Record.Kind].
	Timer func(r *Record, out *Out) error

	// Prefetch says which entries of state a record or timer will need. It runs over all records of a frame before the first
	// of them is handled, and all it asked for is read in one call of the host; anything else is read when it is asked for, in
	// a call each. Without it, cells, counters and lists are read for each record's key. Optional.
	Prefetch func(r *Record, want *Want)

	// Finish runs once at the end of the lane, for what was held back; its records stem from no input. An error fails the
	// batch. Optional.
	Finish func(out *Out) error
}

// Register makes t the module's transform. It is called from an init function, once.
func Register(t Transform) {
	if module.transform.Record != nil || t.Record == nil {
		panic("wasmill: Register wants one transform, with a Record function")
	}
	module.transform = t
}

// Level says how grave a log line is.
type Level uint32

// The levels of log lines.
const (
	Debug Level = iota
	Info
	Warn
	Error
)

// Log writes one line to the host's log. The host cuts it at 1 KiB and limits the rate.
func Log(l Level, text string) { mem.Log(uint32(l), text) }

// Reject is why a transform refuses a record. It is an error; [DeadLetter] and [Fail] make it.
type Reject struct {
	Code   uint16 // the transform's own number for this kind of refusal
	Reason string // in words; the host cuts it at 1 KiB
	Poison bool
}

// BadField is the code of refusals that the SDK itself makes, and of errors that are no [Reject]: a field was not what the
// transform asked for. A transform's own codes begin at 1.
const BadField = 0

// DeadLetter sets a record aside alone: it goes to the job's dead letters with this code and reason, and nothing starts
// again.
func DeadLetter(code uint16, reason string) error { return &Reject{Code: code, Reason: reason} }

// Fail declares a record poison: the host runs the whole lane again without it. It is for a transform whose memory of the
// lane the record has already spoilt; otherwise [DeadLetter] is cheaper.
func Fail(code uint16, reason string) error { return &Reject{Code: code, Reason: reason, Poison: true} }

func (e *Reject) Error() string { return e.Reason }
