package job

import (
	"fmt"
	"path/filepath"
	"strings"
)

// placed is a directory that a part of the job has for itself, or reads.
type placed struct {
	what  string // "sink lake"
	at    string // path in the job file
	dir   string
	reads bool
}

// paths demands that the checkpoint and the sinks keep out of each other's way, and that no source reads them. It goes by
// the text of the paths; links are not followed.
func (c *checker) paths(j *Job, spec *value) {
	var all []placed
	if v := spec.at("checkpoint"); v.good() {
		all = append(all, placed{"the checkpoint", v.path, v.text, false})
	}
	for i, s := range spec.at("sinks").items {
		for _, kind := range []string{"files", "delta"} {
			if p := s.at(kind).at("path"); p.good() && !isGlob(p.text) {
				all = append(all, placed{"sink " + j.Sinks[i].Name, p.path, p.text, false})
			}
		}
	}
	for i, s := range spec.at("sources").items {
		for _, kind := range []string{"files", "delta"} {
			if p := s.at(kind).at("path"); p.good() {
				all = append(all, placed{"source " + j.Sources[i].Name, p.path, p.text, true})
			}
		}
	}
	for i, a := range all {
		for _, b := range all[:i] {
			c.overlap(b, a)
		}
	}
}

func (c *checker) overlap(a, b placed) {
	switch {
	case a.reads && b.reads:
	case b.reads && isGlob(b.dir):
		if globReads(b.dir, a.dir) {
			c.wrongAt(b.at, CodeConflict, fmt.Sprintf("%s would read what %s writes (%s)", b.what, a.what, c.show(a.dir)), "")
		}
	case a.dir == b.dir:
		c.wrongAt(b.at, CodeConflict, fmt.Sprintf("%s and %s have the same directory", b.what, a.what), "")
	case inside(a.dir, b.dir):
		c.wrongAt(b.at, CodeConflict, fmt.Sprintf("%s lies inside the directory of %s (%s)", b.what, a.what, c.show(a.dir)), "")
	case inside(b.dir, a.dir):
		c.wrongAt(b.at, CodeConflict, fmt.Sprintf("%s holds the directory of %s (%s)", b.what, a.what, c.show(a.dir)), "")
	}
}

// show writes a path as a person would in the job file.
func (c *checker) show(path string) string {
	if rel, err := filepath.Rel(c.env.Dir, path); err == nil && !strings.HasPrefix(rel, "..") {
		return cut(rel)
	}
	return cut(path)
}

// inside reports whether path lies below dir.
func inside(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != "." && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

func isGlob(path string) bool { return strings.ContainsAny(path, "*?[") }

func badGlob(path string) string {
	if !isGlob(path) {
		return ""
	}
	for _, part := range strings.Split(filepath.ToSlash(path), "/") {
		if strings.Contains(part, "**") && part != "**" {
			return "** stands alone between two slashes, for any number of folders"
		}
		if _, err := filepath.Match(part, ""); err != nil {
			return fmt.Sprintf("%q is no pattern: a [ without ]", cut(part))
		}
	}
	return ""
}

// globReads reports whether a pattern can match a file inside dir or at any depth below it. A pattern without ** reaches
// one depth only, so that ./*.jsonl does not read ./out/part.jsonl.
func globReads(pattern, dir string) bool {
	parts := strings.Split(filepath.ToSlash(pattern), "/")
	for i, d := range strings.Split(filepath.ToSlash(dir), "/") {
		if parts[i] == "**" {
			return true
		}
		if i == len(parts)-1 {
			return false
		}
		if ok, err := filepath.Match(parts[i], d); err != nil || !ok {
			return false
		}
	}
	return true
}
