package examples

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// explain tells of a record that the output lacks where it stands in the input, what the upstream thinks of it, what the
// broker holds around it, and what the batch wrote down that had it to read: a run with kills cannot be had again.
func (w *world) explain(t *testing.T, in, out map[int32][]*kgo.Record) {
	t.Helper()
	got := map[string]int{}
	for _, records := range out {
		for _, r := range records {
			got[string(r.Value)]++
		}
	}
	told := 0
	for _, records := range in {
		for _, r := range records {
			v, ok := converted(t, string(r.Value))
			if got[v]--; !ok || got[v] >= 0 {
				continue
			}
			if told++; told > 2 {
				return
			}
			t.Logf("lost: %s-%d, offset %d, producer %d, epoch %d, of %s: %s", r.Topic, r.Partition, r.Offset, r.ProducerID, r.ProducerEpoch,
				r.Timestamp.Format(time.RFC3339Nano), r.Value)
			t.Log(w.feed.word(string(r.Value)))
			t.Logf("the broker holds:\n%s", w.b.around(t, r))
			t.Log(w.readBy(r))
		}
	}
}

// word is what the feeder takes a record for.
func (f *feeder) word(value string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unknown[value] {
		return "the upstream does not know whether it is committed; its unclear transactions:\n" + strings.Join(f.unclear, "\n")
	}
	return fmt.Sprintf("the upstream committed it %d times", f.committed[value])
}

// around lists the records about another one, with markers and what was aborted.
func (b *broker) around(t *testing.T, r *kgo.Record) string {
	t.Helper()
	const about = 50
	at := kgo.NewOffset().At(max(0, r.Offset-about))
	reader := b.client(t, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.Topic: {r.Partition: at}}),
		kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond))
	defer reader.Close()
	var s strings.Builder
	end := r.Offset + about
	for last := int64(0); last < end; {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		fetches := reader.PollFetches(ctx)
		cancel()
		if fetches.NumRecords() == 0 {
			break
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if last = r.Offset; last > end {
				return
			}
			what := string(r.Value)
			if r.Attrs.IsControl() {
				var c kmsg.ControlRecordKey
				what = "marker"
				if c.ReadFrom(r.Key) == nil {
					what = "marker " + c.Type.String()
				}
			}
			fmt.Fprintf(&s, "  %d: producer %d, epoch %d, leader epoch %d, %s: %.40s\n", r.Offset, r.ProducerID, r.ProducerEpoch, r.LeaderEpoch,
				r.Timestamp.Format("15:04:05.000"), what)
		})
	}
	return s.String()
}

// readBy is the plan and the decision of the batch that had a record of the input to read, and the names of earlier ones.
func (w *world) readBy(r *kgo.Record) string {
	for n := range w.batches() {
		plan, _ := os.ReadFile(w.file(fmt.Sprintf("checkpoint/offsets/%d", n))) // none: it was given up
		lines := strings.Split(strings.TrimSpace(string(plan)), "\n")
		for _, line := range lines {
			var ends map[string]map[string]int64
			if json.Unmarshal([]byte(line), &ends) != nil || ends[r.Topic][strconv.Itoa(int(r.Partition))] <= r.Offset {
				continue
			}
			dec, _ := os.ReadFile(w.file(fmt.Sprintf("checkpoint/commits/%d", n))) // the same
			undone, _ := filepath.Glob(w.file(fmt.Sprintf("checkpoint/*/.%d.*", n)))
			return fmt.Sprintf("batch %d had it to read; taken back: %v; its plan and its decision:\n%s\n%s", n, undone, plan, dec)
		}
	}
	return "no batch had it to read"
}
