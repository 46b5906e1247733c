package kafka

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// press compresses chunks, for all lanes. The codecs are the client's.
type press struct {
	by      kgo.Compressor // nil: nothing is compressed
	buffers sync.Pool
}

// worthPressing is from how many bytes on a chunk is compressed, and worthSharing from how many on several processors are.
const (
	worthPressing = 512
	worthSharing  = 64 << 10
)

func newPress(c Compression) (*press, error) {
	p := &press{buffers: sync.Pool{New: func() any { return &bytes.Buffer{} }}}
	codec := kgo.NoCompression()
	switch c {
	case LZ4:
		codec = kgo.Lz4Compression()
	case Zstd:
		codec = kgo.ZstdCompression()
	}
	var err error
	if p.by, err = kgo.DefaultCompressor(codec); err != nil {
		return nil, fmt.Errorf("compression %s: %w", c, err)
	}
	return p, nil
}

// chunkBytes is the size at which a chunk ends.
func (p *press) chunkBytes() int {
	if p.by == nil {
		return chunkBytes
	}
	return pressBytes
}

// squeeze compresses a chunk, where that makes it smaller.
func (p *press) squeeze(c *chunk) {
	if p.by == nil || c.codec != 0 || len(c.buf) < worthPressing {
		return
	}
	buf, ok := p.buffers.Get().(*bytes.Buffer)
	if !ok {
		return
	}
	defer p.buffers.Put(buf)
	buf.Reset()
	got, codec := p.by.Compress(buf, c.buf[headerSize:])
	if codec <= kgo.CodecNone || len(got) >= len(c.buf)-headerSize {
		return
	}
	c.codec = int8(codec)
	c.buf = append(c.buf[:headerSize], got...)
}

// squeezeAll compresses what the lanes have not, side by side when it is much.
func (p *press) squeezeAll(all []*chunk) {
	if p.by == nil {
		return
	}
	bytes := 0
	for _, c := range all {
		bytes += len(c.buf)
	}
	workers := min(runtime.GOMAXPROCS(0), len(all))
	if bytes < worthSharing || workers < 2 {
		for _, c := range all {
			p.squeeze(c)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(all)); i = next.Add(1) - 1 {
				p.squeeze(all[i])
			}
		})
	}
	wg.Wait()
}
