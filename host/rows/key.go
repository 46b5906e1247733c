package rows

import "encoding/binary"

// keyPattern recognises `,"name":` in the input by one or two comparisons of eight bytes. An encoder writes the keys of
// all objects in one order and one form, so the next column's key is nearly always the one that comes.
type keyPattern struct {
	size       int // 0: the name needs escapes and is always read in full
	head, tail uint64
	mask       uint64 // of head, for patterns of less than eight bytes
	middle     string // what head and tail leave out
}

// anyOpen leaves the first byte, which is `{` or `,`, out of the comparison.
const anyOpen = 0xff

func patternOf(name string) keyPattern {
	for i := 0; i < len(name); i++ {
		if name[i] < 0x20 || name[i] == '"' || name[i] == '\\' {
			return keyPattern{}
		}
	}
	text := []byte(`,"` + name + `":`)
	p := keyPattern{size: len(text)}
	if len(text) > 16 {
		p.middle = string(text[8 : len(text)-8])
	}
	var buf [8]byte
	copy(buf[:], text)
	p.mask = ^uint64(0)
	if len(text) < 8 {
		p.mask = 1<<(8*len(text)) - 1
	} else {
		p.tail = binary.LittleEndian.Uint64(text[len(text)-8:])
	}
	p.mask &^= anyOpen
	p.head = binary.LittleEndian.Uint64(buf[:]) & p.mask
	return p
}

// matches reports whether the pattern stands at b[i], with the given first byte.
func (p *keyPattern) matches(b []byte, i int, open byte) bool {
	if p.size == 0 || len(b)-i < max(p.size, 8) || b[i] != open || binary.LittleEndian.Uint64(b[i:])&p.mask != p.head {
		return false
	}
	if p.size <= 8 {
		return true
	}
	end := i + p.size - 8
	return binary.LittleEndian.Uint64(b[end:]) == p.tail && (p.middle == "" || string(b[i+8:end]) == p.middle)
}
