package kafka

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/host/source/sourcetest"
)

// TestRecords: key, value, headers, time and place of a record, null and empty told apart.
func TestRecords(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		topic := w.unique("records")
		w.create(topic, 2)
		at := epoch.Add(time.Hour)
		for _, r := range []*kgo.Record{
			{Key: []byte("k"), Value: []byte(`{"a":1}`), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("1")}, {Key: "h", Value: nil}, {Key: "", Value: []byte{}}}},
			{Key: nil, Value: []byte{}},
			{Key: []byte{}, Value: nil},
		} {
			r.Topic, r.Partition, r.Timestamp = topic, 1, at
			if err := w.client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		s := w.open(func(c *Config) { c.Attach = []string{"partition", "topic"} }, topic)
		cut, err := s.Splits(t.Context(), source.Range{To: w.latest(s, checkpoint.Position{}, source.Limit{})})
		if err != nil || len(cut) != 1 || cut[0].Name != topic+"-1" || cut[0].Size != 3 {
			t.Fatalf("splits: %+v, %v", cut, err)
		}
		var c sourcetest.Collector
		if err := s.Read(t.Context(), cut[0], &c); err != nil {
			t.Fatal(err)
		}
		attached := fmt.Sprintf("partition=%q;topic=%q;", "1", topic)
		base := sourcetest.Record{Partition: 1, EventTime: at.UnixMicro(), Flags: abi.FlagEventTime, Headers: attached}
		one, two, three := base, base, base
		one.Key, one.Value, one.Headers = `"k"`, `"{\"a\":1}"`, attached+`h="1";h=null;="";`
		two.Offset, two.Key, two.Value = 1, "null", `""`
		three.Offset, three.Key, three.Value = 2, `""`, "null"
		if d := cmp.Diff([]sourcetest.Record{one, two, three}, c.Records); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

// TestCodecs reads what each codec has packed.
func TestCodecs(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		for name, codec := range map[string]kgo.CompressionCodec{
			"gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
		} {
			topic := w.unique("codec-" + name)
			w.create(topic, 1)
			cl, err := kgo.NewClient(kgo.SeedBrokers(w.brokers...), kgo.ProducerBatchCompression(codec), kgo.RecordPartitioner(kgo.ManualPartitioner()))
			if err != nil {
				t.Fatal(err)
			}
			defer cl.Close()
			var values, want []string
			for i := range 3000 {
				values = append(values, fmt.Sprintf("%s-%d", strings.Repeat("v", i%300), i))
				want = append(want, fmt.Sprintf("%s-0@%d %s", topic, i, values[i]))
			}
			w.write(cl, topic, 0, values...)
			s := w.open(func(c *Config) { c.FetchBytes = 1000 }, topic)
			got, _ := w.all(s, checkpoint.Position{})
			w.want(got, want...)

			tight := w.open(func(c *Config) { c.MaxBatch = 1000 }, topic)
			to := w.latest(tight, checkpoint.Position{}, source.Limit{})
			_, err = tryRead(t.Context(), tight, checkpoint.Position{}, to)
			wantFault(t, err, CodeCorrupt, topic+"-0", "unpacks to more")
		}
	})
}

// TestNoRecords: what is too large to be a record is rejected in its place, and so is one of too many headers.
func TestNoRecords(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		topic := w.unique("large")
		w.create(topic, 1, "max.message.bytes", "40000000")
		cl, err := kgo.NewClient(kgo.SeedBrokers(w.brokers...), kgo.ProducerBatchMaxBytes(40_000_000), kgo.BrokerMaxWriteBytes(100_000_000),
			kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		headers := make([]kgo.RecordHeader, abi.MaxHeaders+1)
		for i := range headers {
			headers[i].Key = fmt.Sprint(i)
		}
		for _, r := range []*kgo.Record{
			{Value: []byte("v-0")},
			{Value: bytes.Repeat([]byte("x"), 20<<20)},
			{Value: []byte("v-2")},
			{Value: []byte("v-3"), Headers: headers},
			{Value: []byte("v-4"), Headers: headers[:abi.MaxHeaders]},
		} {
			r.Topic = topic
			if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		s := w.open(nil, topic)
		cut, err := s.Splits(t.Context(), source.Range{To: w.latest(s, checkpoint.Position{}, source.Limit{})})
		if err != nil {
			t.Fatal(err)
		}
		var c sourcetest.Collector
		if err := s.Read(t.Context(), cut[0], &c); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range c.Records {
			got = append(got, fmt.Sprintf("%d %s %d", r.Offset, r.Code, len(r.Value)))
		}
		w.want(got, "0  5", fmt.Sprintf("1 too_large %d", cutReject+2), "2  5", "3 too_many_headers 5", "4  5")
	})
}

// record is the bytes of one record of a batch.
func record(delta int64, key, value string) []byte {
	var b []byte
	b = append(b, 0)
	b = binary.AppendVarint(b, 0)
	b = binary.AppendVarint(b, delta)
	b = binary.AppendVarint(b, int64(len(key)))
	b = append(b, key...)
	b = binary.AppendVarint(b, int64(len(value)))
	b = append(b, value...)
	b = binary.AppendVarint(b, 0)
	return append(binary.AppendVarint(nil, int64(len(b))), b...)
}

// stored lays records out as a batch from offset base to last.
func stored(base, last int64, attr uint16, count int32, records ...[]byte) []byte {
	b := make([]byte, batchHeader)
	b = append(b, bytes.Join(records, nil)...)
	binary.BigEndian.PutUint64(b, uint64(base))
	binary.BigEndian.PutUint32(b[atLength:], uint32(len(b)-batchPrefix))
	b[atMagic] = 2
	binary.BigEndian.PutUint16(b[atChecked:], attr)
	binary.BigEndian.PutUint32(b[atLastDelta:], uint32(last-base))
	binary.BigEndian.PutUint64(b[atFirstTime:], 1000)
	binary.BigEndian.PutUint64(b[atMaxTime:], 2000)
	binary.BigEndian.PutUint64(b[atProducer:], 7)
	binary.BigEndian.PutUint32(b[atCount:], uint32(count))
	binary.BigEndian.PutUint32(b[atCRC:], crc32.Checksum(b[atChecked:], castagnoli))
	return b
}

func decodeAll(raw []byte, from, to int64, aborted ...kmsg.FetchResponseTopicPartitionAbortedTransaction) (*sourcetest.Collector, int64, error) {
	d := newDecoder(1 << 20)
	d.begin(nil, 0)
	c := &sourcetest.Collector{}
	p := &kmsg.FetchResponseTopicPartition{RecordBatches: raw, HighWatermark: 1000, AbortedTransactions: aborted}
	next, err := d.decode(p, &window{from: from, to: to, committed: true, maxRecord: 1 << 20, out: c})
	return c, next, err
}

// TestTimes: clocks of producers are not trusted. A time before 1970, none (-1), or one that no event time can hold gives
// no event time, and every other one stands as it is.
func TestTimes(t *testing.T) {
	for ms, us := range map[int64]int64{
		-1: none, -62_135_596_800_000: none, math.MinInt64: none, math.MaxInt64: none, math.MaxInt64/1000 + 1: none,
		0: 0, 1: 1000, 253_402_300_799_999: 253_402_300_799_999_000, math.MaxInt64 / 1000: math.MaxInt64 / 1000 * 1000,
	} {
		raw := stored(5, 5, 0, 1, record(0, "", "x"))
		binary.BigEndian.PutUint64(raw[atFirstTime:], uint64(ms))
		binary.BigEndian.PutUint32(raw[atCRC:], crc32.Checksum(raw[atChecked:], castagnoli))
		c, _, err := decodeAll(raw, 5, 6)
		if err != nil || len(c.Records) != 1 {
			t.Fatalf("%d ms: %v", ms, err)
		}
		r := c.Records[0]
		if got := r.Flags & abi.FlagEventTime; (got != 0) != (us != none) || us != none && r.EventTime != us || us == none && r.EventTime != 0 {
			t.Errorf("%d ms: %d us, flags %b, want %d", ms, r.EventTime, r.Flags, us)
		}
	}
}

func TestDecode(t *testing.T) {
	two := stored(5, 8, 0, 2, record(0, "a", "5"), record(2, "b", "7"))
	flip := bytes.Clone(two)
	flip[len(flip)-2] ^= 1
	abort := stored(12, 12, attrControl|attrTransactional, 1, record(0, "\x00\x00\x00\x00", ""))
	for name, c := range map[string]struct {
		raw     []byte
		from    int64
		to      int64
		aborted []int64
		offsets []int64
		next    int64
		bad     bool
	}{
		"whole":                       {raw: two, from: 5, to: 100, offsets: []int64{5, 7}, next: 9},
		"from the middle":             {raw: two, from: 6, to: 100, offsets: []int64{7}, next: 9},
		"to the middle":               {raw: two, from: 5, to: 7, offsets: []int64{5}, next: 9},
		"before the gap at the end":   {raw: two, from: 8, to: 100, next: 9},
		"begins after the range":      {raw: two, from: 1, to: 5, next: 5},
		"an emptied batch":            {raw: stored(5, 8, 0, 0), from: 5, to: 100, next: 9},
		"not whole":                   {raw: two[:len(two)-1], from: 5, to: 100, next: 5},
		"less than a header":          {raw: two[:20], from: 5, to: 100, next: 5},
		"nothing":                     {from: 5, to: 100, next: 5},
		"whole and a rest":            {raw: append(bytes.Clone(two), two[:30]...), from: 5, to: 100, offsets: []int64{5, 7}, next: 9},
		"append time":                 {raw: stored(5, 5, attrAppendTime, 1, record(0, "", "x")), from: 5, to: 6, offsets: []int64{5}, next: 6},
		"aborted":                     {raw: stored(9, 10, attrTransactional, 1, record(0, "", "x")), from: 9, to: 100, aborted: []int64{9}, next: 11},
		"aborted, and after a marker": {raw: slicesOf(stored(9, 10, attrTransactional, 1, record(0, "", "x")), abort, stored(13, 13, attrTransactional, 1, record(0, "", "y"))), from: 9, to: 100, aborted: []int64{9}, offsets: []int64{13}, next: 14},
		"aborted from before":         {raw: stored(9, 10, attrTransactional, 1, record(0, "", "x")), from: 9, to: 100, aborted: []int64{2}, next: 11},
		"aborted later":               {raw: stored(9, 9, attrTransactional, 1, record(0, "", "x")), from: 9, to: 100, aborted: []int64{50}, offsets: []int64{9}, next: 10},
		"not of a transaction":        {raw: stored(9, 9, 0, 1, record(0, "", "x")), from: 9, to: 100, aborted: []int64{2}, offsets: []int64{9}, next: 10},
		"checksum":                    {raw: flip, from: 5, to: 100, next: 5, bad: true},
		"old format":                  {raw: withMagic(two, 1), from: 5, to: 100, next: 5, bad: true},
		"beyond what the broker says": {raw: stored(1000, 1000, 0, 1, record(0, "", "")), from: 5, to: 2000, offsets: []int64{1000}, next: 1001},
		"backwards":                   {raw: slicesOf(two, two), from: 5, to: 100, offsets: []int64{5, 7}, next: 9, bad: true},
		"fewer records than it says":  {raw: stored(5, 8, 0, 3, record(0, "a", "5")), from: 5, to: 100, offsets: []int64{5}, next: 5, bad: true},
		"offsets go back":             {raw: stored(5, 8, 0, 2, record(1, "", ""), record(1, "", "")), from: 5, to: 100, offsets: []int64{6}, next: 5, bad: true},
		"offset after the batch":      {raw: stored(5, 8, 0, 1, record(4, "", "")), from: 5, to: 100, next: 5, bad: true},
		"unknown codec":               {raw: stored(5, 8, 7, 1, record(0, "", "")), from: 5, to: 100, next: 5, bad: true},
		"no gzip":                     {raw: stored(5, 8, codecGzip, 1, record(0, "", "")), from: 5, to: 100, next: 5, bad: true},
		"no snappy":                   {raw: stored(5, 8, codecSnappy, 1, []byte("\xff\xff\xff\xff\xff")), from: 5, to: 100, next: 5, bad: true},
		"torn xerial":                 {raw: stored(5, 8, codecSnappy, 1, append(append([]byte{}, xerial...), 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9)), from: 5, to: 100, next: 5, bad: true},
		"no lz4":                      {raw: stored(5, 8, codecLZ4, 1, []byte("lz4")), from: 5, to: 100, next: 5, bad: true},
		"no zstd":                     {raw: stored(5, 8, codecZstd, 1, []byte("zstd")), from: 5, to: 100, next: 5, bad: true},
	} {
		var aborted []kmsg.FetchResponseTopicPartitionAbortedTransaction
		for _, off := range c.aborted {
			aborted = append(aborted, kmsg.FetchResponseTopicPartitionAbortedTransaction{ProducerID: 7, FirstOffset: off})
		}
		got, next, err := decodeAll(c.raw, c.from, c.to, aborted...)
		var offsets []int64
		for _, r := range got.Records {
			offsets = append(offsets, r.Offset)
		}
		if d := cmp.Diff(c.offsets, offsets); d != "" || next != c.next || errors.As(err, new(*damaged)) != c.bad {
			t.Errorf("%s: offsets %v, next %d, %v; want %v, %d, damaged %v", name, offsets, next, err, c.offsets, c.next, c.bad)
		}
	}
}

func slicesOf(batches ...[]byte) []byte { return bytes.Join(batches, nil) }

func withMagic(b []byte, magic byte) []byte {
	b = bytes.Clone(b)
	b[atMagic] = magic
	return b
}

// FuzzDecode: bytes of a broker never make us panic, and never take us back or out of the range.
func FuzzDecode(f *testing.F) {
	f.Add(stored(5, 8, 0, 2, record(0, "a", "5"), record(2, "b", "7")), int64(5), int64(8), true)
	f.Add(stored(5, 8, attrControl|attrTransactional, 1, record(0, "\x00\x00\x00\x00", "")), int64(0), int64(9), true)
	f.Add(stored(5, 8, codecSnappy, 1, []byte("\x04\x0cabcd")), int64(0), int64(9), true)
	f.Add(stored(5, 8, codecZstd, 1, []byte("(\xb5/\xfd")), int64(0), int64(9), false)
	f.Fuzz(func(t *testing.T, raw []byte, from, to int64, mend bool) {
		if mend && len(raw) > batchHeader { // past the checksum
			binary.BigEndian.PutUint32(raw[atCRC:], crc32.Checksum(raw[atChecked:], castagnoli))
		}
		from, to = max(0, from%1000), max(0, to%1000)
		if from >= to {
			return
		}
		c, next, err := decodeAll(raw, from, to, kmsg.FetchResponseTopicPartitionAbortedTransaction{ProducerID: 7, FirstOffset: 3})
		if next < from {
			t.Fatalf("next %d of a range from %d to %d", next, from, to)
		}
		if err != nil && !errors.As(err, new(*damaged)) {
			t.Fatalf("%v is no damage", err)
		}
		last := int64(-1)
		for _, r := range c.Records {
			if r.Offset < from || r.Offset >= to || r.Offset <= last {
				t.Fatalf("offset %d after %d in a range from %d to %d", r.Offset, last, from, to)
			}
			last = r.Offset
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	var records [][]byte
	for i := range 4000 {
		records = append(records, record(int64(i), "c-001234", strings.Repeat("x", 232)))
	}
	raw := stored(0, 3999, 0, 4000, records...)
	d := newDecoder(1 << 20)
	p := &kmsg.FetchResponseTopicPartition{RecordBatches: raw, HighWatermark: 1 << 40}
	b.SetBytes(int64(len(raw)) / 4000)
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += 4000 {
		d.begin(nil, 0)
		if _, err := d.decode(p, &window{to: 4000, committed: true, maxRecord: 1 << 20, out: nobody{}}); err != nil {
			b.Fatal(err)
		}
	}
}
