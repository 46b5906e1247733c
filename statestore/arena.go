package statestore

// Sizes of the pieces in which the memory of an overlay is taken.
const (
	arenaChunk = 32 << 10
	slabShift  = 8 // records of a slab
	slabLen    = 1 << slabShift
	// maxIdle is how much memory a lane keeps for the next batch.
	maxIdle = 16 << 20
)

// arena hands out bytes that live until it is reset.
type arena struct {
	chunks [][]byte // those in use, the last one is being filled
	idle   [][]byte
	bytes  int64 // handed out, rounded
}

// alloc returns n bytes with room for size.
func (a *arena) alloc(n, size int) []byte {
	size = (size + 7) &^ 7
	a.bytes += int64(size)
	if size > arenaChunk/4 {
		return make([]byte, n, size) // one of its own: the garbage collector has it when nobody needs it
	}
	last := len(a.chunks) - 1
	if last < 0 || cap(a.chunks[last])-len(a.chunks[last]) < size {
		a.grow()
		last++
	}
	c := a.chunks[last]
	at := len(c)
	a.chunks[last] = c[:at+size]
	return c[at : at+n : at+size]
}

func (a *arena) grow() {
	if n := len(a.idle); n > 0 {
		a.chunks = append(a.chunks, a.idle[n-1][:0])
		a.idle = a.idle[:n-1]
		return
	}
	a.chunks = append(a.chunks, make([]byte, 0, arenaChunk))
}

func (a *arena) copy(b []byte) []byte {
	c := a.alloc(len(b), len(b))
	copy(c, b)
	return c
}

// reset takes back all that was handed out and keeps up to keep bytes of memory.
func (a *arena) reset(keep int) {
	a.idle = append(a.idle, a.chunks...)
	clear(a.chunks)
	a.chunks = a.chunks[:0]
	if most := keep / arenaChunk; len(a.idle) > most {
		clear(a.idle[most:])
		a.idle = a.idle[:most]
	}
	a.bytes = 0
}
