// Package wasi is a virtual WASI preview 1 that is the same at every run: a clock that is set and moves by rule, random
// numbers from a key, no arguments, no environment, no files, and an output that somebody else takes.
//
// It works on bytes and numbers and knows no engine, so the sandbox can put any engine under it. Nothing in it reads a
// real clock or source of randomness, blocks, or trusts an address or a length: a wild one answers errno 21 and writes
// nothing. Source: the WASI preview 1 witx, wasi_snapshot_preview1.
package wasi

import (
	"encoding/binary"
	"math/rand/v2"
)

// Module is the import module's name.
const Module = "wasi_snapshot_preview1"

// The errnos that are answered.
const (
	OK    uint32 = 0
	BadFD uint32 = 8
	Fault uint32 = 21
	Inval uint32 = 28
	NoSys uint32 = 52
	Spipe uint32 = 70
)

// MaxVectors is the most iovecs or subscriptions a call may have.
const MaxVectors = 1024

// Tick is how far a read of any clock moves all clocks, in nanoseconds.
const Tick = 1000

const (
	monotonicBase = 1_000_000_000
	maxElapsed    = 1 << 61
	maxRealtime   = 1 << 62
)

// State is what one instance sees of the world. It is not safe for concurrent use.
type State struct {
	realtime uint64 // of the wall clock when elapsed was entered, ns since 1970
	entered  uint64
	elapsed  uint64 // ns since the instance began
	random   *rand.ChaCha8
	output   func(fd uint32, p []byte)
	pay      func(n uint64)
}

// New returns a state with the wall clock at unix microseconds and a random stream of the key. output takes what is
// written to file descriptors 1 and 2; its bytes are valid only during the call. pay is told how many bytes a call will
// move before it moves them; it may end the call by a panic.
func New(unix int64, key [2]uint64, output func(fd uint32, p []byte), pay func(n uint64)) *State {
	s := &State{output: output, pay: pay}
	s.Enter(unix, key)
	return s
}

// Enter sets the wall clock, clamped to the years 1970 to 2116, and the random stream (ChaCha8Rand of C2SP, keyed by key
// twice, little-endian). The monotonic clocks go on.
func (s *State) Enter(unix int64, key [2]uint64) {
	s.realtime = uint64(min(max(unix, 0), maxRealtime/1000)) * 1000
	s.entered = s.elapsed
	var seed [32]byte
	for i := range 4 {
		binary.LittleEndian.PutUint64(seed[8*i:], key[i%2])
	}
	s.random = rand.NewChaCha8(seed)
}

// Elapsed is how far the monotonic clocks have come, in nanoseconds.
func (s *State) Elapsed() uint64 { return s.elapsed }

// Resume sets how far the monotonic clocks have come, for an instance that is a copy of another one. Enter follows.
func (s *State) Resume(elapsed uint64) { s.elapsed = min(elapsed, maxElapsed) }

// now returns a clock without moving it. Clocks: 0 the wall clock, 1 monotonic, 2 and 3 processor time.
func (s *State) now(clock uint32) uint64 {
	if clock == 0 {
		return s.realtime + s.elapsed - s.entered
	}
	return monotonicBase + s.elapsed
}

func (s *State) advance(ns uint64) {
	s.elapsed += min(ns, maxElapsed-s.elapsed)
}

// span returns n bytes of memory at an address, nil and false when they are not all inside.
func span(mem []byte, at, n uint64) ([]byte, bool) {
	at = uint64(uint32(at))
	if at+n > uint64(len(mem)) {
		return nil, false
	}
	return mem[at : at+n : at+n], true
}

func put32(b []byte, v uint32) { binary.LittleEndian.PutUint32(b, v) }
func put64(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }
