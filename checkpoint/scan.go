package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// The files of a checkpoint directory.
const (
	metadataFile  = "metadata"
	ownerFile     = "wasmill.json"
	lockFile      = "lock"
	publishedFile = "published"
	retainedFile  = "retained"
	lockedFile    = "stock.json"
	tablesFile    = "tables.json"
	offsetsDir    = "offsets"
	commitsDir    = "commits"
	sourcesDir    = "sources"
	revisionsDir  = "revisions"
	modulesDir    = "modules"
	resolvedDir   = "resolutions"
	repairsDir    = "repairs"
	spoolDir      = "spool"
	stateDir      = "state"
)

// maxNote bounds what is read of the small files beside the logs.
const maxNote = 1 << 20

// dirView is a checkpoint directory as it lies there: names only, nothing of the records read.
type dirView struct {
	hasMetadata bool
	floor       BatchID // ids below were removed by retention; what is left of them is ignored
	offsets     logView
	commits     logView
	findings    []Finding // what is wrong with the names alone
}

// logView is one of the two logs.
type logView struct {
	dir   string
	ids   []BatchID // ascending, not below the floor
	old   []BatchID // below the floor
	empty map[BatchID]bool
	side  []string // hidden files: temporary ones, superseded records, Hadoop's checksums
}

func (l *logView) last() BatchID {
	if len(l.ids) == 0 {
		return NoBatch
	}
	return l.ids[len(l.ids)-1]
}

func (l *logView) first() BatchID {
	if len(l.ids) == 0 {
		return NoBatch
	}
	return l.ids[0]
}

func (l *logView) has(id BatchID) bool {
	_, ok := slices.BinarySearch(l.ids, id)
	return ok
}

func (l *logView) name(id BatchID) string { return recordName(l.dir, id) }

func recordName(dir string, id BatchID) string {
	return dir + "/" + strconv.FormatInt(int64(id), 10)
}

// crcName is Hadoop's checksum file of a record. One that is left over makes Spark's next write of the record fail, so
// whoever removes or moves a record removes it first.
func crcName(dir string, id BatchID) string {
	return dir + "/." + strconv.FormatInt(int64(id), 10) + ".crc"
}

// look lists a checkpoint directory. Only an unreadable directory is an error; what is wrong inside is in the findings.
func look(ctx context.Context, files durable.Files, dir string) (*dirView, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	v := &dirView{floor: NoBatch}
	root, err := files.List(dir)
	if err != nil {
		return nil, ioError("list", dir, err)
	}
	for _, e := range root {
		v.lookAt(e)
	}
	if err := v.readFloor(ctx, files, dir); err != nil {
		return nil, err
	}
	// Decisions first: beside a running job a batch may come between the two, and its plan is written before its decision.
	for _, log := range []struct {
		dir string
		to  *logView
	}{{commitsDir, &v.commits}, {offsetsDir, &v.offsets}} {
		if err := v.lookLog(files, dir, log.dir, log.to); err != nil {
			return nil, err
		}
	}
	v.findings = append(v.findings, v.sequence()...)
	return v, nil
}

// lookSteady is look while a job may be writing: it looks until nothing has changed meanwhile.
func lookSteady(ctx context.Context, files durable.Files, dir string) (*dirView, error) {
	v, err := look(ctx, files, dir)
	for range steadyTries {
		if err != nil {
			return nil, err
		}
		var again *dirView
		again, err = look(ctx, files, dir)
		if err == nil && again.offsets.last() == v.offsets.last() && again.commits.last() == v.commits.last() && again.floor == v.floor {
			return again, nil
		}
		v = again
	}
	return v, err
}

// steadyTries bounds how often a directory that keeps changing is looked at.
const steadyTries = 10

// lookAt checks the kind of one entry of the checkpoint directory.
func (v *dirView) lookAt(e durable.Info) {
	wantDir := false
	switch e.Name {
	case metadataFile:
		v.hasMetadata = true
	case ownerFile, lockFile, publishedFile, retainedFile, lockedFile, tablesFile:
	case offsetsDir, commitsDir, sourcesDir, revisionsDir, modulesDir, resolvedDir, repairsDir, spoolDir, stateDir:
		wantDir = true
	default:
		return
	}
	if e.Dir != wantDir || e.Regular == wantDir {
		v.find(CodeKind, e.Name, wayKind, "neither a file nor a directory of the kind that belongs here")
	}
}

// readFloor reads the note of what retention has removed.
func (v *dirView) readFloor(ctx context.Context, files durable.Files, dir string) error {
	if v.kindFound(retainedFile) {
		return nil
	}
	from, err := readRetained(ctx, files, dir)
	var coded *Error
	if errors.As(err, &coded) && coded.ErrCode != CodeIO && coded.ErrCode != CodeDenied {
		v.findings = append(v.findings, Finding{Code: coded.ErrCode, File: retainedFile, Message: coded.Err.Error(), WayOut: coded.WayOut})
		return nil
	}
	if err != nil {
		return err
	}
	v.floor = from
	return nil
}

func (v *dirView) lookLog(files durable.Files, dir, name string, log *logView) error {
	log.dir, log.empty = name, make(map[BatchID]bool)
	entries, err := files.List(path.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		if v.kindFound(name) {
			return nil
		}
		return ioError("list", name, err)
	}
	for _, e := range entries {
		id, ok := parseID(e.Name)
		file := name + "/" + e.Name
		switch {
		case strings.HasPrefix(e.Name, "."):
			log.side = append(log.side, e.Name)
		case !ok:
		case !e.Regular:
			v.find(CodeKind, file, wayKind, "not a regular file")
		case strconv.FormatInt(int64(id), 10) != e.Name:
			v.find(CodeUnreadable, file, wayVerify, "a second name for batch %d", id)
		case id < v.floor:
			log.old = append(log.old, id)
		default:
			log.ids = append(log.ids, id)
			if e.Size == 0 {
				log.empty[id] = true
			}
		}
	}
	slices.Sort(log.ids)
	slices.Sort(log.old)
	return nil
}

// parseID accepts decimal numbers only: other names are no log entries.
func parseID(name string) (BatchID, bool) {
	if name == "" || strings.Trim(name, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(name, 10, 64)
	return BatchID(n), err == nil
}

// sequence checks the ids of both logs: contiguous, each decision with its plan, only the last plan undecided.
func (v *dirView) sequence() []Finding {
	var found []Finding
	add := func(code, file, format string, args ...any) {
		found = append(found, newFinding(code, file, wayVerify, format, args...))
	}
	if !v.hasMetadata && (len(v.offsets.ids) > 0 || len(v.commits.ids) > 0) {
		found = append(found, newFinding(CodeMetadataMissing, metadataFile, wayMetadata,
			"missing, but there are logs: the query id that targets know this job by is lost"))
	}
	first := v.start()
	last := max(v.offsets.last(), v.commits.last())
	if v.floor > v.offsets.last() {
		add(CodeGap, v.offsets.name(v.floor), "missing, where %s says that batches are kept from %d on", retainedFile, v.floor)
	}
	for _, gap := range gaps(v.offsets.ids, first, v.offsets.last()) {
		add(CodeGap, v.offsets.name(gap.from), "missing%s, where %s is there", gap.upTo(), v.offsets.name(v.offsets.last()))
	}
	for _, id := range v.commits.ids {
		if id > v.offsets.last() || id < first {
			add(CodeNoPlan, v.commits.name(id), "a decision without its plan %s", v.offsets.name(id))
		}
	}
	for _, gap := range gaps(v.commits.ids, first, min(last, v.offsets.last())-1) {
		add(CodeGap, v.commits.name(gap.from), "missing%s, where %s is there", gap.upTo(), v.offsets.name(v.offsets.last()))
	}
	for _, log := range []*logView{&v.offsets, &v.commits} {
		for _, id := range log.ids {
			if log.empty[id] && id < last {
				add(CodeUnreadable, log.name(id), "the file is empty")
			}
		}
	}
	return found
}

// start is the first id that must be there: the floor, or without one the oldest plan (Spark keeps no note of what it
// has purged).
func (v *dirView) start() BatchID {
	if v.floor != NoBatch {
		return v.floor
	}
	if len(v.offsets.ids) > 0 {
		return v.offsets.first()
	}
	return 0
}

type gap struct{ from, to BatchID }

func (g gap) upTo() string {
	if g.from == g.to {
		return ""
	}
	return " up to " + strconv.FormatInt(int64(g.to), 10)
}

// gaps returns the runs of ids from first to last that are not in ids.
func gaps(ids []BatchID, first, last BatchID) []gap {
	var out []gap
	next := first
	for _, id := range ids {
		if id > last {
			break
		}
		if id > next {
			out = append(out, gap{next, id - 1})
		}
		next = max(next, id+1)
	}
	if next <= last {
		out = append(out, gap{next, last})
	}
	return out
}

func (v *dirView) find(code, file, wayOut, format string, args ...any) {
	v.findings = append(v.findings, newFinding(code, file, wayOut, format, args...))
}

func (v *dirView) kindFound(file string) bool {
	return slices.ContainsFunc(v.findings, func(f Finding) bool { return f.Code == CodeKind && f.File == file })
}

// err turns the findings into the error of a command that cannot go on with them.
func (v *dirView) err() error {
	if len(v.findings) == 0 {
		return nil
	}
	f := v.findings[0]
	for _, other := range v.findings {
		if other.Code == CodeMetadataMissing || other.Code == CodeKind {
			f = other
			break
		}
	}
	return errorf(f.Code, f.WayOut, []string{f.File}, "%s", f.Message)
}

type retainedWire struct {
	Version int     `json:"version"`
	From    BatchID `json:"from"`
}

func readRetained(ctx context.Context, files durable.Files, dir string) (BatchID, error) {
	var wire retainedWire
	found, err := readNote(ctx, files, dir, retainedFile, &wire)
	if err != nil || !found {
		return NoBatch, err
	}
	if wire.From < 0 {
		return NoBatch, errorf(CodeUnreadable, wayVerify, []string{retainedFile}, "batch %d is no batch", wire.From)
	}
	return wire.From, nil
}

// readNote reads a small JSON file with a version, of which 1 is the newest known.
func readNote(ctx context.Context, files durable.Files, dir, name string, into any) (found bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	text, err := durable.ReadFile(files, path.Join(dir, name), maxNote)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, ioError("read", name, err)
	}
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return false, errorf(CodeUnreadable, wayVerify, []string{name}, "not readable: %w", err)
	}
	if version.Version > formatVersion {
		return false, errorf(CodeFuture, wayUpgrade, []string{name}, "%w: version %d, where %d is the newest known", errFuture, version.Version, formatVersion)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return false, errorf(CodeUnreadable, wayVerify, []string{name}, "not readable: %w", err)
	}
	return true, nil
}
