package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// Options says whose checkpoint is opened and where it gets what a simulation must control.
type Options struct {
	Job    string        // the job's name; the checkpoint of another job is refused
	Holder string        // who holds the lock, for people: pid, host, since when
	NewID  func() string // makes the query id (a UUID) of a new checkpoint
	Clock  func() int64  // milliseconds since 1970
	Unique func() string // 8 hex digits, never the same twice; nil for random ones
}

// Log is an open checkpoint. The process holds it alone until Close. Its methods are called by one goroutine, but
// Plan, Decision, Revision, Module and Resolution may be called by any.
type Log struct {
	files   durable.Files
	objects durable.Objects
	dir     string
	opts    Options
	lock    io.Closer
	id      string

	names    []string // sources by number; the first `planned` are in the last plan
	planned  int
	lastPlan *Plan    // for the lines of removed sources
	next     sequence // what may be written now
	mine     attempted
	proven   map[string]bool // revisions and modules known to be durable
	keep     retention
	spools   map[BatchID][]string // names of spool files; nil until the directory was looked at
	spooling bool                 // its directory is there
}

// attempted is the record that this process tried last to write.
type attempted struct {
	name string
	text []byte
}

// sequence is the last id of each log.
type sequence struct{ plan, decision BatchID }

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// Open takes a checkpoint directory over, making it if it is not there. Every refusal is a *Error. A torn last record
// is not refused here: Tail reports it.
func Open(ctx context.Context, files durable.Files, dir string, opts Options) (*Log, error) {
	if opts.Unique == nil {
		opts.Unique = durable.Unique
	}
	if err := durable.MakeDir(files, dir); err != nil {
		return nil, ioError("make the directory", dir, err)
	}
	if err := checkRoot(files, dir); err != nil {
		return nil, err
	}
	lock, err := files.Lock(path.Join(dir, lockFile), "job "+opts.Job+", "+opts.Holder)
	if err != nil {
		return nil, ioError("lock", path.Join(dir, lockFile), err)
	}
	l := &Log{
		files: files, objects: durable.NewObjects(files, dir, durable.WithUnique(opts.Unique)), dir: dir, opts: opts,
		lock: lock, proven: make(map[string]bool),
	}
	if err := l.open(ctx); err != nil {
		_ = lock.Close() // the first error is the one to tell
		return nil, err
	}
	return l, nil
}

// checkRoot refuses links and devices before anything is made or locked.
func checkRoot(files durable.Files, dir string) error {
	entries, err := files.List(dir)
	if err != nil {
		return ioError("list", dir, err)
	}
	v := &dirView{}
	for _, e := range entries {
		v.lookAt(e)
	}
	return v.err()
}

func (l *Log) open(ctx context.Context) error {
	v, err := look(ctx, l.files, l.dir)
	if err != nil {
		return err
	}
	if err := v.err(); err != nil {
		return err
	}
	if err := l.loadEnds(ctx, v); err != nil {
		return err
	}
	if err := l.makeDirs(); err != nil {
		return err
	}
	if err := l.identify(ctx, v.hasMetadata); err != nil {
		return err
	}
	if err := l.checkOwner(ctx); err != nil {
		return err
	}
	return l.tidy(ctx)
}

// loadEnds reads the last records, for the numbers of the sources and for what may be written next.
func (l *Log) loadEnds(ctx context.Context, v *dirView) error {
	l.next = sequence{v.offsets.last(), v.commits.last()}
	l.keep.floor = max(v.start(), 0)
	l.names, l.planned, l.lastPlan = nil, 0, nil
	if l.next.plan == NoBatch {
		return nil
	}
	p, err := l.readPlan(ctx, l.next.plan)
	var torn *TornError
	if errors.As(err, &torn) {
		if l.next.decision == torn.Batch {
			return errorf(CodeUnreadable, wayVerify, []string{torn.File}, "not readable, though it is decided: %w", torn.Err)
		}
		return l.loadBefore(ctx, v)
	}
	if err != nil {
		return err
	}
	l.adopt(p)
	return nil
}

// loadBefore takes the plan before a torn one, which must be whole.
func (l *Log) loadBefore(ctx context.Context, v *dirView) error {
	before := l.next.plan - 1
	if !v.offsets.has(before) {
		return nil
	}
	p, err := l.wholePlan(ctx, before)
	if err != nil {
		return err
	}
	l.adopt(p)
	return nil
}

func (l *Log) adopt(p *Plan) {
	l.lastPlan, l.names = p, nil
	for _, s := range p.Sources {
		l.names = append(l.names, s.Name)
	}
	l.planned = len(l.names)
}

// makeDirs makes the directories that records are written to. Their names are synced at every start: the process that
// made them may have died before it could.
func (l *Log) makeDirs() error {
	for _, d := range []string{offsetsDir, commitsDir, sourcesDir, revisionsDir, modulesDir} {
		if err := l.files.MkdirAll(path.Join(l.dir, d)); err != nil {
			return ioError("make the directory", d, err)
		}
	}
	if err := l.files.SyncDir(l.dir); err != nil {
		return ioError("sync", l.dir, err)
	}
	if l.next.plan != NoBatch {
		return nil
	}
	return l.syncParents()
}

// syncParents makes the path to a new checkpoint durable, for a process that died while making it. Directories that
// this user may not read are not his making.
func (l *Log) syncParents() error {
	for d := path.Clean(l.dir); d != path.Dir(d); {
		d = path.Dir(d)
		if err := l.files.SyncDir(d); err != nil {
			if errors.Is(err, fs.ErrPermission) {
				return nil
			}
			return ioError("sync", d, err)
		}
	}
	return nil
}

type metadataWire struct {
	ID string `json:"id"`
}

// identify reads the query id, or gives a new checkpoint one.
func (l *Log) identify(ctx context.Context, exists bool) error {
	if exists {
		id, err := readMetadata(ctx, l.files, l.dir)
		l.id = id
		return err
	}
	if l.opts.NewID == nil {
		return errorf(CodeInvalid, wayDisk, []string{metadataFile}, "a new checkpoint needs a query id")
	}
	id, err := writeMetadata(ctx, l.objects, l.opts.NewID())
	l.id = id
	return err
}

func writeMetadata(ctx context.Context, objects durable.Objects, id string) (string, error) {
	if !uuidForm.MatchString(id) {
		return "", errorf(CodeInvalid, "give a query id in the form of a UUID", []string{metadataFile}, "the query id %.80q is no UUID", id)
	}
	text, err := marshal(metadataWire{ID: id})
	if err == nil {
		err = objects.PutIfAbsent(ctx, metadataFile, text)
	}
	return id, ioError("write", metadataFile, err)
}

func readMetadata(ctx context.Context, files durable.Files, dir string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	text, err := durable.ReadFile(files, path.Join(dir, metadataFile), maxNote)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errorf(CodeMetadataMissing, wayMetadata, []string{metadataFile}, "missing: it holds the query id that targets know this job by")
	}
	if err != nil {
		return "", ioError("read", metadataFile, err)
	}
	var wire metadataWire
	if err := json.Unmarshal(text, &wire); err != nil {
		return "", errorf(CodeMetadata, wayMetadata, []string{metadataFile}, "not readable: %w", err)
	}
	if !uuidForm.MatchString(wire.ID) {
		return "", errorf(CodeMetadata, wayMetadata, []string{metadataFile}, "the query id %.80q is no UUID", wire.ID)
	}
	return wire.ID, nil
}

type ownerWire struct {
	Version int    `json:"version"`
	Job     string `json:"job"`
}

// checkOwner compares the job's name with the one that the checkpoint was made for.
func (l *Log) checkOwner(ctx context.Context) error {
	var wire ownerWire
	found, err := readNote(ctx, l.files, l.dir, ownerFile, &wire)
	if err != nil {
		return err
	}
	if found && wire.Job != l.opts.Job {
		return otherJob(wire.Job, l.opts.Job)
	}
	if found {
		return nil
	}
	return writeOwner(ctx, l.objects.PutIfAbsent, l.opts.Job)
}

func otherJob(was, is string) error {
	return errorf(CodeOtherJob, "give this job a checkpoint directory of its own; if the job was renamed, run "+
		"`wasmill checkpoint repair --choice rename`", []string{ownerFile},
		"this is the progress of job %.80q, and not of %q", was, is)
}

func writeOwner(ctx context.Context, put func(context.Context, string, []byte) error, job string) error {
	text, err := marshal(ownerWire{Version: formatVersion, Job: job})
	if err == nil {
		err = put(ctx, ownerFile, text)
	}
	return ioError("write", ownerFile, err)
}

// tidy removes what a crash left: half-written files, and notes of sources that were never planned.
func (l *Log) tidy(ctx context.Context) error {
	for _, d := range []string{"", offsetsDir, commitsDir, revisionsDir, modulesDir} {
		infos, err := l.objects.List(ctx, d)
		if err != nil {
			return ioError("list", d, err)
		}
		for _, e := range infos {
			if e.Regular && strings.HasPrefix(e.Name, ".") && strings.HasSuffix(e.Name, ".tmp") {
				if err := l.files.Remove(path.Join(l.dir, d, e.Name)); err != nil {
					return ioError("remove", path.Join(d, e.Name), err)
				}
			}
		}
	}
	// What was spooled serves a batch that is decided and not known to be published everywhere, and no other. It goes before
	// anything is written: it may be what fills the disk.
	unneeded := l.next.plan
	if l.next.decision == l.next.plan {
		unneeded--
	}
	if err := l.DropSpool(ctx, unneeded); err != nil {
		return err
	}
	return l.dropUnplanned(ctx)
}

// QueryID is the identity of the job's progress.
func (l *Log) QueryID() string { return l.id }

// Dir is the checkpoint's directory.
func (l *Log) Dir() string { return l.dir }

// Close gives the checkpoint up.
func (l *Log) Close() error { return ioError("unlock", lockFile, l.lock.Close()) }

func (l *Log) bug(format string, args ...any) error {
	return errorf(CodeInvalid, wayRestart, nil, "%w", fmt.Errorf(format, args...))
}
