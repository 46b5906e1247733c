package files

import (
	"slices"
	"strings"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
)

// group is the rows of one partition, in lane order.
type group struct {
	dir  string // relative to the sink's directory; "" without partitions
	rows []parquetfile.Rows
}

// groupRows sorts the lanes' rows by partition. The groups are in byte order of their directories.
func groupRows(tables []*rows.Table, partition []int) []*group {
	if len(partition) == 0 {
		g := &group{}
		for _, t := range tables {
			if t.Len() > 0 {
				g.rows = append(g.rows, parquetfile.Rows{Table: t})
			}
		}
		if len(g.rows) == 0 {
			return nil
		}
		return []*group{g}
	}
	byDir := map[string]*group{}
	var key []byte
	for _, t := range tables {
		for row := range t.Len() {
			key = appendDir(key[:0], t, partition, row)
			g := byDir[string(key)]
			if g == nil {
				g = &group{dir: string(key)}
				byDir[g.dir] = g
			}
			if n := len(g.rows); n == 0 || g.rows[n-1].Table != t {
				g.rows = append(g.rows, parquetfile.Rows{Table: t, Index: []uint32{}})
			}
			last := &g.rows[len(g.rows)-1]
			last.Index = append(last.Index, uint32(row))
		}
	}
	groups := make([]*group, 0, len(byDir))
	for _, g := range byDir {
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b *group) int { return strings.Compare(a.dir, b.dir) })
	return groups
}

func appendDir(dst []byte, t *rows.Table, partition []int, row int) []byte {
	for i, c := range partition {
		if i > 0 {
			dst = append(dst, '/')
		}
		dst = appendPartition(dst, t.Schema().Column(c).Name, t.Column(c), row)
	}
	return dst
}

// cut splits rows into pieces of at most maxRows rows and, apart from single rows that are larger, maxBytes bytes.
func cut(from []parquetfile.Rows, maxRows, maxBytes int64) [][]parquetfile.Rows {
	if fitsWhole(from, maxRows, maxBytes) {
		return [][]parquetfile.Rows{from}
	}
	var pieces [][]parquetfile.Rows
	var piece []parquetfile.Rows
	var count, size int64
	for _, r := range from {
		index := r.Index
		if index == nil {
			index = allRows(r.Table.Len())
		}
		start := 0
		for k, row := range index {
			bytes := r.Table.RowBytes(int(row))
			if count > 0 && (count == maxRows || size+bytes > maxBytes) {
				if k > start {
					piece = append(piece, parquetfile.Rows{Table: r.Table, Index: index[start:k]})
				}
				pieces, piece = append(pieces, piece), nil
				start, count, size = k, 0, 0
			}
			count++
			size += bytes
		}
		if start < len(index) {
			piece = append(piece, parquetfile.Rows{Table: r.Table, Index: index[start:]})
		}
	}
	return append(pieces, piece)
}

func fitsWhole(from []parquetfile.Rows, maxRows, maxBytes int64) bool {
	var count, size int64
	for _, r := range from {
		count += int64(r.Len())
		size += r.Table.Bytes() // of all its rows, which is at least as much
	}
	return count <= maxRows && size <= maxBytes
}

func allRows(n int) []uint32 {
	index := make([]uint32, n)
	for i := range index {
		index[i] = uint32(i)
	}
	return index
}
