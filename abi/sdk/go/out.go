package wasmill

import (
	"github.com/wasmill/wasmill/abi/sdk/go/internal/mem"
)

// outRecords is how many records the output array holds.
const outRecords = 1024

// Out is where a transform's output goes: an array of records and an arena for their bytes, both of fixed size, handed to
// the host when full and used again. Records leave in the order in which they were written.
type Out struct {
	records mem.Arena
	data    mem.Arena
	large   mem.Arena // one output that is larger than the arena, until it is sent
	object  Object
	count   uint64
	used    uint64            // the first free byte of data
	names   [nameSlots]uint64 // of members: see knownName
	batch   Batch
	headers [maxHeaders]header
	// The key, or the headers, of the draft at hand lie in the arena.
	ownKey, ownHeaders bool
}

// header is an entry of a draft: two addresses with lengths.
type header struct {
	name, value uint64
}

func (o *Out) make(n uint64) bool {
	ok := o.records.Hold(outRecords*recordSize) && o.data.Hold(n)
	o.used = o.data.Base
	return ok
}

// Batch is what is known of the batch.
func (o *Out) Batch() Batch { return o.batch }

// Pass passes the record on as it is: nothing is copied but its 56 bytes of addresses. If reading a field met an error, it
// returns that and writes nothing.
func (o *Out) Pass(r *Record, to Port) error {
	if module.rec.bad != 0 {
		return r.Err()
	}
	copyRecord()
	slot := place()
	mem.PutU64(slot+recordValue, mem.U64(module.rec.at+recordValue))
	mem.PutU64(slot+recordPlace, uint64(to)<<32)
	module.out.count++
	return nil
}

// From begins a record with the key, headers, event time and origin of r, and a new value.
func (o *Out) From(r *Record) Draft {
	copyRecord()
	return begin()
}

// New begins a record that stems from no input: without key, headers and event time.
func (o *Out) New() Draft {
	o.blank(0, 0, noIndex)
	return begin()
}

// Object begins a JSON object as the new value of r: short for From(r).Object().
func (o *Out) Object(r *Record) *Object {
	copyRecord()
	begin()
	return open()
}

// Extend copies the record's JSON object and stays before its last brace, to add members: nothing is parsed. If the value is
// no object, [Object.Emit] returns the error.
func (o *Out) Extend(r *Record) *Object {
	copyRecord()
	begin()
	b, rec := &module.out.object, module.rec.at
	at, n := mem.U32(rec+recordValue), mem.U32(rec+recordValue+4)
	end := at + n
	for n > 2 && mem.U8(at) <= ' ' {
		at, n = at+1, n-1
	}
	for n > 2 && mem.U8(end-1) <= ' ' {
		end, n = end-1, n-1
	}
	if n-2 > 1<<30 || mem.U8(at) != '{' || mem.U8(end-1) != '}' || !r.IsJSON() {
		return b.noObject()
	}
	for end, n = end-1, n-1; mem.U8(end-1) <= ' '; end, n = end-1, n-1 {
	}
	if b.end-b.at < n+room {
		module.out.grow(n + room)
	}
	b.value = b.at
	mem.Copy(b.at, at, n)
	b.at += n
	if mem.U8(end-1) != '{' {
		mem.PutU8(b.at, ',')
		b.at++
	}
	return b
}

// Reject refuses a record now, and once only: what a transform does by returning an error.
func (o *Out) Reject(r *Record, why error) {
	kind, code := uint64(kindDeadLetter), uint64(BadField)
	if e, ok := why.(*Reject); ok {
		code = uint64(e.Code)
		if e.Poison {
			kind = kindFail
		}
	}
	text := why.Error()
	text = text[:min(len(text), maxText)]
	o.blank(kind, uint64(code), mem.U32(r.at+recordIndex))
	begin()
	o.object.add(bytesOf(text))
	o.object.close(uint64(code))
}

// slot is the next free record of the output array; it counts only when count is raised.
func (o *Out) slot() uint64 {
	if o.count == outRecords {
		o.flush()
	}
	return o.records.Base + o.count*recordSize
}

// copyRecord fills the next slot with all of the record at hand but its value and place.
func copyRecord() {
	if module.out.count == outRecords {
		module.out.flush()
	}
	slot, from := place(), module.rec.at
	mem.PutU64(slot, mem.U64(from))
	mem.PutU64(slot+recordKey, mem.U64(from+recordKey))
	mem.PutU64(slot+recordHeaders, mem.U64(from+recordHeaders)&0x0100ffffffffffff)
	mem.PutU64(slot+recordIndex, mem.U64(from+recordIndex))
}

func (o *Out) blank(kind, place, index uint64) {
	slot := o.slot()
	mem.PutU64(slot, 0)
	mem.PutU64(slot+recordKey, nullWord)
	mem.PutU64(slot+recordHeaders, kind<<48)
	mem.PutU64(slot+recordPlace, place)
	mem.PutU64(slot+recordIndex, index)
}

// begin goes on with the record in the slot at count.
func begin() Draft {
	o := &module.out
	o.ownKey, o.ownHeaders = false, false
	b := &o.object
	b.start, b.at, b.value, b.end = o.used, o.used, o.used, o.data.Base+o.data.Len
	b.err, b.list, b.odd, b.depth = nil, 0, 0, 0
	return Draft{b}
}

// flush hands everything to the host, which copies it at once.
func (o *Out) flush() {
	if o.count > 0 {
		mem.Emit(o.records.Base, o.count, recordSize)
	}
	o.count, o.used = 0, o.data.Base
}

// grow moves a draft to where n more bytes fit: to the start of the emptied arena, or to a block of its own.
func (o *Out) grow(n uint64) {
	b := &o.object
	size, old := b.at-b.start, b.start
	need := size + n
	first, slot := o.records.Base, o.records.Base+o.count*recordSize
	var rec [recordSize / 8]uint64
	for i := range rec {
		rec[i] = mem.U64(slot + uint64(i)*8)
	}
	o.flush()
	for i := range rec {
		mem.PutU64(first+uint64(i)*8, rec[i])
	}
	previous, block := o.large, &o.data
	if need > o.data.Len || o.large.Len > 0 {
		b.odd = 1
		o.large = mem.Arena{}
		block = &o.large
		if size := max(2*need, 2*o.data.Len); size > 1<<31 || !block.Hold(size) {
			panic("wasmill: not enough memory for a large output")
		}
	}
	mem.Copy(block.Base, old, size)
	previous.Release()
	b.start, b.at, b.end = block.Base, block.Base+size, block.Base+block.Len
	b.value += block.Base - old
	if o.ownKey {
		mem.PutU32(first+recordKey, mem.U32(first+recordKey)+block.Base-old)
	}
	if o.ownHeaders {
		o.moveHeaders(old, size, block.Base-old)
	}
}

// moveHeaders lets the headers that lay in size bytes at old point to where these were moved.
func (o *Out) moveHeaders(old, size, by uint64) {
	for i := range o.headers[:mem.U16(o.records.Base+recordHeaders+4)] {
		h := &o.headers[i]
		if h.name&0xffffffff-old < size {
			h.name, h.value = h.name+by, h.value+by
		}
	}
}

// Draft is a record in the making. Key and headers are set first, then the value. A draft that is not finished leaves no
// trace; the next one takes its place.
type Draft struct {
	o *Object
}

// place is where the draft's record lies in the output array.
func place() uint64 { return module.out.records.Base + module.out.count*recordSize }

// Key sets the key; nil is null.
func (d Draft) Key(key []byte) Draft {
	module.out.ownKey = key != nil
	word := uint64(nullWord)
	if key != nil {
		d.o.add(key)
		word = d.o.at - uint64(len(key)) | uint64(len(key))<<32
	}
	mem.PutU64(place()+recordKey, word)
	return d
}

// EventTime sets the event time, in microseconds since 1970; the host keeps whole milliseconds.
func (d Draft) EventTime(us int64) Draft {
	mem.PutU64(place(), uint64(us))
	mem.PutU8(place()+recordHeaders+7, flagEventTime)
	return d
}

// NoHeaders drops the headers that came with the record.
func (d Draft) NoHeaders() Draft {
	module.out.ownHeaders = false
	mem.PutU32(place()+recordHeaders, 0)
	mem.PutU16(place()+recordHeaders+4, 0)
	return d
}

// Header adds a header after those that are there; a nil value is null. It panics when there are 64 already.
func (d Draft) Header(name string, value []byte) Draft {
	out, at := &module.out, place()+recordHeaders
	n := mem.U16(at + 4)
	if n == maxHeaders {
		panic("wasmill: a record has at most 64 headers")
	}
	if !out.ownHeaders {
		for i := range n {
			from := mem.U32(at) + i*headerSize
			out.headers[i] = header{mem.U64(from), mem.U64(from + 8)}
		}
		out.ownHeaders, d.o.odd = true, 1
	}
	d.o.add(bytesOf(name))
	d.o.add(value)
	word := d.o.at - uint64(len(value)) | uint64(len(value))<<32
	if value == nil {
		word |= nullWord
	}
	out.headers[n] = header{d.o.at - uint64(len(value)) - uint64(len(name)) | uint64(len(name))<<32, word}
	mem.PutU16(place()+recordHeaders+4, n+1)
	return d
}

// Value writes the record with these bytes as its value; nil is null. If reading a field of the input met an error, it
// returns that and writes nothing.
func (d Draft) Value(value []byte, to Port) error {
	if module.rec.bad != 0 {
		return module.rec.Err()
	}
	if value == nil {
		if module.out.ownHeaders {
			d.o.writeHeaders()
		}
		d.o.write(nullWord, uint64(to)<<32)
		return nil
	}
	d.o.value = d.o.at
	d.o.add(value)
	d.o.close(uint64(to) << 32)
	return nil
}

// Object begins a JSON object as its value.
func (d Draft) Object() *Object { return open() }
