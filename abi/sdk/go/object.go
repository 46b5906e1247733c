package wasmill

import (
	"github.com/wasmill/wasmill/abi/sdk/go/internal/mem"
	"github.com/wasmill/wasmill/abi/sdk/go/internal/num"
	"github.com/wasmill/wasmill/abi/sdk/go/internal/scan"
)

// Object is a JSON object in the making: the value of the record that [Object.Emit] writes. Inside a list, opened by
// [Object.OpenList], the names that its methods take are not written. Names are not checked for duplicates. An object that
// is not emitted leaves no trace; the next one takes its place.
//
// Every member is written with a comma behind it, which the closing brace takes the place of.
type Object struct {
	start, at, end uint64 // of the draft, what is written, and the room
	value          uint64 // where the value begins
	list           uint64 // 1 inside a list
	depth          uint64
	lists          uint64 // a bit for each level around: set when it is a list
	odd            uint64 // not 0 when Emit has to look closer
	err            error
}

// Words that values are written with.
const (
	null       = 'n' | 'u'<<8 | 'l'<<16 | 'l'<<24 | ','<<32
	wordTrue   = 't' | 'r'<<8 | 'u'<<16 | 'e'<<24 | ','<<32
	wordFalse  = 'f' | 'a'<<8 | 'l'<<16 | 's'<<24 | 'e'<<32 | ','<<40
	quoteColon = '"' | ':'<<8
	quoteComma = '"' | ','<<8
)

// room is what a member takes besides its name and its value, with what is written over.
const room = num.Room + 48

// nameSlots is the size of the table of names that are known to need no escapes.
const nameSlots = 1024

func open() *Object {
	b := &module.out.object
	if b.end-b.at < room {
		module.out.grow(room)
	}
	b.value = b.at
	mem.PutU8(b.at, '{')
	b.at++
	return b
}

// knownName is 0 when the name is known to need no escapes and there is room for it and n bytes more.
func (o *Object) knownName(name string, n uint64) uint64 {
	key := mem.FastKey(name)
	return module.out.names[nameSlot(key)] ^ key | o.list | (o.end-o.at-n-room)>>63
}

func nameSlot(key uint64) uint64 { return key * 0x9e3779b97f4a7c15 >> 54 }

// putName writes a known name with its first quote and returns where it ends.
func putName(at uint64, name string) uint64 {
	mem.PutU8(at, '"')
	mem.PutU64(at+1, mem.Load(name, 0))
	mem.PutU64(at+9, mem.Load(name, 8))
	return at + 1 + uint64(len(name))
}

// Value adds a member that is a value of the input, as it lies there: a string with its escapes. Absent is null.
func (o *Object) Value(name string, v Value) {
	b, n, kind := &module.out.object, v.span.Len(), v.span.Kind()
	if b.knownName(name, n)|n>>5|(kind^scan.String)*(kind^scan.Escaped) == 0 {
		at, from := putName(b.at, name), v.span.At()
		mem.PutU32(at, quoteColon|'"'<<16)
		mem.PutU64(at+3, mem.U64(from))
		mem.PutU64(at+11, mem.U64(from+8))
		mem.PutU64(at+19, mem.U64(from+16))
		mem.PutU64(at+27, mem.U64(from+24))
		at += n
		mem.PutU16(at+3, quoteComma)
		b.at = at + 5
		return
	}
	b.valueSlowly(name, v)
}

func (o *Object) valueSlowly(name string, v Value) {
	n, at := v.span.Len(), o.member(name, v.span.Len())
	switch v.Kind() {
	case KindAbsent:
		mem.PutU64(at, null)
		o.at = at + 5
		return
	case KindString, KindEscaped:
		mem.PutU8(at, '"')
		mem.Copy(at+1, v.span.At(), n)
		mem.PutU8(at+n+1, '"')
		at += n + 2
	default:
		mem.Copy(at, v.span.At(), n)
		at += n
	}
	mem.PutU8(at, ',')
	o.at = at + 1
}

// Int adds a member that is an integer or null.
func (o *Object) Int(name string, v Int) {
	b := &module.out.object
	minus := uint64(v.N) >> 63
	n := uint64((v.N ^ -int64(minus)) + int64(minus))
	if v.Valid && b.knownName(name, 0)|n>>26 == 0 { // below 10^8
		at := putName(b.at, name)
		mem.PutU32(at, quoteColon|'-'<<16)
		at = num.Put(at+2+minus, num.EightOf(uint32(n)))
		mem.PutU8(at, ',')
		b.at = at + 1
		return
	}
	b.intSlowly(name, v)
}

func (o *Object) intSlowly(name string, v Int) {
	at := o.member(name, 0)
	if !v.Valid {
		mem.PutU64(at, null)
		o.at = at + 5
		return
	}
	at = num.PutInt(at, v.N)
	mem.PutU8(at, ',')
	o.at = at + 1
}

// Decimal adds a member that is v / 10^scale, with scale digits behind the point, or null. The scale is at most 18.
func (o *Object) Decimal(name string, v Int, scale uint) {
	b := &module.out.object
	if v.Valid && b.knownName(name, 0)|uint64(v.N)>>13|uint64(scale-1)>>1 == 0 {
		at := putName(b.at, name)
		mem.PutU16(at, quoteColon)
		at = num.PutSmallDecimal(at+2, uint64(v.N), uint64(scale))
		mem.PutU8(at, ',')
		b.at = at + 1
		return
	}
	b.decimalSlowly(name, v, uint64(scale))
}

func (o *Object) decimalSlowly(name string, v Int, scale uint64) {
	at := o.member(name, 0)
	if !v.Valid {
		mem.PutU64(at, null)
		o.at = at + 5
		return
	}
	at = num.PutDecimal(at, v.N, scale)
	mem.PutU8(at, ',')
	o.at = at + 1
}

// Bool adds a member that is a boolean or null.
func (o *Object) Bool(name string, v Bool) {
	b := &module.out.object
	at := b.member(name, 0)
	word, n := uint64(wordFalse), uint64(6)
	if v.B {
		word, n = wordTrue, 5
	}
	if !v.Valid {
		word, n = null, 5
	}
	mem.PutU64(at, word)
	b.at = at + n
}

// String adds a member that is a string, escaped where JSON needs it.
func (o *Object) String(name, s string) {
	b := &module.out.object
	b.at = b.member(name, 0)
	b.quote(s)
	b.byte(',')
}

// Null adds a member that is null.
func (o *Object) Null(name string) { o.Value(name, Value{}) }

// Open adds a member that is an object; its members come next, up to [Object.Close].
func (o *Object) Open(name string) { module.out.object.nest(name, '{', 0) }

// OpenList adds a member that is a list; its elements come next, up to [Object.Close].
func (o *Object) OpenList(name string) { module.out.object.nest(name, '[', 1) }

func (o *Object) nest(name string, bracket byte, list uint64) {
	if o.depth == 64 {
		panic("wasmill: JSON output nested deeper than 64")
	}
	o.at = o.member(name, 0)
	o.byte(bracket)
	o.odd = 1
	o.depth++
	o.lists = o.lists<<1 | o.list
	o.list = list
}

// Close ends the object or list that was opened last.
func (o *Object) Close() {
	b := &module.out.object
	if b.depth == 0 {
		panic("wasmill: Close without Open")
	}
	b.finish('}' - byte(b.list)<<5) // which makes it a ]
	b.byte(',')
	b.depth--
	b.list = b.lists & 1
	b.lists >>= 1
}

// finish puts a closing bracket in the place of the last comma, or behind an opening bracket.
func (o *Object) finish(bracket byte) {
	if mem.U8(o.at-1) == ',' {
		o.at--
	}
	o.byte(bracket)
}

// Emit ends the object and writes the record to this output. If reading a field of the input met an error, it returns that
// and writes nothing.
func (o *Object) Emit(to Port) error {
	b := &module.out.object
	if b.odd|module.rec.bad|(b.end-b.at-8)>>63 == 0 {
		at := b.at
		at -= ((mem.U8(at-1) ^ ',') - 1) >> 63 // the last comma
		mem.PutU8(at, '}')
		at++
		slot := place()
		mem.PutU64(slot+recordValue, b.value|(at-b.value)<<32)
		mem.PutU64(slot+recordPlace, uint64(to)<<32)
		module.out.count++
		module.out.used = at
		return nil
	}
	return b.emitSlowly(to)
}

func (o *Object) emitSlowly(to Port) error {
	if o.err != nil || module.rec.bad != 0 {
		return o.failure()
	}
	for o.depth > 0 {
		o.Close()
	}
	o.finish('}')
	o.close(uint64(to) << 32)
	return nil
}

func (o *Object) noObject() *Object {
	o.odd, o.err = 1, DeadLetter(BadField, "the value is not a JSON object")
	return o
}

func (o *Object) failure() error {
	if o.err != nil {
		return o.err
	}
	return module.rec.Err()
}

// close writes the record with the value that was written.
func (o *Object) close(place uint64) {
	n := o.at - o.value
	if module.out.ownHeaders {
		o.writeHeaders()
	}
	o.write(o.value|n<<32, place)
}

// write writes the record with that value.
func (o *Object) write(value, where uint64) {
	out := &module.out
	slot := place()
	mem.PutU64(slot+recordValue, value)
	mem.PutU64(slot+recordPlace, where)
	out.count++
	out.used = o.at
	if out.large.Len > 0 {
		out.flush()
		out.large.Release()
	}
}

// writeHeaders lays the header entries behind the value, which may move it.
func (o *Object) writeHeaders() {
	n := mem.U16(place() + recordHeaders + 4)
	if size := n*headerSize + 4; o.end-o.at < size {
		module.out.grow(size)
	}
	at := (o.at + 3) &^ 3
	mem.PutU32(place()+recordHeaders, at)
	for _, h := range module.out.headers[:n] {
		mem.PutU64(at, h.name)
		mem.PutU64(at+8, h.value)
		at += headerSize
	}
	o.at = at
}

// member writes the name, and makes room for a value of n bytes, or a number. It returns where the value goes; the caller
// sets at.
func (o *Object) member(name string, n uint64) uint64 {
	if o.knownName(name, n) == 0 {
		at := putName(o.at, name)
		mem.PutU16(at, quoteColon)
		return at + 2
	}
	return o.memberSlowly(name, n)
}

// memberSlowly does the same for any name, and notes that a constant one needs no escapes, for the next time.
func (o *Object) memberSlowly(name string, n uint64) uint64 {
	if o.list == 0 {
		from := o.at
		o.quote(name)
		o.byte(':')
		if key := mem.NameKey(name); key != 0 && o.at-from == uint64(len(name))+3 {
			module.out.names[nameSlot(key)] = key
		}
	}
	if o.end-o.at < n+room {
		module.out.grow(n + room)
	}
	return o.at
}

// quote appends a string with quotes and escapes.
func (o *Object) quote(s string) {
	const hex = "0123456789abcdef"
	o.byte('"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		o.add(bytesOf(s[from:i]))
		from = i + 1
		o.byte('\\')
		switch c {
		case '"', '\\':
			o.byte(c)
		case '\n':
			o.byte('n')
		case '\r':
			o.byte('r')
		case '\t':
			o.byte('t')
		default:
			o.add([]byte{'u', '0', '0', hex[c>>4], hex[c&15]})
		}
	}
	o.add(bytesOf(s[from:]))
	o.byte('"')
}

// add appends bytes as they are.
func (o *Object) add(b []byte) {
	n := uint64(len(b))
	if o.end-o.at < n {
		module.out.grow(n)
	}
	copy(mem.Bytes(o.at, n), b)
	o.at += n
}

func (o *Object) byte(c byte) {
	if o.end == o.at {
		module.out.grow(1)
	}
	mem.PutU8(o.at, uint64(c))
	o.at++
}
