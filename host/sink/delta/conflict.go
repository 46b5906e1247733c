package delta

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/sink"
)

// reads is what the last upsert that this process has staged may have missed if somebody adds it now.
type reads struct {
	attempt string
	find    *finder
}

// unchanged checks that nobody has touched what an upsert replaces, or added what it would have had to replace.
func (t *Target) unchanged(ctx context.Context, st *staged) error {
	removes := make(map[string]bool, len(st.Removed))
	for _, name := range st.Removed {
		removes[name] = true
		if t.base == nil {
			return fmt.Errorf("file %s: %w", name, sink.ErrLost)
		}
		if a, live := t.base.File(name); !live || a.DeletionVector != nil {
			return fmt.Errorf("file %s is no longer in the table: %w", name, sink.ErrLost)
		}
	}
	if t.base == nil {
		return nil
	}
	intent := delta.Intent{Removes: removes, Reads: func(a *delta.Add) bool { return a.DataChange }}
	if t.reads.attempt == st.Attempt {
		intent.Reads = func(a *delta.Add) bool { return a.DataChange && t.reads.find.may(a) }
	}
	for v := st.Read + 1; v <= t.base.Version; v++ {
		e, err := t.log.Entry(ctx, v)
		if errors.Is(err, delta.ErrNoVersion) {
			return fmt.Errorf("what was written since version %d is no longer known: %w", st.Read, sink.ErrLost)
		}
		if err != nil {
			return err
		}
		switch c := delta.Conflicts(e, intent); c {
		case delta.FileTouched, delta.FileAdded:
			return fmt.Errorf("version %d of another writer: %s: %w", v, c, sink.ErrLost)
		}
	}
	return nil
}
