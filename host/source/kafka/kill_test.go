package kafka

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestBrokerIsKilled kills a real broker in the middle of a read, with the script that WASMILL_KAFKA_SCRIPT names: it
// knows `kill9` and `start`. The read goes on when the broker is there again.
func TestBrokerIsKilled(t *testing.T) {
	addr, script := os.Getenv("WASMILL_KAFKA"), os.Getenv("WASMILL_KAFKA_SCRIPT")
	if addr == "" || script == "" {
		t.Skip("WASMILL_KAFKA and WASMILL_KAFKA_SCRIPT name no broker to kill")
	}
	run := func(verb string) {
		if out, err := exec.Command("bash", script, verb).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", verb, err, out)
		}
	}
	w := connect(t, nil, []string{addr})
	topic := w.unique("killed")
	w.create(topic, 1)
	x := w.begin(topic)
	var want []string
	for i := range 40 {
		x.produce(topic, 0, numbers(fmt.Sprintf("v-%d-", i), 0, 50)...)
		how := kgo.TryCommit
		if i%3 == 1 {
			how = kgo.TryAbort
		}
		x.end(how)
		x.again()
		for j := range 50 {
			if i%3 != 1 {
				want = append(want, fmt.Sprintf("%s-0@%d v-%d-%d", topic, 51*i+j, i, j))
			}
		}
	}
	r := w.streaming(func(c *Config) { c.FetchBytes, c.Memory, c.Patience = 1, 4096, 2*time.Minute }, topic)
	r.limit.Records = 300
	r.until(600)
	run("kill9")
	started := make(chan struct{})
	go func() { defer close(started); run("start") }()
	defer func() { <-started }()
	r.patience = 2 * time.Minute
	r.until(len(want))
	w.want(r.got, want...)
	// A job that waits for what comes is woken by it also after the broker was away.
	run("kill9")
	run("start")
	other := connect(t, nil, []string{addr})
	other.produce(topic, 0, "after")
	r.until(len(want) + 1)
	if last := r.got[len(r.got)-1]; !strings.HasSuffix(last, " after") {
		t.Errorf("the last record is %s", last)
	}
}
