package files

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
)

const (
	// compactEvery is Spark's interval: the logs 9, 19, .. are written as N.compact and hold all entries so far.
	compactEvery = 10
	logVersion   = "v1"
	compactTail  = ".compact"
	// maxLogLine bounds one line of a log: a path is at most 4 KiB, three times as long when every byte is escaped.
	maxLogLine = 64 << 10
)

// logs is Spark's file source log: sources/<i>/N and N.compact. A log beyond the position that is handed in is what a
// crash left of an attempt that was never planned; it is never read, and replaced when its id comes up again.
type logs struct {
	files durable.Files
	dir   string
}

func isCompact(k int64) bool { return (k+1)%compactEvery == 0 }

func (l logs) plain(k int64) string   { return l.dir + "/" + strconv.FormatInt(k, 10) }
func (l logs) compact(k int64) string { return l.plain(k) + compactTail }

// encode returns a log's text: a version line and one line an entry, without an end of line at the end.
func encode(entries []entry) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(logVersion)
	for i := range entries {
		line, err := marshal(&entries[i])
		if err != nil {
			return nil, fmt.Errorf("log entry: %w", err)
		}
		b.WriteByte('\n')
		b.Write(line)
	}
	return b.Bytes(), nil
}

// sum is the digest that a position holds of its last log.
func sum(entries []entry) (string, error) {
	b, err := encode(entries)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%016x", xxh3.Hash(b)), nil
}

// write replaces log k by the given entries. Without sync they may be lost in a crash.
func (l logs) write(k int64, entries []entry, sync bool) error {
	return l.replace(l.plain(k), k, sync, func(w io.Writer) error {
		b, err := encode(entries)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	})
}

// writeCompact writes k.compact durably: everything before k, as the position from knows it, and the entries of k.
func (l logs) writeCompact(k int64, from *position, entries []entry) error {
	return l.replace(l.compact(k), k, true, func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 64<<10)
		if _, err := b.WriteString(logVersion); err != nil {
			return err
		}
		put := func(e *entry) error {
			line, err := marshal(e)
			if err != nil {
				return err
			}
			_ = b.WriteByte('\n') // a bufio.Writer keeps its error for Flush
			_, _ = b.Write(line)
			return nil
		}
		if err := l.each(from, put); err != nil {
			return err
		}
		for i := range entries {
			if err := put(&entries[i]); err != nil {
				return err
			}
		}
		return b.Flush()
	})
}

// replace writes a file under a temporary name and renames it. Hadoop's checksum of what it replaces goes first.
func (l logs) replace(name string, k int64, sync bool, write func(io.Writer) error) error {
	tmp := l.dir + "/." + strconv.FormatInt(k, 10) + ".tmp"
	if err := errors.Join(l.remove(tmp), l.remove(l.crc(name))); err != nil {
		return unwritable(name, err)
	}
	f, err := l.files.Create(tmp)
	if errors.Is(err, fs.ErrNotExist) {
		if err = l.files.MkdirAll(l.dir); err == nil {
			f, err = l.files.Create(tmp)
		}
	}
	if err != nil {
		return unwritable(name, err)
	}
	err = write(f)
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = l.files.Rename(tmp, name)
	}
	if err == nil && sync {
		err = l.files.SyncDir(l.dir)
	}
	if err != nil {
		return unwritable(name, err)
	}
	return nil
}

func (l logs) crc(name string) string {
	return l.dir + "/." + strings.TrimPrefix(name, l.dir+"/") + ".crc"
}

func (l logs) remove(name string) error {
	if err := l.files.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// numbers returns the ids of plain and compacted logs, ascending.
func (l logs) numbers() (plain, compact []int64, err error) {
	infos, err := l.files.List(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, unreadable(l.dir, err)
	}
	for _, info := range infos {
		name, isc := strings.CutSuffix(info.Name, compactTail)
		k, err := strconv.ParseInt(name, 10, 64)
		switch {
		case err != nil || info.Dir || name != strconv.FormatInt(k, 10):
		case isc:
			compact = append(compact, k)
		default:
			plain = append(plain, k)
		}
	}
	slices.Sort(plain)
	slices.Sort(compact)
	return plain, compact, nil
}

// each hands over every entry up to and including p.log, in order.
func (l logs) each(p *position, fn func(*entry) error) error {
	if p.log < 0 {
		return nil
	}
	covered, err := l.eachSynced(p, fn)
	if err != nil {
		return err
	}
	for i := range p.Tail {
		if p.Tail[i].Log <= covered {
			continue
		}
		if err := fn(&p.Tail[i]); err != nil {
			return err
		}
	}
	return nil
}

// eachSynced hands over the entries that are on disk for sure, and returns the last log it covered: those of the newest
// compacted log and of the plain ones after it. Where those were tidied away, a later compacted log holds them too.
func (l logs) eachSynced(p *position, fn func(*entry) error) (covered int64, err error) {
	plain, compacts, err := l.numbers()
	if err != nil {
		return -1, err
	}
	base, later := int64(-1), int64(-1)
	for _, k := range compacts {
		if k <= p.log {
			base = k
		} else if later < 0 {
			later = k
		}
	}
	for k := base + 1; k <= p.Synced; k++ {
		if _, ok := slices.BinarySearch(plain, k); ok {
			continue
		}
		if later < 0 {
			return -1, damaged(l.plain(k), errors.New("the log is missing"))
		}
		return p.Synced, l.scan(l.compact(later), func(e *entry) error {
			if e.Log > p.Synced {
				return nil
			}
			return fn(e)
		})
	}
	if base >= 0 {
		if err := l.scan(l.compact(base), fn); err != nil {
			return -1, err
		}
	}
	for k := base + 1; k <= p.Synced; k++ {
		if err := l.scan(l.plain(k), fn); err != nil {
			return -1, err
		}
	}
	return max(base, p.Synced), nil
}

// read returns the entries of log k as the position p knows it. A compacted log serves for those it replaced.
func (l logs) read(k int64, p *position) ([]entry, error) {
	if k > p.Synced {
		var out []entry
		for _, e := range p.Tail {
			if e.Log == k {
				out = append(out, e)
			}
		}
		return out, nil
	}
	var out []entry
	keep := func(e *entry) error {
		if e.Log == k {
			out = append(out, *e)
		}
		return nil
	}
	if _, err := l.files.Stat(l.plain(k)); err == nil {
		err := l.scan(l.plain(k), keep)
		return out, err
	}
	_, compacts, err := l.numbers()
	if err != nil {
		return nil, err
	}
	for _, c := range compacts {
		if c >= k {
			err := l.scan(l.compact(c), keep)
			return out, err
		}
	}
	return nil, damaged(l.plain(k), errors.New("the log is missing"))
}

// scan reads one log file line by line.
func (l logs) scan(name string, fn func(*entry) error) (err error) {
	f, err := l.files.Open(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return damaged(name, errors.New("the log is missing"))
		}
		return unreadable(name, err)
	}
	defer closeWith(&err, f)
	in := bufio.NewScanner(f)
	in.Buffer(make([]byte, 0, 64<<10), maxLogLine)
	if !in.Scan() {
		return damaged(name, errors.Join(errors.New("the log is empty"), in.Err()))
	}
	if v := in.Text(); v != logVersion {
		if n, err := strconv.Atoi(strings.TrimPrefix(v, "v")); err == nil && n > 1 {
			return fault.New(CodeVersion, name, fmt.Errorf("the log has version %s, this program knows %s", v, logVersion),
				"go on with the newer version of the program that wrote it")
		}
		return damaged(name, fmt.Errorf("the first line is %.40q, not a version", v))
	}
	for in.Scan() {
		if len(in.Bytes()) == 0 {
			continue
		}
		var e entry
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			return damaged(name, err)
		}
		if err := e.resolve(); err != nil {
			return damaged(name, err)
		}
		if err := fn(&e); err != nil {
			return err
		}
	}
	if in.Err() != nil {
		return damaged(name, in.Err())
	}
	return nil
}

// trim removes what the older of the two newest compacted logs up to k holds as well.
func (l logs) trim(k int64) error {
	plain, compacts, err := l.numbers()
	if err != nil {
		return err
	}
	var upTo []int64
	for _, c := range compacts {
		if c <= k {
			upTo = append(upTo, c)
		}
	}
	if len(upTo) < 2 {
		return nil
	}
	keep := upTo[len(upTo)-2]
	for _, c := range plain {
		if c < keep {
			err = errors.Join(err, l.remove(l.crc(l.plain(c))), l.remove(l.plain(c)))
		}
	}
	for _, c := range upTo[:len(upTo)-2] {
		err = errors.Join(err, l.remove(l.crc(l.compact(c))), l.remove(l.compact(c)))
	}
	if err != nil {
		return fmt.Errorf("tidy source log: %w", err)
	}
	return nil
}
