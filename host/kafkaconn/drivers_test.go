package kafkaconn

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const repository = "../.."

// TestDriversUseNoProducerOrConsumer: the drivers make their own requests. The client's producer, its consumer and its groups
// each have a life of their own, which the claims of FAULTS.md do without.
func TestDriversUseNoProducerOrConsumer(t *testing.T) {
	own := regexp.MustCompile(`\.(Produce|ProduceSync|TryProduce|BeginTransaction|EndTransaction|PollFetches|PollRecords|AddConsumePartitions)\(|` +
		`kgo\.(TransactionalID|ConsumeTopics|ConsumePartitions|ConsumerGroup|NewGroupTransactSession)\(`)
	looked := 0
	for _, folder := range []string{"host/source/kafka", "host/sink/kafka", "host/kafkaconn", "host/pipeline", "host/engine"} {
		for path, text := range sources(t, folder) {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			looked++
			if m := own.FindString(text); m != "" {
				t.Errorf("%s: %s", path, m)
			}
		}
	}
	if looked < 50 {
		t.Errorf("only %d files were looked at", looked)
	}
}

// sources are the Go files of a folder, by their paths.
func sources(t *testing.T, folder string) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, err := filepath.Glob(filepath.Join(repository, folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out[path] = string(text)
	}
	return out
}
