package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows/jsonvalue"
	"github.com/wasmill/wasmill/host/source"
)

// csvRows cuts blocks into CSV rows (RFC 4180): a row ends at an end of line outside quotes, a quote counts at the
// beginning of a field and is doubled within. Empty rows are none. A quoted field may hold ends of lines, up to MaxLine.
type csvRows struct {
	lines lineScanner
	comma byte
	start int64 // offset of the first byte
	bom   bool  // the next row may begin with a byte order mark
	buf   []byte
}

func newCSVRows(next func() ([]byte, error), from int64, cfg *Config) *csvRows {
	return &csvRows{lines: lineScanner{next: next, max: cfg.MaxLine}, comma: cfg.CSV.Comma, start: from, bom: from == 0}
}

// off returns the offset after the last row.
func (c *csvRows) off() int64 { return c.start + c.lines.off }

// row returns the next row without its end of line, valid until the next call. A row over the limit is cut and long.
func (c *csvRows) row() (row []byte, long bool, err error) {
	for {
		line, long, err := c.lines.line()
		if err != nil {
			return nil, false, err
		}
		if c.bom {
			line, c.bom = trimBOM(line), false
		}
		if long || bytes.IndexByte(line, '"') < 0 || !openAfter(line, false, c.comma) {
			if line = trimCR(line); len(line) == 0 {
				continue
			}
			return line, long, nil
		}
		return c.quoted(line)
	}
}

// quoted goes on with a row whose first line ends within quotes.
func (c *csvRows) quoted(first []byte) ([]byte, bool, error) {
	c.buf = append(c.buf[:0], first...)
	for {
		line, long, err := c.lines.line()
		if err == io.EOF {
			return c.buf, false, nil // never closed: the row is not well formed
		}
		if err != nil {
			return nil, false, err
		}
		c.buf = append(append(c.buf, '\n'), line...)
		if long || len(c.buf) > c.lines.max {
			return c.buf, true, nil
		}
		if !openAfter(line, true, c.comma) {
			return trimCR(c.buf), false, nil
		}
	}
}

func trimCR(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\r' {
		return b[:n-1]
	}
	return b
}

// openAfter reports whether a line ends within quotes. in says whether it begins there.
func openAfter(line []byte, in bool, comma byte) bool {
	for {
		if in {
			i := bytes.IndexByte(line, '"')
			if i < 0 {
				return true
			}
			if line = line[i+1:]; len(line) > 0 && line[0] == '"' {
				line = line[1:]
				continue
			}
			in = false
		} else if len(line) > 0 && line[0] == '"' {
			line, in = line[1:], true
			continue
		}
		i := bytes.IndexByte(line, comma)
		if i < 0 {
			return false
		}
		line = line[i+1:]
	}
}

// hasHeader reports whether the first row of a file names columns.
func (o *CSVOptions) hasHeader() bool { return !o.NoHeader }

// scanCSV counts rows from a place on as far as the budget goes. The header row is none; it is checked before the file
// is planned, as long as its first line can still be mended.
func scanCSV(in *blocks, from place, left *budget, cfg *Config) (scanned, error) {
	rows := newCSVRows(in.next, from.Off, cfg)
	at := from
	if from.Off == 0 && cfg.CSV.hasHeader() {
		row, long, err := rows.row()
		if err != nil && err != io.EOF {
			return scanned{}, err
		}
		if len(cfg.CSV.Columns) == 0 {
			if _, err := headerNames(row, long, cfg.CSV.Comma); err != nil {
				return scanned{}, fault.New(CodeHeader, in.st.path, err,
					"Mend the file's first line, or list the columns in the source's csv options; or correct the source's `format`, if its files are no CSV.")
			}
		}
		at.Off = rows.off()
		in.sums.hold(at.Off)
	}
	for {
		if at.Line-from.Line >= left.records {
			eof, err := atEnd(in, at)
			return scanned{end: at, eof: eof}, err
		}
		_, _, err := rows.row()
		if err == io.EOF {
			return scanned{end: place{rows.off(), at.Line}, eof: true}, nil
		}
		if err != nil {
			return scanned{}, err
		}
		taken := at.Line > from.Line || left.any
		if taken && rows.off()-from.Off > left.bytes {
			eof, err := atEnd(in, at)
			return scanned{end: at, eof: eof}, err
		}
		at = place{rows.off(), at.Line + 1}
		in.sums.hold(at.Off)
	}
}

func (s *Source) readCSV(in *partReader, p *part, rec *abi.Record, to source.Writer) error {
	rows := newCSVRows(in.next, p.From.Off, &s.cfg)
	head, err := s.csvHead(in.ctx, p, rows)
	if err != nil {
		return err
	}
	var out []byte
	at := p.From
	for ; ; at.Line++ {
		row, long, err := rows.row()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		rec.Offset = at.Line
		code, reason := RejectTooLarge, "the row is longer than the limit"
		if !long {
			code = ""
			if out, reason = head.object(out[:0], row); reason != "" {
				code = RejectRow
			} else if len(out) > s.cfg.MaxLine {
				code, reason = RejectTooLarge, "the row as JSON is longer than the limit"
			}
		}
		if code != "" {
			rec.Value = row[:min(len(row), cutReject, s.cfg.MaxLine)]
			err = to.Reject(rec, code, reason)
		} else {
			rec.Value = out
			err = to.Write(rec)
		}
		if err != nil {
			return err
		}
	}
	at.Off = rows.off()
	return in.assert(at)
}

// csvHead knows a file's columns. keys are the JSON object's pieces before each value, nil when columns have no names.
type csvHead struct {
	comma byte
	keys  [][]byte
	bound int
}

// csvHead returns the columns of a part's file. It takes the header row off rows when the part holds it.
func (s *Source) csvHead(ctx context.Context, p *part, rows *csvRows) (h *csvHead, err error) {
	h = &csvHead{comma: s.cfg.CSV.Comma, bound: s.cfg.MaxLine}
	names := s.cfg.CSV.Columns
	if s.cfg.CSV.hasHeader() {
		if p.From.Off > 0 && len(names) == 0 {
			st, err := s.openStream(&p.entry, 0)
			if err != nil {
				return nil, err
			}
			defer closeWith(&err, st)
			in := &blocks{ctx: ctx, st: st, buf: make([]byte, blockSize)}
			rows = newCSVRows(in.next, 0, &s.cfg)
		}
		if rows.start == 0 {
			row, long, err := rows.row()
			if err != nil && err != io.EOF {
				return nil, err
			}
			if len(names) == 0 {
				if names, err = headerNames(row, long, h.comma); err != nil {
					return nil, fault.New(CodeHeader, p.Path, err,
						"mend the file's first line, or list the columns in the source's csv options")
				}
			}
		}
	}
	for i, name := range names {
		key := []byte{','}
		if i == 0 {
			key[0] = '{'
		}
		h.keys = append(h.keys, append(jsonvalue.AppendText(key, []byte(name)), ':'))
	}
	return h, nil
}

func headerNames(row []byte, long bool, comma byte) ([]string, error) {
	if long {
		return nil, errors.New("the header row is longer than a record may be")
	}
	if bytes.HasPrefix(row, []byte(parquetMagic)) && bytes.IndexByte(row, 0) >= 0 {
		return nil, errors.New("the file begins as Parquet does")
	}
	var names []string
	seen := map[string]bool{}
	reason := splitRow(row, comma, func(field []byte, _ bool) bool {
		name := string(field)
		if name == "" {
			name = "_c" + strconv.Itoa(len(names))
		}
		names = append(names, name)
		return true
	})
	if reason != "" {
		return nil, errors.New("the header row: " + reason)
	}
	for _, name := range names {
		if seen[name] {
			return nil, fmt.Errorf("the header row names column %.100q twice", name)
		}
		seen[name] = true
	}
	return names, nil
}

// object appends a row as one JSON object of strings; an empty field without quotes is null, as in Spark. reason says
// what is wrong with the row.
func (h *csvHead) object(dst, row []byte) (out []byte, reason string) {
	i := 0
	reason = splitRow(row, h.comma, func(field []byte, null bool) bool {
		switch {
		case i < len(h.keys):
			dst = append(dst, h.keys[i]...)
		case h.keys != nil:
			i++
			return true
		default:
			dst = append(dst, `,"_c`...)
			dst = append(strconv.AppendInt(dst, int64(i), 10), `":`...)
			dst[0] = '{'
		}
		i++
		if null {
			dst = append(dst, "null"...)
		} else {
			dst = jsonvalue.AppendText(dst, field)
		}
		return len(dst) <= h.bound
	})
	if reason == "" && h.keys != nil && i != len(h.keys) && len(dst) <= h.bound {
		reason = fmt.Sprintf("the row has %d fields, its header %d", i, len(h.keys))
	}
	return append(dst, '}'), reason
}

// splitRow hands over a row's fields until take says no. An empty field without quotes is null. It returns what is wrong.
func splitRow(row []byte, comma byte, take func(field []byte, null bool) bool) string {
	for {
		var field []byte
		quoted := len(row) > 0 && row[0] == '"'
		if quoted {
			end := closingQuote(row)
			if end < 0 {
				return "a quote is never closed"
			}
			field = row[1:end]
			if bytes.IndexByte(field, '"') >= 0 {
				field = bytes.ReplaceAll(field, []byte(`""`), []byte(`"`))
			}
			if row = row[end+1:]; len(row) > 0 && row[0] != comma {
				return "text follows a closing quote"
			}
		} else if i := bytes.IndexByte(row, comma); i >= 0 {
			field, row = row[:i], row[i:]
		} else {
			field, row = row, nil
		}
		if !take(field, !quoted && len(field) == 0) || len(row) == 0 {
			return ""
		}
		row = row[1:]
	}
}

// closingQuote returns where the quoted field at the beginning of row ends, or -1.
func closingQuote(row []byte) int {
	for i := 1; ; {
		n := bytes.IndexByte(row[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		if i+1 == len(row) || row[i+1] != '"' {
			return i
		}
		i += 2
	}
}
