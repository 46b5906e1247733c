package checkpoint

import (
	"fmt"
	"testing"
	"time"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// BenchmarkBatch is what the checkpoint adds to a batch: a plan and a decision, with the disk's own flush beside it.
func BenchmarkBatch(b *testing.B) {
	dir := b.TempDir()
	files := durable.Count(durable.OS())
	l, err := Open(b.Context(), files, dir, options())
	if err != nil {
		b.Fatal(err)
	}
	id := BatchID(0)
	for b.Loop() {
		if err := l.WritePlan(b.Context(), plan(id)); err != nil {
			b.Fatal(err)
		}
		if err := l.WriteDecision(b.Context(), decision(id)); err != nil {
			b.Fatal(err)
		}
		id++
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	syncs, dirs := files.Syncs()
	b.ReportMetric(float64(syncs+dirs)/float64(id), "fsyncs/op")
	begin := time.Now()
	for i := range 20 {
		if err := durable.WriteFile(durable.OS(), fmt.Sprintf("%s/flush-%d", dir, i), []byte("x")); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(time.Since(begin).Microseconds())/20, "µs/flush")
}

// BenchmarkRecords is the cost of the text alone.
func BenchmarkRecords(b *testing.B) {
	p, d := plan(7), decision(7)
	b.ReportAllocs()
	for b.Loop() {
		text, err := encodePlan(&p)
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := decodePlan(7, text); err != nil {
			b.Fatal(err)
		}
		if text, err = encodeDecision(&d); err != nil {
			b.Fatal(err)
		}
		if _, _, err := decodeDecision(7, text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen is the start over a checkpoint with 1,000 batches.
func BenchmarkOpen(b *testing.B) {
	_, files := memory()
	l, err := Open(b.Context(), files, "c", options())
	if err != nil {
		b.Fatal(err)
	}
	for id := range BatchID(1000) {
		if err := l.WritePlan(b.Context(), plan(id)); err != nil {
			b.Fatal(err)
		}
		if err := l.WriteDecision(b.Context(), decision(id)); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		l, err := Open(b.Context(), files, "c", options())
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := l.Tail(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
