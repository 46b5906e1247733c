package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"regexp"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// Write implements sql.Conn. Deletions come first: a row may take up a value that another one's deletion sets free.
func (c *Conn) Write(ctx context.Context, bound sql.Binding, ch *sql.Changes) error {
	b, ok := bound.(*binding)
	if !ok {
		return errors.New("a binding of another driver")
	}
	if err := c.byArrays(ctx, b, b.remove, b.keys, &ch.Gone); err != nil {
		return atRow(err, true)
	}
	switch {
	case ch.Put.Len() == 0:
		return nil
	case b.named != "":
		return c.byStatement(ctx, b, &ch.Put)
	case b.copy != "":
		return c.byCopy(ctx, b, &ch.Put)
	}
	return c.byArrays(ctx, b, b.insert, b.fields, &ch.Put)
}

// Hold implements sql.Conn. To parse an INSERT locks its table against changes until the transaction ends, without carrying
// anything out. A statement of a user is parsed by the server with the types that it is given.
func (c *Conn) Hold(ctx context.Context, bound sql.Binding) (bool, error) {
	b, ok := bound.(*binding)
	if !ok {
		return false, errors.New("a binding of another driver")
	}
	if b.table == nil {
		return true, nil
	}
	preparing, cancel := c.bounded(ctx)
	defer cancel()
	if _, err := c.pg.Prepare(preparing, "", b.insert, nil); err != nil {
		return false, err
	}
	mark, err := c.markOf(ctx, b.table.name)
	return mark == b.table.mark, err
}

func atRow(err error, gone bool) error {
	if at := (*sql.RowError)(nil); errors.As(err, &at) {
		at.Gone = gone
	}
	return err
}

// copyReader makes the binary form of COPY out of rows. A connection that breaks is given up while its sender may still read:
// after close that finds nothing, as the rows are used for something else by then.
type copyReader struct {
	mu     sync.Mutex
	closed bool
	fields []field
	rows   *sql.Rows
	next   int
	vector [][]*rows.Vector // by table and field
	buf    []byte
	rest   []byte // of buf
	ended  bool
}

// copyBuffer is filled before it is sent; a row may be longer.
const copyBuffer = 64 << 10

var copyHeader = []byte("PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00")

// newCopyReader returns a reader that uses the memory of a buffer.
func newCopyReader(fields []field, rows *sql.Rows, buf []byte) *copyReader {
	if cap(buf) > 16*copyBuffer {
		buf = nil
	}
	buf = append(buf[:0], copyHeader...)
	return &copyReader{fields: fields, rows: rows, vector: vectors(nil, fields, rows), buf: buf, rest: buf}
}

// close ends all reading and returns the buffer.
func (r *copyReader) close() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return r.buf
}

func vectors(to [][]*rows.Vector, fields []field, r *sql.Rows) [][]*rows.Vector {
	for _, t := range r.Tables {
		list := make([]*rows.Vector, len(fields))
		for i, f := range fields {
			list[i] = t.Column(f.at)
		}
		to = append(to, list)
	}
	return to
}

// Read implements io.Reader.
func (r *copyReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, io.ErrClosedPipe
	}
	if len(r.rest) == 0 {
		if r.ended {
			return 0, io.EOF
		}
		r.fill()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *copyReader) fill() {
	b := r.buf[:0]
	refs := r.rows.Refs
	for r.next < len(refs) && len(b) < copyBuffer {
		ref := refs[r.next]
		r.next++
		vs := r.vector[ref.Table]
		b = binary.BigEndian.AppendUint16(b, uint16(len(r.fields)))
		for i := range r.fields {
			b = appendField(b, r.fields[i].form, vs[i], int(ref.Row))
		}
	}
	if r.next == len(refs) {
		b = append(b, 0xff, 0xff)
		r.ended = true
	}
	r.buf, r.rest = b, b
}

func (c *Conn) byCopy(ctx context.Context, b *binding, r *sql.Rows) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	reader := newCopyReader(b.fields, r, c.copyBuf)
	_, err := c.pg.CopyFrom(ctx, reader, b.copy)
	c.copyBuf = reader.close()
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		if line := copyLine.FindStringSubmatch(pg.Where); line != nil {
			if n, bad := strconv.Atoi(line[1]); bad == nil && n >= 1 && n <= r.Len() {
				return &sql.RowError{Row: n - 1, Err: err}
			}
		}
	}
	return err
}

// copyLine finds the row in the context that the server gives an error of COPY.
var copyLine = regexp.MustCompile(`^COPY .*, line (\d+)`)

// Bounds of what is sent at once in arrays.
const (
	arrayRows  = 10_000
	arrayBytes = 16 << 20
	// wholeBytes is the bound where rows may need each other: the server takes less than 1 GiB at once.
	wholeBytes = 512 << 20
)

// byArrays runs a statement whose parameters are the columns of rows.
func (c *Conn) byArrays(ctx context.Context, b *binding, statement string, fields []field, r *sql.Rows) error {
	vs := vectors(nil, fields, r)
	most, mostBytes := arrayRows, int64(arrayBytes)
	if b.whole {
		most, mostBytes = r.Len(), wholeBytes
	}
	var buf []byte
	for from := 0; from < r.Len(); {
		to, size := from, int64(0)
		for to < r.Len() && to-from < most && size < mostBytes {
			ref := r.Refs[to]
			size += r.Tables[ref.Table].RowBytes(int(ref.Row))
			to++
		}
		buf = buf[:0]
		ends := make([]int, len(fields))
		for i := range fields {
			buf = appendArray(buf, &fields[i], i, vs, r.Refs[from:to])
			ends[i] = len(buf)
		}
		values, formats := make([][]byte, len(fields)), make([]int16, len(fields))
		start := 0
		for i, end := range ends {
			values[i], formats[i] = buf[start:end], 1
			start = end
		}
		if err := c.params(ctx, statement, values, formats); err != nil {
			return err
		}
		from = to
	}
	return nil
}

func (c *Conn) params(ctx context.Context, statement string, values [][]byte, formats []int16) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	_, err := c.pg.ExecParams(ctx, statement, values, nil, formats, nil).Close()
	return err
}

// appendArray appends a column of rows as an array of one dimension that begins at 1.
func appendArray(b []byte, f *field, column int, vs [][]*rows.Vector, refs []sql.Ref) []byte {
	for _, n := range []uint32{1, 1, f.oid, uint32(len(refs)), 1} { // dimensions, has nulls, element, length, lower bound
		b = binary.BigEndian.AppendUint32(b, n)
	}
	for _, ref := range refs {
		b = appendField(b, f.form, vs[ref.Table][column], int(ref.Row))
	}
	return b
}

// statementRows are sent before their answers are waited for.
const statementRows = 500

// byStatement runs the user's statement for each row.
func (c *Conn) byStatement(ctx context.Context, b *binding, r *sql.Rows) error {
	vs := vectors(nil, b.params, r)
	values, formats := make([][]byte, len(b.params)), make([]int16, len(b.params))
	for i, p := range b.params {
		if p.oid != 0 {
			formats[i] = 1
		}
	}
	var buf []byte
	ends := make([]int, len(b.params))
	for from := 0; from < r.Len(); from += statementRows {
		to := min(from+statementRows, r.Len())
		var batch pgconn.Batch
		for _, ref := range r.Refs[from:to] {
			buf = buf[:0]
			for i := range b.params {
				buf = appendField(buf, b.params[i].form, vs[ref.Table][i], int(ref.Row))
				ends[i] = len(buf)
			}
			start := 0
			for i, end := range ends {
				if values[i] = buf[start+4 : end]; vs[ref.Table][i].Valid[ref.Row] == 0 {
					values[i] = nil
				}
				start = end
			}
			batch.ExecPrepared(b.named, values, formats, nil)
		}
		if done, err := c.batch(ctx, &batch); err != nil {
			return &sql.RowError{Row: from + done, Err: err}
		}
	}
	return nil
}

// batch returns how many statements went well.
func (c *Conn) batch(ctx context.Context, batch *pgconn.Batch) (done int, err error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	all := c.pg.ExecBatch(ctx, batch)
	for all.NextResult() {
		if _, err := all.ResultReader().Close(); err != nil {
			break
		}
		done++
	}
	return done, all.Close()
}
