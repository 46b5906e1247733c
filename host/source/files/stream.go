package files

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
)

const (
	// blockSize is the step in which files are read and cut. Cuts are a pure function of content and this number: it
	// must not change without a change of the host's semantics.
	blockSize = 128 << 10
	etagEnd   = 4 << 10
	// maxWindow is the largest zstd window taken, that of --ultra -22 and --long=27.
	maxWindow = 128 << 20
)

// etag digests both ends of a file's first size bytes.
func etag(f io.ReaderAt, size int64) (string, error) {
	buf := make([]byte, min(size, 2*etagEnd))
	head := buf[:min(size, etagEnd)]
	if size <= 2*etagEnd {
		head = buf
	}
	if err := readAt(f, head, 0); err != nil {
		return "", err
	}
	if tail := buf[len(head):]; len(tail) > 0 {
		if err := readAt(f, tail, size-int64(len(tail))); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%016x", xxh3.Hash(buf)), nil
}

// readAt fills b or fails; a ReaderAt may say io.EOF with the last bytes.
func readAt(f io.ReaderAt, b []byte, off int64) error {
	n, err := f.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// open opens a planned file and asserts that it is still the one that was planned.
func (s *Source) open(e *entry) (durable.File, error) {
	f, err := s.cfg.Files.Open(e.Path)
	if err != nil {
		return nil, vanished(e.Path, err)
	}
	if err := verify(f, e); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func verify(f durable.File, e *entry) error {
	info, err := f.Stat()
	if err != nil {
		return unreadable(e.Path, err)
	}
	if info.Size < e.Size {
		return changed(e.Path, "the file shrank from %d to %d bytes after it was planned", e.Size, info.Size)
	}
	tag, err := etag(f, e.Size)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return changed(e.Path, "the file shrank below %d bytes after it was planned", e.Size)
	}
	if err != nil {
		return unreadable(e.Path, err)
	}
	if tag != e.ETag {
		return changed(e.Path, "the content changed after it was planned (etag %s, planned %s)", tag, e.ETag)
	}
	return nil
}

// stream is the decoded content of a file's first size bytes. It stands at off.
type stream struct {
	path   string
	file   durable.File
	plain  *io.SectionReader // nil when packed
	dec    io.Reader
	end    func() // gives up the decoder
	off    int64
	left   []byte // decoded already, the next to come
	failed error  // what ended the stream, io.EOF included
}

// newStream takes over f, also when it fails.
func newStream(f durable.File, path string, size int64, c Compression) (*stream, error) {
	raw := io.NewSectionReader(f, 0, size)
	st := &stream{path: path, file: f, end: func() {}}
	switch compression(c, path, f, size) {
	case Gzip:
		dec, err := newGzipMembers(bufio.NewReaderSize(raw, int(min(size, 64<<10))))
		if err != nil {
			return nil, errors.Join(decodeFault(path, err), f.Close())
		}
		st.dec = dec
	case Zstd:
		dec, err := zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, errors.Join(decodeFault(path, err), f.Close())
		}
		st.dec, st.end = dec, dec.Close
	default:
		st.plain, st.dec = raw, raw
	}
	return st, nil
}

// compression decides what Auto means for a file.
func compression(c Compression, path string, f io.ReaderAt, size int64) Compression {
	if c != Auto {
		return c
	}
	var magic [4]byte
	n := min(size, 4)
	if readAt(f, magic[:n], 0) == nil {
		switch {
		case bytes.HasPrefix(magic[:n], []byte{0x1f, 0x8b}):
			return Gzip
		case bytes.HasPrefix(magic[:n], []byte{0x28, 0xb5, 0x2f, 0xfd}):
			return Zstd
		}
	}
	switch {
	case strings.HasSuffix(path, ".gz"):
		return Gzip
	case strings.HasSuffix(path, ".zst"):
		return Zstd
	}
	return None
}

func decodeFault(path string, err error) error {
	var disk *fs.PathError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF:
		return fault.New(CodeTruncated, path, fmt.Errorf("the packed file ends too early: %w", err),
			"copy the file again; write it under a hidden name and rename it when it is complete")
	case errors.As(err, &disk):
		return unreadable(path, err)
	case errors.Is(err, errNoGzip):
		return fault.New(CodeCorrupt, path, fmt.Errorf("the packed file is whole, but %w", err),
			"Take off what follows, or copy the file again, or move it out of the source's path.")
	}
	return fault.New(CodeCorrupt, path, fmt.Errorf("the packed file cannot be decoded: %w", err),
		"copy the file again, or move it out of the source's path")
}

// packed reports whether the stream is decoded from something.
func (st *stream) packed() bool { return st.plain == nil }

// fill fills buf with what comes next, less only at the end; at the end it returns 0 and io.EOF.
func (st *stream) fill(buf []byte) (int, error) {
	n := copy(buf, st.left)
	if st.left = st.left[n:]; len(st.left) == 0 {
		st.left = nil
	}
	for n < len(buf) && st.failed == nil {
		m, err := st.dec.Read(buf[n:])
		n += m
		st.failed = st.ended(err)
	}
	st.off += int64(n)
	if n > 0 && (st.failed == nil || st.failed == io.EOF) {
		return n, nil
	}
	return 0, st.failed
}

func (st *stream) ended(err error) error {
	switch {
	case err == nil || err == io.EOF && st.packed():
		return err
	case st.packed():
		return decodeFault(st.path, err)
	case err != io.EOF:
		return unreadable(st.path, err)
	}
	return io.EOF
}

// more reports whether anything comes after what was read.
func (st *stream) more() (bool, error) {
	if len(st.left) > 0 {
		return true, nil
	}
	var b [1]byte
	n, err := st.fill(b[:])
	if err == io.EOF {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	st.unread(b[:n])
	return true, nil
}

// unread puts back bytes that were read last. It takes a copy.
func (st *stream) unread(b []byte) {
	left := make([]byte, 0, len(b)+len(st.left))
	st.left = append(append(left, b...), st.left...)
	st.off -= int64(len(b))
}

// skipTo moves forward to a decoded offset.
func (st *stream) skipTo(off int64, buf []byte) error {
	if st.plain != nil {
		_, err := st.plain.Seek(off, io.SeekStart)
		st.off, st.left = off, nil
		return err
	}
	for st.off < off {
		n := min(int64(len(buf)), off-st.off)
		if _, err := st.fill(buf[:n]); err != nil {
			if err == io.EOF {
				return changed(st.path, "the file ends at %d decoded bytes, before the planned place %d", st.off, off)
			}
			return err
		}
	}
	return nil
}

// Close gives up the decoder and the file.
func (st *stream) Close() error {
	st.end()
	return st.file.Close()
}

// openStream opens a planned file and moves to a place in it.
func (s *Source) openStream(e *entry, off int64) (*stream, error) {
	f, err := s.open(e)
	if err != nil {
		return nil, err
	}
	st, err := newStream(f, e.Path, e.Size, s.cfg.Compression)
	if err != nil {
		return nil, err
	}
	buf := s.scratch.Get().(*[]byte)
	defer s.scratch.Put(buf)
	if err := st.skipTo(off, *buf); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return st, nil
}
