package wasmilltest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	wasmill "github.com/wasmill/wasmill/abi/sdk/go"
	"github.com/wasmill/wasmill/abi/sdk/go/internal/mem"
)

// Entry is an entry of state.
type Entry struct {
	Table      string
	Key, Sub   []byte
	Value      []byte
	ExpiryTime int64 // microseconds since 1970, 0 for none
}

// Timer is a timer that is set.
type Timer struct {
	Domain   wasmill.Domain
	Time     int64 // microseconds since 1970
	Key, Sub []byte

	fresh bool // set by this batch
}

// State is the state of a transform, kept from one batch to the next. It is held in order, in lists: it is meant for tests of a
// few thousand entries.
type State struct {
	Entries []Entry // in the order of table, key, sub-key
	Timers  []Timer // in the order of domain, time, key, sub-key
	Reads   int     // calls of state_read so far
	Writes  int     // calls of state_write so far

	tables []string
	now    int64
}

// Get is the value of an entry, nil when there is none.
func (s *State) Get(table string, key, sub string) []byte {
	if i, ok := s.find(&Entry{Table: table, Key: []byte(key), Sub: []byte(sub)}); ok {
		return s.Entries[i].Value
	}
	return nil
}

// Int is the number of a counter, 0 when there is none.
func (s *State) Int(table string, key, sub string) int64 {
	v := s.Get(table, key, sub)
	if len(v) != 8 {
		return 0
	}
	n := uint64(0)
	for i := range v {
		n |= uint64(v[i]) << (8 * i)
	}
	return int64(n)
}

func compareEntries(a, b *Entry) int {
	return cmp.Or(strings.Compare(a.Table, b.Table), bytes.Compare(a.Key, b.Key), bytes.Compare(a.Sub, b.Sub))
}

func (s *State) find(e *Entry) (int, bool) {
	return sort.Find(len(s.Entries), func(i int) int { return compareEntries(e, &s.Entries[i]) })
}

func compareTimers(a, b Timer) int {
	return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Time, b.Time), bytes.Compare(a.Key, b.Key), bytes.Compare(a.Sub, b.Sub))
}

// begin begins a batch of a module with this manifest.
func (s *State) begin(manifest string, now int64) error {
	var m struct {
		Tables []struct {
			Name string `json:"name"`
		} `json:"tables"`
	}
	if manifest != "" {
		if err := json.Unmarshal([]byte(manifest), &m); err != nil {
			return fmt.Errorf("manifest: %w", err)
		}
	}
	s.tables, s.now = nil, now
	for _, t := range m.Tables {
		s.tables = append(s.tables, t.Name)
	}
	for i := range s.Timers {
		s.Timers[i].fresh = false
	}
	s.Entries = slices.DeleteFunc(s.Entries, func(e Entry) bool { return e.ExpiryTime != 0 && e.ExpiryTime <= now })
	mem.Host.StateRead, mem.Host.StateWrite = s.read, s.write
	return nil
}

// due removes the timers that are due and returns them. A watermark of 0 is none yet.
func (s *State) due(b *wasmill.Batch) []Timer {
	var due []Timer
	s.Timers = slices.DeleteFunc(s.Timers, func(t Timer) bool {
		limit, none := b.Time, false
		if t.Domain == wasmill.EventTime {
			limit, none = b.Watermark, b.Watermark == 0
		}
		if t.fresh || none || t.Time > limit {
			return false
		}
		due = append(due, t)
		return true
	})
	return due
}

// operation is what a transform asks for.
type operation struct {
	kind, domain byte
	limit        int
	entry        Entry
	value        []byte
	at           int64
	down         bool
}

// operation reads operation i, as strictly as a host.
func (s *State) operation(ops, i uint64) operation {
	at := ops + 56*i
	head := mem.U64(at)
	o := operation{
		kind: byte(head), domain: byte(head >> 8), limit: int(head >> 32), value: take(at + 24),
		at: int64(mem.U64(at + 32)), down: mem.U32(at+52)&2 != 0,
		entry: Entry{Key: take(at + 8), Sub: take(at + 16)},
	}
	if o.kind < 6 {
		table := int(head >> 16 & 0xffff)
		if table >= len(s.tables) {
			panic(fmt.Sprintf("wasmilltest: table %d of %d", table, len(s.tables)))
		}
		o.entry.Table = s.tables[table]
	}
	if len(o.entry.Key)+len(o.entry.Sub) > 4096 || len(o.value) > 512<<10 || o.kind == 3 && o.value == nil {
		panic(fmt.Sprintf("wasmilltest: operation %d with key of %d, sub-key of %d, value of %d bytes", o.kind, len(o.entry.Key), len(o.entry.Sub), len(o.value)))
	}
	if o.at < 0 {
		o.at -= 999
	}
	o.at = o.at / 1000 * 1000
	return o
}

func (s *State) write(ops, count uint64) {
	s.Writes++
	for i := range count {
		o := s.operation(ops, i)
		switch o.kind {
		case 3, 4:
			s.put(&o)
		case 5:
			s.Entries = slices.DeleteFunc(s.Entries, func(e Entry) bool {
				return e.Table == o.entry.Table && bytes.Equal(e.Key, o.entry.Key) && bytes.HasPrefix(e.Sub, o.entry.Sub) &&
					(o.value == nil || bytes.Compare(e.Sub, o.value) < 0)
			})
		case 6, 7:
			s.setTimer(&o)
		default:
			panic(fmt.Sprintf("wasmilltest: operation %d in state_write", o.kind))
		}
	}
}

func (s *State) put(o *operation) {
	i, found := s.find(&o.entry)
	if found {
		s.Entries = slices.Delete(s.Entries, i, i+1)
	}
	if o.kind == 3 && (o.at == 0 || o.at > s.now) {
		o.entry.Value, o.entry.ExpiryTime = o.value, o.at
		s.Entries = slices.Insert(s.Entries, i, o.entry)
	}
}

func (s *State) setTimer(o *operation) {
	t := Timer{Domain: wasmill.Domain(o.domain), Time: o.at, Key: o.entry.Key, Sub: o.entry.Sub, fresh: true}
	i, found := slices.BinarySearchFunc(s.Timers, t, compareTimers)
	switch {
	case o.kind == 6 && !found:
		s.Timers = slices.Insert(s.Timers, i, t)
	case o.kind == 7 && found:
		s.Timers = slices.Delete(s.Timers, i, i+1)
	}
}

// read answers operations as ABI 1 says: in order, each at a multiple of 8, scans with what room is left.
func (s *State) read(ops, count, buf, size, need uint64) int32 {
	s.Reads++
	answers := make([][][2][]byte, count)
	total := uint64(0)
	for i := range count {
		o := s.operation(ops, i)
		if o.kind > 2 {
			panic(fmt.Sprintf("wasmilltest: operation %d in state_read", o.kind))
		}
		answers[i] = s.answer(&o)
		if len(answers[i]) > 0 {
			total += answerSize(o.kind, answers[i][:1])
		}
	}
	if total > size {
		mem.PutU32(need, total)
		return 2
	}
	at, left := buf, size-total
	for i := range count {
		o := s.operation(ops, i)
		found := answers[i]
		if o.kind == 2 && len(found) > 0 {
			first := answerSize(2, found[:1])
			n := len(found)
			for answerSize(2, found[:n]) > first+left {
				n--
			}
			left -= answerSize(2, found[:n]) - first
			if n < len(found) {
				mem.PutU32(ops+56*i+52, mem.U32(ops+56*i+52)|1)
			}
			found = found[:n]
		}
		at += place(ops+56*i, o.kind, found, at)
	}
	return 0
}

// answer is the value of a get, or the entries of a scan.
func (s *State) answer(o *operation) [][2][]byte {
	var found [][2][]byte
	if o.kind == 1 {
		if i, ok := s.find(&o.entry); ok {
			found = append(found, [2][]byte{nil, s.Entries[i].Value})
		}
		return found
	}
	for i := range s.Entries {
		e := &s.Entries[i]
		if o.down {
			e = &s.Entries[len(s.Entries)-1-i]
		}
		if e.Table != o.entry.Table || !bytes.Equal(e.Key, o.entry.Key) || !bytes.HasPrefix(e.Sub, o.entry.Sub) {
			continue
		}
		if o.value != nil && (bytes.Compare(e.Sub, o.value) <= 0) != o.down || o.value != nil && bytes.Equal(e.Sub, o.value) {
			continue
		}
		if o.limit > 0 && len(found) == o.limit {
			break
		}
		found = append(found, [2][]byte{e.Sub, e.Value})
	}
	return found
}

func answerSize(kind byte, found [][2][]byte) uint64 {
	n := 0
	for _, e := range found {
		n += len(e[0]) + len(e[1])
		if kind == 2 {
			n += 16
		}
	}
	return uint64(n+7) &^ 7
}

// place writes an answer at an address and is how much it takes.
func place(op uint64, kind byte, found [][2][]byte, at uint64) uint64 {
	size := answerSize(kind, found)
	if kind == 1 {
		if len(found) == 0 {
			mem.PutU64(op+40, 0xffffffff<<32)
			return 0
		}
		v := found[0][1]
		copy(mem.Bytes(at, uint64(len(v))), v)
		mem.PutU64(op+40, at|uint64(len(v))<<32)
		return size
	}
	data := at + 16*uint64(len(found))
	for i, e := range found {
		for j, b := range e {
			copy(mem.Bytes(data, uint64(len(b))), b)
			mem.PutU64(at+16*uint64(i)+8*uint64(j), data|uint64(len(b))<<32)
			data += uint64(len(b))
		}
	}
	mem.PutU64(op+40, at|(data-at)<<32)
	mem.PutU32(op+48, uint64(len(found)))
	return size
}
