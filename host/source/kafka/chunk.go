package kafka

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// chunk is what one fetch has brought of a partition, looked through once: which offsets it passes, and which stored
// batches have records to deliver. It is not changed once it is made.
type chunk struct {
	from, next int64 // from up to and without next
	spans      []span
	size       int // bytes that it holds in memory
}

// span is one stored batch.
type span struct {
	base, last int64
	epoch      int32  // of the leader that took it
	raw        []byte // nil: nothing of it is delivered, as it is a marker, aborted or empty
	unpacked   int64  // bytes of its records, by the gauge; 0 where raw is nil, or nothing is planned of it
}

// Costs of a chunk and a span beside the bytes of batches.
const (
	chunkCost = 128
	spanCost  = 56
)

// scan looks through an answer to a fetch at from. Aborted transactions are found as the Java client does it: a
// producer's records are out from the first offset of an aborted transaction up to its marker. With an error the chunk
// holds what comes before the damage.
func scan(p *kmsg.FetchResponseTopicPartition, from int64, committed bool) (*chunk, error) {
	c := &chunk{from: from, next: from, size: chunkCost}
	begun := abortedBy(p)
	var aborted map[int64]bool
	if len(begun) > 0 {
		aborted = map[int64]bool{}
	}
	after := int64(0)
	for in := p.RecordBatches; len(in) > 0; {
		b, raw, rest, ok, err := splitBatch(in)
		if err != nil {
			return c, err
		}
		if !ok {
			break
		}
		in = rest
		if b.base < after { // how far the log reaches is no bound: a broker looks at that before it reads
			return c, damage("the batch at offset %d follows one that ends at %d", b.base, after-1)
		}
		after = b.last + 1
		for len(begun) > 0 && begun[0].FirstOffset <= b.last {
			aborted[begun[0].ProducerID] = true
			begun = begun[1:]
		}
		sp := span{base: b.base, last: b.last, epoch: b.epoch}
		switch out := committed && b.is(attrTransactional) && aborted[b.producer]; {
		case b.is(attrControl):
			abort, err := control(&b, raw)
			if err != nil {
				return c, err
			}
			if abort {
				delete(aborted, b.producer)
			}
		case !out && b.count > 0:
			sp.raw = raw
			c.size += len(raw)
		}
		if b.last < from {
			continue
		}
		c.spans = append(c.spans, sp)
		c.next = b.last + 1
		c.size += spanCost
	}
	return c, nil
}

// abortedBy lists aborted transactions by first offset: brokers may give them in another order.
func abortedBy(p *kmsg.FetchResponseTopicPartition) []kmsg.FetchResponseTopicPartitionAbortedTransaction {
	list := p.AbortedTransactions
	slices.SortFunc(list, func(a, b kmsg.FetchResponseTopicPartitionAbortedTransaction) int {
		return cmp.Compare(a.FirstOffset, b.FirstOffset)
	})
	return list
}

// control reports whether a control batch ends an aborted transaction: the key of a marker is a version and a type of two
// bytes each, 0 for abort.
func control(b *batch, raw []byte) (abort bool, err error) {
	if err := checksum(raw, b.base); err != nil {
		return false, err
	}
	if b.count < 1 {
		return false, nil
	}
	f := fields{b: b.records}
	f.varint() // length
	f.skip(1)
	f.varint()
	f.varint()
	key := f.bytes()
	return f.ok() && len(key) >= 4 && key[2] == 0 && key[3] == 0, nil
}

// at is the index of the first span that goes on to an offset.
func (c *chunk) at(offset int64) int {
	i, _ := slices.BinarySearchFunc(c.spans, offset, func(s span, at int64) int { return cmp.Compare(s.last, at) })
	return i
}

// apart gives a chunk bytes of its own where it is a small part of an answer, which would be held for it.
func (c *chunk) apart(answer int) {
	if c.size*4 >= answer {
		return
	}
	n := 0
	for i := range c.spans {
		n += len(c.spans[i].raw)
	}
	buf := make([]byte, 0, n)
	for i := range c.spans {
		if raw := c.spans[i].raw; raw != nil {
			at := len(buf)
			buf = append(buf, raw...)
			c.spans[i].raw = buf[at:len(buf):len(buf)]
		}
	}
}
