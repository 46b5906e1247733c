package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/wasmill/wasmill/abi"
)

// Hurry makes aborts give up soon: a process that the test has ended cannot reach anybody.
func (t *Target) Hurry() { t.abortPatience = 100 * time.Millisecond }

// Kill ends the target as the end of its process would: without a word to the brokers.
func (t *Target) Kill() {
	t.unstage()
	if t.session != nil {
		t.session.close()
	}
	t.session, t.partial = nil, atLeastOnce{}
	if t.base != nil {
		t.base.Close()
	}
	t.base = nil
}

// Settled waits until the last transaction is no longer looked at.
func (t *Target) Settled() { t.session.settling.Wait() }

// Leave puts a record into a partition under the name of a producer, which its transaction knows nothing of: as it lies there
// when the coordinator has forgotten the partition's marker. A broker that verifies transactions refuses it.
func Leave(ctx context.Context, opts []kgo.Opt, txn string, id int64, epoch int16, to string, partition int32, key, value string) error {
	v := kversion.Stable()
	v.SetMaxKeyVersion(keyProduce, lastProduce)
	cl, err := kgo.NewClient(append(opts, kgo.MaxVersions(v))...)
	if err != nil {
		return err
	}
	defer cl.Close()
	found, _, err := lookUp(ctx, cl, []string{to})
	if err != nil {
		return err
	}
	at := layout{topics: found}
	s := &session{cl: cl, txn: txn, who: producerID{id: id, epoch: epoch, transactional: true}}
	g := &cargo{queues: map[place]*queue{}}
	q := g.queue(place{to, partition}, &at)
	c := newChunk(recordOverhead)
	c.add(&abi.Record{Key: []byte(key), Value: []byte(value)}, none, batchTime)
	g.put(q, c)
	_, err = s.request(ctx, at.leader(q.place), g.order, time.Now().UnixMilli())
	return err
}
