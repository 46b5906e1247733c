package guests

import (
	"fmt"
	"strconv"
)

// Values returns n orders of 223 bytes on average, always the same ones; every tenth is cancelled. They are written as all JSON
// libraries write them: without blanks, with the shortest numbers and escapes.
func Values(n int) [][]byte {
	notes := []string{"leave it at the door", `ring \"twice\"`, "Grüße an alle im Büro", `2 \\ 3 {a} [b]`, "", "no rush, any day will do"}
	values := make([][]byte, n)
	x := uint64(88172645463325252)
	for i := range values {
		x = x*6364136223846793005 + 1442695040888963407
		r := x >> 20
		status := []string{"paid", "shipped", "open"}[r%3]
		if i%10 == 3 {
			status = "cancelled"
		}
		values[i] = fmt.Appendf(nil, `{"order_id":%d,"customer":"c-%06d","status":"%s","amount_usd":%s,"items":[{"sku":"S-%05d","qty":%d,"price":%s},{"sku":"S-%05d","qty":1,"price":%s}],"note":"%s","time":"2026-03-%02dT%02d:%02dZ"}`,
			1_000_000+i, r%50021, status, money(r%1_000_000), r%90001, r%7+1, money(r%70_000), r%80021, money(r%9_000), notes[r%6], r%28+1, r%24, r%60)
	}
	return values
}

// money is an amount as the shortest number. It is never a whole one, for which libraries disagree about what is shortest.
func money(cents uint64) string {
	if cents%100 == 0 {
		cents++
	}
	return strconv.FormatFloat(float64(cents)/100, 'f', -1, 64)
}

// Scan does to an order what the guests of Orders do to it: it looks at each byte once, answers false for one that is
// cancelled, and else appends it to out with its amount in euros behind.
func Scan(out, v []byte) ([]byte, bool) {
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
				cents = centsOf(v[from:i])
			}
		default:
			i++
		}
	}
	out = append(append(out, v[:last]...), `,"amount_eur":`...)
	return append(appendEUR(out, cents), '}'), true
}

// centsOf reads a number with at most two decimals.
func centsOf(text []byte) uint64 {
	v, left, point := uint64(0), 2, false
	for _, c := range text {
		if c == '.' {
			point = true
			continue
		}
		if point && left == 0 {
			break
		}
		if point {
			left--
		}
		v = v*10 + uint64(c-'0')
	}
	for ; left > 0; left-- {
		v *= 10
	}
	return v
}

// appendEUR appends what so many cents of a dollar are in euros.
func appendEUR(out []byte, cents uint64) []byte {
	eur := (cents*92 + 50) / 100
	out = strconv.AppendUint(out, eur/100, 10)
	return append(out, '.', byte('0'+eur/10%10), byte('0'+eur%10))
}

// Iterate does what the guests of Floats do with the record of that index, but for writing the bits in hex: 1,000 steps
// of eight operations, none of them fused with another.
func Iterate(index uint32) float64 {
	x := float64(index%1000+1) / 1001
	for range 1000 {
		a := float64(3.99*x) * float64(1-x)
		b := float64(3.98*a) * float64(1-a)
		x = float64(b*0.96) + 0.01
	}
	return x
}
