package kafka

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxRests bounds the bytes of rests that are kept.
const maxRests = 64 << 20

// rests keeps the answers that reach beyond the end of a range, for the range that begins there: a fetch brings whole
// batches and more than was planned.
type rests struct {
	mu    sync.Mutex
	of    map[partition]rest
	bytes int
}

type rest struct {
	id     string
	pos    int64
	epoch  int32 // of the plan: the log was sound in it
	answer *kmsg.FetchResponseTopicPartition
}

func (r *rest) size() int { return len(r.answer.RecordBatches) }

// put keeps an answer that has data after a part, when there is room.
func (r *rests) put(p *part, answer *kmsg.FetchResponseTopicPartition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := p.key()
	r.drop(k)
	if r.bytes+len(answer.RecordBatches) > maxRests || !reaches(answer, p.To) {
		return
	}
	if r.of == nil {
		r.of = map[partition]rest{}
	}
	r.of[k] = rest{p.ID, p.To, p.Epoch, answer}
	r.bytes += len(answer.RecordBatches)
}

// reaches reports whether an answer has a whole batch that goes on to an offset.
func reaches(answer *kmsg.FetchResponseTopicPartition, offset int64) bool {
	for in := answer.RecordBatches; ; {
		b, _, rest, ok, err := splitBatch(in)
		if !ok || err != nil {
			return false
		}
		if b.last >= offset {
			return true
		}
		in = rest
	}
}

// take returns the answer that was kept for a position, or nil, and keeps it no longer.
func (r *rests) take(p *part, pos int64) *kmsg.FetchResponseTopicPartition {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept, ok := r.of[p.key()]
	if !ok || kept.pos != pos || kept.id != p.ID || kept.epoch != p.Epoch {
		return nil
	}
	r.drop(p.key())
	return kept.answer
}

func (r *rests) drop(k partition) {
	if kept, ok := r.of[k]; ok {
		r.bytes -= kept.size()
		delete(r.of, k)
	}
}
