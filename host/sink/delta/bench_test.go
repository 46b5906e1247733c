package delta_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink"
	target "github.com/wasmill/wasmill/host/sink/delta"
)

// BenchmarkBatch takes whole batches through a lane, the stage and the publish on the real disk. The CPU time is the figure
// that means something; of the elapsed time, which is mostly the disk's flushes, the median is told.
func BenchmarkBatch(b *testing.B) {
	schema := rowstest.SchemaOf(b, "carrier", "string", "flight", "int32", "tailnum", "string", "origin", "string", "dest", "string",
		"time_hour", "timestamp", "dep_delay", "int32", "arr_delay", "int32", "gain", "int32", "mph", "decimal(6,1)", "late", "boolean")
	for _, c := range []struct {
		name             string
		rows, partitions int
		cfg              target.Config
	}{
		{"append", 10, 1, target.Config{}},
		{"append", 20_000, 1, target.Config{}},
		{"append", 20_000, 3, target.Config{PartitionBy: []string{"origin"}}},
		{"append", 20_000, 64, target.Config{PartitionBy: []string{"origin"}}},
		{"upsert", 10, 1, target.Config{Key: []string{"flight"}}},
		{"upsert", 20_000, 1, target.Config{Key: []string{"flight"}}},
	} {
		b.Run(fmt.Sprintf("%s/%d rows/%d partitions", c.name, c.rows, c.partitions), func(b *testing.B) {
			c.cfg.Dir, c.cfg.Schema = b.TempDir(), schema
			t := opened(b, c.cfg)
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
			used, n := cpu(b), checkpoint.BatchID(0)
			var took []time.Duration
			for b.Loop() {
				from := time.Now()
				oneBatch(b, t, lane, n, values)
				took = append(took, time.Since(from))
				n++
			}
			slices.Sort(took)
			b.ReportMetric(float64(cpu(b)-used)/float64(b.N)/float64(c.rows), "cpu-ns/row")
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		})
	}
}

func oneBatch(b *testing.B, t *target.Target, lane sink.Lane, n checkpoint.BatchID, values [][]byte) {
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
	if err := publishStaged(t, n, s); err != nil {
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
