package files_test

import (
	"context"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/files"
)

// BenchmarkBatch takes whole batches through a lane, the stage and the publish on the real disk. The CPU time is the figure
// that means something; the elapsed time is mostly the disk's flushes.
func BenchmarkBatch(b *testing.B) {
	schema := rowstest.SchemaOf(b, "carrier", "string", "flight", "int32", "tailnum", "string", "origin", "string", "dest", "string",
		"time_hour", "timestamp", "dep_delay", "int32", "arr_delay", "int32", "gain", "int32", "mph", "decimal(6,1)", "late", "boolean")
	for _, c := range []struct {
		rows, partitions int
		cfg              files.Config
	}{
		{10, 1, files.Config{Format: files.Parquet, Schema: schema}},
		{20_000, 1, files.Config{Format: files.Parquet, Schema: schema}},
		{20_000, 3, files.Config{Format: files.Parquet, Schema: schema, PartitionBy: []string{"origin"}}},
		{20_000, 64, files.Config{Format: files.Parquet, Schema: schema, PartitionBy: []string{"origin"}}},
		{20_000, 1, files.Config{Format: files.CSV, Schema: schema}},
		{20_000, 1, files.Config{Format: files.JSONL}},
	} {
		b.Run(fmt.Sprintf("%s/%d rows/%d partitions", c.cfg.Format, c.rows, c.partitions), func(b *testing.B) {
			c.cfg.Dir = b.TempDir()
			t := newTarget(b, c.cfg)
			open(b, t, 0)
			var values [][]byte
			for i := range c.rows {
				values = append(values, fmt.Appendf(nil, `{"carrier":"UA","flight":%d,"tailnum":"N%05d","origin":"E%02d","dest":"IAH",`+
					`"time_hour":"2013-01-%02dT10:00:00Z","dep_delay":%d,"arr_delay":%d,"gain":%d,"mph":%d.%d,"late":%v}`,
					i%6000, i%4000, i%c.partitions, 1+i%31, i%50-10, i%70-20, i%30, 300+i%200, i%10, i%5 == 0))
			}
			lane, err := t.NewLane("lake")
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			start, n := cpu(b), checkpoint.BatchID(0)
			for b.Loop() {
				oneBatch(b, t, lane, n, values)
				n++
			}
			b.ReportMetric(float64(cpu(b)-start)/float64(b.N)/float64(c.rows), "cpu-ns/row")
		})
	}
}

func oneBatch(b *testing.B, t *files.Target, lane sink.Lane, n checkpoint.BatchID, values [][]byte) {
	lane.Reset()
	var r abi.Record
	for _, v := range values {
		r.Value = v
		if err := lane.Append(&r); err != nil {
			b.Fatal(err)
		}
	}
	s, err := t.Stage(context.Background(), sink.Output{
		Batch: n, Digest: digestOf(n), Attempt: "0a0b0c0d", Sinks: []sink.SinkOutput{{Name: "lake", Lanes: []sink.Lane{lane}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := t.Publish(context.Background(), &checkpoint.Decision{Batch: n, Digest: digestOf(n)}, s); err != nil {
		b.Fatal(err)
	}
	if err := t.Sealed(context.Background(), n); err != nil {
		b.Fatal(err)
	}
}

func cpu(b *testing.B) int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
