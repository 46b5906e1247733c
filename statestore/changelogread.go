package statestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"
)

// blockReader reads what blockWriter has written, with memory for one block. Errors wrap ErrCorrupt or ErrNewer, or are
// those of the reader under it; Offset says where it stood.
type blockReader struct {
	r      io.Reader
	offset int64
	zip    *zstd.Decoder
	head   []byte
	buf    []byte // of the file
	raw    []byte
	chain  uint64
	count  uint64
	size   uint64
	blocks uint32
	digest *xxh3.Hasher
	index  bool   // keys of the index by expiry may follow those of entries
	last   []byte // key of the last entry
	some   bool
}

// decoder is shared, as the encoder is.
var decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxBlock), zstd.WithDecodeAllCapLimit(true))
})

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

// newBlockReader reads the head.
func newBlockReader(r io.Reader, magic string, version uint16) (*blockReader, error) {
	zip, err := decoder()
	if err != nil {
		return nil, err
	}
	b := &blockReader{r: r, zip: zip, digest: xxh3.New()}
	if err := b.read(headFixed); err != nil {
		return b, err
	}
	le := binary.LittleEndian
	if string(b.buf[:4]) != magic {
		return b, corrupt("it does not begin with %s", magic)
	}
	if v := le.Uint16(b.buf[4:]); v > version {
		return b, fmt.Errorf("%w: format %d, this program knows %d", ErrNewer, v, version)
	} else if v == 0 || le.Uint16(b.buf[6:]) != 0 {
		return b, corrupt("format %d", v)
	}
	n := le.Uint32(b.buf[8:])
	if n > maxHead {
		return b, corrupt("a head of %d bytes", n)
	}
	if err := b.more(int(n) + checksumLen); err != nil {
		return b, err
	}
	if err := b.check(); err != nil {
		return b, err
	}
	b.head = bytes.Clone(b.buf[headFixed : headFixed+int(n)])
	return b, nil
}

// read reads n bytes into buf; more reads n further ones. A file that ends there is torn.
func (b *blockReader) read(n int) error {
	b.buf = b.buf[:0]
	return b.more(n)
}

func (b *blockReader) more(n int) error {
	from := len(b.buf)
	for len(b.buf) < from+n { // a length that lies takes no more memory than the file has bytes
		step := min(from+n-len(b.buf), 256<<10)
		at := len(b.buf)
		b.buf = append(b.buf, make([]byte, step)...)
		got, err := io.ReadFull(b.r, b.buf[at:])
		b.offset += int64(got)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return corrupt("it ends in the middle")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// check compares the checksum at the end of buf.
func (b *blockReader) check() error {
	body := b.buf[:len(b.buf)-checksumLen]
	b.chain = xxh3.HashSeed(body, b.chain)
	if binary.LittleEndian.Uint64(b.buf[len(body):]) != b.chain {
		return corrupt("a checksum is wrong")
	}
	return nil
}

// next returns the entries of the next block, or io.EOF after a proper end. They are valid until the next call.
func (b *blockReader) next() ([]byte, error) {
	if err := b.read(4); err != nil {
		return nil, err
	}
	kind := b.buf[0]
	if kind == blockEnd {
		return nil, b.end()
	}
	if kind != blockPlain && kind != blockZstd {
		return nil, corrupt("a block of kind %d", kind)
	}
	if err := b.more(blockHead - 4); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	count, size, stored := le.Uint32(b.buf[4:]), le.Uint32(b.buf[8:]), le.Uint32(b.buf[12:])
	if size > maxBlock || stored > size || count == 0 || (kind == blockPlain) != (stored == size) {
		return nil, corrupt("a block of %d entries in %d bytes, stored in %d", count, size, stored)
	}
	if err := b.more(int(stored) + checksumLen); err != nil {
		return nil, err
	}
	if err := b.check(); err != nil {
		return nil, err
	}
	raw := b.buf[blockHead : blockHead+int(stored)]
	if kind == blockZstd {
		if cap(b.raw) < int(size) {
			b.raw = make([]byte, 0, max(int(size), blockTarget))
		}
		var err error
		if raw, err = b.zip.DecodeAll(raw, b.raw[:0:size]); err != nil || len(raw) != int(size) {
			return nil, corrupt("a block does not unpack to %d bytes", size)
		}
	}
	b.blocks++
	b.count += uint64(count)
	b.size += uint64(size)
	_, _ = b.digest.Write(raw)
	return raw, b.checkEntries(raw, int(count))
}

// checkEntries makes sure that a block is what a run may hold: whole entries in ascending order.
func (b *blockReader) checkEntries(raw []byte, count int) error {
	for n := 0; ; n++ {
		if len(raw) == 0 {
			if n != count {
				return corrupt("a block has %d entries and says %d", n, count)
			}
			return nil
		}
		key, stored, rest, err := splitEntry(raw)
		if err != nil {
			return corrupt("an entry: %v", err)
		}
		if b.some && bytes.Compare(key, b.last) <= 0 {
			return corrupt("entries are not in order")
		}
		if err := b.checkKey(key); err != nil {
			return corrupt("an entry: %v", err)
		}
		if stored != nil {
			if _, _, err := parseStored(stored); errors.Is(err, ErrNewer) {
				return err
			} else if err != nil {
				return corrupt("an entry: %v", err)
			}
		}
		b.last, b.some = append(b.last[:0], key...), true
		raw = rest
	}
}

func (b *blockReader) checkKey(key []byte) error {
	if b.index && len(key) > 0 && key[0] == indexPrefix {
		_, data, err := parseIndex(key)
		if err != nil {
			return err
		}
		key = data
	}
	_, err := parseKey(key)
	return err
}

var errEntry = errors.New("its lengths are wrong")

// splitEntry takes the first entry off.
func splitEntry(raw []byte) (key, stored, rest []byte, err error) {
	n, used := canonicalUvarint(raw)
	if used <= 0 || n > maxIndexKey || n > uint64(len(raw)-used) {
		return nil, nil, nil, errEntry
	}
	key, raw = raw[used:used+int(n):used+int(n)], raw[used+int(n):]
	n, used = canonicalUvarint(raw)
	switch {
	case used <= 0 || n > maxStored+1:
		return nil, nil, nil, errEntry
	case n == 0:
		return key, nil, raw[used:], nil
	}
	if n--; n == 0 || n > uint64(len(raw)-used) {
		return nil, nil, nil, errEntry
	}
	return key, raw[used : used+int(n) : used+int(n)], raw[used+int(n):], nil
}

// end reads the end and makes sure that it is one.
func (b *blockReader) end() error {
	if err := b.more(endLen - 4); err != nil {
		return err
	}
	if err := b.check(); err != nil {
		return err
	}
	le := binary.LittleEndian
	sum := b.sum()
	if le.Uint32(b.buf[4:]) != b.blocks || le.Uint64(b.buf[8:]) != b.count || le.Uint64(b.buf[16:]) != b.size ||
		!bytes.Equal(b.buf[24:40], sum[:]) {
		return corrupt("its end counts other entries")
	}
	var one [1]byte
	if n, err := io.ReadFull(b.r, one[:]); n > 0 {
		return corrupt("bytes follow its end")
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return io.EOF
}

// sum is the digest of the entries so far.
func (b *blockReader) sum() [16]byte { return b.digest.Sum128().Bytes() }

// readChangelog reads a whole changelog into memory.
func readChangelog(ctx context.Context, r io.Reader) (m *meta, set changeSet, digest string, offset int64, err error) {
	b, err := newBlockReader(r, changelogMagic, changelogVersion)
	if err != nil {
		return nil, set, "", b.at(), err
	}
	if m, err = decodeMeta(b.head); err != nil {
		if !errors.Is(err, ErrNewer) {
			err = corrupt("%v", err)
		}
		return nil, set, "", 0, err
	}
	all := &run{}
	for {
		if err := ctx.Err(); err != nil {
			return nil, set, "", b.offset, err
		}
		raw, err := b.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = all.take(raw, m.IDs)
		}
		if err != nil {
			return nil, set, "", b.offset, err
		}
	}
	all.finish(nil)
	set.add(all)
	sum := b.sum()
	return m, set, hex.EncodeToString(sum[:]), b.offset, nil
}

// at is where the reader stood; 0 for none.
func (b *blockReader) at() int64 {
	if b == nil {
		return 0
	}
	return b.offset
}

// take appends the entries of a block that was checked. What belongs to no table that the head lists is refused.
func (r *run) take(raw []byte, known *ids) error {
	chunk := bytes.Clone(raw)
	r.chunks = append(r.chunks, chunk)
	r.bytes += int64(len(chunk))
	for at := 0; at < len(chunk); {
		key, stored, rest, err := splitEntry(chunk[at:])
		if err != nil {
			return corrupt("an entry: %v", err)
		}
		k, err := parseKey(key)
		if err != nil {
			return corrupt("an entry: %v", err)
		}
		r.refs = append(r.refs, ref{uint32(len(r.chunks) - 1), uint32(at)})
		at = len(chunk) - len(rest)
		if err := known.checkEntry(k); err != nil {
			return corrupt("an entry: %v", err)
		}
		if stored == nil {
			continue
		}
		r.puts++
		if _, expiry, err := parseStored(stored); err == nil && expiry != 0 {
			r.expiring = append(r.expiring, expiring{expiry, key})
		}
	}
	return nil
}

// checkEntry refuses an entry of no table.
func (t *ids) checkEntry(k dataKey) error {
	tr := t.find(k.transform)
	if tr == nil {
		return fmt.Errorf("no transform has the id %d", k.transform)
	}
	if k.table == timerTable {
		_, err := parseTimer(k)
		return err
	}
	if tr.find(k.table) == nil {
		return fmt.Errorf("no table of %q has the id %d", tr.Name, k.table)
	}
	return nil
}

// readPending reads the changelog of a decided batch and compares it with what the decision says of it.
func (s *Store) readPending(ctx context.Context, batch int64, attempt, digest string) (*pending, error) {
	name := s.changelogPath(batch, attempt)
	fail := func(offset int64, sentinel error, detail string) error {
		return &FileError{File: name, Batch: batch, Offset: offset, Err: sentinel, Detail: detail}
	}
	f, err := s.files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fail(-1, ErrMissing, "")
	}
	if err != nil {
		return nil, fmt.Errorf("read the changelog of batch %d: %w", batch, err)
	}
	m, set, sum, offset, err := readChangelog(ctx, f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	switch {
	case errors.Is(err, ErrCorrupt), errors.Is(err, ErrNewer):
		return nil, &FileError{File: name, Batch: batch, Offset: offset, Err: err}
	case err != nil:
		return nil, fmt.Errorf("read the changelog of batch %d: %w", batch, err)
	case m.Query != s.cfg.Query:
		return nil, fail(0, ErrCorrupt, fmt.Sprintf("it belongs to query %s, not %s", m.Query, s.cfg.Query))
	case m.Batch != batch:
		return nil, fail(0, ErrCorrupt, fmt.Sprintf("it is that of batch %d", m.Batch))
	case sum != m.Digest:
		return nil, fail(-1, ErrCorrupt, "its head gives another digest than its entries")
	case sum != digest:
		return nil, fail(-1, ErrCorrupt, fmt.Sprintf("its entries have the digest %s, the decision says %s", sum, digest))
	}
	return &pending{batch: batch, set: set, ids: m.IDs, after: m.After, own: m.link()}, nil
}
