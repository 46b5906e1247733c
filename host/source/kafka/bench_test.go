package kafka

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

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

// BenchmarkRead reads 1,000,000 records of 225 bytes in batches of 100,000, from a real broker when WASMILL_KAFKA names
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
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		b.Fatal(err)
	}
	defer cl.Close()
	value := strings.Repeat("x", 205)
	for i := range total {
		cl.Produce(b.Context(), &kgo.Record{Topic: topic, Partition: int32(i % 4), Key: fmt.Appendf(nil, "c-%06d", i%10_000), Value: fmt.Appendf(nil, "%s%012d", value, i)}, nil)
	}
	if err := cl.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	s := w.open(nil, topic)
	b.ReportAllocs()
	b.ResetTimer()
	began := processTime()
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
			if err := s.Release(b.Context(), to); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(processTime()-began)/float64(b.N), "cpu-ns/op")
}

// processTime is the processor time of this process: with a fake broker, that one's too.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkDeliver decodes what lies in memory: 1,900 records of 224 bytes in a stored batch, as kbench loads them. The
// figures are for one record.
func BenchmarkDeliver(b *testing.B) {
	const records = 1900
	var all [][]byte
	for i := range int64(records) {
		all = append(all, record(i, fmt.Sprintf("c-%06d", i), strings.Repeat("x", 205)))
	}
	raw := stored(0, records-1, 0, records, all...)
	c, err := scan(&kmsg.FetchResponseTopicPartition{RecordBatches: raw}, 0, true)
	if err != nil {
		b.Fatal(err)
	}
	d := newDecoder(DefaultMaxBatch)
	d.begin(nil, 0)
	var n counter
	b.SetBytes(int64(len(raw)) / records)
	b.ReportAllocs()
	for b.Loop() {
		n = counter{}
		if _, err := d.deliver(c, &window{to: records, committed: true, maxRecord: DefaultMaxRecord, out: &n}); err != nil || n.records != records {
			b.Fatal(n.records, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/records, "ns/record")
}

// BenchmarkScan looks through an answer of many small stored batches.
func BenchmarkScan(b *testing.B) {
	const batches = 1000
	var raw []byte
	for i := range int64(batches) {
		raw = append(raw, stored(i*3, i*3+2, 0, 3, record(0, "k", strings.Repeat("x", 200)), record(1, "k", strings.Repeat("x", 200)), record(2, "k", strings.Repeat("x", 200)))...)
	}
	b.ReportAllocs()
	for b.Loop() {
		if c, err := scan(&kmsg.FetchResponseTopicPartition{RecordBatches: raw}, 0, true); err != nil || len(c.spans) != batches {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/batches, "ns/batch")
}
