package kafka

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

type counter struct{ records, bytes int }

func (c *counter) Write(r *abi.Record) error {
	c.records++
	c.bytes += len(r.Value)
	return nil
}
func (c *counter) Reject(*abi.Record, string, string) error { return nil }

// BenchmarkRead reads 1,000,000 records of 232 bytes in batches of 100,000, from a real broker when WASMILL_KAFKA names
// one. The figures are for one record.
func BenchmarkRead(b *testing.B) {
	const total = 1_000_000
	var w *world
	if addr := os.Getenv("WASMILL_KAFKA"); addr != "" {
		w = connect(b, nil, []string{addr})
	} else {
		w = newWorld(b)
	}
	topic := w.unique("bench")
	w.create(topic, 4)
	value := strings.Repeat("x", 220)
	for i := range total {
		w.client.Produce(b.Context(), &kgo.Record{Topic: topic, Partition: int32(i % 4), Key: fmt.Appendf(nil, "c-%06d", i%10_000), Value: fmt.Appendf(nil, "%s%012d", value, i)}, nil)
	}
	if err := w.client.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	s := w.open(nil, topic)
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; {
		var at checkpoint.Position
		var c counter
		for left > 0 {
			to := w.latest(s, at, source.Limit{Records: min(100_000, int64(left)), Bytes: 64 << 20})
			if to == at {
				break
			}
			cut, err := s.Splits(b.Context(), source.Range{From: at, To: to})
			if err != nil {
				b.Fatal(err)
			}
			before := c.records
			for _, split := range cut {
				if err := s.Read(b.Context(), split, &c); err != nil {
					b.Fatal(err)
				}
			}
			left -= c.records - before
			at = to
		}
	}
}
