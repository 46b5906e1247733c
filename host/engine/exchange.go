package engine

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/wasmill/wasmill/abi"
)

// The exchange brings each record of a keyed stage's input to the lane of its key's group. Every lane sends on its own, into
// a tape for each lane that receives; when all lanes have sent, a lane reads what is for it in the order (`from` entry,
// sending lane, position), so scheduling cannot show. What is sent stays until the next batch: a lane that starts again
// reads it again. It is counted among what a batch holds in memory, and bounded by that.

// sent is what one lane has sent to a keyed stage by one of its `from` entries.
type sent struct {
	stage   *StageNode
	edge    Edge
	key     keyer
	to      []parcels // by lane
	splits  []string  // parts of a source that records were read from, by number
	count   int64     // records that came, those without a key included
	letters letters   // of records of a source without a key
}

func newSent(g *Graph, stage *StageNode, edge Edge) (*sent, error) {
	s := &sent{stage: stage, edge: edge, to: make([]parcels, g.Lanes)}
	for i := range s.to {
		s.to[i].keep = max(exchangeKeep/(g.Lanes*g.Lanes), exchangeFirst)
		s.to[i].tape.first = exchangeFirst
	}
	pointers := append([]string(nil), edge.KeyBy.JSON...)
	s.key = keyer{by: edge.KeyBy, header: []byte(edge.KeyBy.Header)}
	if edge.Source >= 0 {
		s.key.event = g.Sources[edge.Source].located()
	}
	if s.key.event != nil {
		pointers = append(pointers, s.key.event.Pointer)
	}
	if len(pointers) == 0 {
		return s, nil
	}
	var err error
	if s.key.locator, err = abi.NewLocator(pointers); err != nil {
		return nil, fmt.Errorf("stage %s: keyBy: %w", stage.Name, err)
	}
	s.key.fields = make([]abi.Field, len(pointers))
	return s, nil
}

func (s *sent) reset() {
	for i := range s.to {
		s.to[i].reset()
	}
	s.splits, s.count = s.splits[:0], 0
	s.letters.reset()
}

// split is the number of a part of a source.
func (s *sent) split(name string) uint32 {
	if n := len(s.splits); n > 0 && s.splits[n-1] == name {
		return uint32(n - 1)
	}
	s.splits = append(s.splits, name)
	return uint32(len(s.splits) - 1)
}

// keyer takes keys out of records, and their event times where those stand in the value: one scan finds both.
type keyer struct {
	by      *KeyBy
	header  []byte
	locator *abi.Locator // nil when there is nothing to find in values
	fields  []abi.Field
	event   *EventTime // nil: records have a time of their own, or none
	notJSON bool       // of the last record, where there is a locator
	long    int        // bytes of the last record's key, where it is too long
	buf     []byte
}

// keyOf returns a record's key, valid until the next call, and sets its event time. It is false for a record that has none,
// and for one whose key is too long.
func (k *keyer) keyOf(r *abi.Record) (key []byte, ok bool) {
	isJSON := false
	k.long = 0
	if k.locator != nil {
		isJSON = r.Value != nil && k.locator.Locate(r.Value, k.fields)
		k.notJSON = !isJSON
		if k.event != nil {
			setEventTime(r, isJSON, k.fields[len(k.fields)-1], k.event.Unit)
		}
	}
	switch {
	case k.by.Key:
		key = r.Key
	case len(k.by.JSON) > 0:
		if !isJSON {
			return nil, false
		}
		if k.buf == nil {
			k.buf = []byte{} // a text of no bytes is a key, too
		}
		if k.buf, ok = abi.KeyOf(r.Value, k.fields[:len(k.by.JSON)], k.buf[:0]); !ok {
			return nil, false
		}
		key = k.buf
	default:
		for i := range r.Headers {
			if string(r.Headers[i].Name) == string(k.header) {
				key = r.Headers[i].Value
				break
			}
		}
	}
	if len(key) > abi.MaxStateKey {
		k.long, k.buf = len(key), nil // the memory of a large one is not kept
		return nil, false
	}
	return key, key != nil
}

// send passes a record on to the lane of its key. It is false for a record that has none.
func (l *lane) send(x *sent, split string, r *abi.Record) (bool, error) {
	at := place{offset: r.Offset, partition: r.Partition}
	if x.edge.Stage >= 0 {
		at = place{offset: x.count, partition: int32(l.index)}
	} else {
		at.split = x.split(split)
	}
	x.count++
	key, ok := x.key.keyOf(r)
	l.saw(x.edge, split, r)
	if !ok {
		return false, nil
	}
	at.notJSON = x.key.notJSON
	own := r.Key
	r.Key = key
	x.to[abi.LaneOfGroup(abi.KeyGroup(key), len(x.to))].add(at, r)
	r.Key = own
	return true, l.holds(r)
}

// keyless is the letter of the last record, which has no key or one that is too long.
func (x *sent) keyless() letter {
	lt := letter{
		code: CodeNoKey, word: "no_key", stage: x.stage.Name, module: x.stage.Module, reason: "it has no key by the keyBy of this input",
	}
	switch {
	case x.key.long > 0:
		lt.word, lt.reason = "long_key", fmt.Sprintf("its key by the keyBy of this input has %d bytes, at most %d are possible", x.key.long, abi.MaxStateKey)
	case x.key.notJSON && len(x.key.by.JSON) > 0:
		lt.reason += ": the value is not JSON"
	}
	return lt
}

// exchange sends what a keyed stage reads of sources in this lane.
func (l *lane) exchange(ctx context.Context, b *batchRun, s *stageLane) error {
	for entry, x := range s.sent {
		if x.edge.Source < 0 {
			continue
		}
		err := l.feedSource(ctx, b, x.edge.Source, entry, func(_ int, split string, r *abi.Record) error {
			ok, err := l.send(x, split, r)
			if ok || err != nil {
				return err
			}
			lt := x.keyless()
			lt.origin = origin{edge: x.edge, split: split, offset: r.Offset, partition: r.Partition}
			return l.setAside(&x.letters, lt, r)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// feedKeyed delivers the input of a keyed stage that was sent to this lane.
func (l *lane) feedKeyed(s *stageLane, take taker) error {
	for entry, e := range s.node.Inputs {
		for _, from := range l.r.lanes {
			x := from.stages[s.index].sent[entry]
			err := x.to[l.index].each(func(at place, r *abi.Record) error {
				r.Offset, r.Partition = at.offset, at.partition
				if at.notJSON {
					r.Flags |= abi.FlagNotJSON
				}
				if e.Source >= 0 {
					return take(entry, x.splits[at.split], r)
				}
				r.Port = uint16(e.Port)
				return take(entry, "", r)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	// exchangeFirst is the size of a tape's first block: there are as many tapes as lanes times lanes.
	exchangeFirst = 4 << 10
	// exchangeKeep is how much memory all tapes of an entry keep from batch to batch: keys shift between lanes, and each tape
	// would otherwise keep the most that it ever had.
	exchangeKeep = 32 << 20
)

// place is where a record came from: its offset and partition in the source, and the number of the source's part.
type place struct {
	offset    int64
	partition int32
	split     uint32
	notJSON   bool // known where the key or the time were looked for in the value
}

// A place takes 16 bytes of a tape: offset, partition, split, and in its highest bit notJSON.
const (
	placeSize    = 16
	placeNotJSON = 1 << 31
)

// parcels is a tape of records that know where they came from.
type parcels struct {
	tape tape
	keep int // bytes of blocks that outlive reset, about
}

func (p *parcels) reset() {
	kept := 0
	for i := range p.tape.blocks {
		if kept += cap(p.tape.blocks[i]); kept > p.keep && i > 0 {
			clear(p.tape.blocks[i:])
			p.tape.blocks = p.tape.blocks[:i]
			break
		}
	}
	p.tape.reset()
}

func (p *parcels) add(at place, r *abi.Record) {
	le := binary.LittleEndian
	b := p.tape.room(placeSize + tapeSize(r))
	b = le.AppendUint64(b, uint64(at.offset))
	b = le.AppendUint32(b, uint32(at.partition))
	split := at.split
	if at.notJSON {
		split |= placeNotJSON
	}
	b = le.AppendUint32(b, split)
	p.tape.blocks[p.tape.block] = appendTape(b, r)
	p.tape.count++
}

// each hands the records over in order, as tape.each does.
func (p *parcels) each(f func(at place, r *abi.Record) error) error {
	var r abi.Record
	var headers []abi.Header
	le := binary.LittleEndian
	for _, b := range p.tape.blocks {
		for len(b) > 0 {
			split := le.Uint32(b[12:])
			at := place{
				offset: int64(le.Uint64(b)), partition: int32(le.Uint32(b[8:])), split: split &^ placeNotJSON, notJSON: split&placeNotJSON != 0,
			}
			b, headers = readTape(b[placeSize:], &r, headers[:0])
			if err := f(at, &r); err != nil {
				return err
			}
		}
	}
	return nil
}
