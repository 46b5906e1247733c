package parquetfile_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/rowstest"
)

// f1Rows returns rows like those of the F1 benchmark's output: the generator of the benchmark's input, `view` events left
// out, with the amount in cents.
func f1Rows(n int) [][]byte {
	events := []string{"view", "click", "view", "add_to_cart", "purchase"}
	countries := []string{"DE", "US", "JP", "BR", "IN", "FR", "NG", "GB"}
	agents := []string{
		"Mozilla/5.0 (X11; Linux x86_64) Firefox/131.0", "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0) Safari/605",
		"okhttp/4.12.0 (Android 15; build 7781)",
	}
	x := uint64(88172645463325252)
	out := make([][]byte, 0, n)
	for i := uint64(0); len(out) < n; i++ {
		x = x*6364136223846793005 + 1442695040888963407
		r := x >> 16
		if r%5 == 0 || r%5 == 2 {
			continue
		}
		ms := i*83 + r&1023
		s, cents := ms/1000, r%1000000
		out = append(out, fmt.Appendf(nil, `{"id":%d,"ts":"2026-01-%02dT%02d:%02d:%02d.%03dZ","user":"user-%06d","session":"%012x","event":"%s",`+
			`"page":"/products/%d?ref=%d","amount":%d.%02d,"qty":%d,"country":"%s","ua":"%s","cents":%d}`,
			i, 2+s/86400, s/3600%24, s/60%60, s%60, ms%1000, r%50021, x&0xFFFFFFFFFFFF, events[r%5],
			r%9973, r%97, cents/100, cents%100, r%7, countries[r%8], agents[r%3], cents))
	}
	return out
}

func f1Schema(tb testing.TB) *rows.Schema {
	return rowstest.SchemaOf(tb, "id", "int64", "ts", "timestamp", "user", "string", "session", "string", "event", "string", "page", "string",
		"amount", "double", "qty", "int32", "country", "string", "ua", "string", "cents", "int64")
}

type discard struct{ n int64 }

func (d *discard) Write(b []byte) (int, error) {
	d.n += int64(len(b))
	return len(b), nil
}

func BenchmarkF1(b *testing.B) {
	const n = 60_000
	input := f1Rows(n)
	schema := f1Schema(b)
	t := rows.NewTable(schema)
	fill := func(b *testing.B) {
		t.Reset()
		for _, r := range input {
			if err := t.Append(r); err != nil {
				b.Fatal(err)
			}
		}
	}
	fill(b)
	// CPU time: on a busy machine the only figure that means anything.
	perRow := func(b *testing.B, start int64) { b.ReportMetric(float64(cpu(b)-start)/float64(b.N)/n, "cpu-ns/row") }
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		start := cpu(b)
		for b.Loop() {
			fill(b)
		}
		perRow(b, start)
	})
	for _, codec := range []parquetfile.Codec{parquetfile.None, parquetfile.Snappy, parquetfile.Zstd} {
		b.Run("encode/"+string(codec), func(b *testing.B) {
			b.ReportAllocs()
			w, err := parquetfile.New(schema, parquetfile.Options{Codec: codec, CreatedBy: "test"})
			if err != nil {
				b.Fatal(err)
			}
			var d discard
			start := cpu(b)
			for b.Loop() {
				d.n = 0
				encode(b, w, &d, []parquetfile.Rows{{Table: t}})
			}
			perRow(b, start)
			b.ReportMetric(float64(d.n)/n, "B/row")
		})
	}
	b.Run("sha256", func(b *testing.B) {
		buf := make([]byte, 27*n)
		start := cpu(b)
		for b.Loop() {
			sha256.Sum256(buf)
		}
		perRow(b, start)
	})
}

func encode(tb testing.TB, w *parquetfile.Writer, d interface{ Write([]byte) (int, error) }, from []parquetfile.Rows) {
	if err := w.Reset(d); err != nil {
		tb.Fatal(err)
	}
	if err := w.WriteRowGroup(from); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
}

func cpu(b *testing.B) int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkRead reads rows of the F1 benchmark back, and nested ones.
func BenchmarkRead(b *testing.B) {
	nested := rowstest.SchemaOf(b, "id", "int64", "tags", "list<string>", "by", "map<string, double>", "at", "struct<lat: double, lon: double, name: string>")
	var objects [][]byte
	for i := range 20_000 {
		objects = append(objects, fmt.Appendf(nil, `{"id":%d,"tags":["a%d","b","c"],"by":{"x":%d,"y":0.5},"at":{"lat":%d.25,"lon":1,"name":"n%d"}}`, i, i%9, i, i%90, i))
	}
	for _, c := range []struct {
		name   string
		schema *rows.Schema
		input  [][]byte
	}{{"f1", f1Schema(b), f1Rows(20_000)}, {"nested", nested, objects}} {
		t := rows.NewTable(c.schema)
		fill := func() {
			t.Reset()
			for _, o := range c.input {
				if err := t.Append(o); err != nil {
					b.Fatal(err)
				}
			}
		}
		fill()
		var out bytes.Buffer
		w, err := parquetfile.New(c.schema, parquetfile.Options{Codec: parquetfile.Zstd, CreatedBy: "test"})
		if err != nil {
			b.Fatal(err)
		}
		encode(b, w, &out, []parquetfile.Rows{{Table: t}})
		per := func(b *testing.B, start int64) {
			b.ReportMetric(float64(cpu(b)-start)/float64(b.N)/float64(len(c.input)), "cpu-ns/row")
		}
		b.Run(c.name+"/append", func(b *testing.B) {
			b.ReportAllocs()
			start := cpu(b)
			for b.Loop() {
				fill()
			}
			per(b, start)
		})
		b.Run(c.name+"/encode", func(b *testing.B) {
			b.ReportAllocs()
			start := cpu(b)
			for b.Loop() {
				encode(b, w, &discard{}, []parquetfile.Rows{{Table: t}})
			}
			per(b, start)
		})
		to := rows.NewTable(c.schema)
		b.Run(c.name+"/read", func(b *testing.B) {
			b.ReportAllocs()
			start := cpu(b)
			for b.Loop() {
				to.Reset()
				r, err := parquetfile.OpenReader(bytes.NewReader(out.Bytes()), int64(out.Len()), c.schema, parquetfile.ReadOptions{})
				if err != nil {
					b.Fatal(err)
				}
				for err == nil {
					_, err = r.Read(to, 4096)
				}
				if err != io.EOF || to.Len() != len(c.input) {
					b.Fatal(err, to.Len())
				}
				if err := r.Close(); err != nil {
					b.Fatal(err)
				}
			}
			per(b, start)
		})
		copied := rows.NewTable(c.schema)
		b.Run(c.name+"/copy", func(b *testing.B) {
			b.ReportAllocs()
			start := cpu(b)
			for b.Loop() {
				copied.Reset()
				for i := range t.Len() {
					if err := copied.AppendRow(t, i, nil); err != nil {
						b.Fatal(err)
					}
				}
			}
			per(b, start)
		})
	}
}
