package examples

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// anyBroker is the real broker when WASMILL_KAFKA names one, else one inside this process.
func anyBroker(t *testing.T) *broker {
	t.Helper()
	b := &broker{addr: os.Getenv("WASMILL_KAFKA")}
	if b.addr == "" {
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cluster.Close)
		b.addr = cluster.ListenAddrs()[0]
	}
	b.cl = b.client(t)
	b.adm = kadm.NewClient(b.cl)
	return b
}

// sale is an order and what is known of it without its JSON.
type sale struct {
	id, customer, cents int
	currency, status    string
	at                  time.Time
	note                string
}

func newSale(id int, rng *rand.Rand) sale {
	notes := []string{`\"amount_eur\":0}`, `plain`, `a \"quoted\" one`, `\u00e4 and ä`, `{ } [ ] , :`, ``}
	return sale{
		id: id, customer: rng.IntN(50), cents: rng.IntN(1 << rng.IntN(24)),
		currency: []string{"EUR", "USD", "GBP", "JPY"}[rng.IntN(4)], status: []string{"new", "paid", "paid", "cancelled"}[rng.IntN(4)],
		at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(id) * 100 * time.Millisecond), note: notes[rng.IntN(len(notes))],
	}
}

func (s *sale) key() string { return fmt.Sprintf("c-%06d", s.customer) }

func (s *sale) json() string {
	return fmt.Sprintf(`{"order_id":%d,"customer":%q,"amount":%d.%02d,"currency":%q,"status":%q,"created_at":%q,"note":"%s"}`,
		s.id, s.key(), s.cents/100, s.cents%100, s.currency, s.status, s.at.Format("2006-01-02T15:04:05.000Z"), s.note)
}

// record is the order as it is written: with a header and a time, which must come through.
func (s *sale) record(topic string) *kgo.Record {
	return &kgo.Record{
		Topic: topic, Key: []byte(s.key()), Value: []byte(s.json()), Timestamp: s.at,
		Headers: []kgo.RecordHeader{{Key: "trace", Value: fmt.Append(nil, s.id)}, {Key: "none"}},
	}
}

// converted is the value that has to come out, by exact arithmetic; false for a cancelled order.
func (s *sale) converted() (string, bool) {
	rate, _ := new(big.Rat).SetString(map[string]string{"EUR": "1", "USD": "0.92", "GBP": "1.17", "JPY": "0.0061"}[s.currency])
	eur := rate.Mul(rate, big.NewRat(int64(s.cents), 100))
	return strings.TrimSuffix(s.json(), "}") + `,"amount_eur":` + eur.FloatString(2) + "}", s.status != "cancelled"
}

// describe is all of a record but its offset.
func describe(r *kgo.Record, value string) string {
	return fmt.Sprintf("partition %d key %s headers %q time %s value %s", r.Partition, r.Key, r.Headers, r.Timestamp.UTC(), value)
}

// sell writes n more orders and returns them with the partitions that they went to.
func sell(t *testing.T, b *broker, topic string, sales []sale) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var records []*kgo.Record
	for i := range sales {
		records = append(records, sales[i].record(topic))
	}
	if err := b.cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return records
}

// stopAt waits until a topic has so many offsets that are committed, then stops the program as a user does.
func (b *broker) stopAt(t *testing.T, p *process, topic string, records int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		sum := int64(0)
		if ends, err := b.adm.ListCommittedOffsets(ctx, topic); err == nil {
			ends.Each(func(o kadm.ListedOffset) { sum += o.Offset })
		}
		if sum >= int64(records) || !p.running() || ctx.Err() != nil {
			break
		}
		pause(ctx, 20*time.Millisecond)
	}
	p.stop(t)
}

// stop ends the program with SIGTERM and demands that it ends well.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.signal(syscall.SIGTERM)
	if !p.ended(patience) || p.exit() != 0 {
		t.Fatalf("exit %d:\n%s", p.exit(), p.tail())
	}
}

// TestOrders runs the example's own job with either guest, stops it in the middle, goes on, and compares every record:
// its bytes, key, headers, time, partition, and its place among those of its key.
func TestOrders(t *testing.T) {
	for _, guest := range []string{"rust", "go"} {
		t.Run(guest, func(t *testing.T) {
			b := anyBroker(t)
			in, out := b.topic(t, "orders", 4, nil), b.topic(t, "out", 4, nil)
			env := []string{"KAFKA_BROKERS=" + b.addr, "IN=" + in, "OUT=" + out, "GUEST=" + guest, "CHECKPOINT=" + t.TempDir()}
			rng := rand.New(rand.NewPCG(7, 7))
			var want []string
			kept, next := 0, 0
			for range 2 {
				var sales []sale
				for range 3000 {
					sales = append(sales, newSale(next, rng))
					next++
				}
				for i, r := range sell(t, b, in, sales) {
					if value, ok := sales[i].converted(); ok {
						want = append(want, describe(r, value))
						kept++
					}
				}
				p := launch(t, env, "orders/job.yaml")
				b.stopAt(t, p, out, kept)
			}
			compareRecords(t, b.committed(t, out), want)
		})
	}
}

// compareRecords wants exactly these records, and those of a partition in this order.
func compareRecords(t *testing.T, got map[int32][]*kgo.Record, want []string) {
	t.Helper()
	var all []string
	order := map[string][]string{}
	for partition, records := range got {
		for _, r := range records {
			text := describe(r, string(r.Value))
			all = append(all, text)
			prefix := fmt.Sprintf("partition %d ", partition)
			order[prefix] = append(order[prefix], text)
		}
	}
	sameRows(t, "orders", all, want)
	for prefix, texts := range order {
		inOrder := slices.DeleteFunc(slices.Clone(want), func(s string) bool { return !strings.HasPrefix(s, prefix) })
		if !t.Failed() && !slices.Equal(texts, inOrder) {
			t.Errorf("%s is not in the order of its input: %s", prefix, difference(texts, inOrder))
		}
	}
}

// TestOrdersThatAreNone: what is no order stops the job before anything of its batch is there to be read, and goes to a
// topic of its own where the README's lines say so.
func TestOrdersThatAreNone(t *testing.T) {
	b := anyBroker(t)
	in, out, dead := b.topic(t, "orders", 4, nil), b.topic(t, "out", 4, nil), b.topic(t, "dead", 1, nil)
	good := newSale(1, rand.New(rand.NewPCG(1, 1)))
	good.status = "new"
	bad := &kgo.Record{Topic: in, Key: []byte("c-000001"), Value: []byte(`{"order_id":2,"status":"new","amount":1.00,"currency":"CHF"}`)}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := good.record(in)
	if err := b.cl.ProduceSync(ctx, r, bad).FirstErr(); err != nil {
		t.Fatal(err)
	}
	env := []string{"KAFKA_BROKERS=" + b.addr, "IN=" + in, "OUT=" + out, "DEAD=" + dead, "CHECKPOINT=" + t.TempDir()}
	p := launch(t, env, "orders/job.yaml")
	if !p.ended(patience) || p.exit() == 0 || !strings.Contains(p.log.String(), "there is no rate for the currency CHF") {
		t.Fatalf("exit %d:\n%s", p.exit(), p.tail())
	}
	if n := total(b.committed(t, out)); n != 0 {
		t.Fatalf("%d records can be read of a batch that failed", n)
	}

	file := withDeadLetters(t)
	p = launch(t, env, file)
	b.stopAt(t, p, dead, 1)
	value, _ := good.converted()
	compareRecords(t, b.committed(t, out), []string{describe(r, value)})
	letters := b.committed(t, dead)[0]
	if len(letters) != 1 || !strings.Contains(string(letters[0].Value), `"reason":"there is no rate for the currency CHF"`) {
		t.Errorf("%d dead letters, the reason is not among them", len(letters))
	}
}

// withDeadLetters is the example's job with the lines that its README gives for dead letters in the place of its policy.
func withDeadLetters(t *testing.T) string {
	t.Helper()
	readme := mustRead(t, "orders/README.md")
	_, after, found := strings.Cut(readme, "```yaml\n")
	lines, _, closed := strings.Cut(after, "```")
	job := mustRead(t, "orders/job.yaml")
	before, policy, old := strings.Cut(job, "  errors: {policy: stop}")
	_, rest, _ := strings.Cut(policy, "\n")
	if !found || !closed || !old {
		t.Fatal("the README has no lines for dead letters, or the job no policy")
	}
	dir, err := filepath.Abs("../transforms")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "job.yaml")
	text := strings.ReplaceAll(before+lines+rest, "../../transforms", dir)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func mustRead(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// lakeOrder is a row of the table: amounts in cents.
type lakeOrder struct {
	OrderID   *int64  `parquet:"order_id,optional"`
	Customer  *string `parquet:"customer,optional"`
	Amount    *int64  `parquet:"amount,optional"`
	Currency  *string `parquet:"currency,optional"`
	Status    *string `parquet:"status,optional"`
	CreatedAt *int64  `parquet:"created_at,optional"`
	Note      *string `parquet:"note,optional"`
}

// TestOrdersLake runs the job from the topic to the table, kills it in the middle, goes on, and compares the rows that a
// reader of the manifest sees.
func TestOrdersLake(t *testing.T) {
	b := anyBroker(t)
	in := b.topic(t, "orders", 4, nil)
	lake := filepath.Join(t.TempDir(), "lake")
	env := []string{"KAFKA_BROKERS=" + b.addr, "IN=" + in, "LAKE=" + lake, "DEAD=" + t.TempDir(), "CHECKPOINT=" + t.TempDir()}
	rng := rand.New(rand.NewPCG(8, 8))
	var sales []sale
	for id := range 4000 {
		sales = append(sales, newSale(id, rng))
	}
	sell(t, b, in, sales[:3000])
	p := launch(t, env, "orders/lake.yaml")
	if !until(p, patience, func() bool { return len(manifest(t, lake)) > 0 }) {
		t.Fatalf("no table:\n%s", p.tail())
	}
	p.kill()
	sell(t, b, in, sales[3000:])
	p = launch(t, env, "orders/lake.yaml")
	if !until(p, patience, func() bool { return len(lakeRows(t, lake)) >= len(sales) }) {
		t.Errorf("rows are missing:\n%s", p.tail())
	}
	p.stop(t)
	var want []string
	notes := strings.NewReplacer(`\"`, `"`, `\u00e4`, "ä")
	for _, s := range sales {
		want = append(want, fmt.Sprint(s.id, s.key(), s.cents, s.currency, s.status, s.at.UnixMicro(), notes.Replace(s.note)))
	}
	sameRows(t, "lake", lakeRows(t, lake), want)
}

func lakeRows(t *testing.T, dir string) []string {
	t.Helper()
	var rows []string
	for _, name := range manifest(t, dir) {
		read, err := parquet.ReadFile[lakeOrder](name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, o := range read {
			rows = append(rows, fmt.Sprint(*o.OrderID, *o.Customer, *o.Amount, *o.Currency, *o.Status, *o.CreatedAt, *o.Note))
		}
	}
	return rows
}
