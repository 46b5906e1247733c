package sink

import (
	"context"

	"github.com/wasmill/wasmill/checkpoint"
)

// Inspector is a Target that can be looked at without being taken over.
type Inspector interface {
	// Inspect says what is published for an owner, and refuses what Open would refuse. An owner without a query id has yet
	// to begin: whatever belongs to a query is another one's. It takes no lock, shuts nobody out, writes nothing, and may be
	// called beside a process that has the target open.
	Inspect(ctx context.Context, o Owner) (Published, error)
}

// Forgetful is a Target that may lose the knowledge of what it has published, but not the output.
type Forgetful interface {
	// Forgot is the fault of a target that knew less, when it was last opened or looked at, than that it has published a batch.
	// nil: nothing speaks for that it has forgotten it.
	Forgot(batch checkpoint.BatchID) error
}
