package delta

import (
	"iter"
	"time"
)

// Tombstones yields what is known of files that were removed, in byte order of their decoded paths: all that were for as long
// as FileRetention, and perhaps older ones. They are not to be changed.
func (s *Snapshot) Tombstones() iter.Seq[*Remove] {
	return func(yield func(*Remove) bool) {
		for _, r := range s.state.removed.all() {
			if !yield(r) {
				return
			}
		}
	}
}

// FileRetention is how long the table remembers a removed file, and keeps it for readers of older versions.
func (s *Snapshot) FileRetention() time.Duration { return s.Metadata.fileRetention() }
