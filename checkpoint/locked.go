package checkpoint

import (
	"context"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// LockedModule is a module that a job names without its content, and the content that it stands for.
type LockedModule struct {
	Module string `json:"module"` // as the job file names it
	Digest string `json:"digest"` // sha256 of what stands in modules/
}

type lockedWire struct {
	Version    int                     `json:"version"`
	Transforms map[string]LockedModule `json:"transforms"`
}

// ReadLocked returns the modules that a checkpoint has locked, by transform. A checkpoint that is not there has none.
func ReadLocked(ctx context.Context, files durable.Files, dir string) (map[string]LockedModule, error) {
	var wire lockedWire
	if _, err := readNote(ctx, files, dir, lockedFile, &wire); err != nil {
		return nil, err
	}
	for name, m := range wire.Transforms {
		if !isSHA(m.Digest) {
			return nil, errorf(CodeUnreadable, wayVerify, []string{lockedFile}, "transform %.80q: %.80q is no sha256", name, m.Digest)
		}
	}
	return wire.Transforms, nil
}

// LockModules writes down durably what ReadLocked returns from then on. The modules must be kept before.
func (l *Log) LockModules(ctx context.Context, transforms map[string]LockedModule) error {
	text, err := marshal(lockedWire{Version: formatVersion, Transforms: transforms})
	if err == nil {
		err = l.objects.Replace(ctx, lockedFile, text)
	}
	if err != nil {
		return ioError("write", lockedFile, err)
	}
	return nil
}
