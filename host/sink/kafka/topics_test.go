package kafka_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/kafka"
)

const markerTopic = "__wasmill." + query

func (c *cluster) produce(t *testing.T, r *kgo.Record) {
	t.Helper()
	cl := c.client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer cl.Close()
	if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// TestOpenRefuses opens targets over marker topics that must not be relied on.
func TestOpenRefuses(t *testing.T) {
	policy := func(p string) map[string]*string { return map[string]*string{"cleanup.policy": &p} }
	put := func(value string) func(*testing.T, *cluster) {
		return func(t *testing.T, c *cluster) {
			c.opened(t, nil)
			c.produce(t, &kgo.Record{Topic: markerTopic, Key: []byte("main"), Value: []byte(value)})
		}
	}
	create := func(partitions int32, configs map[string]*string) func(*testing.T, *cluster) {
		return func(t *testing.T, c *cluster) {
			cl := c.client(t)
			defer cl.Close()
			if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), partitions, 1, configs, markerTopic); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		name, code string
		prepare    func(*testing.T, *cluster)
	}{
		{"two partitions", kafka.CodeMarkerTopic, create(2, policy("compact"))},
		{"deleted by age", kafka.CodeMarkerTopic, create(1, nil)},
		{"compacted and deleted", kafka.CodeMarkerTopic, create(1, policy("compact,delete"))},
		{"no marker", kafka.CodeMarkerDamaged, put("hello")},
		{"half a marker", kafka.CodeMarkerDamaged, put(`{"version":1,"query":"` + query + `"}`)},
		{"newer", kafka.CodeMarkerNewer, put(`{"version":2,"query":"` + query + `","batch":1,"digest":"x"}`)},
		{"another query", kafka.CodeOtherQuery, put(`{"version":1,"query":"x","batch":1,"digest":"x"}`)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newFake(t)
			test.prepare(t, c)
			target := c.target(t, nil, nil)
			_, err := target.Inspect(t.Context(), c.owner())
			wantFault(t, err, test.code)
			_, err = target.Open(t.Context(), c.owner())
			wantFault(t, err, test.code)
		})
	}
}

// TestMarkerTopicOfItsOwn looks at what Open makes.
func TestMarkerTopicOfItsOwn(t *testing.T) {
	c := newFake(t, kfake.NumBrokers(3))
	target := c.target(t, nil, nil)
	if p, err := target.Inspect(t.Context(), c.owner()); err != nil || p.Batch != checkpoint.NoBatch {
		t.Fatalf("%+v, %v", p, err)
	}
	cl := c.client(t)
	defer cl.Close()
	if meta, err := kadm.NewClient(cl).Metadata(t.Context(), markerTopic); err != nil || meta.Topics[markerTopic].Err == nil {
		t.Fatalf("looking made the topic: %v", err)
	}
	if _, err := target.Open(t.Context(), c.owner()); err != nil {
		t.Fatal(err)
	}
	if set, err := kadm.NewClient(cl).DescribeTopicConfigs(t.Context(), markerTopic); err != nil {
		t.Fatal(err)
	} else {
		got := map[string]string{}
		for _, s := range set[0].Configs {
			if s.Value != nil && slices.Contains([]string{"cleanup.policy", "min.insync.replicas", "segment.bytes"}, s.Key) {
				got[s.Key] = *s.Value
			}
		}
		if diff := cmp.Diff(map[string]string{"cleanup.policy": "compact", "min.insync.replicas": "2", "segment.bytes": "16777216"}, got); diff != "" {
			t.Error(diff)
		}
	}
	mustPublish(t, target, 0, record("a", "1"))
	recs := c.committed(t, markerTopic)
	if len(recs) != 1 || string(recs[0].Key) != "main" ||
		string(recs[0].Value) != `{"version":1,"query":"`+query+`","batch":0,"digest":"`+digest(0)+`","attempt":"0000000a"}` {
		t.Errorf("the markers are %q", values(recs))
	}
}

// TestMarkerFarBack finds a marker behind many aborted transactions, and behind those of another connection.
func TestMarkerFarBack(t *testing.T) {
	c := newFake(t)
	mustPublish(t, c.opened(t, nil), 5, record("a", "1"))
	other := *c
	other.conn = "second"
	busy := other.opened(t, nil)
	for id := range checkpoint.BatchID(100) {
		mustPublish(t, busy, id)
	}
	for range 100 {
		mustStage(t, busy, 100)
		if err := busy.Abort(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
	}
	for _, conn := range []struct {
		name string
		want sink.Published
	}{{"main", sink.Published{Batch: 5, Digest: digest(5)}}, {"second", sink.Published{Batch: 99, Digest: digest(99)}}} {
		o := *c
		o.conn = conn.name
		if p, err := o.target(t, nil, nil).Open(t.Context(), c.owner()); err != nil || p != conn.want {
			t.Errorf("%s: %+v, %v, want %+v", conn.name, p, err, conn.want)
		}
	}
}

// TestMarkerTopicDeleted loses the marker topic while a job runs: the batch fails, and the next start sees nothing
// published, which the engine holds against its checkpoint.
func TestMarkerTopicDeleted(t *testing.T) {
	both(t, func(t *testing.T, c *cluster) {
		if c.fake == nil { // the other tests' marker topic stays
			c.query = "6f1e9f0d-0000-4000-8000-" + unique
		}
		short := func(cfg *kafka.Config) { cfg.TransactionTimeout = 3 * time.Second }
		target, topic := c.withTopic(t, 2, nil, short)
		mustPublish(t, target, 0, record("a", "1"))
		cl := c.client(t)
		defer cl.Close()
		if _, err := kadm.NewClient(cl).DeleteTopic(t.Context(), "__wasmill."+c.query); err != nil {
			t.Fatal(err)
		}
		_, err := stage(t, target, 1, "0000000b", record("a", "2"))
		for tries := 0; err == nil && tries < 1000; tries++ { // a broker deletes after its answer
			if err := target.Abort(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			_, err = stage(t, target, 1, "0000000b", record("a", "2"))
		}
		wantFault(t, err, kafka.CodeMarkerTopic)
		again := c.target(t, nil, func(cfg *kafka.Config) { cfg.Sinks[0].Topic = topic })
		if p, err := again.Inspect(t.Context(), c.owner()); err != nil || p.Batch != checkpoint.NoBatch {
			t.Fatalf("looking: %+v, %v", p, err)
		}
		if p, err := again.Open(t.Context(), c.owner()); err != nil || p.Batch != checkpoint.NoBatch {
			t.Fatalf("opening: %+v, %v", p, err)
		}
		if got := values(c.committed(t, topic)); !slices.Equal(got, []string{"1"}) {
			t.Fatalf("a reader sees %q", got)
		}
	})
}

// TestMarkerTopicMadeAnew: a marker topic that lost its marker while the job runs is not written to until the target is
// opened again, when the engine holds it against its checkpoint.
func TestMarkerTopicMadeAnew(t *testing.T) {
	c := newFake(t)
	target := c.opened(t, nil)
	mustPublish(t, target, 0, record("a", "1"))
	cl := c.client(t)
	defer cl.Close()
	adm := kadm.NewClient(cl)
	if _, err := adm.DeleteTopic(t.Context(), markerTopic); err != nil {
		t.Fatal(err)
	}
	policy := "compact"
	if _, err := adm.CreateTopic(t.Context(), 1, 1, map[string]*string{"cleanup.policy": &policy}, markerTopic); err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{kafka.CodeMarkerTopic, kafka.CodeConflict, kafka.CodeConflict} {
		_, err := stage(t, target, 1, "0000000b", record("a", "2"))
		wantFault(t, err, code)
	}
	wantFault(t, target.Publish(t.Context(), decision(1), nil), kafka.CodeConflict)
	if p, err := target.Open(t.Context(), c.owner()); err != nil || p.Batch != checkpoint.NoBatch {
		t.Fatalf("opening: %+v, %v", p, err)
	}
	if got := values(c.committed(t, "out")); !slices.Equal(got, []string{"1"}) {
		t.Errorf("a reader sees %q", got)
	}
}

// TestOutputTopics misses topics to publish to.
func TestOutputTopics(t *testing.T) {
	c := newFake(t)
	_, err := c.target(t, nil, func(cfg *kafka.Config) { cfg.Sinks[0].Topic = "missing" }).Open(t.Context(), c.owner())
	wantFault(t, err, kafka.CodeTopic)

	target := c.target(t, nil, func(cfg *kafka.Config) {
		cfg.Sinks[0].TopicHeader, cfg.Sinks[0].Topics = "to", []string{"other", "later"}
		cfg.TransactionTimeout = 3 * time.Second
	})
	if _, err := target.Open(t.Context(), c.owner()); err != nil {
		t.Fatal(err)
	}
	to := func(topic string) abi.Record {
		return abi.Record{Key: []byte("k"), Value: []byte(topic), Headers: []abi.Header{{Name: []byte("to"), Value: []byte(topic)}}}
	}
	_, err = stage(t, target, 0, "0000000a", to("other"), to("later"))
	wantFault(t, err, kafka.CodeTopic)
	cl := c.client(t)
	defer cl.Close()
	if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), 1, 1, nil, "later"); err != nil {
		t.Fatal(err)
	}
	mustPublish(t, target, 0, to("other"), to("later"), record("k", "default"))
	for topic, want := range map[string][]string{"other": {"other"}, "later": {"later"}, "out": {"default"}} {
		recs := c.committed(t, topic)
		if diff := cmp.Diff(want, values(recs)); diff != "" {
			t.Errorf("topic %s (-want +got):\n%s", topic, diff)
		}
		if len(recs) == 1 && len(recs[0].Headers) != 0 {
			t.Errorf("topic %s: the header that names the topic is still there", topic)
		}
	}
	if _, err := kadm.NewClient(cl).DeleteTopic(t.Context(), "later"); err != nil {
		t.Fatal(err)
	}
	_, err = stage(t, target, 1, "0000000a", to("later"), to("other"))
	wantFault(t, err, kafka.CodeTopic)
	if got := values(c.committed(t, "other")); !slices.Equal(got, []string{"other"}) {
		t.Errorf("a failed batch shows: %q", got)
	}
}

// TestWarnings sets what can break the promise, and is told, once for all topics that share it.
func TestWarnings(t *testing.T) {
	two, yes, small := "2", "true", "2000"
	for _, test := range []struct {
		name    string
		brokers int
		topics  map[string]map[string]*string // settings
		want    []string
	}{
		{"one broker", 1, map[string]map[string]*string{"out": nil, "other": nil}, []string{"the cluster: number of brokers"}},
		{"three brokers", 3, map[string]map[string]*string{"out": nil, "other": nil}, []string{
			"topic other, topic out: min.insync.replicas", "topic other, topic out: replication factor",
		}},
		{"settings", 1, map[string]map[string]*string{"out": {"unclean.leader.election.enable": &yes}, "other": {"min.insync.replicas": &two}, "small": {"max.message.bytes": &small}}, []string{
			"the cluster: number of brokers", "topic other: min.insync.replicas", "topic out: unclean.leader.election.enable", "topic small: max.message.bytes",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newFake(t, kfake.NumBrokers(test.brokers))
			cl := c.client(t)
			defer cl.Close()
			adm := kadm.NewClient(cl)
			var names []string
			for name, set := range test.topics {
				names = append(names, name)
				if _, err := adm.DeleteTopic(t.Context(), name); err != nil && name != "small" {
					t.Fatal(err)
				}
				if _, err := adm.CreateTopic(t.Context(), 2, 1, set, name); err != nil {
					t.Fatal(err)
				}
			}
			target := c.target(t, nil, func(cfg *kafka.Config) { cfg.Sinks[0].TopicHeader, cfg.Sinks[0].Topics = "to", names })
			if _, err := target.Open(t.Context(), c.owner()); err != nil {
				t.Fatal(err)
			}
			all, err := target.Warnings(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range all {
				if w.Value == "" || w.Text == "" {
					t.Errorf("incomplete: %+v", w)
				}
				if more := "more than the topic has replicas (1): brokers may refuse"; w.Setting == "min.insync.replicas" && w.Value == "2" && !strings.HasPrefix(w.Text, more) {
					t.Errorf("%+v: want %q", w, more) // Kafka 4 with eligible leader replicas publishes to it
				}
				if !strings.HasPrefix(w.Place, "broker") {
					got = append(got, w.Place+": "+w.Setting)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, all)
			}
		})
	}
}
