package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// SourceNumber returns the number of a source. A name that no plan knows gets the next one, for as long as this Log is
// open; the next plan makes it last. Sources are given their numbers in the order of the calls.
func (l *Log) SourceNumber(name string) int {
	if i := slices.Index(l.names, name); i >= 0 {
		return i
	}
	l.names = append(l.names, name)
	return len(l.names) - 1
}

// SourceDir returns the directory sources/<number> of a source, for what it must remember, and makes it if need be.
// What a source writes there before its first plan may be gone at the next start.
func (l *Log) SourceDir(name string) (string, error) {
	dir := path.Join(l.dir, sourcesDir, strconv.Itoa(l.SourceNumber(name)))
	if err := l.files.MkdirAll(dir); err != nil {
		return "", ioError("make the directory", dir, err)
	}
	if err := l.files.SyncDir(path.Dir(dir)); err != nil {
		return "", ioError("sync", sourcesDir, err)
	}
	return dir, nil
}

// dropUnplanned removes what is there for numbers that no plan has given: the next source to get such a number may be
// another one.
func (l *Log) dropUnplanned(ctx context.Context) error {
	infos, err := l.objects.List(ctx, sourcesDir)
	if err != nil {
		return ioError("list", sourcesDir, err)
	}
	for _, e := range infos {
		n, ok := parseID(e.Name)
		if !ok || !e.Dir || int(n) < l.planned {
			continue
		}
		if err := removeTree(l.files, path.Join(l.dir, sourcesDir, e.Name), maxSourceDepth); err != nil {
			return ioError("remove", path.Join(sourcesDir, e.Name), err)
		}
	}
	return nil
}

// maxSourceDepth bounds how deep a source's directory may be nested.
const maxSourceDepth = 8

var errTooDeep = errors.New("directories nested too deep")

// removeTree removes a directory with all that is in it. Links are removed and not followed.
func removeTree(files durable.Files, dir string, depth int) error {
	if depth == 0 {
		return &fs.PathError{Op: "remove", Path: dir, Err: errTooDeep}
	}
	infos, err := files.List(dir)
	if err != nil {
		return err
	}
	for _, e := range infos {
		name := path.Join(dir, e.Name)
		if e.Dir {
			err = removeTree(files, name, depth-1)
		} else {
			err = files.Remove(name)
		}
		if err != nil {
			return err
		}
	}
	if err := files.SyncDir(dir); err != nil {
		return err
	}
	return files.Remove(dir)
}
