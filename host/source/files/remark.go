package files

import (
	"errors"
	"io/fs"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

var _ source.Remarker = (*Source)(nil)

// Remark says that the configured path has never matched a file.
func (s *Source) Remark(at checkpoint.Position) string {
	if !at.IsZero() || !s.unmatched {
		return ""
	}
	return s.nothing()
}

// remark warns once that the path matches no file, and none was ever read.
func (s *Source) remark(all []found) {
	s.unmatched = len(all) == 0 && s.seen.pos.log < 0
	if s.unmatched {
		s.warnOnce("unmatched", errors.New(s.nothing()))
	}
}

func (s *Source) nothing() string {
	text := "no file matches " + s.cfg.Path + " so far"
	if len(s.lister.parts) == 0 {
		text = "there is no file in " + s.cfg.Path + " so far"
	}
	if _, err := s.cfg.Files.Stat(s.lister.root); errors.Is(err, fs.ErrNotExist) {
		return text + ": " + s.lister.root + " is not there"
	}
	return text + " (empty files, and names that begin with . or _ or end with .tmp, are none)"
}
