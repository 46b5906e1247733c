package wasmill

import (
	"iter"
	"math/bits"
	"unsafe"

	"github.com/wasmill/wasmill/abi/sdk/go/internal/mem"
	"github.com/wasmill/wasmill/abi/sdk/go/internal/scan"
)

// Table is a declared table of state: its position among the manifest's tables. Its methods say how the transform uses it;
// each table is used in one way.
//
// State belongs to the key of the record or timer at hand, or to the one that [UseKey] names. What a record needs is read
// for a whole frame in one call of the host, before its first record: see [Transform.Prefetch]. Reads see the batch's own
// writes. When reading a field of the record has met an error, nothing is written any more for this record.
type Table uint16

// Table is the table of this name. It panics when there is none.
func (m Manifest) Table(name string) Table {
	at := m.find("tables", func(tables scan.Span) int { return position(tables, name, "name") })
	if at < 0 {
		panic("wasmill: the manifest does not declare the table " + name)
	}
	keepState()
	return Table(at)
}

// Cell says that the table holds one value a key.
func (t Table) Cell() Cell {
	keyed.singles = append(keyed.singles, t)
	return Cell{t}
}

// Counter says that the table holds one number a key: in the manifest its type is i64.
func (t Table) Counter() Counter {
	keyed.singles = append(keyed.singles, t)
	return Counter{t}
}

// Map says that the table holds values by sub-key.
func (t Table) Map() Map { return Map{t} }

// Counters says that the table holds numbers by sub-key: in the manifest its type is i64.
func (t Table) Counters() Counters { return Counters{t} }

// List says that the table holds a list a key.
func (t Table) List() List {
	keyed.singles = append(keyed.singles, t)
	return List{t}
}

// Cell is one value a key.
type Cell struct{ table Table }

// Get is the value, nil when there is none. It is valid during the call.
func (c Cell) Get() []byte { return keyed.get(c.table, nil) }

// JSON is the value as a JSON value, absent when there is none. It is valid during the call.
func (c Cell) JSON() Value { return keyed.json(c.table, nil) }

// Set stores a value, of at most 512 KiB.
func (c Cell) Set(value []byte) { keyed.put(c.table, nil, value, 0) }

// SetUntil stores a value that is gone when the batch time reaches us, in microseconds since 1970.
func (c Cell) SetUntil(value []byte, us int64) { keyed.put(c.table, nil, value, us) }

// Delete removes the value.
func (c Cell) Delete() { keyed.remove(c.table, nil) }

// Counter is one number a key, 0 when it was never added to.
type Counter struct{ table Table }

// Get is the number.
func (c Counter) Get() int64 { return keyed.add(c.table, nil, 0, false) }

// Add adds n and returns the sum. It wraps around.
func (c Counter) Add(n int64) int64 { return keyed.add(c.table, nil, n, true) }

// Delete removes the number, which is then 0.
func (c Counter) Delete() { keyed.remove(c.table, nil) }

// Map is values by sub-key. Key and sub-key together have at most 4 KiB.
type Map struct{ table Table }

// Get is the value of sub, nil when there is none. It is valid during the call.
func (m Map) Get(sub []byte) []byte { return keyed.get(m.table, sub) }

// JSON is the value of sub as a JSON value, absent when there is none. It is valid during the call.
func (m Map) JSON(sub []byte) Value { return keyed.json(m.table, sub) }

// Set stores the value of sub, of at most 512 KiB.
func (m Map) Set(sub, value []byte) { keyed.put(m.table, sub, value, 0) }

// SetUntil stores a value that is gone when the batch time reaches us, in microseconds since 1970.
func (m Map) SetUntil(sub, value []byte, us int64) { keyed.put(m.table, sub, value, us) }

// Delete removes the value of sub.
func (m Map) Delete(sub []byte) { keyed.remove(m.table, sub) }

// Clear removes all whose sub-key begins with prefix.
func (m Map) Clear(prefix []byte) { keyed.clear(m.table, prefix) }

// All are the sub-keys that begin with prefix, in the order of their bytes, and their values. Both are valid until the loop
// goes on. What the loop writes ahead of itself it may see or not. It asks the host a page at a time, so that a key may
// have more entries than fit into memory.
func (m Map) All(prefix []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(sub, value []byte) bool) { keyed.scan(m.table, prefix, nil, false, yield) }
}

// After is like All, for the sub-keys behind after.
func (m Map) After(prefix, after []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(sub, value []byte) bool) { keyed.scan(m.table, prefix, after, false, yield) }
}

// Backward is like All, from the last to the first.
func (m Map) Backward(prefix []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(sub, value []byte) bool) { keyed.scan(m.table, prefix, nil, true, yield) }
}

// Counters is numbers by sub-key, 0 where none was added to.
type Counters struct{ table Table }

// Get is the number of sub.
func (c Counters) Get(sub []byte) int64 { return keyed.add(c.table, sub, 0, false) }

// Add adds n to the number of sub and returns the sum. It wraps around.
func (c Counters) Add(sub []byte, n int64) int64 { return keyed.add(c.table, sub, n, true) }

// Delete removes the number of sub, which is then 0.
func (c Counters) Delete(sub []byte) { keyed.remove(c.table, sub) }

// Clear removes all whose sub-key begins with prefix.
func (c Counters) Clear(prefix []byte) { keyed.clear(c.table, prefix) }

// All are the sub-keys that begin with prefix and their numbers, as [Map.All] gives them.
func (c Counters) All(prefix []byte) iter.Seq2[[]byte, int64] {
	return func(yield func(sub []byte, n int64) bool) {
		keyed.scan(c.table, prefix, nil, false, func(sub, value []byte) bool {
			return yield(sub, number(mem.Addr(unsafe.Pointer(unsafe.SliceData(value))), uint64(len(value))))
		})
	}
}

// List is values in the order in which they were appended. Its length lies at the empty sub-key, in decimal, and element i
// at i as eight bytes, the highest first.
type List struct{ table Table }

// Len is how many values there are.
func (l List) Len() int {
	n := 0
	for _, c := range keyed.get(l.table, nil) {
		n = n*10 + int(c-'0')
	}
	return n
}

// Append adds a value at the end.
func (l List) Append(value []byte) {
	n := l.Len()
	keyed.put(l.table, Ordered(int64(n)^-1<<63), value, 0)
	var buf [20]byte
	at := len(buf)
	for n++; n > 0; n /= 10 {
		at--
		buf[at] = byte('0' + n%10)
	}
	keyed.put(l.table, nil, buf[at:], 0)
}

// All are the values from the first to the last, as [Map.All] gives them.
func (l List) All() iter.Seq[[]byte] {
	return func(yield func(value []byte) bool) {
		keyed.scan(l.table, nil, []byte{}, false, func(_, value []byte) bool { return yield(value) })
	}
}

// Clear removes all values.
func (l List) Clear() { keyed.clear(l.table, nil) }

// Want takes what records will need, while the frame is read.
type Want struct{ _ byte }

// Cell asks for the value of the record's key.
func (w *Want) Cell(c Cell) { keyed.want(c.table, nil) }

// Counter asks for the number of the record's key.
func (w *Want) Counter(c Counter) { keyed.want(c.table, nil) }

// Map asks for the value of a sub-key.
func (w *Want) Map(m Map, sub []byte) { keyed.want(m.table, sub) }

// Counters asks for the number of a sub-key.
func (w *Want) Counters(c Counters, sub []byte) { keyed.want(c.table, sub) }

// List asks for what Len and Append need.
func (w *Want) List(l List) { keyed.want(l.table, nil) }

// Domain says which clock a timer goes by.
type Domain uint8

// The domains of timers.
const (
	EventTime      Domain = iota // the watermark
	ProcessingTime               // the batch time
)

// SetTimer sets a timer for the key of the record at hand, at a time in microseconds since 1970, of which whole
// milliseconds count. It fires once, in a later batch whose watermark or time has reached it, and then [Transform.Timer]
// gets the key, the time and sub. Setting it again changes nothing.
func (r *Record) SetTimer(d Domain, us int64, sub []byte) { keyed.timer(d, us, sub, true) }

// DeleteTimer takes a timer of the key of the record at hand back, by all that it was set with.
func (r *Record) DeleteTimer(d Domain, us int64, sub []byte) { keyed.timer(d, us, sub, false) }

// UseKey makes key the one that state belongs to until the next record: for [Transform.Finish]. It must be a key of a record
// of this lane.
func UseKey(key []byte) { keyed.use(key) }

// Ordered is n as eight bytes that are in the order of the numbers, for sub-keys.
func Ordered(n int64) []byte {
	var b [8]byte
	*(*uint64)(unsafe.Pointer(&b)) = bits.ReverseBytes64(uint64(n) ^ 1<<63)
	return b[:]
}

// OrderedInt is the number that [Ordered] made the first eight bytes of b from. It panics when there are fewer.
func OrderedInt(b []byte) int64 {
	return int64(bits.ReverseBytes64(*(*uint64)(unsafe.Pointer((*[8]byte)(b)))) ^ 1<<63)
}

// Floor is us rounded down to a multiple of size, also before 1970: where the window of that size begins.
func Floor(us, size int64) int64 {
	over := us % size
	if over < 0 {
		over += size
	}
	return us - over
}
