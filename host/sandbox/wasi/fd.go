package wasi

import (
	"encoding/binary"
	"math"
)

// Rights and file type of preview 1.
const (
	rightRead       = 1 << 1
	rightWrite      = 1 << 6
	rightPoll       = 1 << 27
	characterDevice = 2
)

func fdStat(_ *State, mem []byte, p []uint64) uint32 {
	if !standard(p[0]) {
		return BadFD
	}
	out, ok := span(mem, p[1], 24)
	if !ok {
		return Fault
	}
	clear(out)
	out[0] = characterDevice
	rights := uint64(rightRead | rightPoll)
	if uint32(p[0]) > 0 {
		rights = rightWrite | rightPoll
	}
	put64(out[8:], rights)
	return OK
}

func fdSetFlags(_ *State, _ []byte, p []uint64) uint32 {
	if !standard(p[0]) {
		return BadFD
	}
	return OK
}

func fdSeek(_ *State, _ []byte, p []uint64) uint32 {
	if !standard(p[0]) {
		return BadFD
	}
	return Spipe
}

// fdRead is at the end of file on standard input.
func fdRead(_ *State, mem []byte, p []uint64) uint32 {
	if uint32(p[0]) != 0 {
		return BadFD
	}
	if _, errno := vectors(mem, p); errno != OK {
		return errno
	}
	n, ok := span(mem, p[3], 4)
	if !ok {
		return Fault
	}
	put32(n, 0)
	return OK
}

func fdWrite(s *State, mem []byte, p []uint64) uint32 {
	fd := uint32(p[0])
	if fd != 1 && fd != 2 {
		return BadFD
	}
	total, errno := vectors(mem, p)
	if errno != OK {
		return errno
	}
	n, ok := span(mem, p[3], 4)
	if !ok {
		return Fault
	}
	s.pay(uint64(total))
	list, _ := span(mem, p[1], 8*uint64(uint32(p[2])))
	for ; len(list) > 0; list = list[8:] {
		if b, ok := vector(mem, list); ok && len(b) > 0 {
			s.output(fd, b)
		}
	}
	put32(n, total)
	return OK
}

// vectors checks the list of parameters 1 and 2, and every iovec in it, and sums their lengths.
func vectors(mem []byte, p []uint64) (uint32, uint32) {
	count := uint64(uint32(p[2]))
	if count > MaxVectors {
		return 0, Inval
	}
	list, ok := span(mem, p[1], 8*count)
	if !ok {
		return 0, Fault
	}
	total := uint64(0)
	for ; len(list) > 0; list = list[8:] {
		b, ok := vector(mem, list)
		if !ok {
			return 0, Fault
		}
		total += uint64(len(b))
	}
	if total > math.MaxInt32 {
		return 0, Inval
	}
	return uint32(total), OK
}

func vector(mem, entry []byte) ([]byte, bool) {
	return span(mem, uint64(binary.LittleEndian.Uint32(entry)), uint64(binary.LittleEndian.Uint32(entry[4:])))
}
