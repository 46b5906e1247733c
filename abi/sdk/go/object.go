package wasmill

import (
	"unsafe"

	"github.com/wasmill/wasmill/abi/sdk/go/internal/mem"
	"github.com/wasmill/wasmill/abi/sdk/go/internal/num"
)

// Object is a JSON object in the making: the value of the record that [Object.Emit] writes. Inside a list, opened by
// [Object.OpenList], the names that its methods take are not written. Names are not checked for duplicates. An object that
// is not emitted leaves no trace; the next one takes its place.
type Object struct {
	out            *Out
	start, at, end uint32 // of the draft, what is written, and the room
	value          uint32 // where the value begins
	comma          uint32 // 1 when a comma goes before the next member
	depth          uint32
	lists          uint64 // a bit for each open level: set when it is a list
	err            error
}

// reopen copies an object's text from at to end, without its last brace.
func (o *Object) reopen(r *Record, at, end uint32) *Object {
	o.lists, o.depth, o.value = 0, 0, o.at
	for at < end && mem.U8(at) <= ' ' {
		at++
	}
	for end > at && mem.U8(end-1) <= ' ' {
		end--
	}
	if end-at < 2 || mem.U8(at) != '{' || mem.U8(end-1) != '}' {
		o.err = DeadLetter(BadField, "the value is not a JSON object")
		return o
	}
	for end--; mem.U8(end-1) <= ' '; end-- {
	}
	n := end - at
	if o.end-o.at < n {
		o.out.grow(n)
	}
	o.comma = 1
	if mem.U8(end-1) == '{' {
		o.comma = 0
	}
	mem.Copy(o.at, at, n)
	o.at += n
	return o
}

// Value adds a member that is a value of the input, as it lies there: a string with its escapes. Absent is null.
func (o *Object) Value(name string, v Value) {
	n := v.span.Len()
	at := o.member(name, n)
	switch v.Kind() {
	case KindString, KindEscaped:
		mem.PutU8(at, '"')
		at = put(at+1, v.span.At(), n)
		mem.PutU8(at, '"')
		o.at = at + 1
	case KindAbsent:
		mem.PutU32(at, null)
		o.at = at + 4
	default:
		o.at = put(at, v.span.At(), n)
	}
}

const null = 'n' | 'u'<<8 | 'l'<<16 | 'l'<<24

// Int adds a member that is an integer or null.
func (o *Object) Int(name string, v Int) {
	at := o.member(name, 0)
	if !v.Valid {
		mem.PutU32(at, null)
		o.at = at + 4
		return
	}
	o.at = num.PutInt(at, v.N)
}

// Decimal adds a member that is v / 10^scale, with scale digits behind the point, or null. The scale is at most 18.
func (o *Object) Decimal(name string, v Int, scale uint32) {
	at := o.member(name, 0)
	if !v.Valid {
		mem.PutU32(at, null)
		o.at = at + 4
		return
	}
	o.at = num.PutDecimal(at, v.N, scale)
}

// Bool adds a member that is a boolean or null.
func (o *Object) Bool(name string, v Bool) {
	at := o.member(name, 0)
	switch {
	case !v.Valid:
		mem.PutU32(at, null)
	case v.B:
		mem.PutU32(at, 't'|'r'<<8|'u'<<16|'e'<<24)
	default:
		mem.PutU64(at, 'f'|'a'<<8|'l'<<16|'s'<<24|'e'<<32)
		at++
	}
	o.at = at + 4
}

// String adds a member that is a string, escaped where JSON needs it.
func (o *Object) String(name, s string) {
	o.at = o.member(name, 0)
	o.quote(s)
}

// Null adds a member that is null.
func (o *Object) Null(name string) { o.Int(name, Int{}) }

// Open adds a member that is an object; its members come next, up to [Object.Close].
func (o *Object) Open(name string) { o.nest(name, '{', 0) }

// OpenList adds a member that is a list; its elements come next, up to [Object.Close].
func (o *Object) OpenList(name string) { o.nest(name, '[', 1) }

func (o *Object) nest(name string, bracket byte, list uint64) {
	if o.depth == 63 {
		panic("wasmill: JSON output nested deeper than 63")
	}
	at := o.member(name, 0)
	mem.PutU8(at, bracket)
	o.at, o.comma = at+1, 0
	o.depth++
	o.lists = o.lists<<1 | list
}

// Close ends the object or list that was opened last.
func (o *Object) Close() {
	if o.depth == 0 {
		panic("wasmill: Close without Open")
	}
	if o.end-o.at < 1 {
		o.out.grow(1)
	}
	mem.PutU8(o.at, byte('}'-o.lists&1<<5)) // '}' is ']' with this bit
	o.at++
	o.depth--
	o.lists >>= 1
	o.comma = 1
}

// Emit ends the object and writes the record to this output. If reading a field of the input met an error, it returns that
// and writes nothing.
func (o *Object) Emit(to Port) error {
	if o.err != nil || o.out.rec.err != nil {
		return o.failure()
	}
	for o.depth > 0 {
		o.Close()
	}
	if o.end == o.at {
		o.out.grow(1)
	}
	mem.PutU8(o.at, '}')
	o.at++
	o.close(uint64(to) << 32)
	return nil
}

func (o *Object) failure() error {
	if o.err != nil {
		return o.err
	}
	return o.out.rec.err
}

// close writes the record with the value that was written.
func (o *Object) close(place uint64) {
	n := o.at - o.value
	if o.out.ownHeaders {
		o.writeHeaders()
	}
	o.write(uint64(o.value)|uint64(n)<<32, place)
}

// write writes the record with that value.
func (o *Object) write(value, place uint64) {
	out := o.out
	slot := out.records.Base + out.count*recordSize
	mem.PutU64(slot+recordValue, value)
	mem.PutU64(slot+recordPlace, place)
	out.count++
	out.used = o.at
	if out.large.Len > 0 {
		out.flush()
		out.large.Release()
	}
}

// writeHeaders lays the header entries behind the value, which may move it.
func (o *Object) writeHeaders() {
	slot := o.out.records.Base + o.out.count*recordSize
	n := uint32(mem.U16(slot + recordHeaders + 4))
	if room := n*headerSize + 4; o.end-o.at < room {
		o.out.grow(room)
		slot = o.out.records.Base
	}
	at := (o.at + 3) &^ 3
	mem.PutU32(slot+recordHeaders, at)
	for _, h := range o.out.headers[:n] {
		mem.PutU32(at, uint32(h.name))
		mem.PutU32(at+4, uint32(h.name>>32))
		mem.PutU32(at+8, uint32(h.value))
		mem.PutU32(at+12, uint32(h.value>>32))
		at += headerSize
	}
	o.at = at
}

const (
	ones = 0x0101010101010101
	high = 0x8080808080808080
)

// special has a bit in each byte that cannot stand in a JSON string as it is; a byte after such a one may have it too.
func special(w uint64) uint64 {
	q, s := w^'"'*ones, w^'\\'*ones
	return ((w-0x20*ones)&^w | (q-ones)&^q | (s-ones)&^s) & high
}

// nameBytes says which bytes of two words belong to a name of so many.
var nameBytes = func() (m [17][2]uint64) {
	for i := range m {
		for k := range i {
			m[i][k/8] |= 0xff << (k % 8 * 8)
		}
	}
	return m
}()

// member writes a comma, the name and a colon, makes room for a value of n bytes (a number at least), and returns where
// the value goes. The caller sets at.
func (o *Object) member(name string, n uint32) uint32 {
	k, data := uint32(len(name)), unsafe.StringData(name)
	if o.end-o.at < n+num.Room+40 {
		o.out.grow(n + num.Room + 40)
	}
	// Names of up to 16 bytes that do not end a page, so that reading 16 bytes is safe: two loads, two stores.
	if k-1 > 15 || o.lists&1 != 0 || uintptr(unsafe.Pointer(data))&4095 > 4080 {
		return o.memberLong(name, n)
	}
	w, v := mem.Load(name, 0), mem.Load(name, 8)
	if m := &nameBytes[k]; special(w)&m[0]|special(v)&m[1] != 0 {
		return o.memberLong(name, n)
	}
	at := o.at
	mem.PutU16(at, (','|'"'<<8)>>(8-8*o.comma))
	at += 1 + o.comma
	mem.PutU64(at, w)
	mem.PutU64(at+8, v)
	at += k
	mem.PutU16(at, '"'|':'<<8)
	o.comma = 1
	return at + 2
}

func (o *Object) memberLong(name string, n uint32) uint32 {
	if o.comma != 0 {
		o.add([]byte{','})
	}
	o.comma = 1
	if o.lists&1 == 0 {
		o.quote(name)
		o.add([]byte{':'})
	}
	if room := n + num.Room; o.end-o.at < room {
		o.out.grow(room)
	}
	return o.at
}

// quote appends a string with quotes and escapes.
func (o *Object) quote(s string) {
	const hex = "0123456789abcdef"
	o.add([]byte{'"'})
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		o.add(bytesOf(s[from:i]))
		from = i + 1
		switch c {
		case '"', '\\':
			o.add([]byte{'\\', c})
		case '\n':
			o.add([]byte{'\\', 'n'})
		case '\r':
			o.add([]byte{'\\', 'r'})
		case '\t':
			o.add([]byte{'\\', 't'})
		default:
			o.add([]byte{'\\', 'u', '0', '0', hex[c>>4], hex[c&15]})
		}
	}
	o.add(bytesOf(s[from:]))
	o.add([]byte{'"'})
}

// add appends bytes as they are.
func (o *Object) add(b []byte) {
	n := uint32(len(b))
	if o.end-o.at < n {
		o.out.grow(n)
	}
	copy(mem.Bytes(o.at, n), b)
	o.at += n
}

// put copies n bytes, which have some behind them that may be read and written over, and returns where they end.
func put(at, from, n uint32) uint32 {
	if n > 16 {
		return putLong(at, from, n)
	}
	v, w := mem.U64(from), mem.U64(from+8)
	mem.PutU64(at, v)
	mem.PutU64(at+8, w)
	return at + n
}

func putLong(at, from, n uint32) uint32 {
	if n > 32 {
		mem.Copy(at, from, n)
		return at + n
	}
	a, b := mem.U64(from), mem.U64(from+8)
	c, d := mem.U64(from+n-16), mem.U64(from+n-8)
	mem.PutU64(at, a)
	mem.PutU64(at+8, b)
	mem.PutU64(at+n-16, c)
	mem.PutU64(at+n-8, d)
	return at + n
}
