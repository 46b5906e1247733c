package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"path"
	"slices"
	"strings"
)

// retainStep is how many batches must at least have become superfluous before they are removed, and retainShare their
// share of what is kept: the note of what is gone costs two syncs, and small batches follow each other in milliseconds.
const (
	retainStep  = 10
	retainShare = 100
)

// wholeSweep is how many sweeps of a long log go by names alone before one looks at the directories: listing ten thousand
// names takes longer than a batch.
const (
	wholeSweep = 32
	longLog    = 1000
)

// retainStepOf is how many batches are removed together when so many are kept.
func retainStepOf(kept BatchID) BatchID { return max(retainStep, kept/retainShare) }

// Policy says which batches are kept for replay.
type Policy struct {
	Keep  int64 // the newest so many, whatever their age; at least 2
	AgeMS int64 // older ones for as long after their batch time
	Max   int64 // but never more than so many
}

// DefaultPolicy keeps the newest 100 batches, and older ones for 24 hours but never more than 10,000.
func DefaultPolicy() Policy { return Policy{Keep: 100, AgeMS: 24 * 60 * 60 * 1000, Max: 10_000} }

// retention is what the Log knows of what it keeps.
type retention struct {
	floor     BatchID            // the oldest batch kept
	revisions map[BatchID]string // of the retained decisions; nil until it is needed
	used      map[string]bool    // artifacts that this process has put
	sweeps    int
	oldest    batchTime // of a batch that was too young to go
}

// batchTime is a plan's time.
type batchTime struct {
	id   BatchID
	ms   int64
	read bool
}

func (r *retention) note(id BatchID, revision string) {
	if r.revisions != nil {
		r.revisions[id] = revision
	}
}

func (r *retention) use(name string) {
	if r.used == nil {
		r.used = make(map[string]bool)
	}
	r.used[name] = true
}

// Retain removes the records of batches below upTo that the policy does not keep, and then the revisions and modules
// that only they needed. It does nothing until a number of them can go. A durable note of the new floor is written
// first, so that no crash can leave a log that seems to have a gap.
func (l *Log) Retain(ctx context.Context, upTo BatchID, p Policy) error {
	floor, err := l.newFloor(ctx, upTo, p)
	old := l.keep.floor
	if err != nil || floor-old < retainStepOf(upTo-old) {
		return err
	}
	if err := l.raiseFloor(ctx, floor); err != nil {
		return err
	}
	if l.keep.sweeps++; upTo-floor >= longLog && l.keep.sweeps%wholeSweep != 1 {
		return l.removeRange(old, floor)
	}
	v, err := look(ctx, l.files, l.dir)
	if err != nil {
		return err
	}
	for _, log := range []*logView{&v.offsets, &v.commits} {
		if err := l.sweep(log, floor); err != nil {
			return err
		}
	}
	return l.sweepArtifacts(ctx, v)
}

// Oldest is the oldest batch that is kept.
func (l *Log) Oldest() BatchID { return l.keep.floor }

// newFloor returns the oldest batch to keep.
func (l *Log) newFloor(ctx context.Context, upTo BatchID, p Policy) (BatchID, error) {
	last := min(l.next.decision, upTo)
	mayGo := min(last-BatchID(max(p.Keep, 2)), upTo-1)
	most := BatchID(max(p.Max, p.Keep, 2))
	mustGo := last - most + retainStepOf(most) - 1
	now := l.opts.Clock()
	id := l.keep.floor
	for ; id <= mayGo; id++ {
		if id <= mustGo {
			continue
		}
		ms, err := l.timeOf(ctx, id)
		if err != nil {
			return id, err
		}
		if ms > now-p.AgeMS {
			break
		}
	}
	return id, nil
}

// timeOf is the batch time of a plan. It is asked for the same one after every batch, until that is old enough.
func (l *Log) timeOf(ctx context.Context, id BatchID) (int64, error) {
	if o := l.keep.oldest; o.read && o.id == id {
		return o.ms, nil
	}
	plan, err := l.wholePlan(ctx, id)
	if err != nil {
		return 0, err
	}
	l.keep.oldest = batchTime{id: id, ms: plan.TimeMS, read: true}
	return plan.TimeMS, nil
}

// removeRange removes the records of batches by their names. What else there is of them goes with a later sweep.
func (l *Log) removeRange(from, to BatchID) error {
	for id := from; id < to; id++ {
		for _, name := range []string{recordName(offsetsDir, id), recordName(commitsDir, id)} {
			if err := removeIfThere(l.files, path.Join(l.dir, name)); err != nil {
				return ioError("remove", name, err)
			}
		}
	}
	return nil
}

func (l *Log) raiseFloor(ctx context.Context, floor BatchID) error {
	text, err := marshal(retainedWire{Version: formatVersion, From: floor})
	if err == nil {
		err = l.objects.Replace(ctx, retainedFile, text)
	}
	if err != nil {
		return ioError("write", retainedFile, err)
	}
	l.keep.floor = floor
	for id := range l.keep.revisions {
		if id < floor {
			delete(l.keep.revisions, id)
		}
	}
	return nil
}

// sweep removes what a log holds of batches below the floor. It need not be durable: what comes back is ignored, and
// swept the next time.
func (l *Log) sweep(log *logView, floor BatchID) error {
	for _, name := range log.side {
		id, ok := parseID(strings.SplitN(strings.TrimPrefix(name, "."), ".", 2)[0])
		if !ok || id >= floor {
			continue
		}
		if err := removeIfThere(l.files, path.Join(l.dir, log.dir, name)); err != nil {
			return ioError("remove", path.Join(log.dir, name), err)
		}
	}
	for _, id := range log.old {
		if err := removeIfThere(l.files, path.Join(l.dir, log.name(id))); err != nil {
			return ioError("remove", log.name(id), err)
		}
	}
	return nil
}

// sweepArtifacts removes revisions and modules that neither a retained decision nor this process needs.
func (l *Log) sweepArtifacts(ctx context.Context, v *dirView) error {
	revisions, err := l.strangers(ctx, revisionsDir)
	if err != nil {
		return err
	}
	modules, err := l.strangers(ctx, modulesDir)
	if err != nil || len(revisions)+len(modules) == 0 {
		return err
	}
	if err := l.loadRevisions(ctx, v); err != nil {
		return err
	}
	var needed [][]byte
	kept := make(map[string]bool)
	for _, sha := range l.keep.revisions {
		if kept[revisionName(sha)] || sha == "" {
			continue
		}
		kept[revisionName(sha)] = true
		text, err := l.Revision(ctx, sha)
		var missing *Error
		if errors.As(err, &missing) && missing.ErrCode == CodeMissing {
			continue
		}
		if err != nil {
			return err // it may name modules: nothing is removed
		}
		needed = append(needed, text)
	}
	for _, name := range modules {
		sha := []byte(strings.TrimSuffix(path.Base(name), ".wasm"))
		kept[name] = slices.ContainsFunc(needed, func(text []byte) bool { return bytes.Contains(text, sha) })
	}
	for _, name := range append(revisions, modules...) {
		if kept[name] {
			continue
		}
		if err := removeIfThere(l.files, path.Join(l.dir, name)); err != nil {
			return ioError("remove", name, err)
		}
		delete(l.proven, name)
	}
	return nil
}

// strangers lists the artifacts that this process has not put.
func (l *Log) strangers(ctx context.Context, dir string) ([]string, error) {
	infos, err := l.objects.List(ctx, dir)
	if err != nil {
		return nil, ioError("list", dir, err)
	}
	var names []string
	for _, e := range infos {
		name := path.Join(dir, e.Name)
		if e.Regular && isSHA(strings.TrimSuffix(e.Name, path.Ext(e.Name))) && !l.keep.used[name] {
			names = append(names, name)
		}
	}
	return names, nil
}

func (l *Log) loadRevisions(ctx context.Context, v *dirView) error {
	if l.keep.revisions != nil {
		return nil
	}
	revisions := make(map[BatchID]string, len(v.commits.ids))
	for _, id := range v.commits.ids {
		d, err := l.Decision(ctx, id)
		if err != nil {
			return err
		}
		revisions[id] = d.Revision
	}
	l.keep.revisions = revisions
	return nil
}
