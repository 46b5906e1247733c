package sql

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/wasmill/wasmill/host/rows"
)

// changesOf puts the lanes of a sink together.
func changesOf(r *route, lanes []*lane) Changes {
	if r.keys == nil {
		return appended(lanes)
	}
	return upserted(r, lanes)
}

// appended lists all rows in lane order.
func appended(lanes []*lane) Changes {
	var c Changes
	n := 0
	for _, l := range lanes {
		c.Put.Tables = append(c.Put.Tables, l.put)
		n += l.put.Len()
	}
	c.Put.Refs = make([]Ref, 0, n)
	for i, l := range lanes {
		for row := range l.put.Len() {
			c.Put.Refs = append(c.Put.Refs, Ref{uint32(i), uint32(row)})
		}
	}
	return c
}

// keyed is a change with its key, data[from:to].
type keyed struct {
	from, to uint32
	ref      Ref
	seq      uint32
	gone     bool
}

// upserted keeps the last change of each key, in the order of the keys: transactions that lock rows in one order do not
// wait for each other in a circle.
func upserted(r *route, lanes []*lane) Changes {
	var c Changes
	var all []keyed
	var data []byte
	goneColumns := make([]int, len(r.key))
	for i := range goneColumns {
		goneColumns[i] = i
	}
	for i, l := range lanes {
		c.Put.Tables = append(c.Put.Tables, l.put)
		c.Gone.Tables = append(c.Gone.Tables, l.gone)
		for _, ch := range l.order {
			from := len(data)
			if ch.gone {
				data = appendKey(data, l.gone, goneColumns, int(ch.row))
			} else {
				data = appendKey(data, l.put, r.key, int(ch.row))
			}
			all = append(all, keyed{uint32(from), uint32(len(data)), Ref{uint32(i), ch.row}, uint32(len(all)), ch.gone})
		}
	}
	slices.SortFunc(all, func(a, b keyed) int {
		return cmp.Or(bytes.Compare(data[a.from:a.to], data[b.from:b.to]), cmp.Compare(a.seq, b.seq))
	})
	for i, k := range all {
		if i+1 < len(all) && bytes.Equal(data[k.from:k.to], data[all[i+1].from:all[i+1].to]) {
			continue
		}
		if k.gone {
			c.Gone.Refs = append(c.Gone.Refs, k.ref)
		} else {
			c.Put.Refs = append(c.Put.Refs, k.ref)
		}
	}
	return c
}

// appendKey appends the values of key columns so that equal keys, and only they, are equal bytes.
func appendKey(data []byte, t *rows.Table, columns []int, row int) []byte {
	for _, c := range columns {
		at := len(data)
		data = append(data, 0, 0, 0, 0)
		data = t.Column(c).AppendText(data, row)
		binary.BigEndian.PutUint32(data[at:], uint32(len(data)-at-4))
	}
	return data
}
