package examples

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// feeder is the upstream of a job: a transactional producer of orders, and of prices into a compacted topic. It aborts a
// part of its transactions and writes the same records again, and it remembers what became of each.
type feeder struct {
	b              *broker
	orders, prices string // "" without prices
	id             string // transactional id
	rng            *rand.Rand
	cl             *kgo.Client

	mu        sync.Mutex
	next      int            // number of the next order
	price     int            // number of the next price
	committed map[string]int // values of orders that are said to be committed, with how often
	unknown   map[string]bool
	sent      map[string]*kgo.Record // where the broker put the records of the last try, by their values
	aborted   int                    // transactions
	done      int                    // transactions that were committed
	unclear   []string               // transactions of which the outcome is not known, in words
}

func newFeeder(b *broker, orders, prices string, seed uint64) *feeder {
	return &feeder{
		b: b, orders: orders, prices: prices, id: unique("upstream"), rng: rand.New(rand.NewPCG(seed, 2)),
		committed: map[string]int{}, unknown: map[string]bool{}, sent: map[string]*kgo.Record{},
	}
}

// orderKeys are so many that each partition has some and each key has many orders.
const orderKeys = 150

// order is order number n as the topic holds it; the numbers of a key rise.
func order(n int, rng *rand.Rand) string {
	status := []string{"paid", "paid", "paid", "shipped", "cancelled"}[rng.IntN(5)]
	cents := 1 + rng.IntN(99_999)
	return fmt.Sprintf(`{"order_id":%d,"customer_id":%d,"amount":%d.%02d,"currency":"%s","status":"%s"}`,
		n, n%orderKeys, cents/100, cents%100, []string{"EUR", "USD", "GBP", "JPY"}[rng.IntN(4)], status)
}

// transaction makes the records of one transaction.
func (f *feeder) transaction() []*kgo.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*kgo.Record
	for range 1 + f.rng.IntN(40) {
		out = append(out, &kgo.Record{
			Topic: f.orders, Key: fmt.Appendf(nil, "customer-%d", f.next%orderKeys), Value: []byte(order(f.next, f.rng)),
			Headers: []kgo.RecordHeader{{Key: "number", Value: fmt.Appendf(nil, "%d", f.next)}},
		})
		f.next++
	}
	if f.prices != "" {
		for range f.rng.IntN(6) {
			out = append(out, &kgo.Record{Topic: f.prices, Key: fmt.Appendf(nil, "item-%d", f.rng.IntN(20)), Value: fmt.Appendf(nil, "%09d", f.price)})
			f.price++
		}
	}
	return out
}

// feed writes transactions until the context ends or n of them are committed; n 0 is without end. pace is the time between
// them. Errors of the broker are lived through.
func (f *feeder) feed(ctx context.Context, t *testing.T, n int, pace time.Duration) {
	var last ending
	for done := 0; ctx.Err() == nil && (n == 0 || done < n); done++ {
		this := ending{records: f.transaction(), shaken: f.b.shaken.Load()}
		for f.rng.IntN(4) == 0 && ctx.Err() == nil {
			if f.write(ctx, t, this.records, kgo.TryAbort) == nil {
				f.mu.Lock()
				f.aborted++
				f.mu.Unlock()
			}
		}
		this.err = f.write(ctx, t, this.records, kgo.TryCommit)
		for errors.Is(this.err, errNotSent) && ctx.Err() == nil {
			this.err = f.write(ctx, t, this.records, kgo.TryCommit)
		}
		f.note(last)
		last = this
		if pace > 0 {
			pause(ctx, pace)
		}
	}
	f.note(last)
	if f.cl != nil {
		f.cl.Close()
		f.cl = nil
	}
}

// ending is what the client was told of a transaction.
type ending struct {
	records []*kgo.Record
	shaken  int64 // the broker's, before the first of these records was sent
	err     error
}

// errNotSent says that the broker was away before there was a transaction.
var errNotSent = errors.New("not sent")

// errShaken says that the broker was killed meanwhile, or before the end of the next transaction: a client that gets its producer id
// anew in the middle of a transaction may be told of the commit of nothing, and the markers of one are written after the client is
// told of it, for certain only when the next one ends.
var errShaken = errors.New("the broker was killed meanwhile")

// write takes records through one transaction. After an error the client is given up, so that its records come no more.
func (f *feeder) write(ctx context.Context, t *testing.T, records []*kgo.Record, how kgo.TransactionEndTry) (err error) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if f.cl == nil {
		f.cl = f.b.client(t, kgo.TransactionalID(f.id), kgo.TransactionTimeout(10*time.Second), kgo.ProducerLinger(0))
	}
	defer func() {
		if err != nil {
			f.cl.Close()
			f.cl = nil
		}
	}()
	if _, _, err := f.cl.ProducerID(bounded); err != nil {
		pause(ctx, 100*time.Millisecond)
		return errNotSent
	}
	if err := f.cl.BeginTransaction(); err != nil {
		return err
	}
	var fresh []*kgo.Record
	for _, r := range records {
		fresh = append(fresh, &kgo.Record{Topic: r.Topic, Key: r.Key, Value: r.Value, Headers: r.Headers})
	}
	err = f.cl.ProduceSync(bounded, fresh...).FirstErr()
	f.mu.Lock()
	for _, r := range fresh {
		f.sent[string(r.Value)] = r
	}
	f.mu.Unlock()
	if err != nil {
		return err
	}
	if err := f.cl.Flush(bounded); err != nil {
		return err
	}
	return f.cl.EndTransaction(bounded, how)
}

// note remembers what became of a transaction, once the next one or the feed has ended.
func (f *feeder) note(e ending) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.err == nil && f.b.shaken.Load() != e.shaken {
		e.err = errShaken
	}
	switch {
	case len(e.records) == 0:
		return // there is none before the first
	case e.err != nil:
		f.unclear = append(f.unclear, fmt.Sprintf("%s: %d records from %s: %v", time.Now().Format(time.RFC3339Nano), len(e.records), e.records[0].Value, e.err))
	default:
		f.done++
	}
	for _, r := range e.records {
		switch {
		case r.Topic != f.orders:
		case e.err != nil:
			f.unknown[string(r.Value)] = true
		default:
			f.committed[string(r.Value)]++
		}
	}
}

// start feeds in the background. stop ends that and waits.
func (f *feeder) start(t *testing.T, pace time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { f.feed(ctx, t, 0, pace) })
	stop = func() {
		cancel()
		wg.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// check demands of the topic of orders what the feeder knows: all that was committed, once, and nothing that was not.
func (f *feeder) check(t *testing.T, in map[int32][]*kgo.Record) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	got := map[string]int{}
	for _, records := range in {
		for _, r := range records {
			v := string(r.Value)
			if got[v]++; f.committed[v] == 0 && !f.unknown[v] {
				t.Fatalf("the input holds what was never committed: %s", v)
			}
		}
	}
	for v, n := range f.committed {
		if got[v] != n {
			t.Fatalf("the input holds %s %d times, it was committed %d times; there the broker holds:\n%s", v, got[v], n, f.b.around(t, f.sent[v]))
		}
	}
}

// pause lets others work for a time. Nothing is right or wrong by how long it takes.
func pause(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}
