package files

import "sync"

const (
	// maxKept bounds the decoded bytes that are kept between planning and reading.
	maxKept = 64 << 20
	// maxMarks bounds the parts whose marks are kept.
	maxMarks = 1 << 14
)

// mark is the place after the last complete line of a block.
type mark = place

// fileKey names a file with its content: two of one etag have the same ends, and may differ between them.
type fileKey struct {
	path, etag string
	size       int64
}

// kept is what planning a part found out and reading it can use.
type kept struct {
	from   place
	end    place
	marks  []mark
	chunks [][]byte // decoded bytes from the part's beginning; nil for plain files and when over maxKept
	cache  *cache
	users  int
	gone   bool
}

// cache holds what the last plan has decoded, so that reading it does not decode again. It is never the truth: whatever
// is missing is made again from the file.
type cache struct {
	mu    sync.Mutex
	parts map[fileKey]*kept
	bytes int64
	free  [][]byte // blocks to use again
}

func newCache() *cache { return &cache{parts: map[fileKey]*kept{}} }

// maxFree bounds the blocks kept for use again: 32 MiB.
const maxFree = 32 << 20 / blockSize

// block returns an empty block, or nil when no more may be kept.
func (c *cache) block() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes+blockSize > maxKept {
		return nil
	}
	c.bytes += blockSize
	if n := len(c.free); n > 0 {
		b := c.free[n-1]
		c.free = c.free[:n-1]
		return b
	}
	return make([]byte, blockSize)
}

// recycle takes blocks back that block gave out. A short last one may have been replaced by a smaller slice.
func (c *cache) recycle(chunks [][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recycleLocked(chunks)
}

func (c *cache) recycleLocked(chunks [][]byte) {
	for _, b := range chunks {
		c.bytes -= int64(cap(b))
		if cap(b) == blockSize && len(c.free) < maxFree {
			c.free = append(c.free, b[:blockSize])
		}
	}
}

// shrink replaces a block that is mostly empty by a copy of its own size.
func (c *cache) shrink(b []byte) []byte {
	if len(b) > blockSize/2 {
		return b
	}
	small := append(make([]byte, 0, len(b)), b...)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes += int64(cap(small))
	c.recycleLocked([][]byte{b})
	return small
}

// put keeps k, in place of what there was. Marks of many small parts are dropped at a bound: they can be made again.
func (c *cache) put(key fileKey, k *kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.cache = c
	if old := c.parts[key]; old != nil {
		c.dropLocked(key, old)
	}
	if len(c.parts) >= maxMarks {
		c.dropAllLocked()
	}
	c.parts[key] = k
}

// marks returns the marks of exactly the part from..end.
func (c *cache) marks(key fileKey, from, end place) ([]mark, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.parts[key]
	if k == nil || k.from != from || k.end != end {
		return nil, false
	}
	return k.marks, true
}

// covering returns the decoded bytes of from..to, or nil. The caller calls release when done with them.
func (c *cache) covering(key fileKey, from, to place) *kept {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.parts[key]
	if k == nil || k.chunks == nil || from.Off < k.from.Off || to.Off > k.end.Off {
		return nil
	}
	k.users++
	return k
}

func (k *kept) release() {
	c := k.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	k.users--
	if k.gone && k.users == 0 {
		c.recycleLocked(k.chunks)
		k.chunks = nil
	}
}

// drop forgets everything. What is being read stays until its reader is done.
func (c *cache) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropAllLocked()
}

func (c *cache) dropAllLocked() {
	for key, k := range c.parts {
		c.dropLocked(key, k)
	}
}

func (c *cache) dropLocked(key fileKey, k *kept) {
	delete(c.parts, key)
	k.gone = true
	if k.users == 0 {
		c.recycleLocked(k.chunks)
		k.chunks = nil
	}
}
