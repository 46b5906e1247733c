package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
)

const (
	// maxDepth ends the descent of `**` and of partition folders.
	maxDepth = 32
	// trustAge is how long before a listing a directory must have changed last for its time stamp to tell of every
	// later change, whatever the grain of the file system's clock.
	trustAge = 5 * time.Second
	// relistEvery is how long unchanged directory time stamps are believed: some file systems keep none, and a file that
	// grew does not touch its directory.
	relistEvery = 10 * time.Second
)

// found is a file as a listing saw it.
type found struct {
	path  string
	size  int64
	mtime time.Time
	// watched is when the source first saw this size and time stamp, if the time stamp lies in the future.
	watched time.Time
}

// lister finds the files of one configured path.
type lister struct {
	files durable.Files
	root  string   // the fixed part of the path
	parts []string // the rest of a glob, by path element

	dirs map[string]time.Time // directories of the last walk, with their modification times
	last time.Time            // when the last walk began; zero: it is not to be trusted
}

func newLister(files durable.Files, pattern string) (*lister, error) {
	pattern = path.Clean(pattern)
	l := &lister{files: files, root: pattern}
	elems := strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	for i, e := range elems {
		if !strings.ContainsAny(e, `*?[`) {
			continue
		}
		l.root = "/" + strings.Join(elems[:i], "/")
		l.parts = elems[i:]
		break
	}
	for _, p := range l.parts {
		if strings.ContainsAny(p, "{}") {
			return nil, errors.New("path: braces are not supported; use * and ?, or several sources")
		}
		if _, err := path.Match(p, "x"); err != nil {
			return nil, fmt.Errorf("path: %q is not a pattern", p)
		}
	}
	return l, nil
}

// unchanged reports whether nothing can have come since the last walk.
func (l *lister) unchanged(now time.Time) bool {
	if l.last.IsZero() || now.Sub(l.last) >= relistEvery || now.Before(l.last) {
		return false
	}
	for dir, mtime := range l.dirs {
		info, err := l.files.Stat(dir)
		if err != nil || !info.ModTime.Equal(mtime) {
			return false
		}
	}
	return true
}

// refresh walks unless nothing can have changed.
func (l *lister) refresh(ctx context.Context, now time.Time) (all []found, fresh bool, err error) {
	if l.unchanged(now) {
		return nil, false, nil
	}
	l.last = time.Time{}
	all, err = l.walk(ctx)
	if err != nil {
		return nil, false, err
	}
	trusted := true
	for _, mtime := range l.dirs {
		trusted = trusted && !mtime.IsZero() && now.Sub(mtime) >= trustAge
	}
	if trusted {
		l.last = now
	}
	return all, true, nil
}

// walk returns all files in byte order of path.
func (l *lister) walk(ctx context.Context) ([]found, error) {
	w := walker{ctx: ctx, files: l.files, dirs: map[string]time.Time{}}
	info, err := l.files.Stat(l.root)
	if errors.Is(err, fs.ErrNotExist) && len(l.parts) == 0 {
		return nil, fault.New(CodeMissing, l.root, err, "make the directory or mend the path of the source")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unreadable(l.root, err)
	}
	switch {
	case err != nil:
		err = nil // a glob whose fixed part is not there yet
	case info.Dir && len(l.parts) == 0:
		err = w.folder(l.root, 0)
	case info.Dir:
		err = w.match(l.root, l.parts, 0)
	case info.Regular && len(l.parts) == 0:
		w.add(l.root, info)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(w.out, func(a, b found) int { return strings.Compare(a.path, b.path) })
	w.out = slices.CompactFunc(w.out, func(a, b found) bool { return a.path == b.path })
	l.dirs = w.dirs
	return w.out, nil
}

type walker struct {
	ctx   context.Context
	files durable.Files
	dirs  map[string]time.Time
	out   []found
}

// skipped reports whether a name is hidden or not finished, by Spark's and Hadoop's habit.
func skipped(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") && !strings.Contains(name, "=") ||
		strings.HasSuffix(name, ".tmp")
}

func (w *walker) add(name string, info durable.Info) {
	if info.Size > 0 {
		w.out = append(w.out, found{path: name, size: info.Size, mtime: info.ModTime})
	}
}

// entries lists a directory, and notes when it changed last before it is listed. One that has just gone is empty.
func (w *walker) entries(dir string) ([]durable.Info, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	info, err := w.files.Stat(dir)
	var infos []durable.Info
	if err == nil {
		w.dirs[dir] = info.ModTime
		infos, err = w.files.List(dir)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unreadable(dir, err)
	}
	return infos, nil
}

// folder takes a directory's files and descends into partition folders.
func (w *walker) folder(dir string, depth int) error {
	infos, err := w.entries(dir)
	if err != nil {
		return err
	}
	for _, info := range infos {
		if skipped(info.Name) {
			continue
		}
		name := path.Join(dir, info.Name)
		if info.Dir {
			if strings.Contains(info.Name, "=") && depth < maxDepth {
				if err := w.folder(name, depth+1); err != nil {
					return err
				}
			}
			continue
		}
		if err := w.file(name, info); err != nil {
			return err
		}
	}
	return nil
}

// file takes a regular file, or what a link leads to. Sockets, pipes and links that lead nowhere are no input.
func (w *walker) file(name string, info durable.Info) error {
	if info.Regular {
		w.add(name, info)
		return nil
	}
	target, err := w.files.Stat(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) {
			return nil
		}
		return unreadable(name, err)
	}
	if target.Regular {
		w.add(name, target)
	}
	return nil
}

// match takes what a glob's remaining elements match below dir.
func (w *walker) match(dir string, parts []string, depth int) error {
	if parts[0] == "**" {
		return w.deep(dir, parts, depth)
	}
	infos, err := w.entries(dir)
	if err != nil {
		return err
	}
	for _, info := range infos {
		ok, err := path.Match(parts[0], info.Name)
		if err != nil {
			return fmt.Errorf("match %q: %w", parts[0], err)
		}
		if !ok || skipped(info.Name) {
			continue
		}
		name := path.Join(dir, info.Name)
		switch {
		case len(parts) > 1 && info.Dir:
			err = w.match(name, parts[1:], depth+1)
		case len(parts) > 1:
		case info.Dir:
			err = w.folder(name, depth+1)
		default:
			err = w.file(name, info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deep matches `**`: no directory or any number of them.
func (w *walker) deep(dir string, parts []string, depth int) error {
	rest := parts[1:]
	if len(rest) == 0 {
		rest = []string{"*"}
	}
	if err := w.match(dir, rest, depth); err != nil {
		return err
	}
	if depth >= maxDepth {
		return nil
	}
	infos, err := w.entries(dir)
	if err != nil {
		return err
	}
	for _, info := range infos {
		if info.Dir && !skipped(info.Name) {
			if err := w.deep(path.Join(dir, info.Name), parts, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
