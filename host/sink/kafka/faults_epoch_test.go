package kafka_test

import (
	"math"
	"strconv"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/wasmill/wasmill/checkpoint"
)

// TestEpochsRunOut: a producer's epoch has 16 bits and grows with each transaction. When it runs out the brokers give
// another producer id, which counts for nothing but the next requests.
func TestEpochsRunOut(t *testing.T) {
	c := newFake(t)
	cl := c.client(t)
	defer cl.Close()
	txn := "wasmill." + c.query + "." + c.conn
	const near = math.MaxInt16 - 12
	var wg sync.WaitGroup
	const ways = 16
	for way := range ways {
		wg.Go(func() {
			for range near / ways {
				req := kmsg.NewPtrInitProducerIDRequest()
				req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = &txn, 60_000, -1, -1
				resp, err := req.RequestWith(t.Context(), cl)
				if err == nil {
					err = kerr.ErrorForCode(resp.ErrorCode)
				}
				if err != nil {
					t.Errorf("way %d: %v", way, err)
					return
				}
			}
		})
	}
	wg.Wait()
	target := c.opened(t, nil)
	const batches = 60
	for id := range checkpoint.BatchID(batches) {
		mustPublish(t, target, id, record("a", strconv.Itoa(int(id))))
	}
	if id, epoch := c.producerOf(t, txn); epoch > batches {
		t.Fatalf("epoch %d of producer %d: the epochs did not run out", epoch, id)
	}
	got := values(c.committed(t, "out"))
	if len(got) != batches {
		t.Fatalf("%d records, want %d", len(got), batches)
	}
	for i, v := range got {
		if v != strconv.Itoa(i) {
			t.Fatalf("record %d is %q", i, v)
		}
	}
}

func (c *cluster) producerOf(t *testing.T, txn string) (id int64, epoch int16) {
	t.Helper()
	cl := c.client(t)
	defer cl.Close()
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{txn}
	resp, err := req.RequestWith(t.Context(), cl)
	if err != nil {
		t.Fatal(err)
	}
	return resp.TransactionStates[0].ProducerID, resp.TransactionStates[0].ProducerEpoch
}
