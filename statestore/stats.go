package statestore

// Stats is what a store knows of itself.
type Stats struct {
	Applied, Last, Oldest int64 // batches
	Versions, Bytes       int64 // in the backend: pairs, replaced and deleted ones included while they are stored, and bytes on disk
	BackendMemory         int64
	BacklogBatches        int // sealed and not applied yet
	BacklogBytes          int64
	OverlayBytes          int64 // of the batch sealed last
	ChangelogBytes        int64 // of the entries sealed since the start, uncompressed
	CacheBytes            int64 // while no batch runs
	CacheHits             int64 // of gets and scans of ended batches that no earlier one of the same batch had answered
	CacheMisses           int64
}

// Stats counts what the store has.
func (s *Store) Stats() Stats {
	b := s.backend.Stats()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.stats
	out.Applied, out.Last, out.Oldest = s.applied, s.last, s.backend.Oldest()
	out.Versions, out.Bytes, out.BackendMemory = b.Versions, b.Bytes, b.Memory
	out.BacklogBatches, out.BacklogBytes = len(s.waiting), s.backlog
	for _, c := range s.caches {
		out.CacheBytes += c.held()
	}
	return out
}
