package delta_test

import (
	"fmt"
	"testing"

	logs "github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/host/source/delta"
	"github.com/wasmill/wasmill/host/source/sourcetest"
)

// TestConformance runs the suite on a snapshot of several files with versions after it, on versions alone, and on a
// partitioned table without statistics.
func TestConformance(t *testing.T) {
	plain := func(b *table, i int) logs.Action { return b.ids(i, 1+i%60) }
	place := func(b *table, i int) logs.Action {
		var objects []string
		for k := range 40 {
			objects = append(objects, fmt.Sprintf(`{"id":%d,"place":"p%d","note":null}`, i+k, i%3))
		}
		return b.file(objects...)
	}
	for _, c := range []struct {
		name string
		make func(t *testing.T) *table
		file func(b *table, i int) logs.Action
		opts []func(*delta.Config)
	}{
		{"snapshot", func(t *testing.T) *table { return numbers(t) }, plain, nil},
		{"versions", func(t *testing.T) *table { return numbers(t) }, plain, []func(*delta.Config){from(0)}},
		{"partitions", func(t *testing.T) *table {
			b := newTable(t, parseSchema(t, "id int64 not null", "place string", "note string"), "place")
			b.stats = false
			return b
		}, place, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			sourcetest.Run(t, func(t *testing.T) sourcetest.Input {
				b := c.make(t)
				next := 0
				more := func(*testing.T) {
					var adds []logs.Action
					for range 2 {
						adds = append(adds, c.file(b, 37+next))
						next += 100
					}
					b.commit(adds...)
					b.commit(rearranged(adds[0]), removeOf(adds[1], false), rearranged(c.file(b, 0)))
				}
				for range 3 {
					more(t)
				}
				open := func(*testing.T) source.Source {
					return b.source(append([]func(*delta.Config){func(c *delta.Config) { c.Attach = []string{"path"} }}, c.opts...)...)
				}
				return sourcetest.Input{Open: open, More: more}
			})
		})
	}
}
