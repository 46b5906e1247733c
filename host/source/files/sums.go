package files

import (
	"fmt"
	"hash/crc32"
	"strconv"
)

// castagnoli is CRC-32C (RFC 3720, 12.1). It tells a file that was edited from one that was not, goes on from where it stood
// without the bytes before, and costs next to nothing where the processor has it.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sums digests the decoded bytes of a file from its beginning, while they are planned, up to the last place that a batch may
// end at. nil digests nothing.
type sums struct {
	sum  uint32 // of all before the current block
	held int64  // the place that is held
	at   uint32 // the digest at held, once its block has passed
}

// newSums goes on from a place with a known digest, "" for the beginning of a file.
func newSums(from int64, sum string) *sums {
	if from == 0 {
		return &sums{}
	}
	n, err := strconv.ParseUint(sum, 16, 32)
	if err != nil {
		return nil // of a checkpoint that does not have it
	}
	return &sums{sum: uint32(n), held: from, at: uint32(n)}
}

// hold notes a place in the current block, or at its end.
func (s *sums) hold(off int64) {
	if s != nil {
		s.held = off
	}
}

// pass takes the current block, which begins at base, before the next one comes.
func (s *sums) pass(base int64, block []byte) {
	if s == nil {
		return
	}
	rest := block
	if n := s.held - base; n > 0 && n <= int64(len(block)) {
		s.sum = crc32.Update(s.sum, castagnoli, block[:n])
		s.at, rest = s.sum, block[n:]
	}
	s.sum = crc32.Update(s.sum, castagnoli, rest)
}

// before returns the digest before a place in the current block, which begins at base, or before the place that is held.
func (s *sums) before(off, base int64, block []byte) string {
	switch {
	case s == nil:
		return ""
	case off >= base && off-base <= int64(len(block)):
		return sumText(crc32.Update(s.sum, castagnoli, block[:off-base]))
	case off == s.held:
		return sumText(s.at)
	}
	return ""
}

func sumText(sum uint32) string { return fmt.Sprintf("%08x", sum) }
