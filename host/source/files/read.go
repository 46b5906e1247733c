package files

import (
	"context"
	"io"
	"sync"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/source"
)

const (
	// cutReject is how much of what is too long to be a record is handed over with its rejection.
	cutReject = 64 << 10
)

var bom = []byte("\xef\xbb\xbf")

// Read delivers a split's records and asserts that they end where the plan says.
func (s *Source) Read(ctx context.Context, split source.Split, to source.Writer) error {
	p, err := decodePart(split)
	if err != nil {
		return err
	}
	return s.explain(ctx, p, s.readPart(ctx, p, to))
}

func (s *Source) readPart(ctx context.Context, p *part, to source.Writer) error {
	rec := &abi.Record{Headers: s.attached(p.Path)}
	if s.cfg.Format == Parquet {
		return s.readParquet(ctx, p, rec, to)
	}
	in, err := s.openPart(ctx, p)
	if err != nil {
		return err
	}
	if s.cfg.Format == CSV {
		err = s.readCSV(in, p, rec, to)
	} else {
		err = s.readLines(in, p, rec, to)
	}
	if cerr := in.close(); err == nil {
		err = cerr
	}
	return err
}

func (s *Source) attached(path string) []abi.Header {
	var h []abi.Header
	for _, name := range s.cfg.Attach {
		h = append(h, abi.Header{Name: []byte(name), Value: []byte(path)})
	}
	return h
}

func (s *Source) readLines(in *partReader, p *part, rec *abi.Record, to source.Writer) error {
	lines := lineScanner{next: in.next, max: s.cfg.MaxLine}
	blank := isEmpty
	if s.cfg.Format == JSONL {
		blank = isBlank
	}
	first := p.From.Off == 0
	number := p.From.Line
	for ; ; number++ {
		line, long, err := lines.line()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if first {
			line, first = trimBOM(line), false
		}
		rec.Offset = number
		if long {
			rec.Value = line[:min(len(line), cutReject, s.cfg.MaxLine)]
			if err := to.Reject(rec, RejectTooLarge, "the line is longer than the limit"); err != nil {
				return err
			}
			continue
		}
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		if blank(line) {
			continue
		}
		rec.Value = line
		if err := to.Write(rec); err != nil {
			return err
		}
	}
	return in.assert(place{p.From.Off + lines.off, number})
}

func trimBOM(line []byte) []byte {
	if len(line) >= 3 && string(line[:3]) == string(bom) {
		return line[3:]
	}
	return line
}

func isEmpty(line []byte) bool { return len(line) == 0 }

// isBlank reports whether a line holds blanks and tabs only.
func isBlank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// partReader hands out the blocks of one part: kept ones, or decoded from the file.
type partReader struct {
	ctx  context.Context
	part *part
	off  int64 // end of the last block handed out

	kept *kept
	st   *stream
	buf  *[]byte
	pool *sync.Pool
}

func (s *Source) openPart(ctx context.Context, p *part) (*partReader, error) {
	in := &partReader{ctx: ctx, part: p, off: p.From.Off, pool: s.scratch}
	if in.kept = s.cache.covering(p.key(), p.From, p.To); in.kept != nil {
		return in, nil
	}
	var err error
	if in.st, err = s.openStream(&p.entry, p.From.Off); err != nil {
		return nil, err
	}
	in.buf = s.scratch.Get().(*[]byte)
	return in, nil
}

func (r *partReader) next() ([]byte, error) {
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	left := r.part.To.Off - r.off
	if left <= 0 {
		return nil, io.EOF
	}
	var b []byte
	if r.kept != nil {
		at := r.off - r.kept.from.Off
		b = r.kept.chunks[at/blockSize][at%blockSize:]
		b = b[:min(left, int64(len(b)))]
	} else {
		n, err := r.st.fill((*r.buf)[:min(left, blockSize)])
		if err != nil {
			return nil, err
		}
		b = (*r.buf)[:n]
	}
	r.off += int64(len(b))
	return b, nil
}

// assert says whether a part ended where it was planned to, and the file with it.
func (r *partReader) assert(end place) error {
	p := r.part
	if end != p.To {
		return changed(p.Path, "the part planned to end at byte %d, line %d ends at byte %d, line %d", p.To.Off, p.To.Line, end.Off, end.Line)
	}
	if !p.EOF || r.kept != nil {
		return nil
	}
	more, err := r.st.more()
	if err != nil {
		return err
	}
	if more {
		return changed(p.Path, "the file goes on after byte %d, its planned end", p.To.Off)
	}
	return nil
}

func (r *partReader) close() error {
	if r.kept != nil {
		r.kept.release()
		return nil
	}
	r.pool.Put(r.buf)
	return r.st.Close()
}
