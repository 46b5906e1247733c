package delta_test

import (
	"testing"

	logs "github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/host/source/sourcetest"
)

// The test of this file is of a fault that another program was reported for: see FAULTS.md of host/delta.

// TestPlannedTailIsGone: what was planned is read or missed, never shortened: the last of the planned versions is gone, or not
// to be seen yet, when it is to be read.
func TestPlannedTailIsGone(t *testing.T) {
	b := numbers(t)
	b.commit(b.ids(0, 3))
	_, at := drain(t, b.source(), zero, 0)
	b.commit(b.ids(10, 3))
	b.commit(b.ids(20, 3))
	r := source.Range{From: at, To: latest(t, b.source(), at, 0)}
	wantIDs(t, read(t, b.source(), r), 10, 3, 20, 3)
	b.lose(3)
	for _, skip := range []bool{false, true} {
		warnings := 0
		s := b.source()
		if skip {
			s = b.source(skipping(&warnings))
		}
		var c sourcetest.Collector
		splits, err := s.Splits(ctx, r)
		for _, sp := range splits {
			if err == nil {
				err = s.Read(ctx, sp, &c)
			}
		}
		if err == nil {
			t.Fatalf("skipping %v: %d rows of 6 without an error", skip, len(c.Records))
		}
		if !skip {
			wantFault(t, err, logs.CodeNoVersion, "version 3 was planned")
		}
	}
	_, err := b.source().Measure(ctx, r)
	wantFault(t, err, logs.CodeNoVersion)
}
