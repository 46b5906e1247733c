package kafkaconn

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const repository = "../.."

var (
	faultLine = regexp.MustCompile(`^\| (\d+) \| [^|]+ \| [^|]+ \| ([^|]+) \|$`)
	named     = regexp.MustCompile("`([a-z0-9/_]+):(Test\\w+)`")
	scripted  = regexp.MustCompile("`([a-z0-9/_]+\\.txtar)`")
)

// TestFaultsOfOthers: FAULTS.md has every number once, in order, and each test that it names exists.
func TestFaultsOfOthers(t *testing.T) {
	text, err := os.ReadFile("FAULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	next := 1
	for line := range strings.Lines(string(text)) {
		m := faultLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			if strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "| #") && !strings.HasPrefix(line, "|-") {
				t.Errorf("not a line of the table: %.60s", line)
			}
			continue
		}
		if m[1] != fmt.Sprint(next) {
			t.Errorf("number %s where %d is next", m[1], next)
		}
		next++
		tests, scripts := named.FindAllStringSubmatch(m[2], -1), scripted.FindAllStringSubmatch(m[2], -1)
		if len(tests)+len(scripts) == 0 {
			t.Errorf("fault %s names no test", m[1])
		}
		for _, one := range tests {
			if !hasTest(t, one[1], one[2]) {
				t.Errorf("fault %s: there is no %s in %s", m[1], one[2], one[1])
			}
		}
		for _, one := range scripts {
			if _, err := os.Stat(filepath.Join(repository, one[1])); err != nil {
				t.Errorf("fault %s: %v", m[1], err)
			}
		}
		if n := strings.Count(m[2], "`"); n != 2*(len(tests)+len(scripts)) {
			t.Errorf("fault %s: something in quotes is neither a test nor a script", m[1])
		}
	}
	if next != 32 {
		t.Errorf("the last number is %d", next-1)
	}
}

func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	for path, text := range sources(t, folder) {
		if strings.HasSuffix(path, "_test.go") && strings.Contains(text, "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}

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
