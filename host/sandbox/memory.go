package sandbox

import (
	"errors"
	"fmt"
	"sync"
)

// errClosed is what an instance of a closed program gets.
var errClosed = errors.New("the program is closed")

// maxIdle is how many unused regions a program keeps.
const maxIdle = 16

// regions are the memories of a program's instances. Each is reserved at its full size up front, so that growing never
// moves it, cannot fail below the limit, and always fails above it. It is safe for concurrent use.
type regions struct {
	size   uint64
	image  backing // what each begins with
	mu     sync.Mutex
	idle   []*region
	closed bool
}

func newRegions(size uint64, image backing) *regions { return &regions{size: size, image: image} }

// region is one memory: a reservation and the part of it that the guest has.
type region struct {
	owner    *regions
	reserved []byte
	used     []byte
	refused  bool // the guest asked for more than it may have
}

// take returns a memory that begins with the image, and is zero behind it.
func (r *regions) take() (*region, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosed
	}
	if n := len(r.idle); n > 0 {
		m := r.idle[n-1]
		r.idle = r.idle[:n-1]
		return m, nil
	}
	reserved, err := reserve(r.size)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes for a guest: %w", r.size, err)
	}
	if err := r.image.put(reserved); err != nil {
		release(reserved)
		return nil, fmt.Errorf("map the image of a guest: %w", err)
	}
	return &region{owner: r, reserved: reserved}, nil
}

// close gives the idle regions back to the system; those in use follow when they are given back.
func (r *regions) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.closed = true
	for _, m := range r.idle {
		release(m.reserved)
	}
	r.idle = nil
	r.image.close()
}

// Reallocate gives the guest size bytes, or nil above the limit; then memory.grow answers -1.
func (m *region) Reallocate(size uint64) []byte {
	if size > m.owner.size {
		m.refused = true
		return nil
	}
	m.used = m.reserved[:size:size]
	return m.used
}

// Free is for wazero, which calls it when a module is closed. The region is given back by its instance, once: by then
// another instance may have it.
func (*region) Free() {}

// give takes a region back that no guest uses any more.
func (r *regions) give(m *region) {
	touched := len(m.used)
	m.used, m.refused = nil, false
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed && len(r.idle) < maxIdle && reset(m.reserved[:touched]) {
		r.idle = append(r.idle, m)
		return
	}
	release(m.reserved)
}
