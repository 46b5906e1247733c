package trial

import (
	"encoding/binary"
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/abi/statemap"
)

// maxWritten is how many bytes of state a trial takes of one run.
const maxWritten = 512 << 20

// writeCost is what a write counts besides its bytes.
const writeCost = 128

// memory is the state of a lane that is tried out.
type memory struct {
	statemap.Map
	written int64 // in all
}

// Write carries out an operation of state_write.
func (m *memory) Write(op *abi.StateOp) (entries int, err error) {
	m.written += int64(writeCost + len(op.Key) + len(op.Sub) + len(op.Value))
	if m.written > maxWritten {
		return 0, &abi.Violation{Trap: abi.TrapQuota, Detail: fmt.Sprintf("it writes more than %d bytes of state, which no trial has room for", maxWritten)}
	}
	return m.Map.Write(op)
}

func (m *memory) begin(at clock) { m.Begin(at.time, at.watermark) }

// due are the timers that are due, an input for each domain; none without state.
func (m *memory) due() []*input {
	if m == nil {
		return nil
	}
	var out []*input
	for _, t := range m.Due() {
		r := t.Record()
		if n := len(out); n == 0 || out[n-1].records[0].Kind != r.Kind {
			out = append(out, &input{})
		}
		last := out[len(out)-1]
		last.records = append(last.records, r)
	}
	return out
}

// digest adds all that is left to a hash.
func (m *memory) digest(h *xxh3.Hasher) {
	add := func(numbers [3]int64, texts ...[]byte) {
		for _, n := range numbers {
			_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(n))) // never fails
		}
		for _, t := range texts {
			_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(t))))
			_, _ = h.Write(t)
		}
	}
	for _, e := range m.Entries() {
		add([3]int64{0, int64(e.Table), e.Expiry}, e.Key, e.Sub, e.Value)
	}
	for _, t := range m.Timers() {
		add([3]int64{1, int64(t.Domain), t.At}, t.Key, t.Sub)
	}
}

// clock is what a batch sees of time, in microseconds.
type clock struct{ time, late, watermark int64 }

func (c clock) header() abi.FrameHeader {
	return abi.FrameHeader{BatchTime: c.time, LateWatermark: c.late, Watermark: c.watermark, Seed: trialSeed}
}

const minute = 60_000_000

// trialClocks are those of the batches that what keeps state is tried with: the first one of a job, one in which the
// watermark has come to the end of time, and one for the timers that that has led to.
var trialClocks = [...]clock{
	{time: trialTime},
	{time: trialTime + minute, watermark: abi.MaxTime},
	{time: abi.MaxTime, late: abi.MaxTime, watermark: abi.MaxTime},
}

// keyed says whether a module is to be tried in a stage with keys.
func keyed(stateful bool, m *abi.Manifest) bool { return stateful || len(m.Tables) > 0 }

// trialKeys is how many keys there are for records that have none of their own.
const trialKeys = 500

// giveKeys gives each record a key, as keyBy does.
func giveKeys(records []abi.Record) {
	for i := range records {
		if records[i].Key == nil {
			records[i].Key = fmt.Appendf(nil, "key-%d", i%trialKeys)
		}
	}
}
