package kafka

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// The codecs of a record batch, bits 0 to 2 of its attributes.
const (
	codecNone   = 0
	codecGzip   = 1
	codecSnappy = 2
	codecLZ4    = 3
	codecZstd   = 4
)

var errTooLarge = errors.New("a stored batch unpacks to more than is taken")

// unpacker unpacks the records of batches into one buffer, up to max bytes. It is not safe for parallel use.
type unpacker struct {
	max  int
	buf  []byte
	in   bytes.Reader
	gzip gzip.Reader
	lz4  *lz4.Reader
	zstd *zstd.Decoder
}

// unpack returns the records of a batch, valid until the next call.
func (u *unpacker) unpack(codec int, src []byte) (out []byte, err error) {
	switch codec {
	case codecNone:
		return src, nil
	case codecGzip:
		u.in.Reset(src)
		if err := u.gzip.Reset(&u.in); err != nil {
			return nil, err
		}
		err = u.fill(&u.gzip)
	case codecSnappy:
		err = u.snappy(src)
	case codecLZ4:
		if u.lz4 == nil {
			u.lz4 = lz4.NewReader(nil)
		}
		u.in.Reset(src)
		u.lz4.Reset(&u.in)
		err = u.fill(u.lz4)
	case codecZstd:
		err = u.unzstd(src)
	default:
		return nil, fmt.Errorf("compression codec %d is not known", codec)
	}
	return u.buf, err
}

// fill reads r to its end into the buffer.
func (u *unpacker) fill(r io.Reader) error {
	u.buf = u.buf[:0]
	for {
		if len(u.buf) == cap(u.buf) {
			u.buf = append(u.buf, 0)[:len(u.buf)]
		}
		n, err := r.Read(u.buf[len(u.buf):cap(u.buf)])
		u.buf = u.buf[:len(u.buf)+n]
		if len(u.buf) > u.max {
			return errTooLarge
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (u *unpacker) unzstd(src []byte) (err error) {
	if u.zstd == nil {
		u.zstd, err = zstd.NewReader(nil, zstd.WithDecoderLowmem(true), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(u.max)))
		if err != nil {
			return err
		}
	}
	out, err := u.zstd.DecodeAll(src, u.buf[:0])
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return errTooLarge
	}
	if err == nil {
		u.buf = out
	}
	return err
}

// xerial begins the framing that Java's snappy-java lays around blocks: 8 bytes of magic, two versions, then blocks with a
// length of four bytes each.
var xerial = []byte("\x82SNAPPY\x00")

const xerialHeader = 16

func (u *unpacker) snappy(src []byte) error {
	u.buf = u.buf[:0]
	if !bytes.HasPrefix(src, xerial) || len(src) < xerialHeader {
		return u.block(src)
	}
	for src = src[xerialHeader:]; len(src) > 0; {
		if len(src) < 4 {
			return io.ErrUnexpectedEOF
		}
		n := binary.BigEndian.Uint32(src)
		if src = src[4:]; uint64(n) > uint64(len(src)) {
			return io.ErrUnexpectedEOF
		}
		if err := u.block(src[:n]); err != nil {
			return err
		}
		src = src[n:]
	}
	return nil
}

// block appends one block of snappy to the buffer.
func (u *unpacker) block(src []byte) error {
	n, err := s2.DecodedLen(src)
	if err != nil {
		return err
	}
	at := len(u.buf)
	if n > u.max-at {
		return errTooLarge
	}
	if need := at + n; need > cap(u.buf) {
		grown := make([]byte, at, max(need, 2*cap(u.buf)))
		copy(grown, u.buf)
		u.buf = grown
	}
	if _, err := s2.Decode(u.buf[at:at+n:at+n], src); err != nil {
		return err
	}
	u.buf = u.buf[:at+n]
	return nil
}
