package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
)

// Publish links the staged parts to their places and then the batch's manifest to its name.
func (t *Target) Publish(ctx context.Context, d *checkpoint.Decision, s sink.Staged) error {
	st, err := parseStaged(s)
	if err != nil {
		err = t.fail(CodeDamaged, t.dir, "run `wasmill checkpoint verify`; restore the checkpoint from a backup, or "+beginAnew, "%w", err)
	}
	if err == nil && !digestForm.MatchString(d.Digest) {
		err = fmt.Errorf("%q is no batch digest", d.Digest)
	}
	if err == nil && t.query == "" {
		err = errors.New("the target is not open")
	}
	if err == nil {
		err = t.publish(ctx, d, st)
	}
	if err != nil {
		return t.wrap(fmt.Sprintf("publish batch %d", d.Batch), err)
	}
	return nil
}

func (t *Target) publish(ctx context.Context, d *checkpoint.Decision, st *staged) error {
	switch {
	case d.Batch < t.log.last:
		return t.conflict(d, "the manifest is at batch %d already", t.log.last)
	case t.log.there[d.Batch]:
		if err := t.publishedBefore(d, st); err != nil {
			return err
		}
	default:
		if err := t.publishNew(ctx, d, st); err != nil {
			return err
		}
	}
	t.dropStage(st)
	return nil
}

func (t *Target) conflict(d *checkpoint.Decision, format string, args ...any) error {
	return t.fail(CodeConflict, t.meta(manifestName(d.Batch)),
		"find out what else writes to this directory, or which copy of the checkpoint is the right one; `wasmill checkpoint fork` starts anew",
		"batch %d with digest %s cannot be published: %s", d.Batch, d.Digest, fmt.Sprintf(format, args...))
}

// publishedBefore finishes, or only confirms, a batch whose manifest is there.
func (t *Target) publishedBefore(d *checkpoint.Decision, st *staged) error {
	digest, finished := t.log.digest(d.Batch)
	if finished && digest != d.Digest {
		return t.conflict(d, "it is published with digest %s", digest)
	}
	if !finished {
		same, err := t.sameEntries(d.Batch, st.Parts)
		if err != nil {
			return err
		}
		if !same {
			return t.conflict(d, "the manifest names other files than were staged for it")
		}
		if err := t.renote(d); err != nil {
			return err
		}
	}
	dirs, err := t.dirsOf(st)
	if err != nil {
		return err
	}
	for _, dir := range append(dirs, t.meta("")) {
		if err := t.files.SyncDir(dir); err != nil {
			return err
		}
	}
	t.log.notes[d.Batch], t.log.done = []string{d.Digest}, d.Batch
	return nil
}

// renote gives the manifest that is there the name that carries the digest, and no other such name.
func (t *Target) renote(d *checkpoint.Decision) error {
	for _, stale := range t.log.notes[d.Batch] {
		if err := t.removeIfThere(t.meta(noteName(d.Batch, stale))); err != nil {
			return err
		}
	}
	return t.files.Link(t.meta(manifestName(d.Batch)), t.meta(noteName(d.Batch, d.Digest)))
}

func (t *Target) publishNew(ctx context.Context, d *checkpoint.Decision, st *staged) error {
	for i := range st.Parts {
		if err := t.find(st, &st.Parts[i]); err != nil {
			return err
		}
	}
	dirs, err := t.dirsOf(st)
	if err != nil {
		return err
	}
	for i := range st.Parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.link(st, &st.Parts[i]); err != nil {
			return err
		}
	}
	for _, dir := range dirs {
		if err := t.files.SyncDir(dir); err != nil {
			return err
		}
	}
	if err := t.fillGap(d.Batch); err != nil {
		return err
	}
	return t.writeManifest(d, st)
}

// find checks that a part can be linked, or is in its place already. sink.ErrLost when it is neither.
func (t *Target) find(st *staged, p *part) error {
	full := t.stage(path.Join(st.Dir, p.File))
	if t.fresh[full] {
		return nil
	}
	for _, name := range []string{full, path.Join(t.dir, p.Path)} {
		switch ok, err := t.holds(name, p); {
		case err != nil:
			return err
		case ok:
			return nil
		}
	}
	return fmt.Errorf("part %s: %w", p.Path, sink.ErrLost)
}

// holds reports whether a file has a part's content.
func (t *Target) holds(name string, p *part) (bool, error) {
	f, err := t.files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, p.Size+1))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err == nil && n == p.Size && hex.EncodeToString(h.Sum(nil)) == p.SHA256, err
}

// link gives a part its final name. A file of that name has the same content: the name says so, and find or holds has
// seen it.
func (t *Target) link(st *staged, p *part) error {
	full, final := t.stage(path.Join(st.Dir, p.File)), path.Join(t.dir, p.Path)
	err := t.files.Link(full, final)
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	ok, herr := t.holds(final, p)
	switch {
	case herr != nil:
		return herr
	case ok:
		return nil
	case errors.Is(err, fs.ErrExist):
		return t.fail(CodeConflict, final, "remove the file: no manifest names it", "the file is there with other content than its name says")
	}
	return fmt.Errorf("part %s: %w", p.Path, sink.ErrLost)
}

// dirsOf makes the directories of the parts and returns all whose entries must be made durable: those, and the ones above
// a directory that this process has not seen before.
func (t *Target) dirsOf(st *staged) ([]string, error) {
	var dirs []string
	seen := map[string]bool{}
	add := func(dir string) {
		if !seen[dir] {
			seen[dir] = true
			dirs = append(dirs, dir)
		}
	}
	for i := range st.Parts {
		dir := path.Dir(path.Join(t.dir, st.Parts[i].Path))
		add(dir)
		if t.known[dir] {
			continue
		}
		if err := t.files.MkdirAll(dir); err != nil {
			return nil, err
		}
		for d := dir; !t.known[d]; d = path.Dir(d) {
			t.known[d] = true
			add(path.Dir(d))
		}
	}
	return dirs, nil
}

// writeManifest makes the batch visible. The file is written under a name of this attempt's and linked twice: first to the
// name that carries the digest, which is never taken away again once the batch is visible, then to the one that readers see.
func (t *Target) writeManifest(d *checkpoint.Decision, st *staged) error {
	if _, err := t.files.Stat(t.meta(manifestName(d.Batch))); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, t.raced(d))
	}
	if err := t.dropNotes(d.Batch); err != nil {
		return err
	}
	temp := "." + st.Dir + ".tmp"
	w, err := t.createManifest(temp)
	if err != nil {
		return err
	}
	if isCompaction(d.Batch) {
		err = t.compactInto(w, d.Batch)
	}
	for i := range st.Parts {
		if err == nil {
			err = w.line([]byte(t.entryLine(&st.Parts[i])))
		}
	}
	if err := w.finish(err); err != nil {
		return err
	}
	err = t.files.Link(t.meta(temp), t.meta(noteName(d.Batch, d.Digest)))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	err = t.files.Link(t.meta(temp), t.meta(manifestName(d.Batch)))
	if errors.Is(err, fs.ErrExist) {
		return t.raced(d)
	}
	if err == nil {
		err = t.files.SyncDir(t.meta(""))
	}
	if err != nil {
		return err
	}
	t.log.there[d.Batch], t.log.last, t.log.done = true, d.Batch, d.Batch
	t.log.notes[d.Batch] = []string{d.Digest}
	return t.files.Remove(t.meta(temp))
}

func (t *Target) raced(d *checkpoint.Decision) error {
	return t.conflict(d, "another process has published a batch of that number")
}

// dropNotes removes the digests of earlier attempts at a batch that was never published. They must be gone for good before
// the manifest can be seen.
func (t *Target) dropNotes(id checkpoint.BatchID) error {
	stale := t.log.notes[id]
	if len(stale) == 0 {
		return nil
	}
	for _, digest := range stale {
		if err := t.removeIfThere(t.meta(noteName(id, digest))); err != nil {
			return err
		}
	}
	delete(t.log.notes, id)
	return t.files.SyncDir(t.meta(""))
}

// fillGap gives readers the ids between the newest and the next one, as Spark's ids have no gaps: batches in which this
// sink had no records, or that ran before it was added. Across compactions only the newest two are written, because
// readers take the distance of the newest two for the interval. What an earlier try filled in is the same.
func (t *Target) fillGap(next checkpoint.BatchID) error {
	last := t.log.done
	if next == last+1 {
		return nil
	}
	from := last + 1
	if c := first(next - 1); c > last && isCompaction(c) {
		from = c + 1
		ids := []checkpoint.BatchID{c}
		if p := c - compactInterval; p > last && last >= compactInterval-1 {
			ids = append(ids, p)
		}
		if err := t.fill(ids, func(w *manifestWriter) error { return t.all(last, w.line) }); err != nil {
			return err
		}
	}
	var empty []checkpoint.BatchID
	for id := from; id < next; id++ {
		empty = append(empty, id)
	}
	if err := t.fill(empty, func(*manifestWriter) error { return nil }); err != nil {
		return err
	}
	return t.files.SyncDir(t.meta(""))
}

// fill gives one file the names of all ids.
func (t *Target) fill(ids []checkpoint.BatchID, content func(*manifestWriter) error) error {
	if len(ids) == 0 {
		return nil
	}
	const temp = ".fill.tmp"
	w, err := t.createManifest(temp)
	if err != nil {
		return err
	}
	if err := w.finish(content(w)); err != nil {
		return err
	}
	for _, id := range ids {
		if err := t.files.Link(t.meta(temp), t.meta(manifestName(id))); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		t.log.there[id] = true
	}
	return t.files.Remove(t.meta(temp))
}

// dropStage removes a staging directory. What remains is swept later.
func (t *Target) dropStage(st *staged) {
	for i := range st.Parts {
		name := t.stage(path.Join(st.Dir, st.Parts[i].File))
		delete(t.fresh, name)
		_ = t.files.Remove(name)
	}
	_ = t.files.Remove(t.stage(st.Dir))
}

// Abort drops what was staged for a batch by any attempt.
func (t *Target) Abort(_ context.Context, batch checkpoint.BatchID) error {
	infos, err := t.files.List(t.stage(""))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return t.wrap("drop staged files", err)
	}
	for _, i := range infos {
		f := stageForm.FindStringSubmatch(i.Name)
		if f == nil || !i.Dir || len(f[1]) > 18 || parseID(f[1]) != batch {
			continue
		}
		if err := t.removeStage(i.Name); err != nil {
			return t.wrap("drop staged files", err)
		}
	}
	return nil
}

// removeStage removes a staging directory and the parts in it.
func (t *Target) removeStage(name string) error {
	infos, err := t.files.List(t.stage(name))
	if err != nil {
		return err
	}
	for _, i := range infos {
		if err := t.removeIfThere(t.stage(path.Join(name, i.Name))); err != nil {
			return err
		}
		delete(t.fresh, t.stage(path.Join(name, i.Name)))
	}
	return t.removeIfThere(t.stage(name))
}
