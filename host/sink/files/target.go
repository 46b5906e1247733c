package files

import (
	"bufio"
	"context"
	"fmt"
	"hash"
	"io"
	"path"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/partition"
	"github.com/wasmill/wasmill/host/sink"
)

// Names below the sink's directory.
const (
	metaName  = "_spark_metadata"
	stageName = "_wasmill"
)

// Target is a directory that one sink's rows go to. It implements sink.Target.
type Target struct {
	cfg       Config
	files     durable.Files
	dir       string // absolute
	partition []int  // columns
	enc       encoder
	buf       *bufio.Writer // of the part being written
	hash      hash.Hash

	lock   io.Closer
	query  string
	tag    string // the first 8 characters of the query id, in part names
	log    manifest
	known  map[string]bool // directories whose names are durable
	fresh  map[string]bool // staged files that this process has written whole
	sweeps sweeper
}

var _ sink.Target = (*Target)(nil)

// ID returns the sink's name.
func (t *Target) ID() string { return t.cfg.Sink }

// Traits returns what the target promises.
func (t *Target) Traits() sink.Traits {
	return sink.Traits{
		Guarantee: sink.ExactlyOnce,
		Why:       "each batch becomes visible by one manifest file, created once, that names files by their content",
	}
}

// NewLane returns an empty lane.
func (t *Target) NewLane(name string) (sink.Lane, error) {
	if name != t.cfg.Sink {
		return nil, fmt.Errorf("target %s has no sink %q", t.cfg.Sink, name)
	}
	if t.cfg.Schema == nil {
		return &rawLane{updates: t.cfg.Updates}, nil
	}
	return &partition.Lane{Table: rows.NewTable(t.cfg.Schema), Check: partition.Checker{Columns: t.partition, Room: t.room()}}, nil
}

// longestPart is a part's name with all its numbers at their largest, less what follows the last dot.
const longestPart = "part-0000000000-00000000-0000000000000000000-0000000000000000.c000."

// room returns the bytes that a path has for the directories of partitions.
func (t *Target) room() int {
	return partition.MaxPath - len(t.dir) - len("/") - len(longestPart) - len(t.enc.ext())
}

func (t *Target) meta(name string) string  { return path.Join(t.dir, metaName, name) }
func (t *Target) stage(name string) string { return path.Join(t.dir, stageName, name) }

// Open makes the directory the owner's, or finds it so, and reads what it holds.
func (t *Target) Open(_ context.Context, o sink.Owner) (sink.Published, error) {
	none := sink.Published{Batch: checkpoint.NoBatch}
	if len(o.Query) < 8 {
		return none, fmt.Errorf("open sink %s: %q is no query id", t.cfg.Sink, o.Query)
	}
	if err := t.take(o); err != nil {
		return none, t.wrap("open the sink's directory", err)
	}
	t.query, t.tag = o.Query, o.Query[:8]
	t.known, t.fresh = map[string]bool{t.dir: true}, map[string]bool{}
	t.sweeps = sweeper{cleaned: checkpoint.NoBatch}
	var err error
	if t.log, err = t.readManifest(); err != nil {
		return none, t.wrap("read the sink's manifest", err)
	}
	return t.log.published(), nil
}

// take makes the directories, takes the lock and checks the owner file.
func (t *Target) take(o sink.Owner) error {
	if err := t.checkForeign(o); err != nil {
		return err
	}
	for _, dir := range []string{t.dir, t.meta(""), t.stage("")} {
		if err := durable.MakeDir(t.files, dir); err != nil {
			return err
		}
	}
	if t.lock == nil {
		lock, err := t.files.Lock(t.stage("lock"), "query "+o.Query+" of job "+o.Job)
		if err != nil {
			return err
		}
		t.lock = lock
	}
	if err := t.claim(o); err != nil {
		return err
	}
	// What an earlier process made and did not sync before it died is made durable here.
	for _, dir := range []string{t.meta(""), t.dir} {
		if err := t.files.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// Close gives the lock back.
func (t *Target) Close() error {
	if t.lock == nil {
		return nil
	}
	lock := t.lock
	t.lock = nil
	return lock.Close()
}

func (t *Target) now() time.Time { return t.cfg.Clock() }
