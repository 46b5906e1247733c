package delta

import (
	"context"
	"path"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	hintName     = "_last_checkpoint"
	maxHintBytes = 16 << 20
)

// hint is what _last_checkpoint says. Readers find checkpoints by listing; it serves to tell that one of them is short.
type hint struct {
	Version       int64          `json:"version"`
	Size          int64          `json:"size"` // actions
	Parts         int64          `json:"parts,omitzero"`
	SizeInBytes   int64          `json:"sizeInBytes,omitzero"`
	NumOfAddFiles *int64         `json:"numOfAddFiles,omitzero"`
	V2            jsontext.Value `json:"v2Checkpoint,omitzero"`
}

// hint reads _last_checkpoint. It is nil when there is none, or none that can be read: it is only a hint.
func (l *Log) hint(ctx context.Context) *hint {
	content, err := l.objects.Read(ctx, path.Join(logDir, hintName), maxHintBytes)
	if err != nil {
		return nil
	}
	return parseHint(content)
}

func parseHint(content []byte) *hint {
	var h hint
	if json.Unmarshal(content, &h) != nil || h.Version < 0 || h.Size < 0 {
		return nil
	}
	return &h
}

// about reports whether the hint speaks of a classic checkpoint in that many files.
func (h *hint) about(c checkpointFiles) bool {
	return h != nil && h.Version == c.version && max(h.Parts, 1) == int64(len(c.names)) && h.V2 == nil
}
