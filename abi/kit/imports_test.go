package kit

import "encoding/binary"

type importName struct {
	module, name string
	kind         byte
}

// importNames reads the import section of a module that is known to be well-formed.
func importNames(b []byte) ([]importName, error) {
	u32 := func() uint64 {
		v, n := binary.Uvarint(b)
		b = b[n:]
		return v
	}
	text := func() string {
		n := u32()
		s := string(b[:n])
		b = b[n:]
		return s
	}
	limits := func() {
		if u32() != 0 {
			u32()
		}
		u32()
	}
	for b = b[8:]; len(b) > 0; {
		id := b[0]
		b = b[1:]
		if size := u32(); id != 2 {
			b = b[size:]
			continue
		}
		var all []importName
		for range u32() {
			n := importName{module: text(), name: text(), kind: b[0]}
			b = b[1:]
			switch n.kind {
			case 0:
				u32()
			case 1:
				b = b[1:]
				limits()
			case 2:
				limits()
			case 3:
				b = b[2:]
			default:
				return nil, refuse("malformed", "import of kind %d", n.kind)
			}
			all = append(all, n)
		}
		return all, nil
	}
	return nil, nil
}
