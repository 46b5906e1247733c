package files

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/rows/partition"
)

const (
	// keepManifests is how many batches' manifest files stay beside the compactions, as in Spark.
	keepManifests = 100
	// maxSweep bounds the memory of a sweep: 16 bytes or so a file. A larger table is not swept.
	maxSweep = 8 << 20
)

// sweeper is when what was last tidied.
type sweeper struct {
	next    time.Time
	cleaned checkpoint.BatchID // the compaction after which the log was last cleaned
}

// Sealed tidies: old manifest files after each compaction; staging directories, orphans and dropped data once in a grace
// time. Only what lies below the sealed batch and is older than the grace time is touched.
func (t *Target) Sealed(ctx context.Context, batch checkpoint.BatchID) error {
	err := t.cleanLog()
	if now := t.now(); err == nil && !now.Before(t.sweeps.next) {
		t.sweeps.next = now.Add(t.cfg.Grace)
		err = t.sweep(ctx, batch, now.Add(-t.cfg.Grace))
	}
	return t.wrap("tidy the sink's directory", err)
}

// cleanLog removes manifest files that the newest compactions have made superfluous, and their digests, but never the
// newest digest.
func (t *Target) cleanLog() error {
	last := t.log.done
	if !isCompaction(last) || t.sweeps.cleaned == last {
		return nil
	}
	t.sweeps.cleaned = last
	oldest := last + 1 - keepManifests
	keep := oldest - oldest%compactInterval - 1
	for id := range t.log.notes {
		if id >= keep || id == last {
			continue
		}
		for _, digest := range t.log.notes[id] {
			if err := t.removeIfThere(t.meta(noteName(id, digest))); err != nil {
				return err
			}
		}
		delete(t.log.notes, id)
	}
	for id := range t.log.there {
		if id >= keep {
			continue
		}
		for _, name := range []string{manifestName(id), "." + manifestName(id) + ".crc"} {
			if err := t.removeIfThere(t.meta(name)); err != nil {
				return err
			}
		}
		delete(t.log.there, id)
	}
	return nil
}

// compactInto writes the entries of all batches before id, less those that retention drops. What is dropped is noted
// first, so that its data outlives readers of the older manifest by the grace time.
func (t *Target) compactInto(w *manifestWriter, id checkpoint.BatchID) error {
	if t.cfg.Retention <= 0 {
		return t.all(id-1, w.line)
	}
	cutoff := t.now().Add(-t.cfg.Retention).UnixMilli()
	d := &dropList{t: t, name: t.stage(fmt.Sprintf("dropped-%d", id))}
	err := t.all(id-1, func(line []byte) error {
		e, err := parseEntry(line)
		if err != nil {
			return err
		}
		if e.ModificationTime >= cutoff {
			return w.line(line)
		}
		return d.add(e.Path)
	})
	if closeErr := d.close(); err == nil {
		err = closeErr
	}
	return err
}

// dropList is a file of the paths that one compaction dropped. It is not synced: without it the data is swept as orphans.
type dropList struct {
	t    *Target
	name string
	f    durable.File
	buf  *bufio.Writer
}

func (d *dropList) add(uri string) error {
	if d.f == nil {
		if err := d.t.removeIfThere(d.name); err != nil {
			return err
		}
		f, err := d.t.files.Create(d.name)
		if err != nil {
			return err
		}
		d.f, d.buf = f, bufio.NewWriter(f)
	}
	_, err := d.buf.WriteString(uri + "\n")
	return err
}

func (d *dropList) close() error {
	if d.f == nil {
		return nil
	}
	err := d.buf.Flush()
	if closeErr := d.f.Close(); err == nil {
		err = closeErr
	}
	return err
}

var dropForm = regexp.MustCompile(`^dropped-([0-9]{1,18})$`)

// sweep removes what no manifest and no pending list names: left-overs of batches below sealed, last changed before old.
func (t *Target) sweep(ctx context.Context, sealed checkpoint.BatchID, old time.Time) error {
	infos, err := t.files.List(t.stage(""))
	if err != nil {
		return err
	}
	s := &sweep{t: t, sealed: sealed, old: old, named: map[uint64]struct{}{}}
	var due []string
	for _, i := range infos {
		drop, stage := dropForm.FindStringSubmatch(i.Name), stageForm.FindStringSubmatch(i.Name)
		switch {
		case stage != nil && i.Dir && len(stage[1]) <= 18 && parseID(stage[1]) < sealed && i.ModTime.Before(old):
			err = t.removeStage(i.Name)
		case drop != nil && i.ModTime.Before(old) && parseID(drop[1]) <= t.log.done:
			due = append(due, t.stage(i.Name))
		case drop != nil:
			err = s.nameDropped(t.stage(i.Name))
		}
		if err != nil {
			return err
		}
	}
	if err := t.all(t.log.done, func(line []byte) error {
		e, err := parseEntry(line)
		if err != nil {
			return err
		}
		return s.name(e.Path)
	}); err != nil {
		return err
	}
	if err := s.tempManifests(); err != nil || len(s.named) >= maxSweep {
		return err
	}
	if err := partition.Walk(ctx, t.files, t.dir, len(t.partition), s.remove); err != nil {
		return err
	}
	for _, name := range due {
		if err := t.removeIfThere(name); err != nil {
			return err
		}
	}
	return nil
}

// sweep is one walk over the data.
type sweep struct {
	t      *Target
	sealed checkpoint.BatchID
	old    time.Time
	named  map[uint64]struct{} // hashes of relative paths that stay
}

var tempForm = regexp.MustCompile(`^\.([0-9]{1,18})-[0-9a-f]{8}\.tmp$`)

// tempManifests removes manifest files under the names of attempts that a crash cut off.
func (s *sweep) tempManifests() error {
	infos, err := s.t.files.List(s.t.meta(""))
	if err != nil {
		return err
	}
	for _, i := range infos {
		f := tempForm.FindStringSubmatch(i.Name)
		if f == nil || parseID(f[1]) >= s.sealed || !i.ModTime.Before(s.old) {
			continue
		}
		if err := s.t.removeIfThere(s.t.meta(i.Name)); err != nil {
			return err
		}
	}
	return nil
}

func (s *sweep) name(uri string) error {
	p, err := pathOfURI(uri)
	if err != nil {
		return fmt.Errorf("%w: %w", errManifest, err)
	}
	if rel, ok := strings.CutPrefix(p, s.t.dir+"/"); ok && len(s.named) < maxSweep {
		s.named[xxh3.HashString(rel)] = struct{}{}
	}
	return nil
}

func (s *sweep) nameDropped(list string) error {
	f, err := s.t.files.Open(list)
	if err != nil {
		return err
	}
	sc := bufio.NewScanner(io.Reader(f))
	for sc.Scan() && err == nil {
		err = s.name(sc.Text())
	}
	return errors.Join(err, sc.Err(), f.Close())
}

// remove removes what is an orphan.
func (s *sweep) remove(rel string, i durable.Info) error {
	if !s.orphan(rel, i) {
		return nil
	}
	return s.t.removeIfThere(path.Join(s.t.dir, rel))
}

func (s *sweep) orphan(rel string, i durable.Info) bool {
	f := partForm.FindStringSubmatch(i.Name)
	if f == nil || f[1] != s.t.tag || len(f[2]) > 18 || parseID(f[2]) >= s.sealed || !i.ModTime.Before(s.old) {
		return false
	}
	_, stays := s.named[xxh3.HashString(rel)]
	return !stays
}
