package rows_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/rowstest"
)

func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name   string
		schema *rows.Schema
		row    string
	}{
		{
			"flights",
			rowstest.SchemaOf(b, "carrier", "string", "flight", "int32", "tailnum", "string", "origin", "string", "dest", "string",
				"time_hour", "timestamp", "dep_delay", "int32", "arr_delay", "int32", "gain", "int32", "mph", "decimal(6,1)", "late", "boolean"),
			`{"carrier":"UA","flight":1545,"tailnum":"N14228","origin":"EWR","dest":"IAH","time_hour":"2013-01-01T10:00:00Z",` +
				`"dep_delay":2,"arr_delay":11,"gain":-9,"mph":370.0,"late":false}`,
		},
		{
			"f1",
			rowstest.SchemaOf(b, "id", "int64", "ts", "timestamp", "user", "string", "session", "string", "event", "string", "page", "string",
				"amount", "double", "qty", "int32", "country", "string", "ua", "string", "cents", "int64"),
			`{"id":123456,"ts":"2026-01-02T03:04:05.678Z","user":"user-012345","session":"0123456789ab","event":"purchase",` +
				`"page":"/products/1234?ref=56","amount":1234.56,"qty":3,"country":"DE","ua":"Mozilla/5.0 (X11; Linux x86_64) Firefox/131.0","cents":123456}`,
		},
	} {
		one := rows.NewTable(c.schema)
		if err := one.Append([]byte(c.row)); err != nil {
			b.Fatal(err)
		}
		for form, row := range map[string][]byte{"": []byte(c.row), "/binary": rowstest.Binary(abi.NewRowWriter(c.schema.ColumnsText()), one, 0)} {
			benchmarkAppend(b, c.name+form, c.schema, row)
		}
	}
}

func benchmarkAppend(b *testing.B, name string, schema *rows.Schema, row []byte) {
	b.Run(name, func(b *testing.B) {
		t := rows.NewTable(schema)
		b.ReportAllocs()
		b.SetBytes(int64(len(row)))
		start := cpu(b)
		for b.Loop() {
			if t.Len() == 10_000 {
				t.Reset()
			}
			if err := t.Append(row); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(cpu(b)-start)/float64(b.N), "cpu-ns/row")
	})
}

// cpu returns the process's CPU time in nanoseconds: on a busy machine the only figure that means anything.
func cpu(b *testing.B) int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
