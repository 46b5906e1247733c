package parquetfile

import (
	"bytes"
	"math"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/wasmill/wasmill/host/rows"
)

// maxBound is the longest minimum or maximum that is written: whole values would make footers grow without bound.
const maxBound = 64

// boundedLeaf corrects the bounds of a column without a dictionary where the library's are of no use: those of strings and
// binaries are as long as the values, those of wide decimals compare signed numbers as unsigned ones, those of floats may be
// NaN. To leave bounds out by the library's option would be worse, as its column index then claims that each page holds
// empty values only.
func boundedLeaf(node parquet.Node, t rows.Type) parquet.Node {
	typ := node.Type()
	switch {
	case t.Kind == rows.String:
		return parquet.Leaf(bounded{Type: typ, bounds: textBounds})
	case t.Kind == rows.Binary:
		return parquet.Leaf(bounded{Type: typ, bounds: binaryBounds})
	case t.Kind == rows.Float:
		return parquet.Leaf(bounded{Type: typ, bounds: floatBounds})
	case t.Kind == rows.Double:
		return parquet.Leaf(bounded{Type: typ, bounds: doubleBounds})
	case t.Kind == rows.Decimal && t.Precision > 18:
		return parquet.Leaf(wide{bounded{Type: typ, bounds: wideBounds}})
	}
	return node
}

// bounds returns the minimum and maximum of a page for the page's entry in the index, and whether they are also good for the
// statistics of the chunk.
type bounds func(parquet.Page) (lo, hi parquet.Value, ok bool)

// bounded is a type with other bounds than the library's.
type bounded struct {
	parquet.Type
	bounds bounds
}

func (t bounded) NewColumnBuffer(column, n int) parquet.ColumnBuffer {
	return buffer{ColumnBuffer: t.Type.NewColumnBuffer(column, n), bounds: t.bounds}
}

type buffer struct {
	parquet.ColumnBuffer
	bounds bounds
}

func (b buffer) Page() parquet.Page { return page{Page: b.ColumnBuffer.Page(), bounds: b.bounds} }

type page struct {
	parquet.Page
	bounds bounds
}

func (p page) Bounds() (lo, hi parquet.Value, ok bool) { return p.bounds(p.Page) }

func textBounds(p parquet.Page) (lo, hi parquet.Value, ok bool) { return byteBounds(p, nextText) }

func binaryBounds(p parquet.Page) (lo, hi parquet.Value, ok bool) { return byteBounds(p, nextBytes) }

// byteBounds shortens bounds to maxBound bytes where that is possible.
func byteBounds(p parquet.Page, next func(prefix []byte) []byte) (lo, hi parquet.Value, ok bool) {
	if lo, hi, ok = p.Bounds(); !ok {
		return lo, hi, false
	}
	if b := lo.ByteArray(); len(b) > maxBound {
		lo = parquet.ByteArrayValue(cutText(b))
	}
	if b := hi.ByteArray(); len(b) > maxBound {
		if above := next(cutText(b)); above != nil {
			hi = parquet.ByteArrayValue(above)
		}
	}
	return lo, hi, true
}

// cutText returns less than maxBound bytes of b and, where b is text, whole characters: the next text may be a byte longer.
func cutText(b []byte) []byte {
	const most = maxBound - 1
	for end := most; end > most-utf8.UTFMax; end-- {
		if utf8.RuneStart(b[end]) {
			return b[:end]
		}
	}
	return b[:most]
}

// nextBytes returns a value above all that begin with prefix, or nil when there is none.
func nextBytes(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			return append(bytes.Clone(prefix[:i]), prefix[i]+1)
		}
	}
	return nil
}

// nextText is nextBytes for text: what it returns is text too, as some readers check.
func nextText(prefix []byte) []byte {
	for len(prefix) > 0 {
		r, size := utf8.DecodeLastRune(prefix)
		prefix = prefix[:len(prefix)-size]
		switch {
		case r == 0xd7ff: // surrogates follow
			return utf8.AppendRune(bytes.Clone(prefix), 0xe000)
		case r < utf8.MaxRune:
			return utf8.AppendRune(bytes.Clone(prefix), r+1)
		}
	}
	return nil
}

// floatBounds and doubleBounds leave NaN out of the statistics and let a zero stand for both zeros, as parquet.thrift demands.
func floatBounds(p parquet.Page) (lo, hi parquet.Value, ok bool) {
	if lo, hi, ok = p.Bounds(); !ok {
		return lo, hi, false
	}
	if lo.Float() == 0 {
		lo = parquet.FloatValue(float32(math.Copysign(0, -1)))
	}
	if hi.Float() == 0 {
		hi = parquet.FloatValue(0)
	}
	return lo, hi, !math.IsNaN(float64(lo.Float()))
}

func doubleBounds(p parquet.Page) (lo, hi parquet.Value, ok bool) {
	if lo, hi, ok = p.Bounds(); !ok {
		return lo, hi, false
	}
	if lo.Double() == 0 {
		lo = parquet.DoubleValue(math.Copysign(0, -1))
	}
	if hi.Double() == 0 {
		hi = parquet.DoubleValue(0)
	}
	return lo, hi, !math.IsNaN(lo.Double())
}

// wide is a fixed-length decimal type, whose values are big-endian two's complement.
type wide struct{ bounded }

func (wide) Compare(a, b parquet.Value) int { return compareWide(a.ByteArray(), b.ByteArray()) }

func (t wide) NewColumnIndexer(limit int) parquet.ColumnIndexer {
	return &wideIndexer{ColumnIndexer: t.Type.NewColumnIndexer(limit), none: parquet.FixedLenByteArrayValue(make([]byte, t.Length()))}
}

// compareWide compares two numbers of one size.
func compareWide(a, b []byte) int {
	if negative := a[0]&0x80 != 0; negative != (b[0]&0x80 != 0) {
		if negative {
			return -1
		}
		return 1
	}
	return bytes.Compare(a, b)
}

func wideBounds(p parquet.Page) (lo, hi parquet.Value, ok bool) {
	data := p.Data()
	values, size := data.FixedLenByteArray()
	if len(values) == 0 {
		return lo, hi, false
	}
	least, most := values[:size], values[:size]
	for ; len(values) >= size; values = values[size:] {
		x := values[:size]
		if compareWide(x, least) < 0 {
			least = x
		}
		if compareWide(x, most) > 0 {
			most = x
		}
	}
	return parquet.FixedLenByteArrayValue(least), parquet.FixedLenByteArrayValue(most), true
}

// wideIndexer keeps the library's index in step where a page holds nulls only, and takes back the order of pages, which the
// library derives from unsigned comparisons.
type wideIndexer struct {
	parquet.ColumnIndexer
	none parquet.Value
}

func (x *wideIndexer) IndexPage(values, nulls int64, lo, hi parquet.Value) {
	if lo.IsNull() {
		lo, hi = x.none, x.none
	}
	x.ColumnIndexer.IndexPage(values, nulls, lo, hi)
}

func (x *wideIndexer) ColumnIndex() format.ColumnIndex {
	index := x.ColumnIndexer.ColumnIndex()
	index.BoundaryOrder = format.Unordered
	return index
}
