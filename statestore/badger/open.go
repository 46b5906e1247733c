package badger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"

	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/statestore"
)

// layoutVersion is the version of what this package writes; it stands in the manifest, so that an older program does not
// open a newer folder.
const layoutVersion = 1

const (
	lockName = "wasmill.lock"
	// memTable is the bytes of a memtable: what a crash can make it necessary to apply again, at most twice. Larger ones were
	// slower to recover and no faster, and what makes tables of them keeps memory for the largest.
	memTable = 4 << 20
	// tableSize is the bytes of a table. One that is being made takes twice that, rounded up to a power of two, and there are
	// up to 26 of them.
	tableSize = 1 << 20
	// minFree is what must be free on the disk before anything is written: Badger maps its files, and a full disk ends
	// the process with SIGBUS. It covers two memtables, their logs and tables, and the largest compaction.
	minFree = 256 << 20
)

// Open opens the folder cfg.Dir, or makes it. It is a statestore.Opener.
func Open(ctx context.Context, cfg statestore.BackendConfig) (statestore.Backend, error) {
	return open(ctx, cfg, memTable)
}

// Sized is Open with memtables of so many bytes: little state then makes tables too, which tests of crashes want. Values
// must be smaller than a seventh of it.
func Sized(memTable int64) statestore.Opener {
	return func(ctx context.Context, cfg statestore.BackendConfig) (statestore.Backend, error) {
		return open(ctx, cfg, memTable)
	}
}

func open(ctx context.Context, cfg statestore.BackendConfig, memTable int64) (statestore.Backend, error) {
	// Badger opens its own files, so what is checked must be what the operating system has.
	files := durable.OS()
	if err := files.MkdirAll(cfg.Dir); err != nil {
		return nil, fmt.Errorf("make state folder: %w", err)
	}
	lock, err := files.Lock(path.Join(cfg.Dir, lockName), "wasmill")
	if err != nil {
		return nil, fmt.Errorf("lock state: %w", err)
	}
	b := &backend{cfg: cfg, files: files, lock: lock, torn: none, memTable: memTable}
	if err := b.open(ctx); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return b, nil
}

func (b *backend) open(ctx context.Context) error {
	if err := b.clean(); err != nil {
		return err
	}
	if err := verify(ctx, b.files, b.cfg.Dir); err != nil {
		return err
	}
	if err := b.room(); err != nil {
		return err
	}
	db, err := openDB(b.settings())
	if err != nil {
		return fmt.Errorf("%w: %s: %w", statestore.ErrDamaged, b.cfg.Dir, err)
	}
	b.db = db
	if err := b.load(); err != nil {
		return errors.Join(err, db.Close())
	}
	b.trim.start(b)
	return nil
}

// clean removes everything that Badger would read and that is not needed: its logs, and what names keys of encryption,
// which is not used; of a fresh folder, everything. The manifest goes before the tables, so that tables that are left by
// a crash are found to be damaged.
func (b *backend) clean() error {
	listed, err := b.files.List(b.cfg.Dir)
	if err != nil {
		return fmt.Errorf("list state: %w", err)
	}
	for _, f := range listed {
		_, isTable := tableID(f.Name)
		if f.Dir || f.Name == lockName || !b.cfg.Fresh && (isTable || f.Name == manifestName) {
			continue
		}
		b.cfg.Point("clear")
		if err := b.files.Remove(path.Join(b.cfg.Dir, f.Name)); err != nil {
			return fmt.Errorf("clear state: %w", err)
		}
	}
	return nil
}

// openDB turns a panic of Badger into an error. Tables are verified before, so none is expected.
func openDB(opt badgerdb.Options) (db *badgerdb.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("open: %v", p)
		}
	}()
	return badgerdb.OpenManaged(opt)
}

// The compaction of the first level begins at levelZero tables; at levelZeroStall writers wait.
const (
	levelZero      = 12
	levelZeroStall = 40
)

// settings were measured with 5 million keys. A large first level saves a level below it, and with it a third of the CPU of
// all writing, which compaction is most of. They are for little memory, too: no caches and no compression, since tables are
// mapped (measured: half the CPU of a read and a third less memory than with Snappy and a small cache, for 1.7 times the
// disk), and tables of one small size on all levels.
func (b *backend) settings() badgerdb.Options {
	opt := badgerdb.DefaultOptions(b.cfg.Dir).
		WithLogger(logger{b.cfg.Warning, b.tableMade}).
		WithExternalMagic(layoutVersion).
		WithSyncWrites(false). // the logs are not used; tables and the manifest are always synced
		WithDetectConflicts(false).
		WithNumVersionsToKeep(1).
		WithMetricsEnabled(false).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithIndexCacheSize(0).
		WithChecksumVerificationMode(options.NoVerification). // a failed check would read as "no such key"
		WithMemTableSize(b.memTable).
		WithNumMemtables(1).
		WithValueThreshold(b.memTable / 7). // larger values would go to the value log, which is never used
		WithValueLogFileSize(1 << 20).
		WithNumCompactors(2).
		WithBaseTableSize(tableSize).
		WithBaseLevelSize(128 << 20).
		WithNumLevelZeroTables(levelZero).
		WithNumLevelZeroTablesStall(levelZeroStall).
		WithNumGoroutines(1)
	opt.TableSizeMultiplier = 1
	return opt
}

// load reads what the folder says of itself.
func (b *backend) load() error {
	m, found, err := b.readMarker(math.MaxUint64)
	if err != nil {
		return err
	}
	b.applied.Store(none)
	b.durable.Store(none)
	b.oldest.Store(none)
	if found {
		if m.query != b.cfg.Query {
			return b.damage(fmt.Errorf("it holds the state of query %s, not of %s", m.query, b.cfg.Query))
		}
		b.applied.Store(m.batch)
		b.durable.Store(m.batch)
	}
	if begun, found, err := b.readNumber(begunKey); err != nil {
		return err
	} else if found && begun > b.applied.Load() {
		b.torn = begun
	}
	oldest, found, err := b.readNumber(oldestKey)
	if err != nil || !found {
		return err
	}
	b.oldest.Store(oldest)
	b.db.SetDiscardTs(version(oldest))
	return nil
}

// Close writes what is in memory to tables and closes the folder.
func (b *backend) Close() error {
	b.closeOnce.Do(func() {
		b.trim.close()
		b.closeErr = errors.Join(b.db.Close(), b.lock.Close())
	})
	return b.closeErr
}

// logger hands on Badger's errors and drops the rest, which is talk of its own affairs.
type logger struct {
	warn func(op string, err error)
	made func()
}

func (l logger) Errorf(format string, args ...any) { l.warn("badger", fmt.Errorf(format, args...)) }
func (logger) Warningf(string, ...any)             {}
func (logger) Infof(string, ...any)                {}

// Debugf is told by each goroutine of a compaction that it has read and sorted what makes one table.
func (l logger) Debugf(format string, _ ...any) {
	if strings.HasPrefix(format, madeFormat) {
		l.made()
	}
}

const madeFormat = "[%d] LOG Compact. Added "

// tableMade is called by each goroutine of a compaction for each table.
func (b *backend) tableMade() {
	b.trim.made(b)
}

// Badger's allocator loses data on 32 bits: there this does not compile.
const _ uint = strconv.IntSize - 64
