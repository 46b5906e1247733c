package parquetfile

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/huff0"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// Codec is a compression of pages.
type Codec string

// The codecs.
const (
	None   Codec = "none"
	Snappy Codec = "snappy"
	Gzip   Codec = "gzip"
	Zstd   Codec = "zstd"
)

var codecIDs = map[Codec]int32{None: 0, Snappy: 1, Gzip: 2, Zstd: 6}

// compressor compresses one page at a time and keeps its tables from page to page.
type compressor struct {
	codec Codec
	zstd  *zstd.Encoder
	gzip  *gzip.Writer
	buf   bytes.Buffer

	huff   huff0.Scratch
	sample []byte
}

// zstdWindow bounds the encoder's memory; a page is seldom larger.
const zstdWindow = 256 << 10

func newCompressor(codec Codec) (*compressor, error) {
	c := &compressor{codec: codec}
	var err error
	switch codec {
	case None, Snappy:
	case Gzip:
		c.gzip, err = gzip.NewWriterLevel(&c.buf, gzip.DefaultCompression)
	case Zstd:
		c.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(zstdWindow), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	default:
		err = fmt.Errorf("unknown codec %q", codec)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s encoder: %w", codec, err)
	}
	return c, nil
}

// compress returns the page compressed, in dst's memory where that suffices. s belongs to the column chunk.
func (c *compressor) compress(dst, page []byte, s *strategy) ([]byte, error) {
	switch c.codec {
	case Zstd:
		if *s == undecided {
			*s = c.choose(page)
		}
		if *s == literals {
			return c.appendLiterals(dst[:0], page)
		}
		return c.zstd.EncodeAll(page, dst[:0]), nil
	case Snappy:
		if need := s2.MaxEncodedLen(len(page)); cap(dst) < need {
			dst = make([]byte, need)
		}
		return s2.EncodeSnappy(dst[:cap(dst)], page), nil
	case Gzip:
		c.buf.Reset()
		c.gzip.Reset(&c.buf)
		if _, err := c.gzip.Write(page); err != nil {
			return nil, fmt.Errorf("gzip a page: %w", err)
		}
		if err := c.gzip.Close(); err != nil {
			return nil, fmt.Errorf("gzip a page: %w", err)
		}
		return append(dst[:0], c.buf.Bytes()...), nil
	}
	return page, nil
}
