package badger

import (
	"bytes"
	"io"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	badgerdb "github.com/dgraph-io/badger/v4"
	"golang.org/x/sys/unix"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// Badger maps its tables, and the kernel counts every page that was ever read or written as memory of the process: with
// 1 GB of state the process seems to need 1 GB, and a container's limit may count it so. The trimmer gives such pages back
// when there are many. Tables that are part of the state lose nothing but their place in this process: reading them again
// costs a page fault and no disk, as long as the page cache has them.
const (
	trimEvery = 256                   // reads between two looks
	trimAfter = 50 * time.Millisecond // and at most so long: compactions read and write tables while nobody else does
	trimAbove = 72 << 20              // mapped bytes of files, the program's own text included
	trimLeast = 24 << 20              // what must have come since the last time, if that has left much
	pageSize  = 4 << 10
)

type trimmer struct {
	reads atomic.Uint32
	busy  sync.Mutex // and of left
	left  int64      // mapped bytes after the last time
	on    atomic.Bool
	stop  chan struct{}
	done  sync.WaitGroup
}

// start looks after the pages of b until close is called.
func (t *trimmer) start(b *backend) {
	t.stop = make(chan struct{})
	t.on.Store(true)
	t.done.Go(func() {
		tick := time.NewTicker(trimAfter)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				t.look(b)
			case <-t.stop:
				return
			}
		}
	})
}

func (t *trimmer) close() {
	if t.on.Swap(false) {
		close(t.stop)
		t.done.Wait()
	}
}

// tick is called on every read.
func (t *trimmer) tick(b *backend) {
	if t.reads.Add(1)%trimEvery == 0 {
		t.look(b)
	}
}

// look gives pages back when there are too many, unless somebody is at it.
func (t *trimmer) look(b *backend) {
	if t.on.Load() && t.busy.TryLock() {
		defer t.busy.Unlock()
		t.check(b)
	}
}

// made is called by each goroutine of a compaction for each table that it makes. It waits for one that is at it: else they
// would fill more pages than it can give back.
func (t *trimmer) made(b *backend) {
	if t.on.Load() {
		t.busy.Lock()
		defer t.busy.Unlock()
		t.check(b)
	}
}

func (t *trimmer) check(b *backend) {
	if mappedFiles(b.files) > max(trimAbove, t.left+trimLeast) {
		t.trim(b)
		t.left = mappedFiles(b.files)
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

// trim drops the pages of tables from this process, which leaves them in the page cache: they are clean, as tables are
// synced when they are made, and shared.
//
// A mapping must not be dropped after Badger has unmapped it, since other memory may be at its address by then. An open
// iterator holds all tables of the moment it was made at. A table listed both before and after that was there at that
// moment, because a number is used once.
//
// Tables that a compaction is making are not listed, and nothing holds them. If there are many, the kernel is asked to
// reclaim their pages: that takes them from the page cache too, and does no harm to whatever is at the address by then.
func (t *trimmer) trim(b *backend) {
	before := b.tableIDs()
	txn := b.db.NewTransactionAt(0, false)
	defer txn.Discard()
	it := txn.NewIterator(badgerdb.IteratorOptions{})
	defer it.Close()
	dir, err := filepath.Abs(b.cfg.Dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return
	}
	held := map[string]bool{}
	for id := range b.tableIDs() {
		if before[id] {
			held[filepath.Join(dir, tableName(id))] = true
		}
	}
	maps, err := readProc(b.files, "/proc/self/maps")
	if err != nil {
		return
	}
	var made []mapping
	for line := range bytes.Lines(maps) {
		m, ok := parseMapping(bytes.TrimSuffix(line, []byte("\n")))
		switch {
		case !ok || filepath.Dir(string(m.name)) != dir || filepath.Ext(string(m.name)) != tableSuffix:
		case held[string(m.name)]:
			m.advise(syscall.MADV_DONTNEED)
		default:
			made = append(made, m)
		}
	}
	if mappedFiles(b.files) > trimAbove {
		for _, m := range made {
			m.advise(unix.MADV_PAGEOUT) // refused before Linux 5.4
		}
	}
}

// mapping is a range of memory that has a file.
type mapping struct {
	from, size uintptr
	name       []byte
}

// advise tells the kernel what to do with the pages. If it does not, they stay; nothing else depends on it.
func (m *mapping) advise(what uintptr) {
	_, _, _ = syscall.RawSyscall(syscall.SYS_MADVISE, m.from, m.size, what)
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
func parseMapping(line []byte) (m mapping, ok bool) {
	at := bytes.IndexByte(line, '/')
	fields := bytes.Fields(line[:max(at, 0)])
	if len(fields) != 5 || len(fields[1]) != 4 || fields[1][3] != 's' {
		return m, false
	}
	low, high, ok := bytes.Cut(fields[0], []byte("-"))
	if !ok {
		return m, false
	}
	first, err1 := strconv.ParseUint(string(low), 16, 64)
	end, err2 := strconv.ParseUint(string(high), 16, 64)
	if err1 != nil || err2 != nil || end <= first {
		return m, false
	}
	return mapping{uintptr(first), uintptr(end - first), line[at:]}, true
}
