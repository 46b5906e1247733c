// Command swar reads orders eight bytes at a time, through unsafe pointers.
package main

import (
	"math/bits"
	"unsafe"

	"github.com/wasmill/wasmill/host/sandbox/guests/src/go/orders"
)

func init() { orders.Each = order }

func main() {}

const (
	ones = 0x0101010101010101
	high = 0x8080808080808080
)

// zeros has the upper bit of the lowest byte that is zero, and perhaps of bytes above it.
func zeros(x uint64) uint64 { return (x - ones) &^ x & high }

func load(p unsafe.Pointer, i uintptr) uint64 { return *(*uint64)(unsafe.Add(p, i)) }

func at(p unsafe.Pointer, i uintptr) byte { return *(*byte)(unsafe.Add(p, i)) }

// endOfString is the place of the quote that ends the string that begins at i.
func endOfString(p unsafe.Pointer, n, i uintptr) uintptr {
	for i < n {
		w := load(p, i)
		hits := zeros(w^'"'*ones) | zeros(w^'\\'*ones)
		if hits == 0 {
			i += 8
			continue
		}
		i += uintptr(bits.TrailingZeros64(hits) / 8)
		if at(p, i) == '"' {
			return i
		}
		i += 2
	}
	return i
}

// structural is the place of the next quote, brace or bracket from i on.
func structural(p unsafe.Pointer, n, i uintptr) uintptr {
	for ; i < n; i += 8 {
		w := load(p, i)
		folded := w | 0x20*ones
		if hits := zeros(w^'"'*ones) | zeros(folded^'{'*ones) | zeros(folded^'}'*ones); hits != 0 {
			return i + uintptr(bits.TrailingZeros64(hits)/8)
		}
	}
	return n
}

func order(out, v []byte, _ uint32) ([]byte, bool) {
	p, n := unsafe.Pointer(unsafe.SliceData(v)), uintptr(len(v))
	key, last, cents, depth := "", uintptr(0), uint64(0), 0
	for i := structural(p, n, 0); i < n; i = structural(p, n, i) {
		c := at(p, i)
		i++
		if c != '"' {
			if c|0x20 == '{' {
				depth++
			} else {
				depth--
				last = i - 1
			}
			continue
		}
		end := endOfString(p, n, i)
		text := unsafe.String((*byte)(unsafe.Add(p, i)), end-i)
		i = end + 1
		if depth != 1 {
			continue
		}
		if at(p, i) != ':' {
			if key == "status" && text == "cancelled" {
				return out, false
			}
			continue
		}
		key = text
		i++
		from := i
		for i < n && (at(p, i) == '.' || at(p, i)-'0' < 10) {
			i++
		}
		if i > from && key == "amount_usd" {
			cents = orders.Cents(v[from:i])
		}
	}
	return orders.AppendEUR(append(out, v[:last]...), cents), true
}
