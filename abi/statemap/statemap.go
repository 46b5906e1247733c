// Package statemap is the state of ABI 1 in memory: what a host answers to state operations, as short as it can be said.
//
// The conformance kit holds hosts to it, and modules are tried out on it. It is no store: it keeps everything in memory,
// writes nothing, knows no lanes, and is not safe for concurrent use.
package statemap

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/wasmill/wasmill/abi"
)

// Map holds entries and timers. The zero value is empty, and is before its first batch.
type Map struct {
	now    int64 // of the batch
	mark   int64 // the watermark
	batch  int64
	groups map[group]*list
	timers map[timerKey]int64
}

// group is what a scan stays under.
type group struct {
	table uint16
	key   string
}

// Entry is one entry as people see it.
type Entry struct {
	Table  uint16
	Key    []byte
	Sub    []byte
	Value  []byte
	Expiry int64 // microseconds, 0 for none
}

// Timer is one timer.
type Timer struct {
	Domain uint8
	At     int64 // microseconds
	Key    []byte
	Sub    []byte
}

// timerKey names a timer; the map has the batch that set it.
type timerKey struct {
	domain   uint8
	at       int64
	key, sub string
}

// Begin begins the next batch: at batchTime and with watermark, in microseconds. What expires at that time or before is
// gone, and timers that were set so far may be due.
func (m *Map) Begin(batchTime, watermark int64) {
	m.now, m.mark = batchTime, watermark
	m.batch++
	for g, l := range m.groups {
		for i := range l.blocks {
			l.blocks[i] = slices.DeleteFunc(l.blocks[i], m.expired)
		}
		l.blocks = slices.DeleteFunc(l.blocks, func(b []Entry) bool { return len(b) == 0 })
		if len(l.blocks) == 0 {
			delete(m.groups, g)
		}
	}
}

func (m *Map) expired(e Entry) bool { return e.Expiry != 0 && e.Expiry <= m.now }

// list is the entries under the key of an operation, none when there are none.
func (m *Map) list(op *abi.StateOp) *list {
	if l := m.groups[group{op.Table, string(op.Key)}]; l != nil {
		return l
	}
	return &list{}
}

// Get is the value of an entry.
func (m *Map) Get(op *abi.StateOp) ([]byte, bool, error) {
	l := m.list(op)
	at, found := l.seek(op.Sub)
	if !found {
		return nil, false, nil
	}
	return l.entry(at).Value, true, nil
}

// Scan calls visit for the entries that a scan names, until visit is false.
func (m *Map) Scan(op *abi.StateOp, visit func(sub, value []byte) bool) error {
	l := m.list(op)
	from, _ := l.seek(op.Sub)
	to := l.behind(op.Sub)
	if op.Value != nil {
		after, found := l.seek(op.Value)
		switch {
		case op.Descending && after.before(to):
			to = after
		case op.Descending:
		case found:
			after = l.next(after)
			fallthrough
		default:
			if from.before(after) {
				from = after
			}
		}
	}
	for from.before(to) {
		at := from
		if op.Descending {
			to = l.previous(to)
			at = to
		} else {
			from = l.next(from)
		}
		if e := l.entry(at); !visit(e.Sub, e.Value) {
			break
		}
	}
	return nil
}

// Write carries out an operation of state_write. entries is how many a delete-prefix removed.
func (m *Map) Write(op *abi.StateOp) (entries int, err error) {
	switch op.Op {
	case abi.OpPut:
		m.put(op)
	case abi.OpDelete:
		m.delete(op)
	case abi.OpDeletePrefix:
		return m.deletePrefix(op), nil
	case abi.OpTimerSet:
		if m.timers == nil {
			m.timers = map[timerKey]int64{}
		}
		k := timerOf(op)
		if _, set := m.timers[k]; !set { // one that is set already stays as old as it is
			m.timers[k] = m.batch
		}
	case abi.OpTimerDelete:
		delete(m.timers, timerOf(op))
	}
	return 0, nil
}

func (m *Map) put(op *abi.StateOp) {
	e := Entry{Table: op.Table, Key: bytes.Clone(op.Key), Sub: bytes.Clone(op.Sub), Value: bytes.Clone(op.Value), Expiry: op.At}
	if m.expired(e) {
		m.delete(op)
		return
	}
	l := m.list(op)
	at, found := l.seek(op.Sub)
	if found {
		*l.entry(at) = e
		return
	}
	if l.insert(at, e); len(l.blocks) == 1 {
		if m.groups == nil {
			m.groups = map[group]*list{}
		}
		m.groups[group{op.Table, string(op.Key)}] = l
	}
}

func (m *Map) delete(op *abi.StateOp) {
	if l := m.list(op); len(l.blocks) > 0 {
		if at, found := l.seek(op.Sub); found {
			m.remove(op, l, at, l.next(at))
		}
	}
}

func (m *Map) deletePrefix(op *abi.StateOp) int {
	l := m.list(op)
	from, _ := l.seek(op.Sub)
	to := l.behind(op.Sub)
	if op.Value != nil {
		if before, _ := l.seek(op.Value); before.before(to) {
			to = before
		}
	}
	if !from.before(to) {
		return 0
	}
	return m.remove(op, l, from, to)
}

func (m *Map) remove(op *abi.StateOp, l *list, from, to place) int {
	n := l.remove(from, to)
	if len(l.blocks) == 0 {
		delete(m.groups, group{op.Table, string(op.Key)})
	}
	return n
}

func timerOf(op *abi.StateOp) timerKey {
	return timerKey{op.Domain, op.At, string(op.Key), string(op.Sub)}
}

// Due removes the timers that are due in this batch and returns them in the order in which they are handed over.
func (m *Map) Due() []Timer {
	var due []Timer
	for _, t := range m.Timers() {
		k := timerKey{t.Domain, t.At, string(t.Key), string(t.Sub)}
		at := m.now
		if t.Domain == abi.DomainEvent {
			at = m.mark
		}
		if m.timers[k] < m.batch && t.At <= at && at != 0 {
			due = append(due, t)
			delete(m.timers, k)
		}
	}
	return due
}

// Record is the timer as a guest gets it.
func (t *Timer) Record() abi.Record {
	kind := abi.KindEventTimer
	if t.Domain == abi.DomainProcessing {
		kind = abi.KindProcessingTimer
	}
	return abi.Record{EventTime: t.At, Flags: abi.FlagEventTime, Key: t.Key, Value: t.Sub, Kind: kind, Index: abi.NoIndex}
}

// Entries are all entries, in the order of table, key and sub.
func (m *Map) Entries() []Entry {
	var all []Entry
	for _, l := range m.groups {
		all = append(all, slices.Concat(l.blocks...)...)
	}
	slices.SortFunc(all, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), bytes.Compare(a.Key, b.Key), bytes.Compare(a.Sub, b.Sub))
	})
	return all
}

// Timers are all timers, in the order in which they fire: domain, time, key, sub.
func (m *Map) Timers() []Timer {
	var all []Timer
	for k := range m.timers {
		all = append(all, Timer{Domain: k.domain, At: k.at, Key: []byte(k.key), Sub: []byte(k.sub)})
	}
	slices.SortFunc(all, func(a, b Timer) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.At, b.At), bytes.Compare(a.Key, b.Key), bytes.Compare(a.Sub, b.Sub))
	})
	return all
}
