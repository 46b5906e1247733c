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
	count   uint32
	used    uint32 // the first free byte of data
	rec     *Record
	object  Object
	batch   Batch
	headers [maxHeaders]header
	// The key, or the headers, of the draft at hand lie in the arena.
	ownKey, ownHeaders bool
}

// header is an entry of a draft: two addresses with lengths.
type header struct {
	name, value uint64
}

func (o *Out) make(n uint32) bool {
	o.object.out = o
	ok := o.records.Hold(outRecords*recordSize) && o.data.Hold(n)
	o.used = o.data.Base
	return ok
}

// Batch is what is known of the batch.
func (o *Out) Batch() Batch { return o.batch }

// Pass passes the record on as it is: nothing is copied but its 56 bytes of addresses. If reading a field met an error, it
// returns that and writes nothing.
func (o *Out) Pass(r *Record, to Port) error {
	if r.err != nil {
		return r.err
	}
	slot := o.slot()
	copyRecord(slot, r.at)
	mem.PutU64(slot+recordValue, mem.U64(r.at+recordValue))
	mem.PutU64(slot+recordPlace, uint64(to)<<32)
	o.count++
	return nil
}

// From begins a record with the key, headers, event time and origin of r, and a new value.
func (o *Out) From(r *Record) Draft {
	copyRecord(o.slot(), r.at)
	return o.draft()
}

// New begins a record that stems from no input: without key, headers and event time.
func (o *Out) New() Draft {
	o.blank(0, 0, noIndex)
	return o.draft()
}

// Object begins a JSON object as the new value of r: short for From(r).Object().
func (o *Out) Object(r *Record) *Object {
	copyRecord(o.slot(), r.at)
	return o.draft().Object()
}

// Extend copies the record's JSON object and stays before its last brace, to add members: nothing is parsed. If the value is
// no object, [Object.Emit] returns the error.
func (o *Out) Extend(r *Record) *Object {
	copyRecord(o.slot(), r.at)
	o.draft()
	at, n := mem.U32(r.at+recordValue), mem.U32(r.at+recordValue+4)
	if int32(n) <= 0 || !r.IsJSON() {
		n = 0
	}
	return o.object.reopen(r, at, at+n)
}

// Reject refuses a record now, and once only: what a transform does by returning an error.
func (o *Out) Reject(r *Record, why error) {
	kind, code := uint64(kindDeadLetter), uint16(BadField)
	if e, ok := why.(*Reject); ok {
		code = e.Code
		if e.Poison {
			kind = kindFail
		}
	}
	text := why.Error()
	text = text[:min(len(text), maxText)]
	o.blank(kind, uint64(code), mem.U32(r.at+recordIndex))
	o.draft()
	o.object.add(bytesOf(text))
	o.object.close(uint64(code))
}

// refuse sets aside the record that the transform is done with, and forgets its error. A timer's comes back.
func (o *Out) refuse(r *Record, err error) error {
	if r.err != nil {
		err = r.err
	}
	r.err = nil
	if r.Index() < 0 {
		return err
	}
	o.Reject(r, err)
	return nil
}

// slot is the next free record of the output array; it counts only when count is raised.
func (o *Out) slot() uint32 {
	if o.count == outRecords {
		o.flush()
	}
	return o.records.Base + o.count*recordSize
}

// copyRecord fills a slot with all of an input but its value and place.
func copyRecord(slot, from uint32) {
	mem.PutU64(slot, mem.U64(from))
	mem.PutU64(slot+recordKey, mem.U64(from+recordKey))
	mem.PutU64(slot+recordHeaders, mem.U64(from+recordHeaders)&0x0100ffffffffffff)
	mem.PutU64(slot+recordIndex, mem.U64(from+recordIndex))
}

func (o *Out) blank(kind, place uint64, index uint32) {
	slot := o.slot()
	mem.PutU64(slot, 0)
	mem.PutU64(slot+recordKey, nullWord)
	mem.PutU64(slot+recordHeaders, kind<<48)
	mem.PutU64(slot+recordPlace, place)
	mem.PutU64(slot+recordIndex, uint64(index))
}

// draft goes on with the record in the slot at count.
func (o *Out) draft() Draft {
	o.ownKey, o.ownHeaders = false, false
	b := &o.object
	b.start, b.at, b.value, b.end = o.used, o.used, o.used, o.data.Base+o.data.Len
	b.err = nil
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
func (o *Out) grow(n uint32) {
	b := &o.object
	size, old := b.at-b.start, b.start
	need := uint64(size) + uint64(n)
	first, slot := o.records.Base, o.records.Base+o.count*recordSize
	var rec [recordSize / 8]uint64
	for i := range rec {
		rec[i] = mem.U64(slot + uint32(i)*8)
	}
	o.flush()
	for i := range rec {
		mem.PutU64(first+uint32(i)*8, rec[i])
	}
	previous, block := o.large, &o.data
	if need > uint64(o.data.Len) || o.large.Len > 0 {
		o.large = mem.Arena{}
		block = &o.large
		if size := max(2*need, 2*uint64(o.data.Len)); size > 1<<31 || !block.Hold(uint32(size)) {
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
func (o *Out) moveHeaders(old, size, by uint32) {
	for i := range o.headers[:mem.U16(o.records.Base+recordHeaders+4)] {
		h := &o.headers[i]
		if uint32(h.name)-old < size {
			h.name = uint64(uint32(h.name)+by) | h.name>>32<<32
			h.value = uint64(uint32(h.value)+by) | h.value>>32<<32
		}
	}
}

// Draft is a record in the making. Key and headers are set first, then the value. A draft that is not finished leaves no
// trace; the next one takes its place.
type Draft struct {
	o *Object
}

func (d Draft) slot() uint32 { return d.o.out.records.Base + d.o.out.count*recordSize }

// Key sets the key; nil is null.
func (d Draft) Key(key []byte) Draft {
	d.o.out.ownKey = key != nil
	if key == nil {
		mem.PutU64(d.slot()+recordKey, nullWord)
		return d
	}
	d.o.add(key)
	mem.PutU64(d.slot()+recordKey, uint64(d.o.at-uint32(len(key)))|uint64(len(key))<<32)
	return d
}

// EventTime sets the event time, in microseconds since 1970; the host keeps whole milliseconds.
func (d Draft) EventTime(us int64) Draft {
	mem.PutU64(d.slot(), uint64(us))
	mem.PutU8(d.slot()+recordHeaders+7, flagEventTime)
	return d
}

// NoHeaders drops the headers that came with the record.
func (d Draft) NoHeaders() Draft {
	d.o.out.ownHeaders = false
	mem.PutU32(d.slot()+recordHeaders, 0)
	mem.PutU16(d.slot()+recordHeaders+4, 0)
	return d
}

// Header adds a header after those that are there; a nil value is null. It panics when there are 64 already.
func (d Draft) Header(name string, value []byte) Draft {
	out, at := d.o.out, d.slot()+recordHeaders
	n := mem.U16(at + 4)
	if n == maxHeaders {
		panic("wasmill: a record has at most 64 headers")
	}
	if !out.ownHeaders {
		for i := range uint32(n) {
			from := mem.U32(at) + i*headerSize
			out.headers[i] = header{mem.U64(from), mem.U64(from + 8)}
		}
		out.ownHeaders = true
	}
	d.o.add(bytesOf(name))
	d.o.add(value)
	end, length := d.o.at, uint64(len(value))
	if value == nil {
		length = 0xffffffff
	}
	first := end - uint32(len(name)) - uint32(len(value))
	out.headers[n] = header{uint64(first) | uint64(len(name))<<32, uint64(end-uint32(len(value))) | length<<32}
	mem.PutU16(d.slot()+recordHeaders+4, n+1)
	return d
}

// Value writes the record with these bytes as its value; nil is null. If reading a field of the input met an error, it
// returns that and writes nothing.
func (d Draft) Value(value []byte, to Port) error {
	o := d.o
	if o.out.rec.err != nil {
		return o.out.rec.err
	}
	if value == nil {
		if o.out.ownHeaders {
			o.writeHeaders()
		}
		o.write(nullWord, uint64(to)<<32)
		return nil
	}
	o.value = o.at
	o.add(value)
	o.close(uint64(to) << 32)
	return nil
}

// Object begins a JSON object as its value.
func (d Draft) Object() *Object {
	o := d.o
	if o.end-o.at < 8 {
		o.out.grow(8)
	}
	mem.PutU8(o.at, '{')
	o.value, o.comma, o.lists, o.depth = o.at, 0, 0, 0
	o.at++
	return o
}
