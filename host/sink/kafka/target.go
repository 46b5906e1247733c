package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
)

// Target is one cluster that a job publishes to. It implements sink.Target.
type Target struct {
	cfg    Config
	sinks  map[string]*route
	topics []string // all that may be published to, in order
	press  *press
	at     layout    // of those of them that exist, and the marker topic
	looked time.Time // when all topics were last asked for

	abortPatience time.Duration

	query    string
	base     *kgo.Client // looks, and never produces
	session  *session    // nil after an error: what was staged is lost, the id must be taken over again
	fencedBy error       // another owner has it, or the marker is not what it was: only Open may take it over
	newest   marker      // what is published, as far as this process knows
	staged   *staged
	partial  atLeastOnce
}

var (
	_ sink.Target    = (*Target)(nil)
	_ sink.Inspector = (*Target)(nil)
)

// staged is a transaction that is flushed and waits for the decision.
type staged struct {
	batch   checkpoint.BatchID
	digest  string
	attempt string
	since   time.Time
	offset  int64       // of its marker
	alarm   *time.Timer // warns when it grows old
}

// ID returns the connection's name.
func (t *Target) ID() string { return t.cfg.Connection.Name }

// Traits returns what the target promises.
func (t *Target) Traits() sink.Traits {
	if t.cfg.Guarantee == sink.AtLeastOnce {
		return sink.Traits{
			Guarantee: sink.AtLeastOnce, Volatile: true, Chosen: true,
			Why: "asked for by `delivery: at-least-once`: records are produced without a transaction, a batch that was cut off is produced again",
		}
	}
	return sink.Traits{
		Guarantee: sink.ExactlyOnce, Volatile: true, Chosen: true,
		Why:     "each batch is one transaction over all topics of the cluster, with a marker that says which; readers of committed records see it once",
		PutBack: "put the topics back with their marker topic, or the cluster's address in the connection",
	}
}

// NewLane returns an empty lane.
func (t *Target) NewLane(name string) (sink.Lane, error) {
	r, ok := t.sinks[name]
	if !ok {
		return nil, fmt.Errorf("target %s has no sink %q", t.ID(), name)
	}
	return t.newLane(r), nil
}

func (t *Target) txnID() string       { return "wasmill." + t.query + "." + t.ID() }
func (t *Target) markerTopic() string { return "__wasmill." + t.query }
func (t *Target) now() time.Time      { return t.cfg.Clock() }

// wall is the time that goes on while the machine is suspended, as it does for the brokers.
func (t *Target) wall() time.Time { return t.now().Round(0) }

func (t *Target) exact() bool { return t.cfg.Guarantee == sink.ExactlyOnce }

// Open takes the transactional id over, which ends what earlier owners have not committed, and reads the marker. Brokers
// that are away are tried again for about a second: whoever calls in a loop does not fill their logs.
func (t *Target) Open(ctx context.Context, o sink.Owner) (sink.Published, error) {
	if o.Query == "" {
		return sink.Published{Batch: checkpoint.NoBatch}, fmt.Errorf("open target %s: no query id", t.ID())
	}
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Patience)
	defer cancel()
	for wait := retryPause; ; wait *= 2 {
		p, err := t.open(ctx, o)
		if err == nil || wait > longestOpenPause || !passing(err) || pause(ctx, wait) != nil {
			return p, err
		}
	}
}

const longestOpenPause = 640 * time.Millisecond

func (t *Target) open(ctx context.Context, o sink.Owner) (sink.Published, error) {
	nothing := sink.Published{Batch: checkpoint.NoBatch}
	t.drop(ctx)
	t.query, t.fencedBy = o.Query, nil
	t.newest = marker{Batch: checkpoint.NoBatch}
	if err := t.reach(); err != nil {
		return nothing, err
	}
	if err := t.findTopics(ctx); err != nil {
		return nothing, err
	}
	if !t.exact() {
		return nothing, t.beginPlain(ctx)
	}
	if err := t.ensureMarkerTopic(ctx); err != nil {
		return nothing, err
	}
	if err := t.takeOver(ctx); err != nil {
		return nothing, err
	}
	return t.newest.published(), nil
}

// reach makes the client that looks.
func (t *Target) reach() error {
	if t.base != nil {
		return nil
	}
	opts, err := t.cfg.options()
	if err != nil {
		return err
	}
	if t.base, err = kgo.NewClient(opts...); err != nil {
		return t.brokerFault("", fmt.Errorf("make a client: %w", err))
	}
	return nil
}

func (t *Target) admin() *kadm.Client { return kadm.NewClient(t.base) }

// Abort ends the transaction of a batch without effect.
func (t *Target) Abort(ctx context.Context, batch checkpoint.BatchID) error {
	t.partial.abort(batch)
	if t.staged == nil || t.staged.batch != batch {
		return nil
	}
	return t.abandon(ctx)
}

// Sealed has nothing to tidy: the marker topic is compacted by the brokers.
func (t *Target) Sealed(context.Context, checkpoint.BatchID) error { return nil }

// Close ends an open transaction without effect, so that readers do not wait for its timeout, and the connections.
func (t *Target) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), t.abortPatience)
	defer cancel()
	t.drop(ctx)
	t.partial = atLeastOnce{}
	if t.base != nil {
		t.base.Close()
		t.base = nil
	}
	return nil
}

// pause waits, or returns the context's error.
func pause(ctx context.Context, d time.Duration) error {
	wait, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-wait.Done()
	return ctx.Err()
}
