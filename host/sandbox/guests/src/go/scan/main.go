// Command scan reads orders one byte at a time, through slices.
package main

import "github.com/wasmill/wasmill/host/sandbox/guests/src/go/orders"

func init() { orders.Each = order }

func main() {}

func order(out, v []byte, _ uint32) ([]byte, bool) {
	var key []byte
	depth, last, cents := 0, 0, uint64(0)
	for i := 0; i < len(v); {
		switch c := v[i]; {
		case c == '"':
			from := i + 1
			for i = from; i < len(v) && v[i] != '"'; i++ {
				if v[i] == '\\' {
					i++
				}
			}
			text := v[from:min(i, len(v))]
			i++
			if depth != 1 {
				continue
			}
			if i < len(v) && v[i] == ':' {
				key = text
			} else if string(key) == "status" && string(text) == "cancelled" {
				return out, false
			}
		case c == '{' || c == '[':
			depth++
			i++
		case c == '}' || c == ']':
			depth--
			last = i
			i++
		case depth == 1 && c-'0' < 10:
			from := i
			for i < len(v) && (v[i] == '.' || v[i]-'0' < 10) {
				i++
			}
			if string(key) == "amount_usd" {
				cents = orders.Cents(v[from:i])
			}
		default:
			i++
		}
	}
	return orders.AppendEUR(append(out, v[:last]...), cents), true
}
