package wasi

import (
	"encoding/binary"
	"math"
)

// Layout of preview 1: a subscription has 48 bytes, an event 32.
const (
	subscriptionSize = 48
	eventSize        = 32
	tagClock         = 0
	tagRead          = 1
	tagWrite         = 2
)

// event is one answer of poll_oneoff.
type event struct {
	user  uint64
	errno uint16
	tag   byte
}

// wait is a subscription to a clock: it is due when the instance has lived for due ns.
type wait struct {
	event
	due uint64
}

// poll completes at once and moves the clock to the earliest subscription that is due: nothing ever sleeps. Standard
// descriptors are always ready, and then no time passes.
func poll(s *State, mem []byte, p []uint64) uint32 {
	count := uint64(uint32(p[2]))
	if count == 0 || count > MaxVectors {
		return Inval
	}
	in, ok1 := span(mem, p[0], count*subscriptionSize)
	out, ok2 := span(mem, p[1], count*eventSize)
	n, ok3 := span(mem, p[3], 4)
	if !ok1 || !ok2 || !ok3 {
		return Fault
	}
	s.pay(uint64(len(in)))
	events, waits, errno := s.subscriptions(in)
	if errno != OK {
		return errno
	}
	if len(events) == 0 {
		first := uint64(math.MaxUint64)
		for _, w := range waits {
			first = min(first, w.due)
		}
		s.advance(first - min(first, s.elapsed))
	}
	for _, w := range waits {
		if w.due <= s.elapsed || s.elapsed == maxElapsed {
			events = append(events, w.event)
		}
	}
	clear(out[:len(events)*eventSize])
	for i, e := range events {
		b := out[i*eventSize:]
		put64(b, e.user)
		binary.LittleEndian.PutUint16(b[8:], e.errno)
		b[10] = e.tag
	}
	put32(n, uint32(len(events)))
	return OK
}

// subscriptions reads all of them before anything is written: the answer may lie over them.
func (s *State) subscriptions(in []byte) (ready []event, waits []wait, errno uint32) {
	s.advance(Tick)
	for ; len(in) > 0; in = in[subscriptionSize:] {
		e := event{user: binary.LittleEndian.Uint64(in), tag: in[8]}
		switch e.tag {
		case tagClock:
			clock, timeout := binary.LittleEndian.Uint32(in[16:]), binary.LittleEndian.Uint64(in[24:])
			if clock > 3 {
				return nil, nil, Inval
			}
			if absolute := binary.LittleEndian.Uint16(in[40:])&1 != 0; absolute {
				timeout -= min(timeout, s.now(clock))
			}
			waits = append(waits, wait{event: e, due: s.elapsed + min(timeout, maxElapsed)})
		case tagRead, tagWrite:
			fd := binary.LittleEndian.Uint32(in[16:])
			if !standard(uint64(fd)) || (fd == 0) != (e.tag == tagRead) {
				e.errno = uint16(BadFD)
			}
			ready = append(ready, e)
		default:
			return nil, nil, Inval
		}
	}
	return ready, waits, OK
}
