package pipeline

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/kafkaconn"
)

// TestTopicsAreRead runs a job over a topic twice, with records in between, and replays its batches.
func TestTopicsAreRead(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	var want []string
	produce := func(n int) {
		for range n {
			line := fmt.Sprintf(`{"order":%d}`, len(want))
			r := &kgo.Record{Topic: "orders", Partition: int32(len(want) % 2), Value: []byte(line)}
			if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
			want = append(want, line)
		}
	}
	p := newPlace(t)
	j := p.topics(t, cluster.ListenAddrs()[0])
	produce(100)
	for range 2 {
		if err := p.run(j); err != nil {
			t.Fatal(err)
		}
		got := strings.Split(strings.TrimSuffix(p.screen.String(), "\n"), "\n")
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%d lines are printed, %d records were written", len(got), len(want))
		}
		produce(30)
	}
	h := p.history(j)
	for n := range checkpoint.BatchID(5) { // 40, 40, 20; 30
		r, err := h.Batch(t.Context(), n)
		if n == 4 && codeOf(err) != "" {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Prove(t.Context()); err != nil {
			t.Errorf("batch %d: %v", n, err)
		}
	}
}

// topics parses a job that reads the topic orders.
func (p *place) topics(t *testing.T, brokers string) *job.Job {
	t.Helper()
	echo, err := filepath.Abs("../../abi/kit/wasm/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.Parse("job.yaml", []byte("apiVersion: wasmill/v1\nkind: Job\nmetadata: {name: topics}\nspec:\n  checkpoint: ./checkpoint\n"+
		"  trigger: {availableNow: true}\n  connections: {main: {kafka: {brokers: ["+brokers+"], requestTimeout: 1s}}}\n"+
		"  sources: [{name: orders, kafka: {connection: main, topics: [orders]}, batch: {maxRecords: 40}, attach: [topic, partition]}]\n"+
		"  transforms: [{name: pass, from: [orders], module: "+echo+"}]\n"+
		"  sinks: [{name: screen, from: [pass], stdout: {}}]\n"), job.Env{Dir: p.dir})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestClusterThatIsNotThere: the way to a cluster is a fault of a job's start.
func TestClusterThatIsNotThere(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	p := newPlace(t)
	if err := p.run(p.topics(t, cluster.ListenAddrs()[0])); codeOf(err) != "kafka.unknown_topic" {
		t.Errorf("a topic that is not there: %v", err)
	}
	j := p.topics(t, "127.0.0.1:9")
	j.Connections[0].Settings = []byte(`{"brokers":[]}`)
	if err := p.run(j); codeOf(err) != kafkaconn.CodeConfig {
		t.Errorf("no brokers: %v", err)
	}
}
