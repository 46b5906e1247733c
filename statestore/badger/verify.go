package badger

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/dgraph-io/badger/v4/fb"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/badger/v4/y"
	"google.golang.org/protobuf/proto"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/statestore"
)

// Names in Badger's folder, and bounds on what is believed of them.
const (
	manifestName     = "MANIFEST"
	tableSuffix      = ".sst"
	manifestVersion  = 8
	maxManifestBytes = 64 << 20
	maxTableBytes    = 1 << 30
)

// damaged says what is wrong with a file.
func damaged(name, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %w", statestore.ErrDamaged, name, fmt.Errorf(format, args...))
}

// verify reads everything that Badger would trust in dir and returns the first damage found. It holds at most one table
// in memory.
func verify(ctx context.Context, files durable.Files, dir string) error {
	listed, err := files.List(dir)
	if err != nil {
		return fmt.Errorf("list state: %w", err)
	}
	present := map[uint64]bool{}
	for _, f := range listed {
		if id, ok := tableID(f.Name); ok {
			present[id] = true
		}
	}
	tables, err := readManifest(files, path.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		if len(present) == 0 {
			return nil
		}
		return damaged(path.Join(dir, manifestName), "is missing beside %d tables", len(present))
	}
	if err != nil {
		return err
	}
	var buf []byte
	for _, id := range tables {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("verify state: %w", err)
		}
		name := path.Join(dir, tableName(id))
		if !present[id] {
			return damaged(name, "is missing, the manifest lists it")
		}
		if buf, err = verifyTable(files, name, buf); err != nil {
			return err
		}
	}
	return nil
}

func tableName(id uint64) string { return fmt.Sprintf("%06d%s", id, tableSuffix) }

func tableID(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, tableSuffix)
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseUint(digits, 10, 64)
	return id, err == nil
}

// readAll reads a whole file into buf, which it may replace.
func readAll(files durable.Files, name string, max int64, buf []byte) (content []byte, err error) {
	f, err := files.Open(name)
	if err != nil {
		return buf, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return buf, err
	}
	if info.Size > max {
		return buf, damaged(name, "has %d bytes, more than %d", info.Size, max)
	}
	if int64(cap(buf)) < info.Size {
		buf = make([]byte, info.Size)
	}
	buf = buf[:info.Size]
	if _, err := io.ReadFull(f, buf); err != nil {
		return buf, damaged(name, "read: %w", err)
	}
	return buf, nil
}

// readManifest returns the tables that a manifest lists, by the format of Badger v4's manifest.go: a magic number, then
// records of {u32 length, u32 CRC-32C, ManifestChangeSet}. A record cut short at the end is a torn append and is left
// out, as Badger does; the tables listed before it are a complete earlier state, or one of them is missing.
func readManifest(files durable.Files, name string) ([]uint64, error) {
	b, err := readAll(files, name, maxManifestBytes, nil)
	if err != nil {
		return nil, err
	}
	if len(b) < 8 || string(b[:4]) != "Bdgr" {
		return nil, damaged(name, "is not a manifest of Badger")
	}
	if v := binary.BigEndian.Uint16(b[6:]); v != manifestVersion {
		return nil, damaged(name, "has version %d, this program knows %d", v, manifestVersion)
	}
	if v := binary.BigEndian.Uint16(b[4:]); v != layoutVersion {
		return nil, fmt.Errorf("%s: state layout %d, this program knows %d: %w", name, v, layoutVersion, statestore.ErrNewer)
	}
	var order []uint64
	live := map[uint64]bool{}
	for b = b[8:]; len(b) >= 8; {
		n, sum := uint64(binary.BigEndian.Uint32(b)), binary.BigEndian.Uint32(b[4:])
		if n > uint64(len(b)-8) {
			break
		}
		record := b[8 : 8+n]
		b = b[8+n:]
		var set pb.ManifestChangeSet
		if crc32.Checksum(record, y.CastagnoliCrcTable) != sum || proto.Unmarshal(record, &set) != nil {
			return nil, damaged(name, "a record does not match its checksum")
		}
		for _, c := range set.Changes {
			live[c.Id] = c.Op == pb.ManifestChange_CREATE
			if live[c.Id] {
				order = append(order, c.Id)
			}
		}
	}
	tables := order[:0]
	for _, id := range order {
		if live[id] {
			tables = append(tables, id)
			live[id] = false
		}
	}
	return tables, nil
}

// verifyTable checks every byte of a table, by the layout of Badger v4's table/builder.go: blocks one after the other,
// the index, its length, its checksum, the checksum's length. The blocks must fill the space before the index.
func verifyTable(files durable.Files, name string, buf []byte) (_ []byte, err error) {
	b, err := readAll(files, name, maxTableBytes, buf)
	if err != nil {
		return b, err
	}
	// The index is read by offsets in it; a checksum that happens to fit must not end the process.
	defer func() {
		if p := recover(); p != nil {
			err = damaged(name, "its index cannot be read: %v", p)
		}
	}()
	rest, sum, err := cutChecksum(b)
	if err != nil {
		return b, damaged(name, "footer: %w", err)
	}
	rest, index, ok := cutSized(rest)
	if !ok {
		return b, damaged(name, "the length of its index does not fit")
	}
	if y.VerifyChecksum(index, sum) != nil {
		return b, damaged(name, "its index does not match its checksum")
	}
	ti, next := fb.GetRootAsTableIndex(index, 0), uint64(0)
	for i := range ti.OffsetsLength() {
		var at fb.BlockOffset
		if !ti.Offsets(&at, i) || uint64(at.Offset()) != next || next+uint64(at.Len()) > uint64(len(rest)) {
			return b, damaged(name, "block %d is not where the index says", i)
		}
		block := rest[next : next+uint64(at.Len())]
		next += uint64(at.Len())
		data, sum, err := cutChecksum(block)
		if err != nil {
			return b, damaged(name, "block %d: %w", i, err)
		}
		if y.VerifyChecksum(data, sum) != nil {
			return b, damaged(name, "block %d does not match its checksum", i)
		}
	}
	if next != uint64(len(rest)) || next == 0 {
		return b, damaged(name, "its blocks do not fill it")
	}
	return b, nil
}

var errChecksum = errors.New("no checksum where one must be")

// cutChecksum takes a checksum and the length of it off the end.
func cutChecksum(b []byte) (rest []byte, sum *pb.Checksum, err error) {
	rest, coded, ok := cutSized(b)
	if !ok {
		return nil, nil, errChecksum
	}
	sum = &pb.Checksum{}
	if proto.Unmarshal(coded, sum) != nil || sum.Algo != pb.Checksum_CRC32C {
		return nil, nil, errChecksum
	}
	return rest, sum, nil
}

// cutSized takes a part and the u32 length after it off the end.
func cutSized(b []byte) (rest, part []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := uint64(binary.BigEndian.Uint32(b[len(b)-4:]))
	b = b[:len(b)-4]
	if n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:uint64(len(b))-n], b[uint64(len(b))-n:], true
}
