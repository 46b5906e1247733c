package generator

import (
	"strconv"
	"time"
)

// order is one generated event.
type order struct {
	id        int64
	customer  int64
	cents     int64
	currency  string
	status    string
	createdMS int64
	note      uint64 // seed of the note's text
	noteLen   int
	keyBuf    []byte
}

const (
	// baseMS is when order 0 was created: 2026-01-01T00:00:00Z. Orders are a millisecond apart.
	baseMS = 1767225600000
	// maxOrder is more bytes than an order's JSON has.
	maxOrder = 352
)

const letters = "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789"

// dice is SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014): a counter and a mixer,
// so that the throws for order n do not depend on those before.
type dice uint64

func (d *dice) throw() uint64 {
	*d += 0x9e3779b97f4a7c15
	return mix(uint64(*d))
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below throws for 0..n-1. The bias is below n / 2^64.
func (d *dice) below(n int64) int64 { return int64(d.throw() % uint64(n)) }

// make fills in order number n: half of the orders are new, four of ten paid, one of ten cancelled.
func (o *order) make(seed uint64, n, customers int64) {
	d := dice(mix(seed+0x5eed) ^ mix(uint64(n)))
	o.id = n
	o.customer = d.below(customers)
	o.cents = 1 + d.below(99_999)
	o.currency = [...]string{"EUR", "USD", "GBP", "JPY"}[d.below(4)]
	switch s := d.below(10); {
	case s < 5:
		o.status = "new"
	case s < 9:
		o.status = "paid"
	default:
		o.status = "cancelled"
	}
	o.createdMS = baseMS + n
	o.noteLen = 60 + int(d.below(51))
	o.note = d.throw()
}

// key returns the customer as the record's key, valid until the next call.
func (o *order) key() []byte {
	o.keyBuf = appendCustomer(o.keyBuf[:0], o.customer)
	return o.keyBuf
}

func appendCustomer(b []byte, c int64) []byte {
	b = append(b, "c-"...)
	for d := int64(100_000); d > c && d > 1; d /= 10 {
		b = append(b, '0')
	}
	return strconv.AppendInt(b, c, 10)
}

func (o *order) appendJSON(b []byte) []byte {
	b = append(b, `{"order_id":`...)
	b = strconv.AppendInt(b, o.id, 10)
	b = append(b, `,"customer":"`...)
	b = appendCustomer(b, o.customer)
	b = append(b, `","amount":`...)
	b = strconv.AppendInt(b, o.cents/100, 10)
	b = append(b, '.', '0'+byte(o.cents/10%10), '0'+byte(o.cents%10))
	b = append(b, `,"currency":"`...)
	b = append(b, o.currency...)
	b = append(b, `","status":"`...)
	b = append(b, o.status...)
	b = append(b, `","created_at":"`...)
	b = time.UnixMilli(o.createdMS).UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	b = append(b, `","note":"`...)
	d := dice(o.note)
	for n := 0; n < o.noteLen; {
		x := d.throw()
		for k := 0; k < 10 && n < o.noteLen; k++ {
			b = append(b, letters[x&63])
			x >>= 6
			n++
		}
	}
	return append(b, `"}`...)
}
