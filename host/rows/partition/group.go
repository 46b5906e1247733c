package partition

import (
	"slices"
	"strings"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
)

// Group is the rows of one folder, in the order of the tables.
type Group struct {
	Dir  string // relative to where the folders begin; "" without columns
	Rows []parquetfile.Rows
}

// First returns a row of the group: all have the same values in the columns that make the folder.
func (g *Group) First() (*rows.Table, int) {
	r := g.Rows[0]
	if r.Index != nil {
		return r.Table, int(r.Index[0])
	}
	return r.Table, 0
}

// GroupRows sorts the rows of tables by folder. The groups are in byte order of their folders; none is empty.
func GroupRows(tables []*rows.Table, columns []int) []*Group {
	whole := make([]parquetfile.Rows, 0, len(tables))
	for _, t := range tables {
		whole = append(whole, parquetfile.Rows{Table: t})
	}
	return Groups(whole, columns)
}

// Groups sorts some rows of tables by folder.
func Groups(from []parquetfile.Rows, columns []int) []*Group {
	if len(columns) == 0 {
		return single(from)
	}
	byDir := map[string]*Group{}
	var key []byte
	for _, r := range from {
		for k := range r.Len() {
			row := k
			if r.Index != nil {
				row = int(r.Index[k])
			}
			key = AppendDir(key[:0], r.Table, columns, row)
			g := byDir[string(key)]
			if g == nil {
				g = &Group{Dir: string(key)}
				byDir[g.Dir] = g
			}
			if n := len(g.Rows); n == 0 || g.Rows[n-1].Table != r.Table {
				g.Rows = append(g.Rows, parquetfile.Rows{Table: r.Table, Index: []uint32{}})
			}
			last := &g.Rows[len(g.Rows)-1]
			last.Index = append(last.Index, uint32(row))
		}
	}
	groups := make([]*Group, 0, len(byDir))
	for _, g := range byDir {
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b *Group) int { return strings.Compare(a.Dir, b.Dir) })
	return groups
}

func single(from []parquetfile.Rows) []*Group {
	g := &Group{}
	for _, r := range from {
		if r.Len() > 0 {
			g.Rows = append(g.Rows, r)
		}
	}
	if len(g.Rows) == 0 {
		return nil
	}
	return []*Group{g}
}

// Cut splits rows into pieces of at most maxRows rows and, apart from single rows that are larger, maxBytes bytes as they
// lie in memory.
func Cut(from []parquetfile.Rows, maxRows, maxBytes int64) [][]parquetfile.Rows {
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
