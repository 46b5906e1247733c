package files_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink/files"
)

// TestRealReaders writes 28 batches, of which some are empty and some are never handed to the sink, and lets Spark and
// DuckDB read them. It needs WASMILL_PARQUET_CHECKER, a command that takes directories, each with a file of the expected rows.
func TestRealReaders(t *testing.T) {
	checker := os.Getenv("WASMILL_PARQUET_CHECKER")
	if checker == "" {
		t.Skip("WASMILL_PARQUET_CHECKER is not set")
	}
	var pairs []string
	pair := func(dir string, want []byte) {
		expected := filepath.Join(t.TempDir(), "expected.jsonl")
		if err := os.WriteFile(expected, want, 0o600); err != nil {
			t.Fatal(err)
		}
		pairs = append(pairs, dir, expected)
	}
	for _, c := range []struct {
		name      string
		partition []string
		first     checkpoint.BatchID
	}{
		{"plain", nil, 0},
		{"partitioned", []string{"place", "day"}, 0},
		{"added later", []string{"place"}, 25},
	} {
		dir := filepath.Join(t.TempDir(), c.name, "out +%ü")
		pair(dir, writeReal(t, dir, c.partition, c.first))
	}
	dir := filepath.Join(t.TempDir(), "large pages")
	pair(dir, writeLarge(t, dir))

	// One start of Spark for all of them.
	out, err := exec.Command("sh", append([]string{"-c", checker + ` "$@"`, "sh"}, pairs...)...).CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

// writeLarge writes columns of every encoding and way of compressing, over several pages each.
func writeLarge(t *testing.T, dir string) []byte {
	schema := rowstest.SchemaOf(t, "id", "int64", "hex", "string", "cents", "int64", "page", "string", "kind", "string", "amount", "double",
		"qty", "int32", "flag", "boolean")
	tgt := newTarget(t, files.Config{Dir: dir, Format: files.Parquet, Schema: schema})
	open(t, tgt, 0)
	r := rand.New(rand.NewPCG(1, 2))
	var want bytes.Buffer
	for n := range checkpoint.BatchID(2) {
		var input []string
		for i := range 30_000 {
			x := r.Uint64()
			row := fmt.Sprintf(`{"id":%d,"hex":"%016x","cents":%d,"page":"/products/%d?ref=%d","kind":"k%d","amount":%d.25,"qty":%d,"flag":%v}`,
				int64(n)*30_000+int64(i), x, x%1_000_000, x%9973, x%97, x%5, x%100_000, x%3000, x%2 == 0)
			input = append(input, row)
			want.WriteString(row + "\n")
		}
		publish(t, tgt, n, input...)
	}
	return want.Bytes()
}

func writeReal(t *testing.T, dir string, partition []string, first checkpoint.BatchID) []byte {
	schema := rowstest.SchemaOf(t, "place", "string", "day", "date", "id", "int64", "n", "int32", "ok", "boolean", "price", "decimal(9,2)",
		"big", "decimal(18,4)", "wide", "decimal(38,10)", "d", "double", "f", "float", "at", "timestamp", "raw", "binary", "note", "string")
	tgt := newTarget(t, files.Config{Dir: dir, Format: files.Parquet, Schema: schema, PartitionBy: partition, MaxPartRows: 10})
	open(t, tgt, first)
	places := []string{`"EWR"`, `"a b"`, `"k=v"`, `"q:r%20"`, `"ü/x"`, `"{[^]}"`, `"<|>\"'\\"`, "null"}
	var want bytes.Buffer
	id := 0
	for n := first; n < first+28; n++ {
		if n%7 == 3 || n == first+18 {
			continue // not called
		}
		var input []string
		for range []int{24, 0, 9, 1}[n%4] {
			place, day := places[id%len(places)], fmt.Sprintf("2026-0%d-28", 1+n%3)
			in, exp := realRow(id, place, day)
			input = append(input, in)
			want.WriteString(exp + "\n")
			id++
		}
		publish(t, tgt, n, input...)
	}
	return want.Bytes()
}

// realRow returns an input object and the row that the checker's readers must see.
func realRow(i int, place, day string) (input, expected string) {
	if i%11 == 5 {
		return fmt.Sprintf(`{"id":%d,"place":%s,"day":"%s","extra":[1,{"a":2}]}`, i, place, day),
			fmt.Sprintf(`{"place":%s,"day":"%s","id":%d,"n":null,"ok":null,"price":null,"big":null,"wide":null,"d":null,"f":null,"at":null,"raw":null,"note":null}`, place, day, i)
	}
	at := fmt.Sprintf("2026-02-03T04:05:%02d.%06d", i%60, i*7919%1000000)
	format := `{"place":%s,"day":"%s","id":%d,"n":%d,"ok":%v,"price":%s,"big":%s,"wide":%s,"d":%s,"f":%s,"at":"%s","raw":"AAEC/w==","note":"line\n%d é"}`
	price, big, wide := fmt.Sprintf("-%d.%02d", i+1, i%100), fmt.Sprintf("%d.0001", int64(i)*1e10), fmt.Sprintf("-12345678901234567890123%05d.0123456789", i)
	q := func(s string) string { return `"` + s + `"` }
	d, f := fmt.Sprintf("%d.25", i), fmt.Sprintf("%d.5", i)
	return fmt.Sprintf(format, place, day, i, -i, i%2 == 0, price, big, wide, d, f, at+"Z", i),
		fmt.Sprintf(format, place, day, i, -i, i%2 == 0, q(price), q(big), q(wide), d, f, at+"Z", i)
}
