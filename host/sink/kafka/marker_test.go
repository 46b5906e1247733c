package kafka

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/kafkaconn"
)

func FuzzMarker(f *testing.F) {
	f.Add([]byte(`{"version":1,"query":"q","batch":3,"digest":"d","attempt":"a"}`))
	f.Add([]byte(`{"version":2,"query":"q","batch":3,"digest":"d"}`))
	f.Add([]byte(`{"version":1,"query":"q","batch":-3,"digest":"d"}`))
	f.Add([]byte(`null`))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, value []byte) {
		target := &Target{cfg: Config{Connection: kafkaconn.Config{Name: "main"}}, query: "q"}
		m, err := target.decodeMarker(&kgo.Record{Topic: "t", Value: value})
		if err == nil {
			if m.Version != markerVersion || m.Query != "q" || m.Batch < 0 || m.Digest == "" {
				t.Errorf("%q is taken as %+v", value, m)
			}
			return
		}
		var known *fault.Error
		if !errors.As(err, &known) || known.Hint() == "" {
			t.Errorf("%q: %v is no fault", value, err)
		}
	})
}

// TestMarkerScan compares with a model: transactions of several producers, interleaved, ended either way.
func TestMarkerScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type txn struct {
			last   int64
			exists bool
		}
		var s markerScan
		open, want := map[int64]*txn{}, int64(-1)
		attrs := func(control bool) kgo.RecordAttrs {
			var batch kmsg.RecordBatch
			batch.Attributes = 1 << 4
			if control {
				batch.Attributes |= 1 << 5
			}
			return attrsOf(&batch)
		}
		offset := int64(0)
		end := func(pid int64, commit bool) {
			o := open[pid]
			delete(open, pid)
			if o == nil {
				return
			}
			if commit && o.exists {
				want = max(want, o.last)
			}
			c := kmsg.ControlRecordKey{Type: kmsg.ControlRecordKeyTypeAbort}
			if commit {
				c.Type = kmsg.ControlRecordKeyTypeCommit
			}
			s.add(&kgo.Record{Offset: offset, ProducerID: pid, Attrs: attrs(true), Key: c.AppendTo(nil)}, "main")
			offset++
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			pid := int64(rapid.IntRange(1, 3).Draw(t, "producer"))
			if rapid.IntRange(0, 2).Draw(t, "end") == 0 {
				end(pid, rapid.Bool().Draw(t, "commit"))
				continue
			}
			o := open[pid]
			if o == nil {
				o = &txn{}
				open[pid] = o
			}
			key := rapid.SampledFrom([]string{"main", "second", "main/probe"}).Draw(t, "key")
			s.add(&kgo.Record{Offset: offset, ProducerID: pid, Attrs: attrs(false), Key: []byte(key), Value: []byte("v")}, "main")
			if key == "main" {
				o.last, o.exists = offset, true
			}
			offset++
		}
		for pid := int64(1); pid <= 3; pid++ {
			end(pid, rapid.Bool().Draw(t, "commit"))
		}
		got := int64(-1)
		if r := s.result(); r != nil {
			got = r.Offset
		}
		if got != want {
			t.Fatalf("the last committed record is at %d, want %d", got, want)
		}
	})
}

// attrsOf makes attributes as the client does, which has no way to set them: by reading a batch.
func attrsOf(batch *kmsg.RecordBatch) kgo.RecordAttrs {
	rec := kmsg.Record{Length: 6}
	batch.Magic, batch.NumRecords, batch.ProducerID = 2, 1, 1
	batch.Records = rec.AppendTo(nil)
	batch.Length = int32(len(batch.AppendTo(nil)) - 12)
	p := kmsg.NewFetchResponseTopicPartition()
	p.RecordBatches = batch.AppendTo(nil)
	got, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{KeepControlRecords: true, DisableCRCValidation: true}, &p, nil, nil)
	if len(got.Records) != 1 {
		return kgo.RecordAttrs{}
	}
	return got.Records[0].Attrs
}
