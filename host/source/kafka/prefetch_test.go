package kafka

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

// TestReadFromMemory: small batches are planned and read from what one fetch has brought, and the cluster is asked for
// nothing more.
func TestReadFromMemory(t *testing.T) {
	w := newWorld(t)
	w.create("held", 1)
	var want []string
	for i := range 10 {
		w.produce("held", 0, numbers("v-", 10*i, 10)...)
	}
	for i := range 100 {
		want = append(want, fmt.Sprintf("held-0@%d v-%d", i, i))
	}
	ends := w.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Count: -1, Observe: true})
	fetches := w.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Count: -1, Observe: true})
	w.memory = true
	s := w.open(nil, "held")
	var got []string
	var at checkpoint.Position
	for range 15 {
		to := w.latest(s, at, source.Limit{Records: 7})
		got = append(got, w.read(s, at, to)...)
		if err := s.Release(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		at = to
	}
	w.want(got, want...)
	if n := fetches.Hits(); n > 3 { // one with data, and those that wait for more
		t.Errorf("%d fetches for 15 ranges of one answer", n)
	}
	if n := ends.Hits(); n > 3 { // both ends of the log for the first plan
		t.Errorf("%d times the ends were asked for", n)
	}
	if s.pre.bytes != 0 {
		t.Errorf("%d bytes are held of a log that is read to its end", s.pre.bytes)
	}
}
