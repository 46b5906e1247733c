package apart

import (
	"context"
	"fmt"
	"sync"

	"github.com/wasmill/wasmill/host/sandbox"
)

// maxKnown bounds the verdicts in memory.
const maxKnown = 4096

// Judge is a sandbox.Apart that compiles in child processes, at most one at a time.
type Judge struct {
	config        Config
	circumstances string
	turn          chan struct{} // holds the one token of who may have a child

	mu    sync.Mutex
	known map[string]*verdict // what no file holds
	swept map[string]bool     // folders that were looked through for what a killed process left
}

// New makes a judge. It starts nothing.
func New(config Config) *Judge {
	return &Judge{
		config: config, circumstances: circumstances(config.Limits), turn: make(chan struct{}, 1),
		known: map[string]*verdict{}, swept: map[string]bool{},
	}
}

var _ sandbox.Apart = (*Judge)(nil)

// Compile has the work done by a child, unless there is a verdict on it.
func (j *Judge) Compile(ctx context.Context, w sandbox.Work) error {
	s := &store{files: j.config.Files, dir: w.CacheDir, key: key(j.circumstances, &w), code: w.Kind == sandbox.KindCompiler}
	if v, file := j.look(s); v != nil {
		return v.fault(w.Name, file, j.config.Limits)
	}
	select {
	case j.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("compile %s: %w", w.Name, ctx.Err())
	}
	defer func() { <-j.turn }()
	if v, file := j.look(s); v != nil { // another one has waited for the same
		return v.fault(w.Name, file, j.config.Limits)
	}
	v, file, err := j.judge(ctx, s, &w)
	if err != nil {
		return err
	}
	return v.fault(w.Name, file, j.config.Limits)
}

// look looks for a verdict that still holds, and for its file.
func (j *Judge) look(s *store) (v *verdict, file string) {
	if v := s.read(); v != nil {
		return v, s.file()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.known[s.key], ""
}

// judge has a child compile the work, and keeps what came of it.
func (j *Judge) judge(ctx context.Context, s *store, w *sandbox.Work) (v *verdict, file string, err error) {
	j.sweep(s)
	st := s.stage()
	defer st.close()
	if v, err = j.run(ctx, w, st.path()); err != nil {
		return nil, "", err
	}
	if s.keep(v, st) {
		return v, s.file(), nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.known) >= maxKnown {
		clear(j.known)
	}
	j.known[s.key] = v
	return v, "", nil
}

func (j *Judge) sweep(s *store) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.swept[s.dir] {
		j.swept[s.dir] = true
		s.sweep()
	}
}
