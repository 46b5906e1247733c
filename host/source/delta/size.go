package delta

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/go-json-experiment/json"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
)

// size is how much a file holds.
type size struct {
	rows  int64
	bytes int64 // decompressed
}

// each is the mean size of a row in bytes, at least one.
func (s size) each() int64 { return max(1, s.bytes/max(1, s.rows)) }

// place returns where a file of the table lies.
func (h *history) place(a *delta.Add) (string, error) {
	rel, err := a.File()
	if err != nil {
		return "", err
	}
	return path.Join(h.dir, rel), nil
}

// probe looks at a file and holds it against the log.
func (h *history) probe(ctx context.Context, a *delta.Add) (size, error) {
	if err := ctx.Err(); err != nil {
		return size{}, err
	}
	name, err := h.place(a)
	if err != nil {
		return size{}, err
	}
	f, err := open(h.files, name, a.Size)
	if err != nil {
		return size{}, err
	}
	footer, err := parquetfile.ReadFooter(f, a.Size)
	if cerr := f.Close(); err == nil && cerr != nil {
		return size{}, unreadable(name, cerr)
	}
	if err != nil {
		return size{}, notRead(name, err)
	}
	rows, known, err := rowsOf(a)
	if err != nil {
		return size{}, err
	}
	if known && rows != footer.Rows {
		return size{}, changed(name, "the file has %d rows, and the log says %d", footer.Rows, rows)
	}
	out := size{footer.Rows, footer.Bytes}
	h.count(name, out)
	return out, nil
}

func (h *history) count(name string, s size) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.counted) >= maxCounted {
		clear(h.counted)
	}
	h.counted[name] = s
}

// rows returns how many rows a file has: as it was found out, as the log says, or as the file does.
func (h *history) rows(ctx context.Context, a *delta.Add) (int64, error) {
	name, err := h.place(a)
	if err != nil {
		return 0, err
	}
	h.mu.Lock()
	s, known := h.counted[name]
	h.mu.Unlock()
	if known {
		return s.rows, nil
	}
	if n, known, err := rowsOf(a); known || err != nil {
		return n, err
	}
	s, err = h.probe(ctx, a)
	return s.rows, err
}

// rowsOf reads the number of rows from a file's statistics, which it may lack.
func rowsOf(a *delta.Add) (n int64, known bool, err error) {
	if a.Stats == "" {
		return 0, false, nil
	}
	var stats struct {
		NumRecords *int64 `json:"numRecords"`
	}
	if err := json.Unmarshal([]byte(a.Stats), &stats); err != nil || stats.NumRecords == nil || *stats.NumRecords < 0 {
		return 0, false, nil // statistics are no more than a help
	}
	return *stats.NumRecords, true, nil
}

// open opens a data file and asserts its size.
func open(files durable.Files, name string, size int64) (durable.File, error) {
	f, err := files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, changed(name, "the file is gone, and the log names it")
	}
	if err != nil {
		return nil, unreadable(name, err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = unreadable(name, err)
	case info.Size != size:
		err = changed(name, "the file has %d bytes, and the log says %d", info.Size, size)
	default:
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}

// notRead tells a disk that fails from a file that is not what it should be.
func notRead(name string, err error) error {
	var disk *fs.PathError
	if errors.As(err, &disk) {
		return unreadable(name, err)
	}
	return corrupt(name, fmt.Errorf("%w", err))
}
