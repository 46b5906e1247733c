package kafkaconn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// reach remembers whether the cluster has ever answered, and which brokers could not be reached, so that a warning is given
// once for each until it is there again. The clients of a connection share it.
type reach struct {
	answered atomic.Bool

	mu   sync.Mutex
	gone map[string]bool // by address
}

var _ kgo.HookBrokerRead = (*reach)(nil)

// OnBrokerRead is called by the clients after each answer. What comes before a login is none: a listener tells everybody
// which requests it knows, and hangs up on the next one.
func (r *reach) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	switch kmsg.Key(key) {
	case kmsg.ApiVersions, kmsg.SASLHandshake, kmsg.SASLAuthenticate:
		return
	}
	if err == nil && !r.answered.Load() {
		r.answered.Store(true)
	}
}

// failed takes a dial that failed.
func (r *reach) failed(ctx context.Context, c *Config, address string, err error) {
	if c.Warn == nil || errors.Is(ctx.Err(), context.Canceled) {
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
		c.Warn(fmt.Errorf("connection %s: broker %s cannot be reached, trying again: %w", c.Name, address, err))
	}
}

// made takes a connection that was made.
func (r *reach) made(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.gone, address)
}

// reached reports whether the cluster has answered a request of any client of this connection.
func (c *Config) reached() bool { return c.reach != nil && c.reach.answered.Load() }
