package sql_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/sql"
)

const benchRows = 100_000

const benchSchema = "id: int64, carrier: string, origin: string, at: timestamp, delay: int32, distance: double, price: decimal(9,2), late: boolean"

func benchRecord(i int) kv {
	return kv{value: fmt.Sprintf(`{"id":%d,"carrier":"%c%c","origin":"airport %d","at":%q,"delay":%d,"distance":%d.5,"price":%d.%02d,"late":%t}`,
		i, 'A'+i%26, 'A'+i%17, i%300, benchTime(i).Format(time.RFC3339), i%180, i%4000, i%900, i%100, i%3 == 0)}
}

func benchTime(i int) time.Time {
	return time.Date(2013, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Second)
}

// BenchmarkAppend measures staging and publishing alone: the rows lie in their lanes.
func BenchmarkAppend(b *testing.B) {
	for _, kind := range kinds {
		b.Run(kind, func(b *testing.B) { benchTarget(b, kind, sql.Sink{}) })
	}
}

// BenchmarkUpsert replaces all rows of a table.
func BenchmarkUpsert(b *testing.B) {
	for _, kind := range kinds {
		b.Run(kind, func(b *testing.B) { benchTarget(b, kind, sql.Sink{Key: []string{"id"}}) })
	}
}

func benchTarget(b *testing.B, kind string, s sql.Sink) {
	w := newWorld(b, kind)
	s.Name, s.Table, s.Schema, s.Create = "rows", "out", schema(b, benchSchema), true
	target := w.open(b, s)
	l := benchLane(b, target)
	id := checkpoint.BatchID(0)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		if len(s.Key) == 0 {
			truncate(b, w)
		}
		b.StartTimer()
		st, err := target.Stage(b.Context(), output(id, "rows", l))
		must(b, err)
		must(b, target.Publish(b.Context(), decision(id), st))
		id++
	}
	b.ReportMetric(benchRows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func truncate(b *testing.B, w *world) {
	if w.kind == "postgres" {
		w.run(b, "TRUNCATE out")
		return
	}
	w.run(b, "DELETE FROM out")
}

func benchLane(b *testing.B, target *sql.Target) sink.Lane {
	l, err := target.NewLane("rows")
	must(b, err)
	for i := range benchRows {
		must(b, l.Append(benchRecord(i).record()))
	}
	return l
}

// BenchmarkBareCopy is what there is to compare with: pgx copies the same rows, out of memory, in a transaction.
func BenchmarkBareCopy(b *testing.B) {
	w := newWorld(b, "postgres")
	target := w.open(b, sql.Sink{Table: "out", Schema: schema(b, benchSchema), Create: true})
	must(b, target.Close())
	conn, err := pgx.Connect(b.Context(), w.url)
	must(b, err)
	defer conn.Close(b.Context())
	rows := make([][]any, benchRows)
	for i := range rows {
		var price pgtype.Numeric
		must(b, price.Scan(fmt.Sprintf("%d.%02d", i%900, i%100)))
		rows[i] = []any{
			int64(i), fmt.Sprintf("%c%c", 'A'+i%26, 'A'+i%17), fmt.Sprintf("airport %d", i%300), benchTime(i), int32(i % 180), float64(i%4000) + .5, price, i%3 == 0,
		}
	}
	columns := []string{"id", "carrier", "origin", "at", "delay", "distance", "price", "late"}
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		truncate(b, w)
		b.StartTimer()
		tx, err := conn.Begin(b.Context())
		must(b, err)
		_, err = tx.CopyFrom(b.Context(), pgx.Identifier{"out"}, columns, pgx.CopyFromRows(rows))
		must(b, err)
		must(b, tx.Commit(b.Context()))
	}
	b.ReportMetric(benchRows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkLane measures the way into a lane.
func BenchmarkLane(b *testing.B) {
	w := newWorld(b, "sqlite")
	target := w.open(b, sql.Sink{Table: "out", Schema: schema(b, benchSchema), Create: true})
	l, err := target.NewLane("rows")
	must(b, err)
	r := benchRecord(12345).record()
	b.ReportAllocs()
	for b.Loop() {
		if l.Rows() == benchRows {
			l.Reset()
		}
		must(b, l.Append(r))
	}
}

// BenchmarkSmallBatch is a batch of 100 rows, of which the round trips are most.
func BenchmarkSmallBatch(b *testing.B) {
	for _, kind := range kinds {
		b.Run(kind, func(b *testing.B) {
			w := newWorld(b, kind)
			target := w.open(b, sql.Sink{Table: "out", Schema: schema(b, benchSchema), Create: true})
			l, err := target.NewLane("rows")
			must(b, err)
			for i := range 100 {
				must(b, l.Append(benchRecord(i).record()))
			}
			id := checkpoint.BatchID(0)
			for b.Loop() {
				st, err := target.Stage(b.Context(), output(id, "rows", l))
				must(b, err)
				must(b, target.Publish(b.Context(), decision(id), st))
				id++
			}
		})
	}
}

// BenchmarkStatement runs a statement of a user for each row.
func BenchmarkStatement(b *testing.B) {
	for _, kind := range kinds {
		b.Run(kind, func(b *testing.B) {
			benchTarget(b, kind, sql.Sink{Statement: "insert into out (id, carrier, at, price) values (:id, :carrier, :at, :price)"})
		})
	}
}
