package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/sink"
)

const (
	ownerName    = "_wasmill.json"
	ownerVersion = 1
	maxOwner     = 64 << 10
)

// owner is the content of _spark_metadata/_wasmill.json.
type owner struct {
	Version int    `json:"version"`
	Query   string `json:"query"`
	Sink    string `json:"sink"`
	Job     string `json:"job"`
	// Path is the sink's directory when it was made: the manifest's entries begin with it.
	Path string `json:"path"`
}

// checkForeign refuses a directory with files in it that no owner file claims. A directory that is being made, with
// nothing but our own folders, is taken over.
func (t *Target) checkForeign(o sink.Owner) error {
	if _, err := t.files.Stat(t.meta(ownerName)); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, dir := range []string{t.dir, t.meta("")} {
		infos, err := t.files.List(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, i := range infos {
			if i.Name != metaName && i.Name != stageName && !strings.HasPrefix(i.Name, ".") {
				return t.unclaimed(o, path.Join(dir, i.Name))
			}
		}
	}
	return nil
}

// unclaimed says whose files lie in a directory without an owner file, of which name is one: the names of parts tell.
func (t *Target) unclaimed(o sink.Owner, name string) error {
	part, err := t.findPart("", len(t.partition))
	if err != nil {
		return err
	}
	f := partForm.FindStringSubmatch(path.Base(part))
	switch {
	case f == nil:
		return t.fail(CodeForeign, name, "give the sink an empty or a new directory", "the sink's directory holds files that Wasmill did not write")
	case strings.HasPrefix(o.Query, f[1]):
		return t.fail(CodeDamaged, t.meta(ownerName), "restore the whole folder "+metaName+" from a backup; or "+beginAnew,
			"the manifest is gone or has lost its owner file, but the directory holds files of this very query, as %s: which of them count cannot be told", part)
	}
	return t.fail(CodeOtherQuery, path.Join(t.dir, part), "give the sink an empty or a new directory",
		"the directory has no manifest, but files of the query whose id begins with %s; this is %s", f[1], queryWords(o.Query))
}

// findPart returns the first part in a directory and, depth levels down, the partitions in it; "" when there is none.
func (t *Target) findPart(dir string, depth int) (string, error) {
	infos, err := t.files.List(path.Join(t.dir, dir))
	if err != nil {
		return "", err
	}
	for _, i := range infos {
		rel := path.Join(dir, i.Name)
		switch {
		case i.Dir && depth > 0 && strings.Contains(i.Name, "="):
			if found, err := t.findPart(rel, depth-1); err != nil || found != "" {
				return found, err
			}
		case i.Regular && partForm.MatchString(i.Name):
			return rel, nil
		}
	}
	return "", nil
}

// claim writes the owner file, or checks the one that is there.
func (t *Target) claim(o sink.Owner) error {
	err := t.checkOwner(o)
	if errors.Is(err, fs.ErrNotExist) {
		return t.writeOwner(t.meta(ownerName), owner{Version: ownerVersion, Query: o.Query, Sink: t.cfg.Sink, Job: o.Job, Path: t.dir})
	}
	return err
}

// checkOwner holds the owner file against an owner. fs.ErrNotExist: there is none.
func (t *Target) checkOwner(o sink.Owner) error {
	name := t.meta(ownerName)
	data, err := durable.ReadFile(t.files, name, maxOwner)
	if err != nil {
		return err
	}
	var found owner
	if err := json.Unmarshal(data, &found); err != nil || found.Version < 1 {
		return t.fail(CodeDamaged, name, restoreFile,
			"the owner file cannot be read: %v", err)
	}
	switch {
	case found.Version > ownerVersion:
		return t.fail(CodeNewer, name, "run the newer version of wasmill",
			"a newer version wrote this directory: format %d, this program knows %d", found.Version, ownerVersion)
	case found.Query != o.Query:
		return t.fail(CodeOtherQuery, t.dir, "give a sink that begins a directory of its own, and one that goes on the directory it has; or go on with the checkpoint of the other query",
			"the directory belongs to query %s (job %s); this is %s", found.Query, found.Job, queryWords(o.Query))
	case found.Sink != t.cfg.Sink:
		return t.fail(CodeOtherSink, t.dir, "give each sink a directory of its own; a sink keeps its name",
			"the directory belongs to sink %s of this job; this is sink %s", found.Sink, t.cfg.Sink)
	case found.Path != t.dir:
		return t.fail(CodeMoved, t.dir, "move it back, or put its old path into the job file; or "+beginAnew,
			"the directory was made as %s, and its manifest names all files by that path", found.Path)
	}
	return nil
}

func queryWords(query string) string {
	if query == "" {
		return "a new query"
	}
	return "query " + query
}

func (t *Target) writeOwner(name string, o owner) error {
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	temp := t.meta("._wasmill.json.tmp")
	if err := t.removeIfThere(temp); err != nil {
		return err
	}
	if err := durable.WriteFile(t.files, temp, append(data, '\n')); err != nil {
		return err
	}
	if err := t.files.Link(temp, name); err != nil {
		return fmt.Errorf("claim the directory: %w", err)
	}
	if err := t.files.SyncDir(t.meta("")); err != nil {
		return err
	}
	return t.files.Remove(temp)
}

func (t *Target) removeIfThere(name string) error {
	if err := t.files.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
