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
	entry
	from, to uint32
	seq      uint32
}

func (k *keyed) key(data []byte) []byte { return data[k.from:k.to] }

// byKey lists all changes in the order of the keys: transactions that lock rows in one order do not wait for each other in a
// circle. Those of one key are in the order in which they came.
func byKey(r *route, lanes []*lane) (all []keyed, data []byte) {
	goneColumns := make([]int, len(r.key))
	for i := range goneColumns {
		goneColumns[i] = i
	}
	for i, l := range lanes {
		for _, ch := range l.order {
			from := len(data)
			if ch.gone {
				data = appendKey(data, l.gone, goneColumns, int(ch.row))
			} else {
				data = appendKey(data, l.put, r.key, int(ch.row))
			}
			all = append(all, keyed{entry{ch.gone, Ref{uint32(i), ch.row}}, uint32(from), uint32(len(data)), uint32(len(all))})
		}
	}
	slices.SortFunc(all, func(a, b keyed) int {
		return cmp.Or(bytes.Compare(a.key(data), b.key(data)), cmp.Compare(a.seq, b.seq))
	})
	return all, data
}

// upserted keeps the last change of each key.
func upserted(r *route, lanes []*lane) Changes {
	var c Changes
	for _, l := range lanes {
		c.Put.Tables = append(c.Put.Tables, l.put)
		c.Gone.Tables = append(c.Gone.Tables, l.gone)
	}
	all, data := byKey(r, lanes)
	for i := range all {
		k := &all[i]
		if i+1 < len(all) && bytes.Equal(k.key(data), all[i+1].key(data)) {
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
