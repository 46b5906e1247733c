package sink

import (
	"context"

	"github.com/wasmill/wasmill/checkpoint"
)

// Inspector is a Target that can be looked at without being taken over.
type Inspector interface {
	// Inspect says what is published for an owner, and refuses what Open would refuse. An owner without a query id has yet
	// to begin: whatever belongs to a query is another one's. It takes no lock, shuts nobody out, writes nothing, and may be
	// called beside a process that has the target open. An *UnfitError says what is published beside what is refused.
	Inspect(ctx context.Context, o Owner) (Published, error)
}

// Heir is a Target whose place may hold what the query published that its checkpoint was forked from.
type Heir interface {
	// PublishedBy says what another query has published, by a target of whatever name, in the places that this one publishes to;
	// checkpoint.NoBatch when there is nothing. disown is how a person says that it lies there no longer; "": there is no
	// way. It may be called with the target open or not, and writes nothing.
	PublishedBy(ctx context.Context, query string) (p Published, disown string, err error)
}

// UnfitError is the error of a look at a target that refuses the place that it would publish to, and knows all the same what is
// published there: a place that has been put back from an older copy is refused for what it is like, not for what it lacks.
type UnfitError struct {
	Published Published
	Err       error
}

func (e *UnfitError) Error() string { return e.Err.Error() }

// Unwrap returns why the place is refused.
func (e *UnfitError) Unwrap() error { return e.Err }

// Forgetful is a Target that may lose the knowledge of what it has published, but not the output.
type Forgetful interface {
	// Forgot is the fault of a target that knew less, when it was last opened or looked at, than that it has published a batch.
	// nil: nothing speaks for that it has forgotten it.
	Forgot(batch checkpoint.BatchID) error
}
