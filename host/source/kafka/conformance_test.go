package kafka

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/host/kafkaconn"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/host/source/sourcetest"
)

// TestConformance runs the suite over one partition and over several, plain and with transactions in them.
func TestConformance(t *testing.T) {
	conform(t, newWorld(t))
}

func conform(t *testing.T, w *world) {
	var topics atomic.Int32
	for _, c := range []struct {
		name       string
		partitions int32
		tx         bool
	}{
		{"one partition", 1, false},
		{"three partitions", 3, false},
		{"transactions", 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			sourcetest.Run(t, func(t *testing.T) sourcetest.Input {
				topic := w.unique(fmt.Sprintf("conform-%d", topics.Add(1)))
				n := 0
				more := func(*testing.T) {
					w.apart(func(w *world) {
						if n == 0 {
							w.create(topic, c.partitions)
						}
						grow(w, topic, c.partitions, n, c.tx)
					})
					n += 50
				}
				for range 3 {
					more(t)
				}
				return sourcetest.Input{More: more, Open: func(t *testing.T) source.Source {
					s, err := New(Config{
						Name: "in", Cluster: kafkaconn.Config{Name: "main", Brokers: w.brokers}, Topics: []string{topic},
						Attach: []string{"topic", "partition"}, Clock: func() time.Time { return epoch },
					})
					if err != nil {
						t.Fatal(err)
					}
					return s
				}}
			})
		})
	}
}

// grow adds 50 records to a topic, and with tx some of transactions.
func grow(w *world, topic string, partitions int32, n int, tx bool) {
	for num := range partitions {
		w.produce(topic, num, numbers("plain-", n, 50/int(partitions))...)
	}
	if !tx {
		return
	}
	aborted, committed := w.begin(topic+"-a"), w.begin(topic+"-c")
	defer aborted.cl.Close()
	defer committed.cl.Close()
	for num := range partitions {
		aborted.produce(topic, num, numbers("aborted-", n, 20)...)
		committed.produce(topic, num, numbers("committed-", n, 30)...)
	}
	aborted.end(kgo.TryAbort)
	committed.end(kgo.TryCommit)
}

// apart lends fn a world whose connections are closed afterwards: the suite looks for goroutines that are left over, and
// the fake broker has some for each connection.
func (w *world) apart(fn func(*world)) {
	other := connect(w.t, w.fake, w.brokers)
	fn(other)
	other.client.Close()
}

// unique is a name that no other run has used: a real broker outlives a test.
func (w *world) unique(name string) string {
	if w.fake != nil {
		return name
	}
	return fmt.Sprintf("%s-%d", name, time.Now().UnixNano())
}
