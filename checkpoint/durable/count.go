package durable

import "sync/atomic"

// Counter is a Files that counts what costs time on a disk.
type Counter struct {
	Files
	syncs, dirSyncs atomic.Int64
}

// Count returns files with a counter for the calls that wait for the disk.
func Count(files Files) *Counter { return &Counter{Files: files} }

// Syncs returns how often a file and how often a directory was synced since the start.
func (c *Counter) Syncs() (files, dirs int64) { return c.syncs.Load(), c.dirSyncs.Load() }

// Create makes a new file whose syncs are counted.
func (c *Counter) Create(name string) (File, error) { return c.wrap(c.Files.Create(name)) }

// Open opens a file whose syncs are counted.
func (c *Counter) Open(name string) (File, error) { return c.wrap(c.Files.Open(name)) }

// SyncDir counts and makes the entries of a directory durable.
func (c *Counter) SyncDir(name string) error {
	c.dirSyncs.Add(1)
	return c.Files.SyncDir(name)
}

func (c *Counter) wrap(f File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return &countedFile{File: f, syncs: &c.syncs}, nil
}

type countedFile struct {
	File
	syncs *atomic.Int64
}

func (f *countedFile) Sync() error {
	f.syncs.Add(1)
	return f.File.Sync()
}
