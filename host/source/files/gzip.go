package files

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
)

// errNoGzip says that a gzip file goes on with something else. The decoder alone would call a few such bytes the
// beginning of a member that ends too early.
var errNoGzip = errors.New("what follows its packed content is no gzip")

var gzipMagic = []byte{0x1f, 0x8b}

// gzipMembers reads the members of a gzip file (RFC 1952) one after another, as the one content that they are.
type gzipMembers struct {
	raw *bufio.Reader
	dec *gzip.Reader
}

func newGzipMembers(raw *bufio.Reader) (*gzipMembers, error) {
	dec, err := gzip.NewReader(raw)
	if err != nil {
		return nil, err
	}
	dec.Multistream(false)
	return &gzipMembers{raw: raw, dec: dec}, nil
}

func (g *gzipMembers) Read(p []byte) (int, error) {
	for {
		n, err := g.dec.Read(p)
		if err != io.EOF {
			return n, err
		}
		if n > 0 {
			return n, nil // the end is told once more
		}
		if err := g.next(); err != nil {
			return 0, err
		}
	}
}

// next goes on to the next member. io.EOF: there is none.
func (g *gzipMembers) next() error {
	magic, err := g.raw.Peek(len(gzipMagic))
	switch {
	case len(magic) == 0 || err != nil && err != io.EOF:
		return err
	case !bytes.HasPrefix(gzipMagic, magic):
		return errNoGzip
	}
	if err := g.dec.Reset(g.raw); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	g.dec.Multistream(false)
	return nil
}
