package delta

import (
	"context"
	"errors"
	"io/fs"
	"regexp"
	"slices"
	"strconv"

	"github.com/wasmill/wasmill/host/fault"
)

// listing is what a log's folder holds.
type listing struct {
	entries     []int64 // versions in order
	checkpoints []checkpointFiles
	foreign     bool // checkpoints of a kind that is not read
}

// checkpointFiles are the files of one complete classic checkpoint.
type checkpointFiles struct {
	version int64
	names   []string
	bytes   int64
	modTime int64 // milliseconds since 1970
}

var (
	entryForm      = regexp.MustCompile(`^([0-9]{20})\.json$`)
	classicForm    = regexp.MustCompile(`^([0-9]{20})\.checkpoint\.parquet$`)
	partForm       = regexp.MustCompile(`^([0-9]{20})\.checkpoint\.([0-9]{10})\.([0-9]{10})\.parquet$`)
	otherCheckForm = regexp.MustCompile(`^[0-9]{20}\.checkpoint\.[^.]+\.(json|parquet)$`)
)

// maxParts bounds the number of files of one checkpoint.
const maxParts = 10_000

// list reads the folder of the log. errors.Is(err, ErrNoTable) says that there is nothing in it.
func (l *Log) list(ctx context.Context) (*listing, error) {
	infos, err := l.objects.List(ctx, logDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, wrap("list the log", l.place(logDir), err)
	}
	found := &listing{}
	type partKey struct{ version, of int64 }
	parts := map[partKey]*checkpointFiles{}
	for _, i := range infos {
		if i.Dir {
			continue
		}
		if m := entryForm.FindStringSubmatch(i.Name); m != nil {
			if v, ok := number(m[1]); ok {
				found.entries = append(found.entries, v)
			}
			continue
		}
		if m := classicForm.FindStringSubmatch(i.Name); m != nil {
			if v, ok := number(m[1]); ok {
				found.checkpoints = append(found.checkpoints, checkpointFiles{v, []string{i.Name}, i.Size, i.ModTime.UnixMilli()})
			}
			continue
		}
		m := partForm.FindStringSubmatch(i.Name)
		if m == nil {
			found.foreign = found.foreign || otherCheckForm.MatchString(i.Name)
			continue
		}
		v, ok := number(m[1])
		part, _ := number(m[2])
		of, _ := number(m[3])
		if !ok || part < 1 || part > of || of > maxParts {
			continue
		}
		p := parts[partKey{v, of}]
		if p == nil {
			p = &checkpointFiles{version: v}
			parts[partKey{v, of}] = p
		}
		p.names = append(p.names, i.Name)
		p.bytes += i.Size
		p.modTime = max(p.modTime, i.ModTime.UnixMilli())
	}
	for key, p := range parts {
		if int64(len(p.names)) == key.of {
			slices.Sort(p.names)
			found.checkpoints = append(found.checkpoints, *p)
		}
	}
	slices.Sort(found.entries)
	// Newest first; of several at one version the one in one file, whose order of rows is certain.
	slices.SortFunc(found.checkpoints, func(a, b checkpointFiles) int {
		if a.version != b.version {
			return int(min(max(b.version-a.version, -1), 1))
		}
		return len(a.names) - len(b.names)
	})
	if len(found.entries) == 0 && len(found.checkpoints) == 0 {
		return nil, fault.New(CodeNoTable, l.dir, ErrNoTable, "let the job create the table, or name the directory of one")
	}
	return found, nil
}

func number(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n < newestVersion
}

func (f *listing) newest() int64 {
	v := int64(-1)
	if n := len(f.entries); n > 0 {
		v = f.entries[n-1]
	}
	if len(f.checkpoints) > 0 {
		v = max(v, f.checkpoints[0].version)
	}
	return v
}

// missing returns the first version from first to last that has no entry.
func (f *listing) missing(first, last int64) (int64, bool) {
	i, _ := slices.BinarySearch(f.entries, first)
	for v := first; v <= last; v++ {
		if i >= len(f.entries) || f.entries[i] != v {
			return v, true
		}
		i++
	}
	return 0, false
}

// load makes the state of a version, or of the newest, from the newest checkpoint that can be read and the entries after it,
// or from the entries alone.
func (l *Log) load(ctx context.Context, version int64) (*state, error) {
	var err error
	for range 3 { // what is listed may be cleaned away by another engine meanwhile
		var found *listing
		if found, err = l.list(ctx); err != nil {
			return nil, err
		}
		var s *state
		s, err = l.loadListed(ctx, found, version)
		if err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrNoVersion) {
			return s, err
		}
	}
	return nil, err
}

func (l *Log) loadListed(ctx context.Context, found *listing, version int64) (*state, error) {
	last := found.newest()
	if version != newestVersion && version > last {
		// It may have come since the listing; readOn goes on from here and finds out.
		version = last
	}
	if version == newestVersion {
		version = last
	}
	hint := l.hint(ctx)
	var lies error
	for _, c := range found.checkpoints {
		if c.version > version {
			continue
		}
		if _, gap := found.missing(c.version+1, version); gap {
			break // an older checkpoint has the same gap
		}
		s, err := l.readCheckpoint(ctx, c, hint)
		if err == nil {
			return l.readListed(ctx, s, version)
		}
		if ctx.Err() != nil || errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		lies = errors.Join(lies, err)
	}
	if v, gap := found.missing(0, version); gap {
		return nil, l.gap(found, v, version, lies)
	}
	return l.readListed(ctx, &state{version: -1}, version)
}

// readListed applies entries up to a version that has been listed.
func (l *Log) readListed(ctx context.Context, s *state, version int64) (*state, error) {
	s, err := l.readOn(ctx, s, version)
	if err == nil && s.version < version {
		return nil, damaged(l.place(entryName(s.version+1)), "%w: the entry was listed and is gone", ErrNoVersion)
	}
	return s, err
}

// gap says why a version cannot be made.
func (l *Log) gap(found *listing, missing, version int64, lies error) error {
	place := l.place(entryName(missing))
	if lies != nil {
		return lies
	}
	if found.foreign {
		return fault.New(CodeFeature, place, errors.New("the entry is not there any more, and the table's checkpoints are of the kind v2, which is not read here (feature v2Checkpoint)"), otherTable)
	}
	if missing == 0 && len(found.checkpoints) > 0 || missing < found.entries[0] {
		return fault.New(CodeNoVersion, place, ErrNoVersion, "the log was cleaned: begin at a later version")
	}
	return damaged(place, "the entry is missing, and the table needs it for version %d", version)
}
