package demo

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/host/source/generator"
)

const testSeed = 7

// message is a record of a topic.
type message struct{ key, value []byte }

// world is what a demo without a fault leaves.
type world struct {
	orders, converted []message
	rows              [][2]int64
}

type collector func(*abi.Record)

func (c collector) Write(r *abi.Record) error                { c(r); return nil }
func (c collector) Reject(*abi.Record, string, string) error { panic("rejected") }

func newWorld(t testing.TB, n int64) (*world, *ledger) {
	t.Helper()
	l, err := newLedger(t.Context(), testSeed, n)
	if err != nil {
		t.Fatal(err)
	}
	src, err := generator.New(generator.Config{Seed: testSeed})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{}
	err = src.Read(t.Context(), source.Split{Detail: fmt.Appendf(nil, `{"from":0,"to":%d}`, n)}, collector(func(r *abi.Record) {
		w.orders = append(w.orders, message{bytes.Clone(r.Key), bytes.Clone(r.Value)})
		c := l.orders[r.Offset].cents
		if c < 0 {
			return
		}
		value := fmt.Appendf(bytes.Clone(r.Value[:len(r.Value)-1]), `,"amount_eur":%d.%02d}`, c/100, c%100)
		w.converted = append(w.converted, message{bytes.Clone(r.Key), value})
		w.rows = append(w.rows, [2]int64{r.Offset, c})
	}))
	if err != nil {
		t.Fatal(err)
	}
	return w, l
}

// proof counts the world as it is.
func (w *world) proof(l *ledger) *Proof {
	in, out, table := newCount("in", l, true), newCount("out", l, false), newCount("table", l, false)
	for _, m := range w.orders {
		in.record(m.key, m.value)
	}
	for _, m := range w.converted {
		out.record(m.key, m.value)
	}
	for _, r := range w.rows {
		table.row(r[0], r[1])
	}
	return judge(l, in, out, table)
}

func TestProofHolds(t *testing.T) {
	w, l := newWorld(t, 2000)
	p := w.proof(l)
	if len(p.Findings) > 0 || p.err("x") != nil {
		t.Fatalf("findings %q", p.Findings)
	}
	if p.Kept < 1600 || p.Kept >= 2000 || p.Rows != p.Kept || p.Converted != p.Kept || p.Orders != 2000 || p.RowsCents != p.WantCents || p.Customers < 1000 {
		t.Errorf("proof %+v", p)
	}
	last := p.lines()
	if last[len(last)-1] != "nothing was lost, nothing was doubled" {
		t.Errorf("lines %q", last)
	}
}

// TestProofFails spoils a good world in every way that there is.
func TestProofFails(t *testing.T) {
	ofOneCustomer := func(ms []message) (int, int) {
		for i := range ms {
			for j := i + 1; j < len(ms); j++ {
				if bytes.Equal(ms[i].key, ms[j].key) {
					return i, j
				}
			}
		}
		panic("no customer has two orders")
	}
	for _, tc := range []struct {
		name  string
		spoil func(*world)
		want  []string
	}{
		{"lost in the first topic", func(w *world) { w.orders = slices.Delete(w.orders, 10, 11) }, []string{"in: 1 lost: order 10"}},
		{"lost in the second", func(w *world) { w.converted = w.converted[:len(w.converted)-2] }, []string{"out: 2 lost: order ", "out: amount_eur sums to"}},
		{"lost in the table", func(w *world) { w.rows = w.rows[1:] }, []string{"table: 1 lost: order ", "table: amount_eur"}},
		{"doubled in the first topic", func(w *world) { w.orders = append(w.orders, w.orders[1999]) }, []string{"in: 1 doubled: order 1999"}},
		{"doubled in the second", func(w *world) { w.converted = slices.Insert(w.converted, 5, w.converted[4]) }, []string{"out: 1 doubled: order ", "out: amount_eur"}},
		{"doubled in the table", func(w *world) { w.rows = append(w.rows, w.rows[:9]...) }, []string{"table: 9 doubled: order ", "table: amount_eur"}},
		{"one lost, another doubled", func(w *world) { w.rows[3] = w.rows[4] }, []string{"table: 1 lost", "table: 1 doubled", "table: amount_eur"}},
		{"out of order", func(w *world) {
			i, j := ofOneCustomer(w.converted)
			w.converted[i], w.converted[j] = w.converted[j], w.converted[i]
		}, []string{"out: 1 out of order for its customer: order "}},
		{"cancelled, and yet there", func(w *world) { w.rows = append(w.rows, [2]int64{missing(w), 5}) }, []string{"table: 1 never generated, or cancelled: order", "table: amount_eur"}},
		{"never generated", func(w *world) { w.orders = append(w.orders, message{[]byte("c"), []byte(`{"order_id":2000,"x":1}`)}) }, []string{"in: 1 never generated, or cancelled: order 2000"}},
		{"no order at all", func(w *world) { w.converted = append(w.converted, message{nil, []byte("\x1b[2J")}) }, []string{`out: 1 never generated, or cancelled: order "\x1b[2J"`}},
		{"a byte changed", func(w *world) { w.orders[7].value[60] ^= 1 }, []string{"in: 1 not what was made of the order: order 7"}},
		{"another key", func(w *world) { w.converted[0].key = []byte("c-x") }, []string{"out: 1 not what was made of the order"}},
		{"another amount", func(w *world) {
			v := w.converted[0].value
			v[len(v)-2] = '0' + (v[len(v)-2]-'0'+1)%10
		}, []string{"out: 1 not what was made of the order", "out: amount_eur"}},
		{"nothing added", func(w *world) { w.converted[0].value, _, _ = withoutEuros(w.converted[0].value) }, []string{"out: 1 not what was made of the order", "out: amount_eur"}},
		{"null in the table", func(w *world) { w.rows[0][1] = -1 }, []string{"table: 1 not what was made", "table: amount_eur"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, l := newWorld(t, 2000)
			tc.spoil(w)
			p := w.proof(l)
			if len(p.Findings) != len(tc.want) {
				t.Fatalf("findings %q, want %q", p.Findings, tc.want)
			}
			for i, f := range p.Findings {
				if !strings.HasPrefix(f, tc.want[i]) {
					t.Errorf("finding %q, want %q", f, tc.want[i])
				}
			}
			if err := p.err("here"); err == nil || !strings.Contains(err.Error(), p.Findings[0]) {
				t.Errorf("error %v", err)
			}
			if text := strings.Join(p.lines(), "\n"); !strings.Contains(text, "FAILED") || strings.Contains(text, "nothing was lost") || strings.Contains(text, "each once") {
				t.Errorf("printed as\n%s", text)
			}
		})
	}
}

// missing is the number of an order that the converted ones do not have.
func missing(w *world) int64 {
	for i, r := range w.rows {
		if r[0] != int64(i) {
			return int64(i)
		}
	}
	panic("none is missing")
}

func TestNothingToProve(t *testing.T) {
	w, l := newWorld(t, 0)
	if p := w.proof(l); len(p.Findings) != 1 {
		t.Errorf("findings of an empty world: %q", p.Findings)
	}
}

func TestCents(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "7": 700, "7.5": 750, "12.34": 1234, "0.01": 1, "999.99": 99999} {
		if got, ok := cents(text); !ok || got != want {
			t.Errorf("cents(%q) = %d %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", ".", "1.", ".5", "1.234", "-1", "1e2", "1.-1", "99999999999999999999", "1.2.3"} {
		if got, ok := cents(text); ok {
			t.Errorf("cents(%q) = %d", text, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1<<40-1).Draw(t, "cents")
		if got, ok := cents(fmt.Sprintf("%d.%02d", n/100, n%100)); !ok || got != n {
			t.Errorf("%d comes back as %d %v", n, got, ok)
		}
	})
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte("k"), []byte(`{"order_id":3,"a":"b","amount_eur":1.20}`))
	f.Add([]byte{}, []byte(`{"order_id":,`))
	f.Add([]byte{}, []byte(`,"amount_eur":`))
	_, l := newWorld(f, 10)
	f.Fuzz(func(t *testing.T, key, value []byte) {
		c := newCount("here", l, false)
		c.record(key, value)
		c.close()
		if int(c.Records) != 1 || len(c.findings) == 0 {
			t.Errorf("record %q is taken for good: %+v", value, c.findings)
		}
	})
}

// TestReadTopic reads what is committed, through an aborted transaction, to the end.
func TestReadTopic(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "t", "empty"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.DefaultProduceTopic("t"), kgo.TransactionalID("x"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var want []string
	for i, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit, kgo.TryAbort} {
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for j := range 20 {
			value := fmt.Sprintf("%d %02d", i, j)
			if err := client.ProduceSync(t.Context(), kgo.KeyStringRecord(value, value)).FirstErr(); err != nil {
				t.Fatal(err)
			}
			if end == kgo.TryCommit {
				want = append(want, value)
			}
		}
		if err := client.EndTransaction(t.Context(), end); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	if err := readTopic(t.Context(), cluster.ListenAddrs(), "t", func(r *kgo.Record) { got = append(got, string(r.Value)) }); err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
	if err := readTopic(t.Context(), cluster.ListenAddrs(), "empty", func(*kgo.Record) { t.Error("a record of an empty topic") }); err != nil {
		t.Error(err)
	}
	if err := readTopic(t.Context(), cluster.ListenAddrs(), "none", func(*kgo.Record) {}); err == nil {
		t.Error("a topic that is not there is read")
	}
}

type tableRow struct {
	Euros  *int64 `parquet:"amount_eur,optional,decimal(2:12)"`
	Number *int64 `parquet:"order_id,optional"`
}

// TestReadTable reads what the manifest names: the newest compact entry and those behind it, nulls, and no other file.
func TestReadTable(t *testing.T) {
	dir := t.TempDir()
	meta := filepath.Join(dir, "_spark_metadata")
	if err := os.MkdirAll(meta, 0o755); err != nil {
		t.Fatal(err)
	}
	line := func(n int64, rows ...tableRow) string {
		name := filepath.Join(dir, fmt.Sprintf("part-%d.parquet", n))
		if err := parquet.WriteFile(name, rows); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("{\"path\":\"file://%s\",\"action\":\"add\"}\n", name)
	}
	row := func(n, c int64) tableRow { return tableRow{Number: &n, Euros: &c} }
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(meta, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("8", "v1\n"+line(8, row(99, 99))) // compacted away
	write("9.compact", "v1\n"+line(1, row(1, 10), row(2, 20))+line(2, row(3, 30)))
	write("10", "v1\n"+line(3, row(4, 40), tableRow{}))
	line(7, row(98, 98)) // never published
	read := func() (rows [][2]int64, err error) {
		err = readTable(durable.OS(), dir, func(n, c int64) { rows = append(rows, [2]int64{n, c}) })
		return rows, err
	}
	rows, err := read()
	if want := [][2]int64{{1, 10}, {2, 20}, {3, 30}, {4, 40}, {-1, -1}}; err != nil || !slices.Equal(rows, want) {
		t.Errorf("rows %v, want %v: %v", rows, want, err)
	}
	for name, text := range map[string]string{
		"a gap": "", "no version": "x\n", "no JSON": "v1\nx\n", "removed": "v1\n{\"path\":\"file:///x\",\"action\":\"delete\"}\n",
		"no such file": "v1\n{\"path\":\"file:///nowhere/x\",\"action\":\"add\"}\n",
	} {
		if text == "" {
			write("12", "v1\n")
		} else {
			write("11", text)
		}
		if _, err := read(); err == nil {
			t.Errorf("%s: read", name)
		}
		_ = os.Remove(filepath.Join(meta, "12"))
	}
	if rows, err := [][2]int64(nil), readTable(durable.OS(), t.TempDir(), nil); err != nil || rows != nil {
		t.Errorf("no table: %v", err)
	}
}

func TestGenerated(t *testing.T) {
	dir := t.TempDir()
	if n, err := generated(durable.OS(), dir); n != 0 || err != nil {
		t.Errorf("without a checkpoint %d are generated: %v", n, err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "offsets"), 0o755); err != nil {
		t.Fatal(err)
	}
	if n, err := generated(durable.OS(), dir); n != 0 || err != nil {
		t.Errorf("without a plan %d are generated: %v", n, err)
	}
	for name, text := range map[string]string{"9": "v1\n{}\n900", "10": "v1\n{}\n1000\n", ".11.tmp": "v1\n{}\n1100"} {
		if err := os.WriteFile(filepath.Join(dir, "offsets", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := generated(durable.OS(), dir); n != 1000 || err != nil {
		t.Errorf("%d generated: %v", n, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "offsets", "11"), []byte("v1\n{}\n-"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := generated(durable.OS(), dir); err == nil {
		t.Errorf("a plan that says nothing gives %d", n)
	}
}
