package statestore

import (
	"context"
	"fmt"
)

// Rewind makes sure that the store holds nothing that a batch after the given one changed. It is called once, before
// anything is loaded; -1 stands for the empty state.
func (s *Store) Rewind(_ context.Context, batch int64) error {
	if last := s.Last(); last > batch {
		return fmt.Errorf("the state is that of batch %d, ahead of batch %d", last, batch)
	}
	return nil
}
