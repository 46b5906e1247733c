package delta_test

import (
	"fmt"
	"testing"

	"github.com/wasmill/wasmill/abi"
	logs "github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/source"
)

// discard takes records and forgets them.
type discard struct{ records, bytes int }

func (d *discard) Write(r *abi.Record) error {
	d.records++
	d.bytes += len(r.Value)
	return nil
}

func (d *discard) Reject(*abi.Record, string, string) error { return nil }

// BenchmarkRead reads one file of 100,000 rows, whole and by its second half.
func BenchmarkRead(b *testing.B) {
	const n = 100_000
	tab := newTable(b, parseSchema(b, "id int64", "user string", "amount decimal(12,2)", "at timestamp", "note string"))
	objects := make([]string, n)
	for i := range objects {
		objects[i] = fmt.Sprintf(`{"id":%d,"user":"u%04d","amount":%d.25,"at":"2026-01-02T03:04:05.%06dZ","note":null}`, i, i%5000, i, i)
	}
	tab.group = n
	tab.commit(tab.file(objects...))
	s := tab.source()
	half := latest(b, s, zero, n/2)
	whole := latest(b, s, zero, 0)
	rest := latest(b, s, half, 0)
	for _, c := range []struct {
		name string
		r    source.Range
		rows int
	}{{"whole", source.Range{To: whole}, n}, {"half", source.Range{From: half, To: rest}, n / 2}} {
		splits := must(s.Splits(ctx, c.r))(b)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var d discard
			for b.Loop() {
				d = discard{}
				for _, sp := range splits {
					if err := s.Read(ctx, sp, &d); err != nil {
						b.Fatal(err)
					}
				}
			}
			if d.records != c.rows {
				b.Fatalf("%d rows", d.records)
			}
			b.SetBytes(int64(d.bytes))
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.rows), "ns/row")
		})
	}
}

// BenchmarkLatest asks for news of a table with many versions, while there is none, and plans one more.
func BenchmarkLatest(b *testing.B) {
	tab := numbers(b)
	add := tab.ids(0, 3)
	for range 2000 {
		tab.commit(add)
	}
	reads := tab.count("open:before", "list:before")
	s := tab.source()
	_, at := drain(b, s, zero, 0)
	for _, more := range []bool{false, true} {
		b.Run(fmt.Sprintf("more=%v", more), func(b *testing.B) {
			*reads = 0
			for b.Loop() {
				if more {
					b.StopTimer()
					tab.commit(logs.Action{Txn: &logs.Txn{AppID: "a", Version: 1}}, add)
					b.StartTimer()
				}
				to := must(s.Latest(ctx, at, source.Limit{}))(b)
				if (to != at) != more {
					b.Fatal("not what it should plan")
				}
				at = to
			}
			b.ReportMetric(float64(*reads)/float64(b.N), "opens/op")
		})
	}
}
