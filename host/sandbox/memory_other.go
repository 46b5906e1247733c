//go:build !unix

package sandbox

// reserve has no address space to take here: memory comes from the heap as it grows.
func reserve(uint64) ([]byte, error) { return []byte{}, nil }

func release([]byte) {}

// extend returns memory of at least size bytes that begins with b. It may move.
func extend(b []byte, size uint64) []byte {
	if uint64(len(b)) >= size {
		return b
	}
	return append(b, make([]byte, size-uint64(len(b)))...)
}

// reset makes no memory zero: the heap gives a new one.
func reset([]byte) bool { return false }
