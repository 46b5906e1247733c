package generator

import (
	"strconv"
	"time"

	"github.com/wasmill/wasmill/abi"
)

// orders is the stream of orders, keyed by customer.
type orders struct {
	seed      uint64
	customers int64
}

func (orders) name() string               { return "orders" }
func (orders) size() int64                { return maxOrder }
func (orders) has(int64) bool             { return true }
func (orders) count(from, to int64) int64 { return to - from }

func (s orders) events() maker {
	var o order
	value := make([]byte, 0, maxOrder)
	return func(n int64, r *abi.Record) {
		o.make(s.seed, n, s.customers)
		value = o.appendJSON(value[:0])
		*r = abi.Record{Key: o.key(), Value: value, EventTime: o.createdMS * 1000, Flags: abi.FlagEventTime}
	}
}

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
