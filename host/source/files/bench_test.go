package files

import (
	"bytes"
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

// counter is the cheapest writer.
type counter struct{ records, bytes int64 }

func (c *counter) Write(r *abi.Record) error {
	c.records++
	c.bytes += int64(len(r.Value))
	return nil
}

func (c *counter) Reject(*abi.Record, string, string) error { return nil }

// orders returns n lines of JSON of 232 bytes.
func orders(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		line := fmt.Sprintf(`{"id":%d,"ts":"2026-01-02T%02d:%02d:%02d.000Z","user":"user-%06d","event":"purchase","note":"`, i, i/3600%24, i/60%60, i%60, i*7919%100000)
		b.WriteString(line)
		for b.Len()%232 != 232-3 {
			b.WriteByte('a' + byte((i*31+b.Len()*17)%26))
		}
		b.WriteString("\"}\n")
	}
	return b.Bytes()
}

func packed(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		return nil
	}
	if err := w.Close(); err != nil {
		return nil
	}
	return out.Bytes()
}

// BenchmarkJSONL plans and reads a million records of 232 bytes in batches of 100,000: ns/op is per record.
func BenchmarkJSONL(b *testing.B) {
	const files, perFile = 10, 100_000
	for _, c := range []struct {
		name string
		pack func([]byte) []byte
	}{{"plain", func(b []byte) []byte { return b }}, {"gzip", packed}} {
		b.Run(c.name, func(b *testing.B) {
			r := newRig(b, JSONL)
			content := string(c.pack(orders(perFile)))
			for i := range files {
				r.put(fmt.Sprintf("in-%05d", i), content)
			}
			b.SetBytes(232)
			var got counter
			var cpu time.Duration
			b.ResetTimer()
			for got.records < int64(b.N) {
				b.StopTimer()
				r.open()
				b.StartTimer()
				before := cpuTime(b)
				readAll(b, r, &got, int64(b.N))
				cpu += cpuTime(b) - before
			}
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(got.records), "cpu-ns/op")
		})
	}
}

// cpuTime is what the process has used, which tells more than the clock on a busy machine.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func readAll(b *testing.B, r *rig, got *counter, enough int64) {
	ctx := context.Background()
	var at checkpoint.Position
	for got.records < enough {
		to, err := r.src.Latest(ctx, at, source.Limit{Records: 100_000, Bytes: 64 << 20})
		if err != nil {
			b.Fatal(err)
		}
		if to == at {
			return
		}
		splits, err := r.src.Splits(ctx, source.Range{From: at, To: to})
		if err != nil {
			b.Fatal(err)
		}
		for _, s := range splits {
			if err := r.src.Read(ctx, s, got); err != nil {
				b.Fatal(err)
			}
		}
		at = to
	}
}

// BenchmarkSmallBatch plans and reads one new file of ten records: what a batch costs before the engine sees it.
func BenchmarkSmallBatch(b *testing.B) {
	r := newRig(b, JSONL)
	content := string(orders(10))
	var got counter
	var at checkpoint.Position
	b.StopTimer()
	for i := range b.N {
		r.put(fmt.Sprintf("in-%07d", i), content)
		b.StartTimer()
		before := got.records
		to, err := r.src.Latest(context.Background(), at, source.Limit{Records: 100_000, Bytes: 64 << 20})
		if err != nil {
			b.Fatal(err)
		}
		splits, err := r.src.Splits(context.Background(), source.Range{From: at, To: to})
		if err != nil {
			b.Fatal(err)
		}
		for _, s := range splits {
			if err := r.src.Read(context.Background(), s, &got); err != nil {
				b.Fatal(err)
			}
		}
		if got.records != before+10 {
			b.Fatalf("%d records", got.records-before)
		}
		at = to
		b.StopTimer()
	}
}
