package examples

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// windowSize is that of windows.yaml, in milliseconds.
const windowSize = 10_000

// windowRow is one row of the example.
type windowRow struct {
	Customer string      `json:"customer"`
	Start    int64       `json:"window_start"`
	Count    int         `json:"count"`
	Sum      json.Number `json:"sum"`
}

// windowsOf is what must come of sales: a row by customer and window, the sum in cents.
func windowsOf(sales []sale) map[string]string {
	type total struct{ count, cents int }
	all := map[string]total{}
	for i := range sales {
		s := &sales[i]
		name := fmt.Sprintf("%s %d", s.key(), s.at.UnixMilli()/windowSize*windowSize)
		t := all[name]
		all[name] = total{t.count + 1, t.cents + s.cents}
	}
	out := map[string]string{}
	for name, t := range all {
		out[name] = fmt.Sprintf("%d orders %d.%02d", t.count, t.cents/100, t.cents%100)
	}
	return out
}

// windows reads the rows of a topic. Each must be there once, under its customer's key.
func (b *broker) windows(t *testing.T, topic string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, records := range b.committed(t, topic) {
		for _, r := range records {
			var row windowRow
			if err := json.Unmarshal(r.Value, &row); err != nil {
				t.Fatalf("row %s: %v", r.Value, err)
			}
			sum, err := strconv.ParseFloat(row.Sum.String(), 64)
			if err != nil || string(r.Key) != row.Customer {
				t.Fatalf("row %s has key %s", r.Value, r.Key)
			}
			name := fmt.Sprintf("%s %d", row.Customer, row.Start)
			if _, twice := out[name]; twice {
				t.Errorf("window %s was published twice", name)
			}
			out[name] = fmt.Sprintf("%d orders %.2f", row.Count, sum)
		}
	}
	return out
}

// allWindows waits until so many windows are published, then stops the program as a user does and reads them once more.
func (b *broker) allWindows(t *testing.T, p *process, topic string, n int) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for len(b.windows(t, topic)) < n && p.running() && ctx.Err() == nil {
		pause(ctx, 200*time.Millisecond)
	}
	p.stop(t)
	return b.windows(t, topic)
}

// windowKills is how often the job is killed.
func windowKills() int {
	if os.Getenv("WASMILL_KAFKA") == "" {
		return 4
	}
	return 25
}

// TestKafkaWindows runs the example's own job over orders of four partitions, kills it at random while they come, and wants
// every window once, with all of its orders. The last windows close because nothing more comes.
func TestKafkaWindows(t *testing.T) {
	b := anyBroker(t)
	in, out := b.topic(t, "orders", 4, nil), b.topic(t, "out", 2, nil)
	env := []string{"KAFKA_BROKERS=" + b.addr, "IN=" + in, "OUT=" + out, "CHECKPOINT=" + t.TempDir()}
	rng := newRand(t)
	var sales []sale
	for range windowKills() {
		var more []sale
		for range 400 {
			more = append(more, newSale(len(sales)+len(more), rng))
		}
		sales = append(sales, more...)
		sell(t, b, in, more)
		p := launch(t, env, "orders/window.yaml")
		if p.ended(time.Duration(50+rng.IntN(700)) * time.Millisecond) {
			t.Fatalf("it ended by itself:\n%s", p.tail())
		}
		p.kill()
	}
	want := windowsOf(sales)
	p := launch(t, env, "orders/window.yaml")
	got := b.allWindows(t, p, out, len(want))
	if !maps.Equal(got, want) {
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if got[name] != want[name] {
				t.Errorf("window %s: %q, want %q", name, got[name], want[name])
			}
		}
		t.Errorf("%d windows, want %d", len(got), len(want))
	}
	t.Logf("%d kills, %d orders in %d windows, each once", windowKills(), len(sales), len(want))
}

// TestKafkaWindowsPartitionsApart: a partition that holds old orders holds the windows open for them, however far the others
// are.
func TestKafkaWindowsPartitionsApart(t *testing.T) {
	b := anyBroker(t)
	in, out := b.topic(t, "orders", 2, nil), b.topic(t, "out", 1, nil)
	rng := rand.New(rand.NewPCG(3, 3))
	writer := b.client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var sales []sale
	for partition := range int32(2) {
		var records []*kgo.Record
		for i := range 3000 {
			s := newSale(i, rng)
			s.customer = int(partition) // so that a customer's orders are in one partition
			r := s.record(in)
			r.Partition = partition
			sales, records = append(sales, s), append(records, r)
		}
		if err := writer.ProduceSync(ctx, records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	want := windowsOf(sales)
	p := launch(t, []string{"KAFKA_BROKERS=" + b.addr, "IN=" + in, "OUT=" + out, "CHECKPOINT=" + t.TempDir()}, "orders/window.yaml")
	if got := b.allWindows(t, p, out, len(want)); !maps.Equal(got, want) {
		t.Errorf("%d windows, want %d: %v", len(got), len(want), got)
	}
}
