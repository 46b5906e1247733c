package apart

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// Folders below the folder of compiled code.
const (
	verdicts    = "verdicts"
	stagePrefix = "stage-" // where a child works, held by a lock while its parent lives
	stageLock   = "lock"
)

// store keeps the verdict on one piece of work. Without a folder it keeps nothing. What it cannot read is not there, and
// what it cannot write costs time at the next start.
type store struct {
	files durable.Files
	dir   string
	key   string
	code  bool // a verdict that the work is fine comes with an entry of compiled code
}

func (s *store) file() string { return filepath.Join(s.dir, verdicts, s.key) }

// read returns the verdict, if there is one of this user's own making whose compiled code is there as it was written.
func (s *store) read() *verdict {
	if s.dir == "" || !private(s.file()) {
		return nil
	}
	text, err := durable.ReadFile(s.files, s.file(), maxVerdict)
	if err != nil {
		return nil
	}
	v, err := decode(text)
	if err != nil {
		return nil
	}
	if v.Outcome != fine || !s.code {
		return v
	}
	entry := filepath.Join(s.dir, filepath.FromSlash(v.Entry))
	if digest, err := s.digest(entry); v.Entry == "" || err != nil || digest != v.Digest {
		return nil
	}
	return v
}

// private says whether a file is a regular one that only this user can use.
func private(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 == 0 && ours(info)
}

func (s *store) digest(name string) (digest string, err error) {
	f, err := s.files.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// keep makes the code that was compiled part of the cache and then writes the verdict, durably. It reports whether the
// verdict will be found.
func (s *store) keep(v *verdict, st *stage) bool {
	if s.dir == "" || v.passing {
		return false
	}
	if v.Outcome == fine && s.code {
		if err := s.adopt(v, st); err != nil {
			return false
		}
	}
	return s.write(v) == nil
}

// adopt moves the one entry that a child has made to its place in the cache.
func (s *store) adopt(v *verdict, st *stage) error {
	entry, err := st.entry()
	if err != nil {
		return err
	}
	from, to := filepath.Join(st.path(), entry), filepath.Join(s.dir, entry)
	if v.Digest, err = s.digest(from); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return fmt.Errorf("make %s: %w", filepath.Dir(to), err)
	}
	if err := s.files.Rename(from, to); err != nil {
		return err
	}
	v.Entry = filepath.ToSlash(entry)
	return s.files.SyncDir(filepath.Dir(to))
}

// write writes the verdict under its name, in whole or not at all.
func (s *store) write(v *verdict) error {
	text, err := v.encode()
	if err != nil {
		return err
	}
	dir := filepath.Dir(s.file())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	temp := durable.TempName(s.file(), durable.Unique())
	err = durable.WriteFile(s.files, temp, text)
	if err == nil {
		err = os.Chmod(temp, 0o600)
	}
	if err == nil {
		err = s.files.Rename(temp, s.file())
	}
	if err != nil {
		return errors.Join(err, s.files.Remove(temp))
	}
	return s.files.SyncDir(dir)
}

// stage is the folder that one child leaves its code in. It has no path where there is nothing to keep.
type stage struct {
	files durable.Files
	dir   string
	lock  io.Closer
}

// stage makes a folder for a child. One that cannot be made is no stage: then the code is compiled again by the engine.
func (s *store) stage() *stage {
	st := &stage{files: s.files}
	if s.dir == "" || !s.code {
		return st
	}
	dir, err := filepath.Abs(filepath.Join(s.dir, stagePrefix+durable.Unique()))
	if err != nil || os.Mkdir(dir, 0o700) != nil {
		return st
	}
	if st.lock, err = s.files.Lock(filepath.Join(dir, stageLock), "compile"); err != nil {
		removeAll(s.files, dir)
		return st
	}
	st.dir = dir
	return st
}

func (st *stage) path() string { return st.dir }

// entry is the name of the one entry below the folder.
func (st *stage) entry() (string, error) {
	found := ""
	engines, err := st.files.List(st.dir)
	if err != nil {
		return "", err
	}
	for _, engine := range engines {
		if !engine.Dir {
			continue
		}
		entries, err := st.files.List(filepath.Join(st.dir, engine.Name))
		if err != nil {
			return "", err
		}
		for _, e := range entries {
			if found != "" || !e.Regular {
				return "", fmt.Errorf("%s holds more than one entry", st.dir)
			}
			found = filepath.Join(engine.Name, e.Name)
		}
	}
	if !entryName.MatchString(filepath.ToSlash(found)) {
		return "", fmt.Errorf("%s holds no entry of compiled code", st.dir)
	}
	return found, nil
}

// close removes the folder with what is left in it.
func (st *stage) close() {
	if st.dir == "" {
		return
	}
	removeAll(st.files, st.dir)
	_ = st.lock.Close() // it is gone already
}

// sweep removes the folders of processes that are no more.
func (s *store) sweep() {
	if s.dir == "" {
		return
	}
	list, err := s.files.List(s.dir)
	if err != nil {
		return // the next start looks again
	}
	for _, e := range list {
		if !e.Dir || !strings.HasPrefix(e.Name, stagePrefix) {
			continue
		}
		dir := filepath.Join(s.dir, e.Name)
		if lock, err := s.files.Lock(filepath.Join(dir, stageLock), "sweep"); err == nil {
			removeAll(s.files, dir)
			_ = lock.Close() // it is gone already
		}
	}
}

// removeAll removes a folder of two levels. What cannot be removed stays: it is in nobody's way.
func removeAll(files durable.Files, dir string) {
	list, err := files.List(dir)
	if err != nil {
		return
	}
	for _, e := range list {
		if e.Dir {
			removeAll(files, filepath.Join(dir, e.Name))
			continue
		}
		_ = files.Remove(filepath.Join(dir, e.Name))
	}
	_ = files.Remove(dir)
}
