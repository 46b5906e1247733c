package kafkaconn

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// reach remembers which brokers could not be reached, so that a warning is given once for each until it is there again.
type reach struct {
	name string // of the connection
	warn func(error)

	mu   sync.Mutex
	gone map[string]bool // by address
}

// failed takes a dial that failed.
func (r *reach) failed(ctx context.Context, address string, err error) {
	if r.warn == nil || errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	r.mu.Lock()
	known := r.gone[address]
	if r.gone == nil {
		r.gone = map[string]bool{}
	}
	r.gone[address] = true
	r.mu.Unlock()
	if !known {
		r.warn(fmt.Errorf("connection %s: broker %s cannot be reached, trying again: %w", r.name, address, err))
	}
}

// made takes a connection that was made.
func (r *reach) made(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.gone, address)
}
