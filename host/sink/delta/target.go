package delta

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/partition"
	"github.com/wasmill/wasmill/host/sink"
)

const logName = "_delta_log"

// Target is a table that one sink's rows go to. It implements sink.Target.
type Target struct {
	cfg       Config
	files     durable.Files
	dir       string // absolute
	partition []int  // columns that the job file names
	key       []int  // columns; upsert when there are any
	schema    string // of the rows, as Delta writes one

	query string
	tag   string // the first 8 characters of the query id, in part names
	marks marks
	log   *delta.Log
	base  *delta.Snapshot // as last seen; nil: there is no table
	last  sink.Published  // as this process knows it
	table string          // the table's id; "" before there is one
	stamp stamp           // of the newest entry, by which a table is known again
	// forgets is after how long the table forgets what is published, "" for never.
	forgets string

	known  map[string]bool               // folders whose names are durable
	fresh  map[string]checkpoint.BatchID // files that this process has written and not published
	reads  reads                         // what the last upsert has read
	spans  spans                         // of the table's files, for upserts
	fitted fitted                        // the last layout
	enc    map[string]*parquetfile.Writer
	buf    *bufio.Writer // of the file being written
	sweeps sweeper
}

var (
	_ sink.Target    = (*Target)(nil)
	_ sink.Inspector = (*Target)(nil)
	_ sink.Forgetful = (*Target)(nil)
)

// ID returns the sink's name.
func (t *Target) ID() string { return t.cfg.Sink }

// Traits returns what the target promises.
func (t *Target) Traits() sink.Traits {
	return sink.Traits{
		Guarantee: sink.ExactlyOnce,
		Why:       "each batch is one entry of the table's log, created once, that names its files and carries the number of the batch",
		PutBack:   "put the table back where it was, or its path in the job file",
	}
}

// NewLane returns an empty lane.
func (t *Target) NewLane(name string) (sink.Lane, error) {
	if name != t.cfg.Sink {
		return nil, fmt.Errorf("target %s has no sink %q", t.cfg.Sink, name)
	}
	l := partition.Lane{Table: rows.NewTable(t.cfg.Schema), Check: partition.Checker{Columns: t.partition, Room: t.room()}}
	if len(t.key) == 0 {
		return &l, nil
	}
	keys, err := t.keySchema()
	if err != nil {
		return nil, err
	}
	return &upsertLane{Lane: l, key: t.key, deleted: rows.NewTable(keys)}, nil
}

// longestPart is a part's name with all its numbers at their largest, less what follows the last dot.
const longestPart = "part-0000000000-00000000-0000000000000000000-0000000000000000.c000."

// room returns the bytes that a path has for the folders of partitions.
func (t *Target) room() int {
	return partition.MaxPath - len(t.dir) - len("/") - len(longestPart) - len(ext(t.cfg.Codec))
}

func (t *Target) now() time.Time { return t.cfg.Clock() }

// Open finds out how far the table is. Nobody has to be shut out: what an earlier process may still do is harmless.
func (t *Target) Open(ctx context.Context, o sink.Owner) (sink.Published, error) {
	none := sink.Published{Batch: checkpoint.NoBatch}
	if len(o.Query) < 8 {
		return none, fmt.Errorf("open sink %s: %q is no query id", t.cfg.Sink, o.Query)
	}
	t.query, t.tag, t.marks = o.Query, o.Query[:8], marksOf(o.Query, t.cfg.Sink)
	t.known, t.fresh = map[string]bool{}, map[string]checkpoint.BatchID{}
	t.reads, t.spans, t.fitted, t.enc, t.sweeps = reads{}, spans{}, fitted{}, map[string]*parquetfile.Writer{}, sweeper{}
	t.base, t.table, t.last, t.stamp = nil, "", none, stamp{}
	if err := t.settle(); err != nil {
		return none, t.wrap("open the table", err)
	}
	log := delta.OpenLog(t.files, t.dir, t.cfg.Clock)
	base, p, err := t.look(ctx, log, o)
	if err != nil {
		return none, t.wrap("open the table", err)
	}
	t.log, t.base, t.last = log, base, p
	if base != nil {
		t.table = base.Metadata.ID
		t.warnOfRetention(base)
	}
	return p, nil
}

// settle makes durable what an earlier process made and did not sync before it died: an entry that is seen to be there must
// not be lost any more.
func (t *Target) settle() error {
	for _, dir := range []string{path.Dir(t.dir), t.dir, path.Join(t.dir, logName)} {
		err := t.files.SyncDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil && (dir != path.Dir(t.dir) || !errors.Is(err, fs.ErrPermission)) {
			return err
		}
	}
	return nil
}

// Inspect reads the log as it is.
func (t *Target) Inspect(ctx context.Context, o sink.Owner) (sink.Published, error) {
	_, p, err := t.look(ctx, delta.OpenLog(t.files, t.dir, t.cfg.Clock), o)
	if err != nil {
		return sink.Published{Batch: checkpoint.NoBatch}, t.wrap("look at the table", err)
	}
	return p, nil
}

// PublishedBy reads what the log says of the other query, whatever its sink is called.
func (t *Target) PublishedBy(ctx context.Context, query string) (p sink.Published, disown string, err error) {
	p = sink.Published{Batch: checkpoint.NoBatch}
	s, err := delta.OpenLog(t.files, t.dir, t.cfg.Clock).Snapshot(ctx)
	switch {
	case errors.Is(err, delta.ErrNoTable):
		return p, "", nil
	case err != nil:
		return p, "", t.wrap("look at the table", err)
	}
	for _, app := range s.AppIDs(query + "/") {
		name := app[len(query)+1:]
		if strings.Contains(name, "/") { // half of a digest
			continue
		}
		q, _, err := marksOf(query, name).published(s)
		if err != nil {
			return p, "", t.wrap("look at the table", err)
		}
		if q.Batch > p.Batch {
			p = q
		}
	}
	return p, "", nil
}

// look reads the table, holds it against the settings and says what is published. A nil snapshot: there is no table.
func (t *Target) look(ctx context.Context, log *delta.Log, o sink.Owner) (*delta.Snapshot, sink.Published, error) {
	none := sink.Published{Batch: checkpoint.NoBatch}
	t.forgets = ""
	base, err := log.Snapshot(ctx)
	if errors.Is(err, delta.ErrNoTable) {
		return nil, none, t.checkForeign()
	}
	if err != nil {
		return nil, none, err
	}
	if d, set := base.TxnRetention(); set {
		t.forgets = d.String()
	}
	if _, err := t.layoutFor(base, t.want()); err != nil {
		return nil, none, err
	}
	p, _, err := marksOf(o.Query, t.cfg.Sink).published(base)
	if err != nil {
		return nil, none, t.fail(CodeDamaged, beginAnew, "%w", err)
	}
	return base, p, nil
}

func (t *Target) want() want {
	return want{schema: t.cfg.Schema, partition: t.cfg.PartitionBy, addColumns: t.cfg.AddColumns}
}

// checkForeign refuses a directory that holds files of something else, where a table would be made between them.
func (t *Target) checkForeign() error {
	infos, err := t.files.List(t.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, i := range infos {
		if i.Regular && !partForm.MatchString(i.Name) && !strings.HasPrefix(i.Name, ".") && !strings.HasPrefix(i.Name, "_") {
			return t.fail(CodeForeign, "give the sink the directory of a Delta table, or an empty or new one", "the directory is no table and holds files, as %s", i.Name)
		}
	}
	return nil
}

// Forgot implements sink.Forgetful.
func (t *Target) Forgot(batch checkpoint.BatchID) error {
	if t.forgets == "" {
		return nil
	}
	return t.fail(CodeExpired, "unset the table property delta.setTransactionRetentionDuration, and "+beginAnew,
		"the table does not know that batch %d is published: its property delta.setTransactionRetentionDuration has it forget that when nothing is for %s", batch, t.forgets)
}

// warnOfRetention tells of a property by which the table forgets what is published.
func (t *Target) warnOfRetention(base *delta.Snapshot) {
	if d, set := base.TxnRetention(); set {
		t.cfg.Warn(t.fail(CodeExpired, "unset the table property delta.setTransactionRetentionDuration",
			"the table forgets what is published when nothing is for %s: after a pause of that length this job cannot go on", d))
	}
}

// Close gives up what is in memory.
func (t *Target) Close() error {
	t.log, t.base, t.enc = nil, nil, nil
	return nil
}

// fitted is a layout and the table that it is of.
type fitted struct {
	base *delta.Snapshot
	of   want
	l    *layout
	err  error
}

// layoutFor checks that a table may be written to and how rows go into it.
func (t *Target) layoutFor(base *delta.Snapshot, w want) (*layout, error) {
	if base == nil {
		l, err := newLayout(w)
		if err != nil {
			return nil, t.fail(CodeSchema, "correct the sink in the job file", "%w", err)
		}
		return l, nil
	}
	if has := base.Metadata.PartitionColumns; w.partition != nil && !slices.Equal(w.partition, has) {
		return nil, t.fail(CodeSchema, "write the table's partitionBy into the job file, or leave it out", "the table is partitioned by %s, the sink by %s",
			listed(has), listed(w.partition))
	}
	f := &t.fitted
	if f.base != nil && f.of.schema == w.schema && f.of.addColumns == w.addColumns && sameTable(f.base, base) {
		return f.l, f.err
	}
	l, err := t.fit(base, w)
	*f = fitted{base: base, of: w, l: l, err: err}
	return l, err
}

func (t *Target) fit(base *delta.Snapshot, w want) (*layout, error) {
	check := delta.CheckWrite
	if len(t.key) > 0 {
		check = delta.CheckRewrite
	}
	if err := check(base.Protocol, base.Metadata); err != nil {
		return nil, err
	}
	l, err := fit(w, base)
	if err == nil {
		return l, nil
	}
	wayOut := "change the sink's schema in the job file to what the table has, or the table"
	if errors.As(err, new(*lackingError)) {
		wayOut = "let the table get them: `schemaEvolution: add-columns` of the sink; or " + wayOut
	}
	return nil, t.fail(CodeSchema, wayOut, "%w", err)
}
