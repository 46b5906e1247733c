package engine

import (
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/source"
)

// Codes of the engine's faults.
const (
	CodeRecordStopped   = "record.stopped"
	CodeTooManyLetters  = "record.too_many_set_aside"
	CodeLetterRefused   = "record.letter_refused"
	CodeTooMuchPoison   = "transform.too_much_poison"
	CodeGuestFailed     = "transform.failed"
	CodeNotRepeatable   = "transform.not_repeatable"
	CodeReadDiffers     = "source.read_differs"
	CodeTargetAhead     = "target.ahead"
	CodeTargetBehind    = "target.behind"
	CodeTargetDiffers   = "target.digest_differs"
	CodeUnresolved      = "batch.unresolved"
	CodeTooMuch         = "batch.too_much"
	CodeStagedLost      = "target.staged_lost"
	CodeReplaySource    = "replay.source_changed"    // the source gives other records than it did
	CodeReplayTransform = "replay.transform_changed" // what ran is not what was decided
	CodeReplayHost      = "replay.host_changed"      // the same input and revision gave something else
	CodeReplayDiffers   = "replay.digest_differs"    // the parts are the same, the whole is not
	CodeEnginesDiffer   = "batch.engines_differ"     // compiler and interpreter came to different results
	CodeNewerSemantics  = "batch.unknown_semantics"
	CodeNotRetained     = "replay.not_retained"
	CodeOtherRevision   = "replay.other_revision"
	CodeTornTailVisible = "checkpoint.torn_tail_published"
	CodeStateLost       = "state.lost"
)

// stateLost is the answer to changes of the state that are neither in the store nor in a file nor can be made again.
func stateLost(batch checkpoint.BatchID, why error) error {
	return fault.New(CodeStateLost, fmt.Sprintf("state of batch %d", batch), why,
		"put the file back from a copy of the checkpoint; or begin anew: `wasmill checkpoint fork --to DIR`, which carries no state")
}

// notPublished is a target's error. What was staged and is lost is found again by recovery, and nobody has to mend anything but
// what the target says that it was lost by.
func notPublished(target string, err error) error {
	if errors.Is(err, sink.ErrLost) {
		if why := (*fault.Error)(nil); errors.As(err, &why) {
			return fault.Passing(why.Code(), "target "+target, err, why.Hint())
		}
		return fault.Passing(CodeStagedLost, "target "+target, err, "start again: the batch is decided, and recovery brings it to the target")
	}
	return fmt.Errorf("target %s: %w", target, err)
}

// tooMuch is the answer to a batch that cannot be made small enough.
func tooMuch(read, most int64) error {
	return fault.New(CodeTooMuch, "",
		fmt.Errorf("after %d records the batch holds more than %d MiB for sinks and between transforms, and a smaller batch cannot be planned", read, most>>20),
		"see which transform or format makes so much of a record; lower `batch.maxRecords` of its source")
}

// letterRefused is the answer to a sink that takes no letter about a record, however short.
func letterRefused(sinkName string, lt *letter, misfit error) error {
	return fault.New(CodeLetterRefused, "sink "+sinkName,
		fmt.Errorf("it does not take a dead letter: %w; the letter says %s: %s", misfit, lt.word, lt.reason),
		"give the dead letters a sink that takes any JSON object, as files in jsonl do, or a topic with the default `maxMessage`; or a table with the columns that stand in the reference of the job file under dead letters")
}

// stopped is the answer to a record that cannot be processed under policy stop.
func stopped(g *Graph, lt letter) error {
	return fault.New(CodeRecordStopped, g.place(&lt), fmt.Errorf("%s: %s", lt.word, lt.said()),
		raise(lt.stage, abi.TrapName(lt.word))+"mend the transform and start again; or, with the input as it is, set `errors: {policy: dead-letter, deadLetters: <sink>}`, which sets such records aside (`policy: skip` drops and counts them)"+mending(g, lt))
}

// mending says how the record itself is mended, where its source is known and that can be done.
func mending(g *Graph, lt letter) string {
	i := lt.origin.edge.Source
	if i < 0 && len(g.Sources) == 1 {
		i = 0
	}
	if i < 0 {
		return ""
	}
	m, ok := g.Sources[i].Source.(source.Mendable)
	if !ok {
		return ""
	}
	return "; or mend " + m.Mend()
}

// raise says how to raise the limit that a trap is about, as the beginning of a way out; "" for a trap about none.
func raise(stage string, trap abi.TrapName) string {
	limit, when := "", "if it needs that much"
	switch trap {
	case abi.TrapFuel:
		limit = "limits.fuel"
	case abi.TrapDepth:
		limit = "limits.depth"
	case abi.TrapQuota:
		limit = "limits.output"
	case abi.TrapMemory:
		limit, when = "limits.memory", "if it ran out of memory"
	default:
		return ""
	}
	return fmt.Sprintf("raise `%s` of transform %s in the job file %s, or ", limit, stage, when)
}

// tooManyLetters is the answer to more records set aside than the policy allows, with the most frequent reason.
func tooManyLetters(g *Graph, n int64, most int, why *reason) error {
	lt := &why.first
	return fault.New(CodeTooManyLetters, "",
		fmt.Errorf("%d records set aside, errors.max is %d; the most frequent reason, %d times, is %s, as of %s: %s",
			n, most, why.n, lt.named(), g.place(lt), lt.said()),
		"mend what the reason names, the transform or the sink's columns, or raise `errors.max`"+mending(g, *lt))
}

func tooMuchPoison(stage string, lane int, lt letter) error {
	return fault.New(CodeTooMuchPoison, "transform "+stage,
		fmt.Errorf("lane %d: more than %d records that it fails on, the last at offset %d: %s", lane, maxPoison, lt.origin.offset, lt.said()),
		raise(stage, abi.TrapName(lt.word))+"mend the transform; when it only refuses records, let it write dead letters instead of failing: each record that it fails on starts a lane of a batch again, and that is done 16 times at most, whatever `errors.max` is")
}

func guestFailed(stage string, batch checkpoint.BatchID, lane int, f *failure) error {
	var trap abi.TrapName
	if f.guest != nil {
		trap = f.guest.Trap
	}
	return fault.New(CodeGuestFailed, "transform "+stage,
		fmt.Errorf("batch %d lane %d: failed on a frame without records: %s", batch, lane, f.text()), raise(stage, trap)+"mend the transform")
}

func notRepeatable(stage string, lane int, text string) error {
	return fault.New(CodeNotRepeatable, "transform "+stage,
		fmt.Errorf("lane %d: a failure did not repeat: %s", lane, text),
		"report this: a transform must fail alike every time it sees the same records")
}

func readDiffers(name string) error {
	return fault.New(CodeReadDiffers, "source "+name,
		errors.New("reading the same range again gave other records"),
		"make sure that nothing changes the input while it is read")
}

// StateError is trouble with the state's store, where it has no code of its own.
type StateError struct {
	Op  string // what was done
	Err error
}

func stateTrouble(err error, format string, args ...any) error {
	return &StateError{Op: fmt.Sprintf(format, args...), Err: err}
}

func (e *StateError) Error() string { return e.Op + ": " + e.Err.Error() }

// Unwrap returns what the store said.
func (e *StateError) Unwrap() error { return e.Err }
