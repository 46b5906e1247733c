package delta_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/delta"
)

// childDir makes the test's program a writer into the table there.
const childDir = "WASMILL_DELTA_CHILD"

// TestMain lets a test start this binary as a second process that commits to a table.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		l := delta.OpenLog(durable.OS(), dir, time.Now)
		if err := commitAll(l, os.Getenv("WASMILL_DELTA_APP"), childCommits); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

const childCommits = 15

// commitAll brings batches 0 to n-1 of an application into a table, whoever else writes there.
func commitAll(l *delta.Log, app string, n int64) error {
	for batch := range n {
		if err := commitBatch(l, app, batch); err != nil {
			return err
		}
	}
	return nil
}

// commitBatch commits one batch once, as a sink does: it looks whether it is there, tries, and looks at the winners.
func commitBatch(l *delta.Log, app string, batch int64) error {
	id := app + "-" + strconv.FormatInt(batch, 10)
	ours := delta.Intent{TxnID: id, AppID: app, AppVersion: batch}
	for {
		s, err := l.Snapshot(ctx)
		if err != nil {
			return err
		}
		if t, ok := s.Txn(app); ok && t.Version >= batch {
			return nil
		}
		_, err = l.Commit(ctx, s, []delta.Action{info(id), txn(app, batch), add(id)})
		if err == nil || !errors.Is(err, delta.ErrExists) {
			return err
		}
		winner, err := l.Entry(ctx, s.Version+1)
		if err != nil {
			return err
		}
		switch c := delta.Conflicts(winner, ours); c {
		case delta.NoConflict, delta.MetadataChanged, delta.ProtocolChanged:
		case delta.Ours, delta.Done:
			return nil
		default:
			return fmt.Errorf("batch %d of %s: %s", batch, app, c)
		}
	}
}
