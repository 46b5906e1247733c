package engine

import (
	"fmt"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
)

// Codes of the engine's faults.
const (
	CodeRecordStopped   = "record.stopped"
	CodeTooManyLetters  = "record.too_many_set_aside"
	CodeTooMuchPoison   = "transform.too_much_poison"
	CodeGuestFailed     = "transform.failed"
	CodeNotRepeatable   = "transform.not_repeatable"
	CodeReadDiffers     = "source.read_differs"
	CodeTargetAhead     = "target.ahead"
	CodeTargetBehind    = "target.behind"
	CodeTargetDiffers   = "target.digest_differs"
	CodeUnresolved      = "batch.unresolved"
	CodeReplayDiffers   = "replay.digest_differs"
	CodeNewerSemantics  = "batch.unknown_semantics"
	CodeNotRetained     = "replay.not_retained"
	CodeOtherRevision   = "replay.other_revision"
	CodeTornTailVisible = "checkpoint.torn_tail_published"
)

// stopped is the answer to a record that cannot be processed under policy stop.
func stopped(g *Graph, lt letter) error {
	place := g.sourceName(lt.origin.edge)
	if lt.origin.split != "" {
		place += " " + lt.origin.split
	}
	if lt.origin.offset >= 0 && lt.origin.edge.Source >= 0 {
		place += fmt.Sprintf(" record %d", lt.origin.offset)
	}
	if lt.stage != "" {
		place += ", transform " + lt.stage
	}
	return fault.New(CodeRecordStopped, place, fmt.Errorf("%s: %s", lt.word, lt.reason),
		"mend the record or the transform and start again, or set `errors: {policy: dead-letter, deadLetters: <sink>}` to set such records aside")
}

func tooManyLetters(batch checkpoint.BatchID, n int64, most int) error {
	return fault.New(CodeTooManyLetters, "", fmt.Errorf("batch %d: %d records set aside, errors.max is %d", batch, n, most),
		"look at why so many records do not fit, or raise `errors.max`")
}

func tooMuchPoison(stage string, batch checkpoint.BatchID, lane int, lt letter) error {
	return fault.New(CodeTooMuchPoison, "transform "+stage,
		fmt.Errorf("batch %d lane %d: more than %d records that it fails on, the last at offset %d: %s", batch, lane, maxPoison, lt.origin.offset, lt.reason),
		"mend the transform; when it only refuses records, let it write dead letters instead of failing")
}

func guestFailed(stage string, batch checkpoint.BatchID, lane int, text string) error {
	return fault.New(CodeGuestFailed, "transform "+stage,
		fmt.Errorf("batch %d lane %d: failed on a frame without records: %s", batch, lane, text), "mend the transform")
}

func notRepeatable(stage string, batch checkpoint.BatchID, lane int, text string) error {
	return fault.New(CodeNotRepeatable, "transform "+stage,
		fmt.Errorf("batch %d lane %d: a failure did not repeat: %s", batch, lane, text),
		"report this: a transform must fail alike every time it sees the same records")
}

func readDiffers(name string, batch checkpoint.BatchID) error {
	return fault.New(CodeReadDiffers, "source "+name,
		fmt.Errorf("batch %d: reading the same range again gave other records", batch),
		"make sure that nothing changes the input while it is read")
}
