package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/registry"
)

// schemaServer is a schema registry in the process: schemas by id and by subject.
type schemaServer struct {
	*httptest.Server
	mu       sync.Mutex
	byID     map[string]string
	subjects map[string]string
	down     bool
	asked    int
}

func newSchemaServer(t *testing.T) *schemaServer {
	t.Helper()
	s := &schemaServer{byID: map[string]string{}, subjects: map[string]string{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// ServeHTTP implements http.Handler.
func (s *schemaServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	text := s.byID[strings.TrimPrefix(r.URL.Path, "/schemas/ids/")]
	if path, ok := strings.CutPrefix(r.URL.Path, "/subjects/"); ok {
		text = s.subjects[path]
	}
	if text == "" {
		w.WriteHeader(http.StatusNotFound)
		text = `{"error_code":40403,"message":"Schema not found"}`
	}
	_, _ = w.Write([]byte(text))
}

func (s *schemaServer) set(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down, s.asked = down, 0
}

func (s *schemaServer) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

const (
	orderIn  = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"cents","type":{"type":"bytes","logicalType":"decimal","precision":20,"scale":2}}]}`
	orderOut = `{"type":"record","name":"Clean","fields":[{"name":"cents","type":{"type":"bytes","logicalType":"decimal","precision":20,"scale":2}},{"name":"id","type":"long"},{"name":"note","type":"string","default":"none"}]}`
)

func (s *schemaServer) put(t *testing.T, id int, subject, text string) {
	t.Helper()
	answer, err := json.Marshal(map[string]any{"id": id, "subject": subject, "version": 1, "schema": text})
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byID[fmt.Sprint(id)], s.subjects[subject+"/versions/latest"] = string(answer), string(answer)
}

// topicsInFormats is a broker with topics, a registry, and a job that reads Avro from one topic and writes it to another
// by another schema.
type topicsInFormats struct {
	*place
	registry *schemaServer
	brokers  []string
	client   *kgo.Client
}

func newTopicsInFormats(t *testing.T) *topicsInFormats {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders", "clean", "dead"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	w := &topicsInFormats{place: newPlace(t), registry: newSchemaServer(t), brokers: cluster.ListenAddrs(), client: client}
	w.registry.put(t, 7, "orders-value", orderIn)
	w.registry.put(t, 9, "clean-value", orderOut)
	return w
}

func (w *topicsInFormats) job(t *testing.T, policy string) *job.Job {
	t.Helper()
	echo, err := filepath.Abs("../../abi/kit/wasm/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	dead := ""
	if policy == job.PolicyDeadLetter {
		policy += ", deadLetters: dead"
		dead = "    - {name: dead, kafka: {connection: main, topic: dead}}\n"
	}
	j, err := job.Parse("job.yaml", []byte("apiVersion: wasmill/v1\nkind: Job\nmetadata: {name: formats}\nspec:\n  checkpoint: ./checkpoint\n"+
		"  trigger: {availableNow: true}\n  connections:\n    main: {kafka: {brokers: ["+w.brokers[0]+"], requestTimeout: 5s}}\n"+
		"    schemas: {schemaRegistry: {urls: ["+w.registry.URL+"]}}\n"+
		"  sources: [{name: orders, kafka: {connection: main, topics: [orders], format: avro, registry: schemas}, batch: {maxRecords: 10}}]\n"+
		"  transforms: [{name: pass, from: [orders], module: "+echo+"}]\n"+
		"  sinks:\n    - {name: clean, from: [pass], kafka: {connection: main, topic: clean, format: avro, registry: schemas}}\n"+dead+
		"  errors: {policy: "+policy+"}\n"), job.Env{Dir: w.dir, CheckConnection: CheckConnection})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// produce writes values to the topic of orders; nil is a tombstone.
func (w *topicsInFormats) produce(t *testing.T, values ...[]byte) {
	t.Helper()
	for i, v := range values {
		if err := w.client.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Key: fmt.Appendf(nil, "k%d", i), Value: v}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// published returns the committed values of a topic, n of them and no more.
func (w *topicsInFormats) published(t *testing.T, topic string, n int) [][]byte {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(w.brokers...), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var out [][]byte
	for {
		patience := 10 * time.Second
		if len(out) >= n {
			patience = 300 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		fetches := client.PollFetches(ctx)
		cancel()
		if fetches.NumRecords() == 0 {
			if len(out) != n {
				t.Fatalf("topic %s has %d records, want %d: %v", topic, len(out), n, fetches.Err())
			}
			return out
		}
		fetches.EachRecord(func(r *kgo.Record) { out = append(out, r.Value) })
	}
}

// order is an order as the schema with id 7 has it: long 2^62+n, decimal -1.28; want is what becomes of it.
func order(n int) (in, want []byte) {
	long := func(b []byte) []byte {
		x := uint64(1<<62+n) << 1
		for ; x >= 0x80; x >>= 7 {
			b = append(b, byte(x)|0x80)
		}
		return append(b, byte(x))
	}
	in = append(long([]byte{0, 0, 0, 0, 7}), 2, 0x80)
	want = append(long([]byte{0, 0, 0, 0, 9, 2, 0x80}), "\x08none"...)
	return in, want
}

// TestAvroToAvro reads a topic by one schema and writes another by another, while the registry comes and goes; then every
// batch is proven without it.
func TestAvroToAvro(t *testing.T) {
	w := newTopicsInFormats(t)
	j := w.job(t, job.PolicyStop)
	var want [][]byte
	batch := func() {
		for range 25 {
			in, out := order(len(want))
			want = append(want, out)
			w.produce(t, in)
		}
	}
	batch()
	if err := w.run(j); err != nil {
		t.Fatal(err)
	}
	w.registry.set(true)
	batch()
	w.produce(t, nil)
	want = append(want, nil)
	if err := w.run(j); err != nil {
		t.Fatalf("all schemas are kept, and the registry is down: %v", err)
	}
	got := w.published(t, "clean", len(want))
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("published %x, want %x", got, want)
	}
	w.registry.set(true)
	h := w.history(j)
	for n := range checkpoint.BatchID(6) { // 10, 10, 5; 10, 10, 6
		r, err := h.Batch(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Prove(t.Context()); err != nil {
			t.Errorf("batch %d: %v", n, err)
		}
	}
	if n := w.registry.requests(); n != 0 {
		t.Errorf("a replay asks the registry %d times", n)
	}
	w.kept(t, "7.json", "clean-value-")
}

// kept looks for the files of schemas in the checkpoint.
func (w *topicsInFormats) kept(t *testing.T, prefixes ...string) {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(w.dir, "checkpoint", "schemas", "schemas"))
	if err != nil || len(list) != len(prefixes) {
		t.Fatalf("kept %v, %v", list, err)
	}
	for i, p := range prefixes {
		if !strings.HasPrefix(list[i].Name(), p) {
			t.Errorf("kept %v, want %v", list, prefixes)
		}
	}
}

// TestRegistryGoesAwayBetweenBatches: a schema that is not kept yet stops the batch, not the records; the run after that
// takes up where it was.
func TestRegistryGoesAwayBetweenBatches(t *testing.T) {
	w := newTopicsInFormats(t)
	j := w.job(t, job.PolicyDeadLetter)
	in, first := order(1)
	w.produce(t, in)
	if err := w.run(j); err != nil {
		t.Fatal(err)
	}
	w.registry.put(t, 8, "orders-value", orderIn)
	in, second := order(2)
	in[4] = 8
	w.produce(t, in)
	w.registry.set(true)
	err := w.run(j)
	if codeOf(err) != registry.CodeUnreachable || !fault.IsPassing(err) {
		t.Fatalf("a schema that cannot be asked for: %v", err)
	}
	w.registry.set(false)
	if err := w.run(j); err != nil {
		t.Fatal(err)
	}
	if got := w.published(t, "clean", 2); !slices.EqualFunc(got, [][]byte{first, second}, slices.Equal) {
		t.Errorf("published %x", got)
	}
	w.published(t, "dead", 0)
}

// TestRecordsThatCannotBeReadOrWritten follow the error policy, and the others go on.
func TestRecordsThatCannotBeReadOrWritten(t *testing.T) {
	w := newTopicsInFormats(t)
	good, want := order(1)
	unknown := append([]byte{0, 0, 0, 0, 99}, good[5:]...)
	cut := good[:8]
	long := append(append([]byte{}, good[:len(good)-2]...), append([]byte{40}, make([]byte, 20)...)...)
	long[len(long)-20] = 1 // a decimal of more digits than the sink's schema takes
	w.produce(t, []byte(`{"id":1}`), good, unknown, cut, []byte{}, long)
	if err := w.run(w.job(t, job.PolicyStop)); codeOf(err) == "" || !strings.Contains(err.Error(), "zero byte") {
		t.Fatalf("policy stop: %v", err)
	}
	w.place.dir = t.TempDir()
	j := w.job(t, job.PolicyDeadLetter)
	if err := w.run(j); err != nil {
		t.Fatal(err)
	}
	if got := w.published(t, "clean", 1); !slices.Equal(got[0], want) {
		t.Errorf("published %x, want %x", got, want)
	}
	words := []string{"zero byte", "schema 99", "ends in the middle", "0 bytes are no schema registry framing", "outside the type's range"}
	for _, letter := range w.published(t, "dead", len(words)) {
		i := slices.IndexFunc(words, func(s string) bool { return strings.Contains(string(letter), s) })
		if i < 0 {
			t.Errorf("dead letter %s", letter)
			continue
		}
		words = slices.Delete(words, i, i+1)
	}
	if len(words) > 0 {
		t.Errorf("no dead letters about %q", words)
	}
}

// TestFramingInHeaders: the header that names a schema says nothing of what is published, and is not; others are.
func TestFramingInHeaders(t *testing.T) {
	w := newTopicsInFormats(t)
	in, want := order(5)
	r := &kgo.Record{Topic: "orders", Value: in[5:], Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "__value_schema_id", Value: in[:5]}, {Key: "b"}}}
	if err := w.client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := w.run(w.job(t, job.PolicyStop)); err != nil {
		t.Fatal(err)
	}
	if got := w.published(t, "clean", 1); !slices.Equal(got[0], want) {
		t.Errorf("published %x, want %x", got, want)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(w.brokers...), kgo.ConsumeTopics("clean"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	client.PollFetches(t.Context()).EachRecord(func(r *kgo.Record) {
		if len(r.Headers) != 2 || r.Headers[0].Key != "a" || r.Headers[1].Key != "b" {
			t.Errorf("headers %v", r.Headers)
		}
	})
}

// TestSinkWithoutItsSchema does not start, and takes nothing over.
func TestSinkWithoutItsSchema(t *testing.T) {
	w := newTopicsInFormats(t)
	in, _ := order(1)
	w.produce(t, in)
	delete(w.registry.subjects, "clean-value/versions/latest")
	if err := w.run(w.job(t, job.PolicyStop)); codeOf(err) != registry.CodeUnknown {
		t.Errorf("no schema: %v", err)
	}
	w.registry.subjects["clean-value/versions/latest"] = `{"id":9,"version":1,"schema":"syntax = \"proto3\";","schemaType":"PROTOBUF"}`
	if err := w.run(w.job(t, job.PolicyStop)); codeOf(err) != CodeSchema {
		t.Errorf("a schema of another format: %v", err)
	}
	w.registry.set(true)
	if err := w.run(w.job(t, job.PolicyStop)); codeOf(err) != registry.CodeUnreachable || errors.Is(err, context.Canceled) {
		t.Errorf("no registry: %v", err)
	}
}
