package pipeline

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/sink"
)

// TestTopicToTopics runs a job from a topic through a module to topics, twice: records go where their header says, those
// that name no topic of the sink are dead letters in the same transactions, and each is there once.
func TestTopicToTopics(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "orders", "eu", "us", "rest"), kfake.SeedTopics(1, "dead"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	p := newPlace(t)
	var warnings []string
	p.env.Events = &engine.Events{Warning: func(op string, err error) { warnings = append(warnings, op+": "+err.Error()) }}
	j := p.topicToTopics(t, cluster.ListenAddrs()[0], sink.ExactlyOnce)
	want := map[string][]string{}
	written := 0
	for range 2 {
		for range 60 {
			to := []string{"eu", "us", "mars"}[written%3]
			value := fmt.Sprintf("%s %d", to, written)
			r := &kgo.Record{Topic: "orders", Key: []byte(value), Value: []byte(value), Headers: []kgo.RecordHeader{{Key: "to", Value: []byte(to)}}}
			if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
			if to == "mars" {
				want["dead"] = append(want["dead"], value)
			} else {
				want[to] = append(want[to], value)
			}
			want["rest"] = append(want["rest"], value)
			written++
		}
		if err := p.run(j); err != nil {
			t.Fatal(err)
		}
		got := published(t, cluster.ListenAddrs(), len(want["eu"])+len(want["us"])+len(want["dead"])+len(want["rest"]))
		for topic := range want {
			slices.Sort(want[topic])
			slices.Sort(got[topic])
			if !slices.Equal(got[topic], want[topic]) {
				t.Fatalf("topic %s holds %q, want %q", topic, got[topic], want[topic])
			}
		}
	}
	p.checkTopics(t, j)
	if !slices.ContainsFunc(warnings, func(w string) bool {
		return strings.Contains(w, "settings of connection main: the cluster: number of brokers is 1")
	}) {
		t.Errorf("nobody is warned of one broker: %q", warnings)
	}
}

// checkTopics looks at what two runs have left: one target, whose batches can be proven.
func (p *place) checkTopics(t *testing.T, j *job.Job) {
	t.Helper()
	program, err := Load(t.Context(), j, p.env)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = program.Close(t.Context()) }()
	v, err := program.Preview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Findings) > 0 || len(v.Gone) > 0 || v.Waiting != nil || len(v.Paths) != 3 {
		t.Errorf("the next start: %+v", v)
	}
	for _, path := range v.Paths {
		if path.Guarantee != sink.ExactlyOnce || !strings.Contains(path.Why, "one transaction") {
			t.Errorf("path %v: %s, %s", path.Steps, path.Guarantee, path.Why)
		}
	}
	r, err := checkpoint.OpenReader(t.Context(), p.env.Files, j.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	h := p.history(j)
	for n := range v.Batch {
		d, err := r.Decision(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := d.Targets["main"]; !ok || len(d.Targets) != 1 {
			t.Errorf("batch %d is decided for %v", n, d.Targets)
		}
		b, err := h.Batch(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Prove(t.Context()); err != nil {
			t.Errorf("batch %d: %v", n, err)
		}
	}
}

// TestAtLeastOnceTopics runs a job that asks for it: no transaction is begun, a batch that was cut off in the middle is
// published again as a whole, and nothing is missing.
func TestAtLeastOnceTopics(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "orders", "eu", "us", "rest"), kfake.SeedTopics(1, "dead"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	want := map[string]bool{}
	for i := range 60 {
		to := []string{"eu", "us"}[i%2]
		value := fmt.Sprintf("%s %d", to, i)
		want[value] = true
		r := &kgo.Record{Topic: "orders", Key: []byte(value), Value: []byte(value), Headers: []kgo.RecordHeader{{Key: "to", Value: []byte(to)}}}
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	begun := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn, kmsg.AddPartitionsToTxn}, Count: -1, Observe: true})
	p := newPlace(t)
	j := p.topicToTopics(t, cluster.ListenAddrs()[0], sink.AtLeastOnce)
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "us", Err: kerr.PolicyViolation})
	if err := p.run(j); err == nil {
		t.Fatal("a record that is refused does not stop the job")
	}
	if err := p.run(j); err != nil {
		t.Fatal(err)
	}
	if n := begun.Hits(); n > 0 {
		t.Errorf("%d requests of transactions", n)
	}
	got := published(t, cluster.ListenAddrs(), 2*len(want))
	if len(got["eu"]) <= 30 {
		t.Errorf("%d records in eu: the batch that was cut off is not there twice", len(got["eu"]))
	}
	for _, topics := range [][]string{{"rest"}, {"eu", "us"}} {
		seen := map[string]bool{}
		for _, topic := range topics {
			for _, value := range got[topic] {
				seen[value] = true
			}
		}
		if !maps.Equal(seen, want) {
			t.Errorf("topics %v hold %d of %d records", topics, len(seen), len(want))
		}
	}
}

func (p *place) topicToTopics(t *testing.T, brokers string, delivery sink.Guarantee) *job.Job {
	t.Helper()
	echo, err := filepath.Abs("../../abi/kit/wasm/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	d := "delivery: " + string(delivery)
	j, err := job.Parse("job.yaml", []byte("apiVersion: wasmill/v1\nkind: Job\nmetadata: {name: topics}\nspec:\n  checkpoint: ./checkpoint\n"+
		"  trigger: {availableNow: true}\n  connections: {main: {kafka: {brokers: ["+brokers+"], requestTimeout: 5s}}}\n"+
		"  sources: [{name: orders, kafka: {connection: main, topics: [orders]}, batch: {maxRecords: 40}}]\n"+
		"  transforms: [{name: pass, from: [orders], module: "+echo+"}]\n"+
		"  sinks:\n"+
		"    - {name: routed, from: [pass], kafka: {connection: main, topicHeader: to, topics: [eu, us], "+d+"}}\n"+
		"    - {name: rest, from: [pass], kafka: {connection: main, topic: rest, "+d+"}}\n"+
		"    - {name: dead, kafka: {connection: main, topic: dead, "+d+"}}\n"+
		"  errors: {policy: dead-letter, deadLetters: dead}\n"), job.Env{Dir: p.dir})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// published reads the committed records of the topics: so many, and nothing after them. Dead letters are told by the key
// of their record.
func published(t *testing.T, brokers []string, n int) map[string][]string {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics("eu", "us", "rest", "dead"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	out := map[string][]string{}
	for seen := 0; ; {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if seen >= n {
			cancel()
			ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
		}
		fetches := client.PollFetches(ctx)
		cancel()
		if fetches.NumRecords() == 0 {
			if seen < n {
				t.Fatalf("%d records are published, want %d: %v", seen, n, fetches.Err())
			}
			return out
		}
		fetches.EachRecord(func(r *kgo.Record) {
			seen++
			if r.Topic == "dead" && !strings.Contains(string(r.Value), "not among the sink's topics") {
				t.Errorf("dead letter %s", r.Value)
			}
			out[r.Topic] = append(out[r.Topic], string(r.Key))
		})
	}
}
