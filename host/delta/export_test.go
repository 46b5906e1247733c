package delta

import "testing"

// EncodeEntry writes an entry as a commit does.
func EncodeEntry(t testing.TB, e *Entry) string {
	t.Helper()
	content, err := e.encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// CheckpointActions returns what a checkpoint of the snapshot holds.
func CheckpointActions(s *Snapshot) []Action { return s.checkpointActions() }

// ParseEntry and its like are what fuzzing calls.
var (
	ParseEntry       = parseEntry
	ParseCheckpoint  = parseCheckpoint
	EncodeCheckpoint = encodeCheckpoint
)

// ParseHint returns the version that _last_checkpoint names.
func ParseHint(content []byte) (version int64, ok bool) {
	h := parseHint(content)
	if h == nil {
		return 0, false
	}
	return h.Version, true
}
