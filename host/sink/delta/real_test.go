package delta_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	target "github.com/wasmill/wasmill/host/sink/delta"
)

// checker runs WASMILL_DELTA_CHECKER, a command that takes a table and a file of the expected rows.
func checker(t *testing.T, dir string, want []byte, args ...string) {
	t.Helper()
	command := os.Getenv("WASMILL_DELTA_CHECKER")
	if command == "" {
		t.Skip("WASMILL_DELTA_CHECKER is not set")
	}
	expected := filepath.Join(t.TempDir(), "expected.jsonl")
	if err := os.WriteFile(expected, want, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("sh", append([]string{"-c", command + ` "$@"`, "checker", dir, expected}, args...)...).CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

// TestRealReaders writes batches of all types, of which some are empty and some are never handed to the sink, and lets Spark,
// delta-rs and DuckDB read them.
func TestRealReaders(t *testing.T) {
	if os.Getenv("WASMILL_DELTA_CHECKER") == "" {
		t.Skip("WASMILL_DELTA_CHECKER is not set")
	}
	for _, c := range []struct {
		name string
		cfg  target.Config
	}{
		{"plain", target.Config{}},
		{"partitioned", target.Config{PartitionBy: []string{"place", "day"}}},
		{"partitioned by a clock", target.Config{PartitionBy: []string{"wall"}}},
		{"upsert", target.Config{Key: []string{"id"}}},
		{"upsert partitioned", target.Config{Key: []string{"place", "id"}, PartitionBy: []string{"place"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out +%ü")
			want, last := writeReal(t, dir, c.cfg)
			checker(t, dir, want, "--txn", fmt.Sprintf("%s/lake=%d", query, last))
		})
	}
}

func writeReal(t *testing.T, dir string, cfg target.Config) (expected []byte, last checkpoint.BatchID) {
	cfg.Dir, cfg.MaxPartRows, cfg.CheckpointInterval = dir, 10, 7
	cfg.Schema = rowstest.SchemaOf(t, "place", "string", "day", "date", "id", "int64 not null", "n", "int32", "small", "int16", "tiny", "int8", "ok", "boolean",
		"price", "decimal(9,2)", "big", "decimal(18,4)", "wide", "decimal(38,10)", "d", "double", "f", "float", "at", "timestamp", "raw", "binary",
		"note", "string", "tags", "list<string>", "s", "struct<x: int32, y: string>", "m", "map<string, int64>",
		"wall", "timestamp_ntz", "walls", "list<struct<t: timestamp_ntz>>")
	tt := opened(t, cfg)
	places := []string{`"EWR"`, `"a b"`, `"k=v"`, `"q:r%20"`, `"ü/x"`, `"{[^]}"`, `"<|>\"'\\"`, "null"}
	rows := map[int]string{}
	id := 0
	for n := range checkpoint.BatchID(20) {
		if n%7 == 3 {
			continue // not called
		}
		var records []record
		for range []int{24, 0, 9, 1}[n%4] {
			in, out := realRow(id, places[id%7], fmt.Sprintf("2026-0%d-28", 1+id%3))
			records, rows[id] = append(records, record{value: in}), out
			id++
		}
		if len(cfg.Key) > 0 && n > 4 {
			for k := int(n) % 3; k < id; k += 5 { // written anew, now and then deleted
				in, out := realRow(k, places[k%7], fmt.Sprintf("2026-1%d-%02d", k%3, n))
				records, rows[k] = append(records, record{value: in}), out
				if k%2 == 0 {
					key := fmt.Sprint(k)
					if len(cfg.Key) > 1 {
						key = fmt.Sprintf("[%s,%d]", places[k%7], k)
					}
					records = append(records, record{key: key})
					delete(rows, k)
				}
			}
		}
		if err := batch(tt, n, records); err != nil {
			t.Fatal(err)
		}
		last = n
	}
	var want bytes.Buffer
	for _, r := range rows {
		want.WriteString(r + "\n")
	}
	return want.Bytes(), last
}

// realRow returns an input object and the row that the checker's readers must see.
func realRow(i int, place, day string) (input, expected string) {
	wall := fmt.Sprintf("2026-03-29T02:30:0%d.%06d", i%3, i%3*100500)
	if i%11 == 5 {
		return fmt.Sprintf(`{"id":%d,"place":%s,"day":"%s","extra":[1,{"a":2}]}`, i, place, day),
			fmt.Sprintf(`{"place":%s,"day":"%s","id":%d,"n":null,"small":null,"tiny":null,"ok":null,"price":null,"big":null,"wide":null,"d":null,"f":null,`+
				`"at":null,"raw":null,"note":null,"tags":null,"s":null,"m":null,"wall":null,"walls":null}`, place, day, i)
	}
	at := fmt.Sprintf("2026-02-03T04:05:%02d.%06d", i%60, i*7919%1000000)
	format := `{"place":%s,"day":"%s","id":%d,"n":%d,"small":%d,"tiny":%d,"ok":%v,"price":%s,"big":%s,"wide":%s,"d":%s,"f":%s,"at":"%s","raw":"AAEC/w==",` +
		`"note":"line\n%d é","tags":["a",null,"ü"],"s":{"x":%d,"y":null},"m":{"k":%d},"wall":"%s","walls":[{"t":"%s"},null]}`
	price, big, wide := fmt.Sprintf("-%d.%02d", i+1, i%100), fmt.Sprintf("%d.0001", int64(i)*1e10), fmt.Sprintf("-12345678901234567890123%05d.0123456789", i)
	q := func(s string) string { return `"` + s + `"` }
	row := func(price, big, wide string) string {
		return fmt.Sprintf(format, place, day, i, -i, i-100, i%100, i%2 == 0, price, big, wide, fmt.Sprintf("%d.25", i), fmt.Sprintf("%d.5", i), at+"Z", i, i, i, wall, at)
	}
	return row(price, big, wide), row(q(price), q(big), q(wide))
}

// appender is another program that appends to the table: WASMILL_DELTA_APPENDER, a command that takes what testdata/append.py
// does.
func appender(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	command := os.Getenv("WASMILL_DELTA_APPENDER")
	if command == "" {
		t.Skip("WASMILL_DELTA_APPENDER is not set")
	}
	cmd := exec.Command("sh", append([]string{"-c", command + ` "$@"`, "appender"}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd
}

// TestRealWriters has Spark, delta-rs and this target append to one table, in turns and at the same time: a batch for each
// commit of theirs. WASMILL_DELTA_WRITERS leaves one out.
func TestRealWriters(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	others := strings.Fields(cmp.Or(os.Getenv("WASMILL_DELTA_WRITERS"), "spark delta-rs"))
	var want bytes.Buffer
	expect := func(who string, n int) { fmt.Fprintf(&want, "{\"who\":%q,\"n\":%d}\n", who, n) }
	tt := opened(t, target.Config{Dir: dir, Schema: rowstest.SchemaOf(t, "who", "string", "n", "int64"), CheckpointInterval: 10, Files: durable.OS()})
	next := checkpoint.BatchID(0)
	ours := func() {
		mustBatch(t, tt, next, fmt.Sprintf(`{"who":"us","n":%d}`, next))
		expect("us", int(next))
		next++
	}
	ours()
	for turn := range 2 {
		for _, engine := range others {
			who := fmt.Sprintf("%s in turn %d", engine, turn)
			if out, err := appender(t, engine, dir, who, "2").Output(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			expect(who, 0)
			expect(who, 1)
			ours()
		}
	}
	const each = 10
	starting := filepath.Join(t.TempDir(), "go")
	var running []*exec.Cmd
	for _, engine := range others {
		cmd := appender(t, engine, dir, engine, fmt.Sprint(each), starting)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatalf("%s: %q, %v", engine, line, err)
		}
		running = append(running, cmd)
		for n := range each {
			expect(engine, n)
		}
	}
	if err := os.WriteFile(starting, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		var err error
		for _, cmd := range running {
			if werr := cmd.Wait(); werr != nil {
				err = werr
			}
		}
		done <- err
	}()
	log, seen := delta.OpenLog(osFiles, dir, (&clock{start}).now), int64(-1)
	for beside := 0; ; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d batches beside %d commits of others", beside, each*len(others))
			p, err := tt.Open(context.Background(), owner(next))
			if err != nil || p.Batch != next-1 {
				t.Fatalf("published is %+v, %v", p, err)
			}
			checker(t, dir, want.Bytes(), "--txn", fmt.Sprintf("%s/lake=%d", query, next-1))
			return
		case <-time.After(10 * time.Millisecond): // to look without a pause would keep a processor from Spark
			s, err := log.Snapshot(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if s.Version > seen { // somebody was there
				ours()
				seen = s.Version + 1
				beside++
			}
		}
	}
}
