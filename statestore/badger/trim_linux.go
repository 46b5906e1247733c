package badger

import (
	"bytes"
	"io"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// Badger maps its tables, and the kernel counts every page that was ever read as memory of the process: with 1 GB of
// state the process seems to need 1 GB, and a container's limit may count it so. The trimmer gives such pages back to the
// page cache when there are many; reading them again costs a page fault and no disk, as long as the cache has them.
const (
	trimEvery = 256      // reads between two looks
	trimAbove = 72 << 20 // mapped bytes of files, the program's own text included
	pageSize  = 4 << 10
)

type trimmer struct {
	reads atomic.Uint32
	busy  sync.Mutex
}

// tick is called on every read.
func (t *trimmer) tick(b *backend) {
	if t.reads.Add(1)%trimEvery == 0 {
		t.look(b)
	}
}

// look gives pages back when there are too many.
func (t *trimmer) look(b *backend) {
	if !t.busy.TryLock() {
		return
	}
	defer t.busy.Unlock()
	if mappedFiles(b.files) > trimAbove {
		t.trim(b)
	}
}

// mappedFiles is the resident part of mapped files, from /proc/self/statm; 0 where that does not exist.
func mappedFiles(files durable.Files) int64 {
	text, err := readProc(files, "/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text)
	if len(fields) < 3 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[2]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * pageSize
}

func readProc(files durable.Files, name string) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // a file of /proc that was read: nothing can be lost
	return io.ReadAll(f)
}

// trim drops the pages of tables from this process. The pages are clean, as tables are synced when they are made, and
// shared, so that they stay in the page cache.
//
// A mapping must not be dropped after Badger has unmapped it, since other memory may be at its address by then. An open
// iterator holds all tables of the moment it was made at. A table listed both before and after that was there at that
// moment, because a number is used once.
func (t *trimmer) trim(b *backend) {
	before := b.tableIDs()
	txn := b.db.NewTransactionAt(0, false)
	defer txn.Discard()
	it := txn.NewIterator(badgerdb.IteratorOptions{})
	defer it.Close()
	held := map[string]bool{}
	dir, err := filepath.Abs(b.cfg.Dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return
	}
	for id := range b.tableIDs() {
		if before[id] {
			held[filepath.Join(dir, tableName(id))] = true
		}
	}
	maps, err := readProc(b.files, "/proc/self/maps")
	if err != nil {
		return
	}
	for line := range bytes.Lines(maps) {
		from, size, name, ok := parseMapping(bytes.TrimSuffix(line, []byte("\n")))
		if ok && held[string(name)] {
			// Without it the pages stay; nothing else depends on it.
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, size, syscall.MADV_DONTNEED)
		}
	}
}

func (b *backend) tableIDs() map[uint64]bool {
	ids := map[uint64]bool{}
	for _, t := range b.db.Tables() {
		ids[t.ID] = true
	}
	return ids
}

// parseMapping reads a line of /proc/self/maps: from-to permissions offset device inode path. Only shared mappings count:
// dropping pages of a private one would lose what was written to them.
func parseMapping(line []byte) (from, size uintptr, name []byte, ok bool) {
	at := bytes.IndexByte(line, '/')
	fields := bytes.Fields(line[:max(at, 0)])
	if len(fields) != 5 || len(fields[1]) != 4 || fields[1][3] != 's' {
		return 0, 0, nil, false
	}
	low, high, ok := bytes.Cut(fields[0], []byte("-"))
	if !ok {
		return 0, 0, nil, false
	}
	first, err1 := strconv.ParseUint(string(low), 16, 64)
	end, err2 := strconv.ParseUint(string(high), 16, 64)
	if err1 != nil || err2 != nil || end <= first {
		return 0, 0, nil, false
	}
	return uintptr(first), uintptr(end - first), line[at:], true
}
