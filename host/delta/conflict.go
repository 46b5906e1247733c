package delta

// Intent is what a writer wants to commit, as far as another writer's entry can be in its way.
type Intent struct {
	TxnID      string            // of the writer's commitInfo
	AppID      string            // of the writer's txn
	AppVersion int64             // of the writer's txn
	Removes    map[string]bool   // paths, relative to the table, of the files that it removes
	Reads      func(a *Add) bool // whether a file could hold what the writer has read and not found; nil for a blind append
}

// Conflict is what an entry of another writer means for an Intent.
type Conflict uint8

// The conflicts, in the order in which they are looked for.
const (
	NoConflict      Conflict = iota
	Ours                     // it is the writer's own entry: the commit has succeeded
	Done                     // the application is as far or farther: another self of the writer has committed it
	Fenced                   // the application is not as far: another self of the writer is at work
	ProtocolChanged          // the gate has to be passed again
	MetadataChanged          // the schema has to be looked at again
	FileTouched              // a file that the writer removes was removed or rewritten
	FileAdded                // a file was added that the writer would have had to read
)

var conflictNames = [...]string{
	"no conflict", "our own entry", "committed by another instance of the query", "another instance of the query is at work",
	"the protocol was changed", "the table's metadata was changed", "a file to be replaced was touched", "rows were added to what was read",
}

func (c Conflict) String() string { return conflictNames[c] }

// Conflicts looks at an entry that was committed after the version that the writer started from.
func Conflicts(winner *Entry, ours Intent) Conflict {
	if c := winner.CommitInfo(); c != nil && c.TxnID != "" && c.TxnID == ours.TxnID {
		return Ours
	}
	if t, ok := winner.Txn(ours.AppID); ok && ours.AppID != "" {
		if t.Version >= ours.AppVersion {
			return Done
		}
		return Fenced
	}
	switch {
	case winner.Protocol() != nil:
		return ProtocolChanged
	case winner.Metadata() != nil:
		return MetadataChanged
	}
	for r := range winner.Removes() {
		if p, err := decodePath(r.Path); err == nil && ours.Removes[p] {
			return FileTouched
		}
	}
	for a := range winner.Adds() {
		// An add of a file that is there already changes its statistics or its deletion vector.
		if p, err := decodePath(a.Path); err == nil && ours.Removes[p] {
			return FileTouched
		}
	}
	for a := range winner.Adds() {
		if ours.Reads != nil && ours.Reads(a) {
			return FileAdded
		}
	}
	return NoConflict
}
