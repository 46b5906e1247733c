//go:build failpoints

package cli

import (
	"fmt"
	"math"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/pipeline"
	"github.com/wasmill/wasmill/host/sink/sql"
	"github.com/wasmill/wasmill/statestore"
	"github.com/wasmill/wasmill/statestore/badger"
)

// What makes two paths of one kind differ: partition values, digests and random names, numbers.
var (
	partition = regexp.MustCompile(`=[^/]*`)
	random    = regexp.MustCompile(`[0-9a-f]{8,}`)
	numbers   = regexp.MustCompile(`[0-9]+`)
)

// class names the kind of a path, the same for every batch and attempt: its last two elements without what is unique.
func class(name string) string {
	short := path.Join(path.Base(path.Dir(name)), path.Base(name))
	short = partition.ReplaceAllString(short, "=V")
	return numbers.ReplaceAllString(random.ReplaceAllString(short, "H"), "N")
}

// keptIn are the folders that files of a folder are kept in when they are removed.
var keptIn = map[string]string{"offsets": "", "changelog": "changelog", "snapshot": "snapshot"}

// failpoints makes the process kill itself at a named point. WASMILL_FAILPOINT is NAME or NAME@N: the N-th time the point
// is reached. Points are the steps of a batch ("run:before", "decide:after"), the file operations by the class of their
// path ("sync:before offsets/.N.tmp"), those of the state store ("state apply-marker") and those of databases ("commit:before
// sqlite": see sql.Tap). WASMILL_FAILPOINT_TRACE names a file that gets every point reached, one a line, WASMILL_FAILPOINT_KEEP
// a folder that keeps what is removed of some kinds, and WASMILL_STATE_SIZES the sizes of the state store, as tune takes them.
// WASMILL_CLOCK_SHIFT puts the clock off. With WASMILL_STATE_HELD the background apply is held back (see held).
func failpoints(e *Env, p *pipeline.Env) {
	point, count := e.getenv("WASMILL_FAILPOINT"), int64(1)
	if base, n, ok := strings.Cut(point, "@"); ok {
		point = base
		if v, err := strconv.ParseInt(n, 10, 64); err == nil {
			count = v
		}
	}
	trace := openTrace(e.getenv("WASMILL_FAILPOINT_TRACE"))
	var passed atomic.Int64
	hit := func(reached string) {
		if trace != nil {
			fmt.Fprintln(trace, reached)
		}
		if reached == point && passed.Add(1) == count {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal is on its way
		}
	}
	inner := p.Events.Step
	p.Events.Step = func(b checkpoint.BatchID, s engine.Step, done bool) {
		if inner != nil {
			inner(b, s, done)
		}
		hit(string(s) + map[bool]string{false: ":before", true: ":after"}[done])
	}
	p.State.Point = func(name string) { hit("state " + name) }
	p.Database = func(db sql.Database) sql.Database { return sql.Tap(db, hit) }
	kept := e.getenv("WASMILL_FAILPOINT_KEEP")
	files := p.Files
	p.Files = durable.Tap(files, func(op, name string) error {
		if strings.HasPrefix(op, "read") || strings.HasPrefix(op, "stat") || strings.HasPrefix(op, "list") || strings.HasPrefix(op, "open") || strings.HasPrefix(op, "close") {
			return nil
		}
		if dir, ok := keptIn[path.Base(path.Dir(name))]; kept != "" && ok && op == "remove:before" {
			_ = files.Link(name, path.Join(kept, dir, path.Base(name))) // it may be there from an attempt before
		}
		hit(op + " " + class(name))
		return nil
	})
	if shift, err := time.ParseDuration(e.getenv("WASMILL_CLOCK_SHIFT")); err == nil {
		p.Clock = systemClock{func() time.Time { return e.Now().Add(shift) }}
	}
	if sizes := e.getenv("WASMILL_STATE_SIZES"); sizes != "" {
		tune(p, sizes)
	}
	if e.getenv("WASMILL_STATE_HELD") != "" {
		p.Backend = openHeld
		p.TuneState = func(c *statestore.Config) { c.SnapshotBatches, c.SnapshotBytes = math.MaxInt, math.MaxInt64 }
	}
}

// tune gives the state store small sizes, so that few batches pass every point of it: "snapshotBatches=3,memTable=65536".
func tune(p *pipeline.Env, sizes string) {
	n := map[string]int64{}
	for pair := range strings.SplitSeq(sizes, ",") {
		name, number, _ := strings.Cut(pair, "=")
		n[name], _ = strconv.ParseInt(number, 10, 64) // 0 is the default
	}
	if n["memTable"] > 0 {
		p.Backend = badger.Sized(n["memTable"])
	}
	p.TuneState = func(c *statestore.Config) {
		c.CacheBytes = n["cacheBytes"]
		c.BacklogBatches, c.BacklogBytes = int(n["backlogBatches"]), n["backlogBytes"]
		c.ApplyBatches, c.ApplyBytes = int(n["applyBatches"]), n["applyBytes"]
		c.SnapshotBatches, c.SnapshotBytes, c.SnapshotPart = int(n["snapshotBatches"]), n["snapshotBytes"], n["snapshotPart"]
	}
}

func openTrace(name string) *os.File {
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil
	}
	return f
}
