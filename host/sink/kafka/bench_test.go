package kafka_test

import (
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/kafka"
)

// valueSize is about that of a JSON order.
const valueSize = 224

func benchLane(b *testing.B, l sink.Lane, rows int) {
	b.Helper()
	value := make([]byte, valueSize)
	r := &abi.Record{Value: value}
	for i := range rows {
		r.Key = strconv.AppendInt(append(r.Key[:0], "k-"...), int64(i%1000), 10)
		r.Value[i%valueSize] = byte(i)
		if err := l.Append(r); err != nil {
			b.Fatal(err)
		}
	}
}

// cpu is the processor time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkAppend(b *testing.B) {
	c := &cluster{addrs: []string{"127.0.0.1:9092"}, conn: "main"}
	l, err := c.target(b, nil, nil).NewLane("orders")
	if err != nil {
		b.Fatal(err)
	}
	const rows = 10_000
	benchLane(b, l, rows)
	b.ReportAllocs()
	b.SetBytes(rows * valueSize)
	for b.Loop() {
		l.Reset()
		benchLane(b, l, rows)
	}
}

// benchBatches publishes batches of rows: all of them, from taking the records on. cpu-s/M is what a million records cost.
func benchBatches(b *testing.B, c *cluster, topic string, rows int, codec kafka.Compression) {
	b.Helper()
	target := c.target(b, nil, func(cfg *kafka.Config) { cfg.Sinks[0].Topic, cfg.Compression = topic, codec })
	if _, err := target.Open(b.Context(), c.owner()); err != nil {
		b.Fatal(err)
	}
	lanes := make([]sink.Lane, min(4, rows))
	for i := range lanes {
		var err error
		if lanes[i], err = target.NewLane("orders"); err != nil {
			b.Fatal(err)
		}
	}
	id := checkpoint.BatchID(0)
	var times []time.Duration
	b.ReportAllocs()
	b.SetBytes(int64(rows) * valueSize)
	spent, batches := cpu(), 0
	for b.Loop() {
		for _, l := range lanes {
			l.Reset()
			benchLane(b, l, rows/len(lanes))
		}
		begin := time.Now()
		s, err := target.Stage(b.Context(), sink.Output{
			Batch: id, TimeMS: 1_700_000_000_000, Digest: digest(id), Attempt: "0000000a",
			Sinks: []sink.SinkOutput{{Name: "orders", Lanes: lanes}},
		})
		if err != nil {
			b.Fatal(err)
		}
		if err := target.Publish(b.Context(), decision(id), s); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(begin))
		id++
		batches++
	}
	spent = cpu() - spent
	slices.Sort(times)
	b.ReportMetric(spent.Seconds()/(float64(batches*rows)/1e6), "cpu-s/M")
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
}

func BenchmarkBatch(b *testing.B) {
	for _, rows := range []int{1, 10, 100_000} {
		b.Run(strconv.Itoa(rows), func(b *testing.B) { benchBatches(b, newFake(b), "out", rows, kafka.None) })
	}
}

// BenchmarkRealOpen takes the target over again and again: what a start costs where the marker topic is there.
func BenchmarkRealOpen(b *testing.B) {
	c := realCluster(b)
	topic := c.topic(b, 4)
	target := c.target(b, nil, func(cfg *kafka.Config) { cfg.Sinks[0].Topic = topic })
	for b.Loop() {
		if _, err := target.Open(b.Context(), c.owner()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRealBatch runs where WASMILL_KAFKA names a broker: here the processor time is that of the sink alone.
func BenchmarkRealBatch(b *testing.B) {
	for _, rows := range []int{1, 10, 100, 100_000} {
		for _, codec := range []kafka.Compression{kafka.None, kafka.LZ4, kafka.Zstd} {
			if rows < 100 && codec != kafka.None {
				continue
			}
			b.Run(strconv.Itoa(rows)+"/"+string(codec), func(b *testing.B) {
				c := realCluster(b)
				benchBatches(b, c, c.topic(b, 4), rows, codec)
			})
		}
	}
}
