package kafka

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

// TestWhileItGrows plans and reads small batches while two producers commit and abort, and one writes without
// transactions: what is read in the end is what a last look at the whole finds, each record once and in order.
func TestWhileItGrows(t *testing.T) {
	for name, memory := range map[string]bool{"from memory": true, "by the cluster": false} {
		t.Run(name, func(t *testing.T) { whileItGrows(t, memory) })
	}
}

func whileItGrows(t *testing.T, memory bool) {
	everywhere(t, func(t *testing.T, w *world) {
		w.memory = memory
		topic := w.unique("grows")
		w.create(topic, 1)
		done := make(chan struct{}, 3)
		for n := range 3 {
			own := connect(t, w.fake, w.brokers)
			x := own.begin(fmt.Sprint(topic, "-", n))
			go func() {
				defer func() { done <- struct{}{} }()
				for i := range 60 {
					values := numbers(fmt.Sprintf("p%d-%d-", n, i), 0, 1+i%7)
					if n == 0 {
						if err := own.tryProduce(topic, values...); err != nil {
							t.Error(err)
						}
						continue
					}
					x.write(topic, values)
					if err := x.cl.EndTransaction(t.Context(), kgo.TransactionEndTry((i+n)%3 != 0)); err != nil {
						t.Error(err)
						return
					}
					if err := x.cl.BeginTransaction(); err != nil {
						t.Error(err)
						return
					}
				}
				if err := x.cl.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
					t.Error(err)
				}
			}()
		}
		s := w.open(nil, topic)
		var got []string
		var at checkpoint.Position
		for running, last := 3, false; !last; {
			select {
			case <-done:
				running--
			default:
			}
			to := w.latest(s, at, source.Limit{Records: 23})
			if to == at && memory {
				select {
				case <-s.News():
				case <-time.After(20 * time.Millisecond):
				}
			}
			end := w.stable(s, topic)
			last = running == 0 && to.Line == fmt.Sprintf(`{%q:{"0":%d}}`, topic, end) && w.high(topic) == end
			got = append(got, w.read(s, at, to)...)
			if err := s.Release(t.Context(), to); err != nil {
				t.Fatal(err)
			}
			at = to
		}
		want, _ := w.all(w.open(nil, topic), checkpoint.Position{})
		w.want(got, want...)
		if records := 60*8/2 - 20; len(got) < records {
			t.Errorf("%d records, at least %d were committed", len(got), records)
		}
	})
}

// write produces as produce does, outside of the test's own goroutine.
func (x *tx) write(topic string, values []string) {
	var recs []*kgo.Record
	for _, v := range values {
		recs = append(recs, &kgo.Record{Topic: topic, Value: []byte(v)})
	}
	if err := x.cl.ProduceSync(x.w.t.Context(), recs...).FirstErr(); err != nil {
		x.w.t.Error(err)
	}
}

// stable is the last stable offset of partition 0.
func (w *world) stable(s *Source, topic string) int64 {
	w.t.Helper()
	ends, err := s.offsets(w.t.Context(), []partition{{topic, 0}}, atEnd)
	if err != nil {
		w.t.Fatal(err)
	}
	return ends[partition{topic, 0}].offset
}
