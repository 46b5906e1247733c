package kafka

import (
	"errors"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/kafkaconn"
	"github.com/wasmill/wasmill/host/source"
)

// The tests of this file are of faults that other programs were reported for: see FAULTS.md of host/kafkaconn.

// TestUnorderedAborts: some brokers list aborted transactions in any order.
func TestUnorderedAborts(t *testing.T) {
	marker := func(at int64, what string) []byte {
		return stored(at, at, attrControl|attrTransactional, 1, record(0, what, ""))
	}
	data := func(at int64) []byte { return stored(at, at, attrTransactional, 1, record(0, "", "x")) }
	abort, commit := "\x00\x00\x00\x00", "\x00\x00\x00\x01"
	raw := slicesOf(data(1), marker(2, abort), data(3), marker(4, commit), data(5), marker(6, abort), data(7), marker(8, commit))
	list := []kmsg.FetchResponseTopicPartitionAbortedTransaction{{ProducerID: 7, FirstOffset: 1}, {ProducerID: 7, FirstOffset: 5}, {ProducerID: 9, FirstOffset: 3}}
	for range len(list) {
		list = append(list[1:], list[0])
		got, next, err := decodeAll(raw, 0, 100, slices.Clone(list)...)
		if err != nil {
			t.Fatal(err)
		}
		var offsets []int64
		for _, r := range got.Records {
			offsets = append(offsets, r.Offset)
		}
		if !slices.Equal(offsets, []int64{3, 7}) || next != 9 {
			t.Errorf("%v: offsets %v up to %d, want 3 and 7 up to 9", list, offsets, next)
		}
	}
}

// TestEmptyListing: a broker that lists no topic for a moment, or a topic without partitions, does not make what is read
// already new.
func TestEmptyListing(t *testing.T) {
	for name, empty := range map[string]func(*kmsg.MetadataResponse){
		"no topics":     func(r *kmsg.MetadataResponse) { r.Topics = nil },
		"no partitions": func(r *kmsg.MetadataResponse) { r.Topics[0].Partitions = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create("in", 2)
			w.produce("in", 0, "a", "b")
			w.produce("in", 1, "c")
			s := w.open(nil, "in")
			_, at := w.all(s, checkpoint.Position{})
			fresh := w.open(nil, "in")
			topic := "in"
			left := 3
			w.fake.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
				if left--; left < 0 {
					return nil, nil, false
				}
				w.fake.KeepControl()
				resp := req.ResponseKind().(*kmsg.MetadataResponse)
				b := kmsg.NewMetadataResponseBroker()
				host, port := addressOf(t, w.brokers[0])
				b.NodeID, b.Host, b.Port = 0, host, port
				one := kmsg.NewMetadataResponseTopic()
				one.Topic = &topic
				resp.Brokers, resp.Topics = append(resp.Brokers, b), append(resp.Topics, one)
				empty(resp)
				return resp, nil, true
			})
			if to := w.latest(fresh, at, source.Limit{}); to != at {
				t.Errorf("planned from %s to %s, and nothing is new", at.Line, to.Line)
			}
			if left > 0 {
				t.Errorf("%d empty answers were not asked for", left)
			}
			w.produce("in", 1, "d")
			to := w.latest(fresh, at, source.Limit{})
			w.want(w.read(fresh, at, to), "in-1@1 d")
		})
	}
}

// TestGroupIsNeverRead: whatever stands in the group, and whatever the brokers answer for it, reading goes on where the
// checkpoint stands.
func TestGroupIsNeverRead(t *testing.T) {
	w := newWorld(t)
	w.create("in", 1)
	w.produce("in", 0, numbers("v-", 0, 10)...)
	for _, key := range []kmsg.Key{kmsg.OffsetFetch, kmsg.JoinGroup, kmsg.ConsumerGroupHeartbeat, kmsg.TxnOffsetCommit} {
		w.fake.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
			t.Errorf("the cluster was asked %s", key.Name())
			return nil, errors.New("not for us"), true
		})
	}
	s := w.open(func(c *Config) { c.Group, c.Commit = "lag", 1 }, "in")
	at := w.latest(s, checkpoint.Position{}, source.Limit{Records: 4})
	for _, e := range []*kerr.Error{kerr.StaleMemberEpoch, kerr.UnknownMemberID, kerr.IllegalGeneration, kerr.GroupAuthorizationFailed} {
		w.fake.Fault(faultOfCommit(e))
		_ = w.released(s, at) //nolint:errcheck // only what is read next counts here
	}
	w.want(w.read(s, at, w.latest(s, at, source.Limit{Records: 2})), "in-0@4 v-4", "in-0@5 v-5")
	again := w.open(func(c *Config) { c.Group, c.Start = "lag", Start{Latest: true} }, "in")
	w.want(w.read(again, at, w.latest(again, at, source.Limit{Records: 1})), "in-0@4 v-4")
}

// TestGroupOfAShortJob: a job that ends right after its only batch has its offsets committed, or says why not.
func TestGroupOfAShortJob(t *testing.T) {
	for _, refused := range []bool{false, true} {
		w := newWorld(t)
		w.create("in", 1)
		w.produce("in", 0, "a", "b")
		s, err := New(Config{
			Name: "in", Cluster: kafkaconn.Config{Name: "main", Brokers: w.brokers}, Topics: []string{"in"}, Group: "lag",
			Clock: func() time.Time { return w.now }, Warn: func(err error) { w.warned = append(w.warned, err) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if refused {
			w.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.GroupAuthorizationFailed, Count: -1})
		}
		if err := s.Release(t.Context(), w.latest(s, checkpoint.Position{}, source.Limit{})); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if refused {
			if len(w.warned) != 1 {
				t.Fatalf("warned of %v", w.warned)
			}
			wantFault(t, w.warned[0], kafkaconn.CodeDenied, "group lag")
			continue
		}
		got, err := w.admin.FetchOffsets(t.Context(), "lag")
		if at, ok := got.Lookup("in", 0); err != nil || !ok || at.At != 2 {
			t.Errorf("committed: %+v, %v, want 2", at, err)
		}
	}
}

// TestClockGoesBack: a clock that is set back a year changes nothing but what is said of the lag.
func TestClockGoesBack(t *testing.T) {
	w := newWorld(t)
	w.create("in", 1)
	w.produce("in", 0, "a", "b")
	s := w.open(func(c *Config) { c.Group = "lag" }, "in")
	at := w.latest(s, checkpoint.Position{}, source.Limit{})
	if err := s.Release(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	s.commits.wait()
	w.now = w.now.AddDate(-1, 0, 0)
	w.produce("in", 0, "c")
	to := w.latest(s, at, source.Limit{})
	w.want(w.read(s, at, to), "in-0@2 c")
	if err := s.Release(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	s.commits.wait()
	got, err := w.admin.FetchOffsets(t.Context(), "lag")
	if at, ok := got.Lookup("in", 0); err != nil || !ok || at.At != 3 {
		t.Errorf("committed: %+v, %v, want 3", at, err)
	}
}

func faultOfCommit(e *kerr.Error) kfake.Fault {
	return kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: e}
}

func addressOf(t *testing.T, text string) (host string, port int32) {
	t.Helper()
	host, number, err := net.SplitHostPort(text)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return host, int32(n)
}
