package kafka

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/abi"
)

// read decodes sealed batches with the client, which checks their checksums.
func read(batches []byte) ([]*kgo.Record, error) {
	p := kmsg.NewFetchResponseTopicPartition()
	p.RecordBatches = batches
	p.HighWatermark = math.MaxInt64
	got, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{}, &p, kgo.DefaultDecompressor(), nil)
	return got.Records, got.Err
}

func show(key, value []byte, headers string, ms int64) string {
	return fmt.Sprintf("%#v %#v %s @%d", key, value, headers, ms)
}

func drawBytes(t *rapid.T, name string) []byte {
	if rapid.IntRange(0, 4).Draw(t, name+" is null") == 0 {
		return nil
	}
	b := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, name)
	return append([]byte{}, b...)
}

// drawRecord returns a record and what a reader must see of it; the header named "to" is taken off.
func drawRecord(t *rapid.T, batchMS int64) (abi.Record, string) {
	r := abi.Record{Key: drawBytes(t, "key"), Value: drawBytes(t, "value")}
	ms := batchMS
	if rapid.Bool().Draw(t, "timed") {
		ms = rapid.Int64Range(0, 1<<43).Draw(t, "ms")
		r.Flags, r.EventTime = abi.FlagEventTime, ms*1000
	}
	var heads string
	for range rapid.IntRange(0, 3).Draw(t, "headers") {
		h := abi.Header{Name: []byte(rapid.SampledFrom([]string{"", "a", "long name"}).Draw(t, "name")), Value: drawBytes(t, "header")}
		r.Headers = append(r.Headers, h)
		heads += fmt.Sprintf("%q=%#v;", h.Name, h.Value)
	}
	if rapid.Bool().Draw(t, "named") {
		r.Headers = append(r.Headers, abi.Header{Name: []byte("to"), Value: []byte("out")})
	}
	return r, show(r.Key, r.Value, heads, ms)
}

// TestBatches packs random records of several lanes and reads them with the client: each partition has them whole, in the
// order of their lanes, with sequence numbers that follow each other.
func TestBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const batchMS = 1_700_000_000_000
		parts := rapid.Int32Range(1, 4).Draw(t, "partitions")
		known := rapid.Bool().Draw(t, "known")
		press, err := newPress(rapid.SampledFrom([]Compression{None, LZ4, Zstd}).Draw(t, "compression"))
		if err != nil {
			t.Fatal(err)
		}
		limit := rapid.IntRange(300, 3000).Draw(t, "limit")
		r := newRoute(&Sink{Name: "s", Topic: "out", TopicHeader: "to", Topics: []string{"out"}})
		if known {
			r.shapes[0].Store(&shape{partitions: parts, limit: limit})
		}
		target := &Target{cfg: Config{MaxMessage: 1 << 20}, press: press}
		at := &layout{topics: map[string]topicLayout{"out": {leaders: make([]int32, parts)}}, limits: map[string]int{"out": limit}}
		want := map[int32][]string{}
		keyless := 0
		var lanes []*lane
		for range rapid.IntRange(1, 3).Draw(t, "lanes") {
			l := target.newLane(r)
			for range rapid.IntRange(0, 30).Draw(t, "rows") {
				rec, text := drawRecord(t, batchMS)
				if err := l.Append(&rec); err != nil {
					t.Fatal(err)
				}
				if rec.Key == nil {
					keyless++
					continue
				}
				p := partitionOf(rec.Key, parts)
				want[p] = append(want[p], text)
			}
			lanes = append(lanes, l)
		}
		g := &cargo{batchMS: batchMS, queues: map[place]*queue{}}
		g.load(7, lanes, at)
		g.close(press)
		got := map[int32][]string{}
		for _, q := range g.order {
			seq := int32(math.MaxInt32 - 5)
			for _, c := range q.chunks {
				c.seal(producerID{id: 9, epoch: 2, transactional: true}, seq, batchMS)
				seq = after(seq, c.rows)
				if len(c.buf) > limit && c.rows > 1 {
					t.Fatalf("%d rows in %d bytes, the topic takes %d", c.rows, len(c.buf), limit)
				}
				recs, err := read(c.buf)
				if err != nil || len(recs) != int(c.rows) {
					t.Fatalf("%d records of %d are read: %v", len(recs), c.rows, err)
				}
				for _, rec := range recs {
					if rec.ProducerID != 9 || rec.ProducerEpoch != 2 || !rec.Attrs.IsTransactional() {
						t.Fatalf("a record is from %d/%d", rec.ProducerID, rec.ProducerEpoch)
					}
					if rec.Key == nil {
						keyless--
						continue
					}
					var heads string
					for _, h := range rec.Headers {
						heads += fmt.Sprintf("%q=%#v;", h.Key, h.Value)
					}
					got[q.partition] = append(got[q.partition], show(rec.Key, rec.Value, heads, rec.Timestamp.UnixMilli()))
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		if keyless != 0 {
			t.Fatalf("%d records without a key are missing", keyless)
		}
	})
}

// TestPartitionOf compares with the client's own partitioner, which is the Java client's.
func TestPartitionOf(t *testing.T) {
	theirs := kgo.StickyKeyPartitioner(nil).ForTopic("out")
	rapid.Check(t, func(t *rapid.T) {
		key := append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "key")...)
		n := rapid.Int32Range(1, 5000).Draw(t, "partitions")
		if got, want := partitionOf(key, n), theirs.Partition(&kgo.Record{Key: key}, int(n)); int(got) != want {
			t.Fatalf("key %q of %d: partition %d, want %d", key, n, got, want)
		}
	})
}

func TestSequencesGoAround(t *testing.T) {
	for _, test := range []struct{ at, rows, want int32 }{
		{0, 1, 1}, {math.MaxInt32 - 1, 1, math.MaxInt32}, {math.MaxInt32, 1, 0}, {math.MaxInt32 - 5, 10, 4},
	} {
		if got := after(test.at, test.rows); got != test.want {
			t.Errorf("after %d rows from %d: %d, want %d", test.rows, test.at, got, test.want)
		}
	}
}

// TestSmallLanesShareARequest: what several lanes of a small batch have for a partition is one batch of records, compressed
// when it is worth it.
func TestSmallLanesShareARequest(t *testing.T) {
	press, err := newPress(LZ4)
	if err != nil {
		t.Fatal(err)
	}
	r := newRoute(&Sink{Name: "s", Topic: "out"})
	r.shapes[0].Store(&shape{partitions: 1, limit: 1 << 20})
	target := &Target{cfg: Config{MaxMessage: 1 << 20}, press: press}
	var lanes []*lane
	for i := range 4 {
		l := target.newLane(r)
		for range 5 {
			if err := l.Append(&abi.Record{Key: []byte{byte(i)}, Value: bytes.Repeat([]byte("v"), 200)}); err != nil {
				t.Fatal(err)
			}
		}
		lanes = append(lanes, l)
	}
	g := &cargo{batchMS: 1, queues: map[place]*queue{}}
	g.load(0, lanes, &layout{topics: map[string]topicLayout{"out": {leaders: make([]int32, 1)}}})
	g.close(press)
	if len(g.order) != 1 || len(g.order[0].chunks) != 1 {
		t.Fatalf("%d queues, %d batches in the first", len(g.order), len(g.order[0].chunks))
	}
	if c := g.order[0].chunks[0]; c.rows != 20 || c.codec == 0 || len(c.buf) > 2000 {
		t.Errorf("%d rows in %d bytes, codec %d", c.rows, len(c.buf), c.codec)
	}
}
