package statestore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sort"
	"strconv"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// changelogDir is the folder of changelogs in that of the state.
const changelogDir = "changelog"

// The format of a changelog; README.md has it byte by byte.
const (
	changelogMagic   = "WMC1"
	changelogVersion = 1
	maxHead          = 4 << 20 // of the JSON in the head
	blockTarget      = 128 << 10
	minPacked        = 256     // a smaller block is not worth packing
	maxBlock         = 1 << 20 // of a block, uncompressed; the largest entry fits
	headFixed        = 4 + 2 + 2 + 4
	blockHead        = 1 + 1 + 2 + 4 + 4 + 4
	checksumLen      = 8
	endLen           = 1 + 3 + 4 + 8 + 8 + 16 + checksumLen
)

// Kinds of what follows the head.
const (
	blockPlain = 1 // the entries as they are
	blockZstd  = 2 // one zstd frame of them
	blockEnd   = 0xff
)

// changelogName is the name of a batch's changelog in its folder.
func changelogName(batch int64, attempt string) string {
	return strconv.FormatInt(batch, 10) + "-" + attempt
}

func (s *Store) changelogPath(batch int64, attempt string) string {
	return path.Join(s.dir, changelogDir, changelogName(batch, attempt))
}

// Write writes the changelog of a batch that was summed up. It is durable when Write returns. A batch that changes nothing
// has none. A file of that name is set aside as ".<name>.corrupt".
func (t *Txn) Write(ctx context.Context, attempt string) error {
	switch {
	case t.closed.Load():
		return ErrClosed
	case !t.summed:
		return fmt.Errorf("write the changelog of batch %d: it was not summed up", t.info.Batch)
	case t.set.entries == 0:
		return nil
	}
	if t.store != nil {
		t.store.noteAttempt(t.info.Batch, changelogName(t.info.Batch, attempt))
	}
	if err := t.files.write(ctx, changelogName(t.info.Batch, attempt), t.meta(), &t.set); err != nil {
		return fmt.Errorf("write the changelog of batch %d: %w", t.info.Batch, err)
	}
	t.attempt = attempt
	return nil
}

// changelogFiles is the folder of changelogs.
type changelogFiles struct {
	files durable.Files
	dir   string
}

func (c changelogFiles) write(ctx context.Context, name string, m *meta, set *changeSet) error {
	full := path.Join(c.dir, name)
	f, err := c.files.Create(full)
	if errors.Is(err, fs.ErrExist) {
		if err := c.files.Rename(full, path.Join(c.dir, "."+name+".corrupt")); err != nil {
			return err
		}
		f, err = c.files.Create(full)
	}
	if err != nil {
		return err
	}
	err = writeChangelog(ctx, f, m, set)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = c.files.SyncDir(c.dir)
	}
	return err
}

func writeChangelog(ctx context.Context, w io.Writer, m *meta, set *changeSet) error {
	head, err := m.encode()
	if err != nil {
		return err
	}
	b, err := newBlockWriter(w, changelogMagic, changelogVersion, head)
	if err != nil {
		return err
	}
	for _, r := range set.runs {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i, chunk := range r.chunks {
			if err := b.entries(chunk, r.inChunk(i)); err != nil {
				return err
			}
		}
	}
	return b.finish()
}

// inChunk is how many changes stand in a chunk.
func (r *run) inChunk(i int) int {
	first := sort.Search(len(r.refs), func(at int) bool { return int(r.refs[at].chunk) >= i })
	next := sort.Search(len(r.refs), func(at int) bool { return int(r.refs[at].chunk) > i })
	return next - first
}

// blockWriter writes a file of entries: a head, blocks with a checksum each, and an end with counts. Each checksum covers
// all that stands before it, so that blocks cannot change places, within a file or between files.
type blockWriter struct {
	w      io.Writer
	zip    *zstd.Encoder
	out    []byte // not written yet
	raw    []byte // entries of the block that is being filled
	inRaw  int
	chain  uint64 // the last checksum
	count  uint64
	size   uint64
	blocks uint32
	digest *xxh3.Hasher
	packed []byte
}

// encoder is shared: making one costs more than a small block, and EncodeAll may be called by several goroutines.
var encoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(blockTarget), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
})

func newBlockWriter(w io.Writer, magic string, version uint16, head []byte) (*blockWriter, error) {
	if len(head) > maxHead {
		return nil, fmt.Errorf("a head of %d bytes: %w", len(head), ErrLimit)
	}
	zip, err := encoder()
	if err != nil {
		return nil, err
	}
	b := &blockWriter{w: w, zip: zip, digest: xxh3.New()}
	b.out = append(b.out, magic...)
	b.out = binary.LittleEndian.AppendUint16(b.out, version)
	b.out = binary.LittleEndian.AppendUint16(b.out, 0)
	b.out = binary.LittleEndian.AppendUint32(b.out, uint32(len(head)))
	b.out = append(b.out, head...)
	b.seal(0)
	return b, nil
}

// seal appends the checksum of out from a place on.
func (b *blockWriter) seal(from int) {
	b.chain = xxh3.HashSeed(b.out[from:], b.chain)
	b.out = binary.LittleEndian.AppendUint64(b.out, b.chain)
}

// entries takes whole entries, as encoded, in order.
func (b *blockWriter) entries(raw []byte, count int) error {
	_, _ = b.digest.Write(raw)
	b.count += uint64(count)
	b.size += uint64(len(raw))
	if len(b.raw) > 0 && len(b.raw)+len(raw) > blockTarget {
		if err := b.block(b.raw, b.inRaw); err != nil {
			return err
		}
		b.raw, b.inRaw = b.raw[:0], 0
	}
	if len(b.raw) == 0 && len(raw) >= blockTarget/2 {
		return b.block(raw, count)
	}
	b.raw = append(b.raw, raw...)
	b.inRaw += count
	return nil
}

func (b *blockWriter) block(raw []byte, count int) error {
	kind, stored := byte(blockPlain), raw
	if len(raw) >= minPacked {
		if b.packed = b.zip.EncodeAll(raw, b.packed[:0]); len(b.packed) < len(raw) {
			kind, stored = blockZstd, b.packed
		}
	}
	from := len(b.out)
	le := binary.LittleEndian
	b.out = append(b.out, kind, 0, 0, 0)
	b.out = le.AppendUint32(b.out, uint32(count))
	b.out = le.AppendUint32(b.out, uint32(len(raw)))
	b.out = le.AppendUint32(b.out, uint32(len(stored)))
	b.out = append(b.out, stored...)
	b.seal(from)
	b.blocks++
	if len(b.out) < blockTarget*2 {
		return nil
	}
	return b.flush()
}

func (b *blockWriter) flush() error {
	err := durable.WriteAll(b.w, b.out)
	b.out = b.out[:0]
	return err
}

// sum is the digest of the entries so far.
func (b *blockWriter) sum() [16]byte { return b.digest.Sum128().Bytes() }

// finish writes the last block and the end.
func (b *blockWriter) finish() error {
	if len(b.raw) > 0 {
		if err := b.block(b.raw, b.inRaw); err != nil {
			return err
		}
	}
	from := len(b.out)
	le := binary.LittleEndian
	b.out = append(b.out, blockEnd, 0, 0, 0)
	b.out = le.AppendUint32(b.out, b.blocks)
	b.out = le.AppendUint64(b.out, b.count)
	b.out = le.AppendUint64(b.out, b.size)
	sum := b.sum()
	b.out = append(b.out, sum[:]...)
	b.seal(from)
	return b.flush()
}
