package kafka

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/kafkaconn"
	"github.com/wasmill/wasmill/host/source"
)

func TestStarts(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		topic := w.unique("starts")
		w.create(topic, 2)
		for i := range 6 {
			r := &kgo.Record{Topic: topic, Partition: int32(i % 2), Value: fmt.Append(nil, "v-", i/2), Timestamp: epoch.Add(time.Duration(i) * time.Second)}
			if err := w.client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		a, b := topic+"-0@", topic+"-1@"
		for name, c := range map[string]struct {
			start Start
			want  []string
		}{
			"start":     {Start{}, []string{a + "0 v-0", a + "1 v-1", a + "2 v-2", b + "0 v-0", b + "1 v-1", b + "2 v-2"}},
			"end":       {Start{Latest: true}, nil},
			"time":      {Start{TimestampMS: epoch.Add(3 * time.Second).UnixMilli()}, []string{a + "2 v-2", b + "1 v-1", b + "2 v-2"}},
			"late time": {Start{TimestampMS: epoch.Add(time.Hour).UnixMilli()}, nil},
			"offsets":   {Start{Offsets: map[string]map[int32]int64{topic: {0: 2, 1: atEnd}}}, []string{a + "2 v-2"}},
			"some":      {Start{Offsets: map[string]map[int32]int64{topic: {0: atEnd}}}, []string{b + "0 v-0", b + "1 v-1", b + "2 v-2"}},
		} {
			s := w.open(func(cfg *Config) { cfg.Start = c.start }, topic)
			got, at := w.all(s, checkpoint.Position{})
			w.want(got, c.want...)
			if at.IsZero() {
				t.Errorf("%s: the start is not in the plan", name)
			}
			w.want(w.read(w.open(nil, topic), checkpoint.Position{}, at), c.want...)
			if t.Failed() {
				t.Fatalf("start at %s", name)
			}
		}
		s := w.open(func(c *Config) { c.Start.Offsets = map[string]map[int32]int64{topic: {1: 4}} }, topic)
		w.failLatest(s, checkpoint.Position{}, CodeStart, topic+"-1", "offset 4", "from 0 to 3")
	})
}

// TestStartIsPinned: what comes after a job has begun to wait at the end is read, also after a restart.
func TestStartIsPinned(t *testing.T) {
	w := newWorld(t)
	w.create("pinned", 1)
	w.produce("pinned", 0, "before")
	end := func(c *Config) { c.Start.Latest = true }
	at := w.latest(w.open(end, "pinned"), checkpoint.Position{}, source.Limit{})
	w.produce("pinned", 0, "after")
	got, _ := w.all(w.open(end, "pinned"), at)
	w.want(got, "pinned-0@1 after")

	s := w.open(end, "pinned") // a crash before the plan is durable: one process goes on from where it began
	w.latest(s, checkpoint.Position{}, source.Limit{})
	w.produce("pinned", 0, "third")
	got, _ = w.all(s, checkpoint.Position{})
	w.want(got, "pinned-0@2 third")
}

// TestNewInput: topics and partitions that come later begin at their start, whatever the job starts with.
func TestNewInput(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		one, two, not := w.unique("ev.one"), w.unique("ev.two"), w.unique("even")
		w.create(one, 1)
		w.create(not, 1)
		w.produce(not, 0, "x")
		w.produce(one, 0, "before")
		s := w.open(func(c *Config) { c.Pattern, c.Start.Latest = `ev\.(one|two)-?\d*`, true })
		got, at := w.all(s, checkpoint.Position{})
		if w.fake != nil {
			w.want(got)
		}
		w.create(two, 1)
		w.produce(two, 0, "t-0")
		resp, err := w.admin.CreatePartitions(t.Context(), 1, one)
		if err := errors.Join(err, resp.Error()); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(DefaultDiscovery)
		other := connect(t, w.fake, w.brokers)
		for range 50 {
			if other.high(one) >= 0 && other.partitions(one) == 2 {
				break
			}
			wait(100 * time.Millisecond)
		}
		other.produce(one, 1, "o-0", "o-1")
		got, at = w.all(s, at)
		if w.fake != nil {
			w.want(got, one+"-1@0 o-0", one+"-1@1 o-1", two+"-0@0 t-0")
		}
		if again := w.latest(s, at, source.Limit{}); again != at {
			t.Errorf("something is planned after it: %s", again.Line)
		}
	})
}

// partitions is how many partitions a topic has.
func (w *world) partitions(topic string) int {
	topics, err := w.admin.ListTopics(w.t.Context(), topic)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(topics[topic].Partitions)
}

// TestNoMarkers: a pattern leaves the marker topics of jobs out, which are there to be read by name.
func TestNoMarkers(t *testing.T) {
	w := newWorld(t)
	marker := kafkaconn.MarkerPrefix + "query"
	for _, topic := range []string{marker, "__wasmillion", "plain"} {
		w.create(topic, 1)
		w.produce(topic, 0, "v")
	}
	s := w.open(func(c *Config) { c.Pattern = ".*" })
	got, _ := w.all(s, checkpoint.Position{})
	w.want(got, "__wasmillion-0@0 v", "plain-0@0 v")
	got, _ = w.all(w.open(nil, marker), checkpoint.Position{})
	w.want(got, marker+"-0@0 v")
}

// TestTopicLeftOut: a topic that is taken off the list keeps its place until it is on it again.
func TestTopicLeftOut(t *testing.T) {
	w := newWorld(t)
	w.create("a", 1)
	w.create("b", 1)
	w.produce("a", 0, "a-0")
	w.produce("b", 0, "b-0")
	_, at := w.all(w.open(nil, "a", "b"), checkpoint.Position{})
	w.produce("a", 0, "a-1")
	w.produce("b", 0, "b-1")
	got, at := w.all(w.open(nil, "a"), at)
	w.want(got, "a-0@1 a-1")
	got, _ = w.all(w.open(nil, "a", "b"), at)
	w.want(got, "b-0@1 b-1")
}

func TestUnknownTopic(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		here, not := w.unique("here"), w.unique("not-here")
		w.create(here, 1)
		w.produce(here, 0, "v")
		w.failLatest(w.open(nil, here, not), checkpoint.Position{}, CodeTopic, not, "no topic")
		at := w.latest(w.open(nil, here), checkpoint.Position{}, source.Limit{})
		w.failLatest(w.open(nil, here, not), at, CodeTopic, not)
		code := CodeConfig
		if w.fake != nil {
			code = CodeTopic // it takes any name
		}
		w.failLatest(w.open(nil, "no such name"), checkpoint.Position{}, code, "no such name")
	})
}

// TestBytesLimit holds batches near a limit where sizes differ by a factor of a thousand.
func TestBytesLimit(t *testing.T) {
	w := newWorld(t)
	w.create("sizes", 2)
	large := make([]byte, 10_000)
	for i := range large {
		large[i] = 'x'
	}
	for range 20 {
		w.produce("sizes", 0, numbers("v-", 0, 50)...)
		w.produce("sizes", 1, string(large), string(large), string(large))
	}
	s := w.open(nil, "sizes")
	var at checkpoint.Position
	batches := 0
	for {
		to := w.latest(s, at, source.Limit{Records: 1000, Bytes: 100_000})
		if to == at {
			break
		}
		bytes := 0
		for _, r := range w.read(s, at, to) {
			bytes += len(r)
		}
		if bytes > 200_000 {
			t.Errorf("%d bytes in a batch", bytes)
		}
		at = to
		batches++
	}
	if batches < 6 || batches > 20 {
		t.Errorf("600,000 bytes in %d batches of 100,000", batches)
	}
}

// TestBytesLimitHoldsAtAJump: batches keep to a limit of bytes where small records are followed by large ones that are stored
// in next to nothing, however they are packed and wherever a plan is made of, and all are read.
func TestBytesLimitHoldsAtAJump(t *testing.T) {
	const small, large, size, limit = 3000, 120, 100_000, 1_000_000
	w := newWorld(t)
	var values []string
	for range large {
		values = append(values, strings.Repeat("0", size))
	}
	for name, codec := range map[string]kgo.CompressionCodec{"zstd": kgo.ZstdCompression(), "lz4": kgo.Lz4Compression(), "none": kgo.NoCompression()} {
		topic := "jump-" + name
		w.create(topic, 2)
		cl, err := kgo.NewClient(kgo.SeedBrokers(w.brokers...), kgo.ProducerBatchCompression(codec), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		w.write(cl, topic, 0, numbers("order-", 0, small)...)
		w.write(cl, topic, 0, values...)
		w.write(cl, topic, 0, numbers("order-", 0, small)...)
		w.write(cl, topic, 1, numbers("order-", 0, small)...)
		for way, c := range map[string]struct {
			memory bool // plan from memory
			bytes  int  // of memory
			blind  bool // nothing is fetched ahead
		}{"from memory": {memory: true}, "by the cluster": {}, "little memory": {memory: true, bytes: 64 << 10}, "blind": {blind: true}} {
			t.Run(name+" "+way, func(t *testing.T) {
				w.memory = c.memory
				s := w.open(func(cfg *Config) { cfg.Memory = c.bytes }, topic)
				if c.blind {
					s.pre.close()
				}
				var at checkpoint.Position
				records, batches := 0, 0
				for records < 3*small+large {
					to := w.latest(s, at, source.Limit{Bytes: limit})
					if to == at {
						t.Fatalf("nothing is planned after %d records", records)
					}
					sum := 0
					for _, r := range w.read(s, at, to) {
						sum += len(r)
						records++
					}
					if sum > limit+size {
						t.Errorf("%d bytes in a batch, the limit is %d", sum, limit)
					}
					if err := s.Release(t.Context(), to); err != nil {
						t.Fatal(err)
					}
					at = to
					batches++
				}
				t.Logf("%d records in %d batches", records, batches)
				if records != 3*small+large {
					t.Errorf("%d records, want %d", records, 3*small+large)
				}
			})
		}
	}
}

func TestLagIsTold(t *testing.T) {
	w := newWorld(t)
	w.create("lag", 1)
	w.produce("lag", 0, numbers("v-", 0, 10)...)
	var told []Lag
	s := w.open(func(c *Config) { c.Lag = func(l []Lag) { told = l } }, "lag")
	w.latest(s, checkpoint.Position{}, source.Limit{Records: 4})
	if len(told) != 1 || told[0] != (Lag{Topic: "lag", From: 0, Offset: 4, End: 10}) {
		t.Errorf("told: %+v", told)
	}
}

func TestGroup(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		topic := w.unique("group")
		w.create(topic, 1)
		w.produce(topic, 0, numbers("v-", 0, 10)...)
		s := w.open(func(c *Config) { c.Group = topic }, topic)
		committed := func(want int64) {
			t.Helper()
			s.commits.wait()
			got, err := w.admin.FetchOffsets(t.Context(), topic)
			if err != nil {
				t.Fatal(err)
			}
			if at, ok := got.Lookup(topic, 0); !ok || at.At != want {
				t.Errorf("committed: %+v, want %d", at, want)
			}
		}
		at := w.latest(s, checkpoint.Position{}, source.Limit{Records: 4})
		if err := s.Release(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		committed(4)
		at = w.latest(s, at, source.Limit{Records: 4})
		if err := s.Release(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		committed(4) // not so soon
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		committed(8)

		at = w.latest(w.open(func(c *Config) { c.Group = topic }, topic), at, source.Limit{})
		if at.Line != fmt.Sprintf(`{%q:{"0":10}}`, topic) {
			t.Errorf("planned up to %s", at.Line)
		}
		busy, err := kgo.NewClient(kgo.SeedBrokers(w.brokers...), kgo.ConsumerGroup(topic), kgo.ConsumeTopics(topic))
		if err != nil {
			t.Fatal(err)
		}
		defer busy.Close()
		busy.PollFetches(t.Context())
		s = w.open(func(c *Config) { c.Group, c.Commit = topic, time.Nanosecond }, topic)
		wantFault(t, w.released(s, at), CodeGroup, topic, "consumers of its own")
	})
}

// released releases a position and returns what has come of the commit.
func (w *world) released(s *Source, at checkpoint.Position) error {
	w.t.Helper()
	_ = s.Release(w.t.Context(), at) //nolint:errcheck // the error of an earlier commit
	s.commits.wait()
	w.now = w.now.Add(time.Second)
	return s.Release(w.t.Context(), at)
}

func TestBadConfig(t *testing.T) {
	clock := func() time.Time { return epoch }
	good := func() Config {
		c := Config{Name: "in", Topics: []string{"a"}, Clock: clock}
		c.Cluster.Name, c.Cluster.Brokers = "main", []string{"127.0.0.1:1"}
		return c
	}
	for name, change := range map[string]func(*Config){
		"no topics":        func(c *Config) { c.Topics = nil },
		"topics and more":  func(c *Config) { c.Pattern = "x" },
		"empty topic":      func(c *Config) { c.Topics = []string{"", "a"} },
		"bad pattern":      func(c *Config) { c.Topics, c.Pattern = nil, "(" },
		"two starts":       func(c *Config) { c.Start = Start{Latest: true, TimestampMS: 1} },
		"negative time":    func(c *Config) { c.Start = Start{TimestampMS: -1} },
		"odd offset":       func(c *Config) { c.Start.Offsets = map[string]map[int32]int64{"a": {0: -3}} },
		"unknown header":   func(c *Config) { c.Attach = []string{"path"} },
		"huge fetch":       func(c *Config) { c.FetchBytes = maxFetch + 1 },
		"no clock":         func(c *Config) { c.Clock = nil },
		"no brokers":       func(c *Config) { c.Cluster.Brokers = nil },
		"a broker's URL":   func(c *Config) { c.Cluster.Brokers = []string{"kafka://x:9092"} },
		"no mechanism":     func(c *Config) { c.Cluster.SASL = sasl("", "u", "p") },
		"unknown sasl":     func(c *Config) { c.Cluster.SASL = sasl("gssapi", "u", "p") },
		"without password": func(c *Config) { c.Cluster.SASL = sasl("plain", "u", "") },
	} {
		cfg := good()
		change(&cfg)
		_, err := New(cfg)
		var f *fault.Error
		if !errors.As(err, &f) || f.Code() != CodeConfig && f.Code() != "kafka.config" {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, err := New(good())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
