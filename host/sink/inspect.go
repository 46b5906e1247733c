package sink

import "context"

// Inspector is a Target that can be looked at without being taken over.
type Inspector interface {
	// Inspect says what is published for an owner, and refuses what Open would refuse. An owner without a query id has yet
	// to begin: whatever belongs to a query is another one's. It takes no lock, shuts nobody out, writes nothing, and may be
	// called beside a process that has the target open.
	Inspect(ctx context.Context, o Owner) (Published, error)
}
