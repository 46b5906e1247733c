package checkpoint

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// A spool file spool/<N>-<attempt> holds what batch N puts out to targets whose staged output dies with the process:
//
//	"WMSP", u8 version
//	head:   u32 length, JSON, u32 CRC-32C of the JSON
//	parts:  u16 length of the sink's name, u32 lane, u64 records, u64 bytes, the name, the bytes, u32 CRC-32C of the part
//	end:    u16 0xffff, u32 number of parts, u32 CRC-32C of these six bytes
//
// All integers are little-endian. What the bytes of a part mean is the engine's business; the version covers it.
const (
	spoolMagic   = "WMSP"
	spoolVersion = 1
	spoolEnd     = 0xffff
	spoolPart    = 2 + 4 + 8 + 8
	// maxSpool bounds what is read of a spool file: a batch lives in memory.
	maxSpool = 4 << 30
)

type spoolHead struct {
	Query   string  `json:"query"`
	Batch   BatchID `json:"batch"`
	Attempt string  `json:"attempt"`
	Digest  string  `json:"digest"`
}

// Spooled is one lane's records for one sink.
type Spooled struct {
	Sink    string
	Lane    uint32
	Records int64
	Data    [][]byte // joined when read
}

func spoolName(id BatchID, attempt string) string {
	return fmt.Sprintf("%s/%d-%s", spoolDir, id, attempt)
}

// PutSpool keeps what a batch puts out durably, before the batch is decided. It serves the one attempt alone.
func (l *Log) PutSpool(ctx context.Context, id BatchID, attempt, digest string, parts []Spooled) error {
	name := spoolName(id, attempt)
	if err := ctx.Err(); err != nil {
		return ioError("write", name, err)
	}
	if err := l.makeSpoolDir(); err != nil {
		return err
	}
	head, err := marshal(spoolHead{Query: l.id, Batch: id, Attempt: attempt, Digest: digest})
	if err != nil {
		return ioError("write", name, err)
	}
	final := path.Join(l.dir, name)
	f, err := l.files.Create(final)
	if err != nil {
		return ioError("write", name, err)
	}
	err = writeSpool(f, head, parts)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = l.files.SyncDir(path.Dir(final))
	}
	if err != nil {
		_ = l.files.Remove(final) // or the disk stays full of what nobody needs; a left-over is swept at the next start
		return ioError("write", name, err)
	}
	l.spools[id] = append(l.spools[id], name)
	return nil
}

// makeSpoolDir makes the directory when the first batch needs it, and learns what earlier processes left there.
func (l *Log) makeSpoolDir() error {
	if l.spooling {
		return nil
	}
	dir := path.Join(l.dir, spoolDir)
	if err := l.files.MkdirAll(dir); err != nil {
		return ioError("make the directory", spoolDir, err)
	}
	if err := l.files.SyncDir(l.dir); err != nil {
		return ioError("sync", l.dir, err)
	}
	l.spooling = true
	if l.spools != nil {
		return nil
	}
	return l.listSpools()
}

func (l *Log) listSpools() error {
	entries, err := l.files.List(path.Join(l.dir, spoolDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ioError("list", spoolDir, err)
	}
	l.spools = map[BatchID][]string{}
	for _, e := range entries {
		id, ok := parseID(strings.SplitN(e.Name, "-", 2)[0])
		if ok && e.Regular {
			l.spools[id] = append(l.spools[id], path.Join(spoolDir, e.Name))
		}
	}
	return nil
}

func writeSpool(f durable.File, head []byte, parts []Spooled) error {
	le := binary.LittleEndian
	b := append([]byte(spoolMagic), spoolVersion)
	b = append(le.AppendUint32(b, uint32(len(head))), head...)
	b = le.AppendUint32(b, crc32.Checksum(head, castagnoli))
	for i := range parts {
		p := &parts[i]
		if len(p.Sink) >= spoolEnd {
			return fmt.Errorf("a sink's name of %d bytes", len(p.Sink))
		}
		size := 0
		for _, d := range p.Data {
			size += len(d)
		}
		start := len(b)
		b = le.AppendUint16(b, uint16(len(p.Sink)))
		b = le.AppendUint32(b, p.Lane)
		b = le.AppendUint64(b, uint64(p.Records))
		b = append(le.AppendUint64(b, uint64(size)), p.Sink...)
		sum := crc32.Checksum(b[start:], castagnoli)
		if err := durable.WriteAll(f, b); err != nil {
			return err
		}
		for _, d := range p.Data {
			sum = crc32.Update(sum, castagnoli, d)
			if err := durable.WriteAll(f, d); err != nil {
				return err
			}
		}
		b = le.AppendUint32(b[:0], sum)
	}
	end := le.AppendUint32(le.AppendUint16(nil, spoolEnd), uint32(len(parts)))
	b = append(b, end...)
	return durable.WriteAll(f, le.AppendUint32(b, crc32.Checksum(end, castagnoli)))
}

// Spool returns what PutSpool kept for a decided batch, or nil when it kept nothing. A file that is damaged, or of another
// batch, is a *Error: the batch can still be run again.
func (l *Log) Spool(ctx context.Context, d *Decision) ([]Spooled, error) {
	name := spoolName(d.Batch, d.Attempt)
	if err := ctx.Err(); err != nil {
		return nil, ioError("read", name, err)
	}
	if attemptName(d.Attempt, func() string { return "" }) == "" {
		return nil, nil // no attempt of ours: the text is not for a path
	}
	text, err := durable.ReadFile(l.files, path.Join(l.dir, name), maxSpool)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, ioError("read", name, err)
	}
	want := spoolHead{Query: l.id, Batch: d.Batch, Attempt: d.Attempt, Digest: d.Digest}
	parts, err := readSpool(text, want)
	if errors.Is(err, errFuture) {
		return nil, errorf(CodeFuture, wayUpgrade, []string{name}, "%w", err)
	}
	if err != nil {
		return nil, errorf(CodeDamaged, wayRestart, []string{name}, "%w", err)
	}
	return parts, nil
}

var errSpoolShort = errors.New("it ends too early")

func readSpool(b []byte, want spoolHead) ([]Spooled, error) {
	le := binary.LittleEndian
	if len(b) < len(spoolMagic)+1+4 || string(b[:len(spoolMagic)]) != spoolMagic {
		return nil, errors.New("it is no spool file")
	}
	if v := b[len(spoolMagic)]; v != spoolVersion {
		return nil, fmt.Errorf("%w: version %d, where %d is the newest known", errFuture, v, spoolVersion)
	}
	b = b[len(spoolMagic)+1:]
	size := uint64(le.Uint32(b))
	if b = b[4:]; uint64(len(b)) < size+4 {
		return nil, errSpoolShort
	}
	head := b[:size]
	if crc32.Checksum(head, castagnoli) != le.Uint32(b[size:]) {
		return nil, errors.New("the checksum of its head does not match")
	}
	var got spoolHead
	if err := json.Unmarshal(head, &got); err != nil {
		return nil, fmt.Errorf("head: %w", err)
	}
	if got != want {
		return nil, fmt.Errorf("it is of batch %d with digest %s, and not of batch %d with digest %s", got.Batch, got.Digest, want.Batch, want.Digest)
	}
	return readSpoolParts(b[size+4:])
}

func readSpoolParts(b []byte) ([]Spooled, error) {
	le := binary.LittleEndian
	var parts []Spooled
	for {
		if len(b) < 6 {
			return nil, errSpoolShort
		}
		if le.Uint16(b) == spoolEnd {
			whole := len(b) == 10 && le.Uint32(b[6:]) == crc32.Checksum(b[:6], castagnoli) && int(le.Uint32(b[2:])) == len(parts)
			if !whole {
				return nil, errors.New("its end does not match its parts")
			}
			return parts, nil
		}
		if len(b) < spoolPart {
			return nil, errSpoolShort
		}
		name, size := uint64(le.Uint16(b)), le.Uint64(b[14:])
		if size > maxSpool || uint64(len(b)) < spoolPart+name+size+4 {
			return nil, errSpoolShort
		}
		end := spoolPart + name + size
		if crc32.Checksum(b[:end], castagnoli) != le.Uint32(b[end:]) {
			return nil, fmt.Errorf("the checksum of part %d does not match", len(parts))
		}
		parts = append(parts, Spooled{
			Sink: string(bytes.Clone(b[spoolPart : spoolPart+name])), Lane: le.Uint32(b[2:]), Records: int64(le.Uint64(b[6:])),
			Data: [][]byte{b[spoolPart+name : end : end]},
		})
		b = b[end+4:]
	}
}

// DropSpool removes what is kept for batches up to one that is published everywhere. It need not be durable: what comes
// back is removed the next time.
func (l *Log) DropSpool(ctx context.Context, upTo BatchID) error {
	if err := ctx.Err(); err != nil {
		return ioError("remove", spoolDir, err)
	}
	if l.spools == nil {
		if err := l.listSpools(); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(l.spools)) {
		if id > upTo {
			return nil
		}
		names := l.spools[id]
		delete(l.spools, id)
		for _, name := range names {
			if err := removeIfThere(l.files, path.Join(l.dir, name)); err != nil {
				return ioError("remove", name, err)
			}
		}
	}
	return nil
}
