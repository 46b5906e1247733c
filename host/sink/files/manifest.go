package files

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/sink"
)

// compactInterval is Spark's default, which readers assume: ids 9, 19, .. are compactions.
const compactInterval = 10

func isCompaction(id checkpoint.BatchID) bool { return (id+1)%compactInterval == 0 }

// manifestName is the name that Spark reads.
func manifestName(id checkpoint.BatchID) string {
	if isCompaction(id) {
		return strconv.FormatInt(int64(id), 10) + ".compact"
	}
	return strconv.FormatInt(int64(id), 10)
}

// noteName is the second name of batch id's manifest, which carries the batch digest.
func noteName(id checkpoint.BatchID, digest string) string {
	return fmt.Sprintf("_wasmill.%d.%s", id, digest)
}

var (
	noteForm   = regexp.MustCompile(`^_wasmill\.([0-9]{1,18})\.([0-9a-f]{32})$`)
	manifestID = regexp.MustCompile(`^([0-9]{1,18})(\.compact)?$`)
	digestForm = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// versionLine begins every manifest file.
const versionLine = "v1"

// manifest is what _spark_metadata holds.
type manifest struct {
	last  checkpoint.BatchID // the newest id there is, or NoBatch
	done  checkpoint.BatchID // the newest finished batch, or NoBatch; beyond it a crash may have left ids with gaps
	there map[checkpoint.BatchID]bool
	notes map[checkpoint.BatchID][]string // digests, by id
}

// digest returns the batch digest of an id that is published and finished.
func (m *manifest) digest(id checkpoint.BatchID) (string, bool) {
	if m.there[id] && len(m.notes[id]) == 1 {
		return m.notes[id][0], true
	}
	return "", false
}

// published returns the newest finished batch. Ids after it without a digest are empty ones filled in, or a publish that
// a crash cut off.
func (m *manifest) published() sink.Published {
	p := sink.Published{Batch: checkpoint.NoBatch}
	for id := range m.notes {
		if d, ok := m.digest(id); ok && id > p.Batch {
			p = sink.Published{Batch: id, Digest: d}
		}
	}
	return p
}

// first is the oldest id whose file readers need when the newest is last.
func first(last checkpoint.BatchID) checkpoint.BatchID {
	return max(0, (last+1)/compactInterval*compactInterval-1)
}

// readManifest lists the manifest's files and checks that none is missing of those that readers need.
func (t *Target) readManifest() (manifest, error) {
	m := manifest{
		last: checkpoint.NoBatch, done: checkpoint.NoBatch, there: map[checkpoint.BatchID]bool{}, notes: map[checkpoint.BatchID][]string{},
	}
	infos, err := t.files.List(t.meta(""))
	if err != nil {
		return m, err
	}
	for _, i := range infos {
		if f := noteForm.FindStringSubmatch(i.Name); f != nil {
			id := parseID(f[1])
			m.notes[id] = append(m.notes[id], f[2])
			continue
		}
		f := manifestID.FindStringSubmatch(i.Name)
		if f == nil || i.Dir {
			continue
		}
		id := parseID(f[1])
		if (f[2] != "") != isCompaction(id) {
			return m, t.fail(CodeDamaged, t.meta(i.Name), "restore the directory from a backup; or "+beginAnew,
				"the manifest has a file that belongs to another compaction interval than %d", compactInterval)
		}
		m.there[id] = true
		m.last = max(m.last, id)
	}
	if err := t.settleNotes(&m); err != nil {
		return m, err
	}
	m.done = m.published().Batch
	for id := first(m.done); id < m.done; id++ {
		if !m.there[id] {
			return m, t.fail(CodeDamaged, t.meta(manifestName(id)), restoreFile,
				"a manifest file is missing; the newest is %d", m.done)
		}
	}
	return m, nil
}

// settleNotes finds out which digest is the newest manifest's when a process that had lost its lock left a second one: the
// names of one file have one content.
func (t *Target) settleNotes(m *manifest) error {
	if len(m.notes[m.last]) < 2 {
		return nil
	}
	want, err := t.contentHash(manifestName(m.last))
	if err != nil {
		return err
	}
	var same []string
	for _, digest := range m.notes[m.last] {
		got, err := t.contentHash(noteName(m.last, digest))
		if err != nil {
			return err
		}
		if got == want {
			same = append(same, digest)
		}
	}
	m.notes[m.last] = same
	return nil
}

func (t *Target) contentHash(name string) (xxh3.Uint128, error) {
	f, err := t.files.Open(t.meta(name))
	if err != nil {
		return xxh3.Uint128{}, err
	}
	h := xxh3.New()
	_, err = io.Copy(h, f)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return h.Sum128(), err
}

func parseID(s string) checkpoint.BatchID {
	n, _ := strconv.ParseInt(s, 10, 64) // the callers' patterns hold 18 digits at most
	return checkpoint.BatchID(n)
}

// entryLine is one file in the manifest, in Spark's order of keys and with no others.
func (t *Target) entryLine(p *part) string {
	return fmt.Sprintf(`{"path":"%s","size":%d,"isDir":false,"modificationTime":%d,"blockReplication":1,"blockSize":33554432,"action":"add"}`,
		t.entryURI(p), p.Size, p.Time)
}

// entryURI needs no escapes of JSON: fileURI leaves neither quotes nor backslashes nor control characters.
func (t *Target) entryURI(p *part) string { return fileURI(t.dir + "/" + p.Path) }

// entry is what is read back of a line.
type entry struct {
	Path             string `json:"path"`
	Size             int64  `json:"size"`
	ModificationTime int64  `json:"modificationTime"`
}

// maxLine bounds a manifest's line: a path has at most 4,096 bytes.
const maxLine = 64 << 10

// lines calls fn for each entry line of a manifest file.
func (t *Target) lines(name string, fn func(line []byte) error) error {
	f, err := t.files.Open(t.meta(name))
	if err != nil {
		return err
	}
	err = scanManifest(f, fn)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if errors.Is(err, errManifest) {
		return t.fail(CodeDamaged, t.meta(name), restoreFile, "%w", err)
	}
	return err
}

var errManifest = errors.New("this is no manifest of Spark's version 1")

func scanManifest(r io.Reader, fn func(line []byte) error) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 4096), maxLine)
	for n := 0; sc.Scan(); n++ {
		line := sc.Bytes()
		if n == 0 {
			if string(line) != versionLine {
				return fmt.Errorf("%w: the first line is %.20q", errManifest, line)
			}
			continue
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := fn(line); err != nil {
			return err
		}
	}
	if errors.Is(sc.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("%w: a line of more than %d bytes", errManifest, maxLine)
	}
	return sc.Err()
}

func parseEntry(line []byte) (entry, error) {
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		return e, fmt.Errorf("%w: %w", errManifest, err)
	}
	return e, nil
}

// all calls fn for each entry line up to the newest id.
func (t *Target) all(last checkpoint.BatchID, fn func(line []byte) error) error {
	for id := first(last); id <= last; id++ {
		if err := t.lines(manifestName(id), fn); err != nil {
			return err
		}
	}
	return nil
}

// manifestWriter writes a manifest file line by line, so that a compaction of any size takes no memory.
type manifestWriter struct {
	f   durable.File
	buf *bufio.Writer
}

// createManifest makes a file in _spark_metadata with the version line. A left-over of that name gives way: it is not
// visible, as nothing links to it.
func (t *Target) createManifest(name string) (*manifestWriter, error) {
	f, err := t.files.Create(t.meta(name))
	if errors.Is(err, fs.ErrExist) {
		if err = t.files.Remove(t.meta(name)); err == nil {
			f, err = t.files.Create(t.meta(name))
		}
	}
	if err != nil {
		return nil, err
	}
	w := &manifestWriter{f: f, buf: bufio.NewWriter(f)}
	_, err = w.buf.WriteString(versionLine)
	return w, err
}

func (w *manifestWriter) line(b []byte) error {
	if err := w.buf.WriteByte('\n'); err != nil {
		return err
	}
	_, err := w.buf.Write(b)
	return err
}

// finish makes the content durable. err is what went wrong before, if anything.
func (w *manifestWriter) finish(err error) error {
	if err == nil {
		err = w.buf.Flush()
	}
	if err == nil {
		err = w.f.Sync()
	}
	if closeErr := w.f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// sameEntries reports whether the manifest of a batch ends with exactly the lines of its parts.
func (t *Target) sameEntries(id checkpoint.BatchID, parts []part) (bool, error) {
	want := make([]string, len(parts))
	for i := range parts {
		want[i] = t.entryLine(&parts[i])
	}
	var tail []string // the last len(want) lines, and of a plain file one more if there is one
	keep := len(want)
	if !isCompaction(id) {
		keep++
	}
	err := t.lines(manifestName(id), func(line []byte) error {
		if len(tail) == keep && keep > 0 {
			tail = append(tail[:0], tail[1:]...)
		}
		if keep > 0 {
			tail = append(tail, string(line))
		}
		return nil
	})
	return err == nil && strings.Join(tail, "\n") == strings.Join(want, "\n"), err
}
