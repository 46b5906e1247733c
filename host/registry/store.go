package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows/confluent"
)

const (
	// unknownFor is how long an id that the registry does not know is not asked for again: records with wrong ids come in
	// crowds, and each would be a request.
	unknownFor = 10 * time.Second
	// maxUnknown bounds how many such ids are remembered.
	maxUnknown = 10_000
	// maxKept bounds a file.
	maxKept = 4 * MaxSchema
	// fileVersion is that of the form of files.
	fileVersion = 1
)

// StoreConfig says where a store asks and keeps.
type StoreConfig struct {
	Client *Client
	Files  durable.Files
	// Dir takes the files. It is made when it is first written to.
	Dir string
	// ReadOnly writes nothing, and takes what is kept without asking whether the registry still says so.
	ReadOnly bool
	// Warn takes what is worth a word and stops nothing. It may be nil.
	Warn  func(error)
	Clock func() time.Time
}

// Store finds schemas, by what is kept first. It implements confluent.Finder and may be used by several goroutines.
type Store struct {
	cfg StoreConfig
	// turn lets one goroutine at a time ask and write; the others wait for what it finds.
	turn    chan struct{}
	mu      sync.RWMutex
	found   map[string]*confluent.Schema
	unknown map[string]lookedUp
}

type lookedUp struct {
	at  time.Time
	err error
}

var _ confluent.Finder = (*Store)(nil)

// NewStore returns a store. It reads and asks for nothing.
func NewStore(cfg StoreConfig) *Store {
	if cfg.Warn == nil {
		cfg.Warn = func(error) {}
	}
	return &Store{cfg: cfg, turn: make(chan struct{}, 1), found: map[string]*confluent.Schema{}, unknown: map[string]lookedUp{}}
}

// Close gives up connections to the registry.
func (s *Store) Close() { s.cfg.Client.Close() }

// Schema returns the schema with an id. An error that wraps confluent.ErrUnknown says that there is none.
func (s *Store) Schema(ctx context.Context, id int32) (*confluent.Schema, error) {
	return s.get(ctx, strconv.Itoa(int(id)), func(ctx context.Context) (*confluent.Schema, error) { return s.cfg.Client.ByID(ctx, id) })
}

// ByGUID returns the schema with a GUID, as Schema does.
func (s *Store) ByGUID(ctx context.Context, guid string) (*confluent.Schema, error) {
	return s.get(ctx, "guid-"+guid, func(ctx context.Context) (*confluent.Schema, error) { return s.cfg.Client.ByGUID(ctx, guid) })
}

func (s *Store) get(ctx context.Context, name string, ask asker) (*confluent.Schema, error) {
	if found, err := s.known(name); found != nil || err != nil {
		return found, err
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	if found, err := s.known(name); found != nil || err != nil {
		return found, err
	}
	found, err := s.find(ctx, name, ask)
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, confluent.ErrUnknown) {
		if len(s.unknown) >= maxUnknown {
			clear(s.unknown)
		}
		s.unknown[name] = lookedUp{s.cfg.Clock(), err}
	}
	if err == nil {
		s.found[name] = found
	}
	return found, err
}

// asker asks the registry for one schema.
type asker func(context.Context) (*confluent.Schema, error)

func (s *Store) enter(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) leave() { <-s.turn }

func (s *Store) known(name string) (*confluent.Schema, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if found := s.found[name]; found != nil {
		return found, nil
	}
	if u, ok := s.unknown[name]; ok && s.cfg.Clock().Sub(u.at) < unknownFor {
		return nil, u.err
	}
	return nil, nil
}

// find looks into the files, then asks.
func (s *Store) find(ctx context.Context, name string, ask asker) (*confluent.Schema, error) {
	id := name
	name += ".json"
	kept, err := s.read(name)
	if err != nil {
		return nil, err
	}
	if kept != nil && s.cfg.ReadOnly {
		return kept, nil
	}
	found, err := ask(ctx)
	switch {
	case err == nil && kept == nil:
		return found, s.write(ctx, name, found)
	case err == nil:
		return kept, s.compare(name, kept, found)
	case kept == nil || ctx.Err() != nil:
		return nil, err
	}
	s.cfg.Warn(fmt.Errorf("schema %s is taken as it is kept: %w", id, err))
	return kept, nil
}

func (s *Store) compare(name string, kept, found *confluent.Schema) error {
	if kept.Text == found.Text && kept.Format == found.Format && slices.Equal(kept.References, found.References) {
		return nil
	}
	return fault.New(CodeChanged, path.Join(s.cfg.Dir, name),
		fmt.Errorf("the registry of connection %s says of id %d what it did not say before: it is another registry, or one that was made anew", s.cfg.Client.name, kept.ID),
		"name the new registry by a connection of another name, once what was written with the old one is read; or put the old one back")
}

// Pinned returns what resolve found when the key was first asked for with keep. A key never changes its meaning: what decides
// about the schema is part of it.
func (s *Store) Pinned(ctx context.Context, key string, keep bool, resolve func(context.Context, *Client) (*confluent.Schema, error)) (*confluent.Schema, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	name := key + ".json"
	kept, err := s.read(name)
	if err != nil || kept != nil {
		return kept, err
	}
	found, err := resolve(ctx, s.cfg.Client)
	if err != nil || !keep {
		return found, err
	}
	return found, s.write(ctx, name, found)
}

// file is a kept schema.
type file struct {
	Version    int             `json:"version"`
	ID         int32           `json:"id"`
	Format     string          `json:"format"`
	Schema     string          `json:"schema"`
	References []fileReference `json:"references,omitempty"`
}

type fileReference struct {
	Name string `json:"name"`
	Text string `json:"schema"`
}

// read returns a kept schema, nil when there is none.
func (s *Store) read(name string) (*confluent.Schema, error) {
	place := path.Join(s.cfg.Dir, name)
	b, err := durable.ReadFile(s.cfg.Files, place, maxKept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(CodeKept, place, fmt.Errorf("read a kept schema: %w", err), "see that the file can be read")
	}
	var f file
	err = json.Unmarshal(b, &f)
	switch {
	case err == nil && f.Version > fileVersion:
		return nil, fault.New(CodeKept, place, fmt.Errorf("a kept schema of form %d; this version knows %d", f.Version, fileVersion), "use the version of wasmill that wrote it, or a later one")
	case err != nil || f.Version < 1 || f.Format == "" || f.Schema == "":
		return nil, fault.New(CodeKept, place, errors.New("the file is damaged: it holds no schema"), "remove the file: it is asked for again, of the same registry")
	}
	out := &confluent.Schema{ID: f.ID, Format: confluent.Format(f.Format), Text: f.Schema}
	for _, r := range f.References {
		out.References = append(out.References, confluent.Reference(r))
	}
	return out, nil
}

// write keeps a schema, durably before a record is read by it.
func (s *Store) write(ctx context.Context, name string, found *confluent.Schema) error {
	if s.cfg.ReadOnly {
		return nil
	}
	f := file{Version: fileVersion, ID: found.ID, Format: string(found.Format), Schema: found.Text}
	for _, r := range found.References {
		f.References = append(f.References, fileReference(r))
	}
	b, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("keep a schema: %w", err)
	}
	if err := durable.MakeDir(s.cfg.Files, s.cfg.Dir); err != nil {
		return fmt.Errorf("keep a schema: %w", err)
	}
	err = durable.NewObjects(s.cfg.Files, s.cfg.Dir).PutIfAbsent(ctx, name, append(b, '\n'))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("keep a schema: %w", err)
	}
	return nil
}
