package kafka_test

import (
	"strconv"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/kafka"
)

func benchLane(b *testing.B, l sink.Lane, rows int) {
	b.Helper()
	value := make([]byte, 232)
	r := &abi.Record{Value: value}
	for i := range rows {
		r.Key = strconv.AppendInt(append(r.Key[:0], "k-"...), int64(i%1000), 10)
		if err := l.Append(r); err != nil {
			b.Fatal(err)
		}
	}
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
	b.SetBytes(rows * 232)
	for b.Loop() {
		l.Reset()
		benchLane(b, l, rows)
	}
}

func benchBatches(b *testing.B, c *cluster, topic string, rows int) {
	b.Helper()
	target := c.target(b, nil, func(cfg *kafka.Config) { cfg.Sinks[0].Topic = topic })
	if _, err := target.Open(b.Context(), c.owner()); err != nil {
		b.Fatal(err)
	}
	l, err := target.NewLane("orders")
	if err != nil {
		b.Fatal(err)
	}
	benchLane(b, l, rows)
	id := checkpoint.BatchID(0)
	b.ReportAllocs()
	b.SetBytes(int64(rows) * 232)
	for b.Loop() {
		s, err := target.Stage(b.Context(), sink.Output{
			Batch: id, TimeMS: 1, Digest: digest(id), Attempt: "0000000a",
			Sinks: []sink.SinkOutput{{Name: "orders", Lanes: []sink.Lane{l}}},
		})
		if err != nil {
			b.Fatal(err)
		}
		if err := target.Publish(b.Context(), decision(id), s); err != nil {
			b.Fatal(err)
		}
		id++
	}
}

func BenchmarkBatchOf10(b *testing.B)     { benchBatches(b, newFake(b), "out", 10) }
func BenchmarkBatchOf100000(b *testing.B) { benchBatches(b, newFake(b), "out", 100_000) }

// BenchmarkRealBatchOf10 and the one below run where WASMILL_KAFKA names a broker.
func BenchmarkRealBatchOf10(b *testing.B) {
	c := realCluster(b)
	benchBatches(b, c, c.topic(b, 4), 10)
}

func BenchmarkRealBatchOf100000(b *testing.B) {
	c := realCluster(b)
	benchBatches(b, c, c.topic(b, 4), 100_000)
}
