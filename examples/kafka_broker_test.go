package examples

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// broker is the real broker that the tests about Kafka run against.
type broker struct {
	addr   string
	proxy  string // where a proxy must listen
	behind string // what it leads to
	script string // knows kill9 and start
	cl     *kgo.Client
	adm    *kadm.Client
	shaken atomic.Int64 // rises when it is killed, and when it is back
}

// patience is far beyond what the broker needs for anything, also after it was killed.
const patience = 2 * time.Minute

// realBroker finds the broker by the variables that `.ci/kafka/broker.sh env` prints, or skips the test.
func realBroker(t *testing.T) *broker {
	t.Helper()
	b := &broker{addr: os.Getenv("WASMILL_KAFKA"), script: os.Getenv("WASMILL_KAFKA_SCRIPT")}
	proxied := os.Getenv("WASMILL_KAFKA_PROXY")
	if b.addr == "" || b.script == "" || proxied == "" {
		t.Skip("WASMILL_KAFKA, WASMILL_KAFKA_PROXY and WASMILL_KAFKA_SCRIPT name no broker: see .ci/kafka")
	}
	b.proxy, b.behind, _ = strings.Cut(proxied, ",")
	b.cl = b.client(t)
	b.adm = kadm.NewClient(b.cl)
	return b
}

// client connects to the broker without the proxy.
func (b *broker) client(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(b.addr), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), kgo.DisableClientMetrics(),
		kgo.MetadataMinAge(100 * time.Millisecond),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

var topicCount atomic.Int64

// unique is a name that no other topic or job of any run has.
func unique(what string) string {
	return fmt.Sprintf("%s-%x-%d-%d", what, time.Now().Unix(), os.Getpid(), topicCount.Add(1))
}

// topic makes a topic for the time of the test.
func (b *broker) topic(t *testing.T, what string, partitions int32, settings map[string]string) string {
	t.Helper()
	name := unique(what)
	configs := map[string]*string{}
	for k, v := range settings {
		configs[k] = kadm.StringPtr(v)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := b.adm.CreateTopic(ctx, partitions, 1, configs, name); err != nil {
		t.Fatalf("make topic %s: %v", name, err)
	}
	t.Cleanup(func() { b.remove(name) })
	return name
}

// remove deletes topics without waiting for long.
func (b *broker) remove(names ...string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, _ = b.adm.DeleteTopics(ctx, names...)
}

// sh runs a verb of the broker's script.
func (b *broker) sh(t *testing.T, verb string) {
	t.Helper()
	if out, err := exec.Command("bash", b.script, verb).CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", b.script, verb, err, out)
	}
}

// committed reads what a topic holds for readers of committed records, by partition, in order. A record at the end of each
// partition tells that it was read to the end; it is not among what is returned, also when the topic is read again.
func (b *broker) committed(t *testing.T, topic string) map[int32][]*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	meta, err := b.adm.Metadata(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	ends := map[int32]int64{}
	writer := b.client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer writer.Close()
	for p := range meta.Topics[topic].Partitions {
		r := &kgo.Record{Topic: topic, Partition: p, Key: []byte(endKey), Value: []byte(endValue)}
		if err := writer.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		ends[p] = r.Offset
	}
	out := map[int32][]*kgo.Record{}
	reader := b.client(t, kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))
	defer reader.Close()
	for left := maps.Clone(ends); len(left) > 0; {
		fetches := reader.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("topic %s: partitions %v cannot be read to their end: is a transaction open?", topic, left)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			switch {
			case r.Offset == ends[r.Partition]:
				delete(left, r.Partition)
			case string(r.Key) != endKey:
				out[r.Partition] = append(out[r.Partition], r)
			}
		})
	}
	return out
}

// A job whose input such a record is in drops it.
const (
	endKey   = "the end"
	endValue = `{"status":"cancelled"}`
)
