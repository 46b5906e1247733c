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

// LockedTable is the schema that a sink has taken over from its table.
type LockedTable struct {
	Columns []LockedColumn `json:"columns"`
}

// LockedColumn is a column by its name and type, as a job file writes them.
type LockedColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

type tablesWire struct {
	Version int                    `json:"version"`
	Sinks   map[string]LockedTable `json:"sinks"`
}

// ReadTables returns the schemas that a checkpoint has locked, by sink. A checkpoint that is not there has none.
func ReadTables(ctx context.Context, files durable.Files, dir string) (map[string]LockedTable, error) {
	var wire tablesWire
	if _, err := readNote(ctx, files, dir, tablesFile, &wire); err != nil {
		return nil, err
	}
	for name, t := range wire.Sinks {
		if len(t.Columns) == 0 {
			return nil, errorf(CodeUnreadable, wayVerify, []string{tablesFile}, "sink %.80q has no columns", name)
		}
	}
	return wire.Sinks, nil
}

// LockTables writes down durably what ReadTables returns from then on.
func (l *Log) LockTables(ctx context.Context, sinks map[string]LockedTable) error {
	text, err := marshal(tablesWire{Version: formatVersion, Sinks: sinks})
	if err == nil {
		err = l.objects.Replace(ctx, tablesFile, text)
	}
	if err != nil {
		return ioError("write", tablesFile, err)
	}
	return nil
}
