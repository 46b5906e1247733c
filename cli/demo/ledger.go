package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/host/source/generator"
)

// rates are euros per unit, times rateOne: the numbers that the transform `convert` documents.
var rates = map[string]int64{"EUR": 10_000, "USD": 9_200, "GBP": 11_700, "JPY": 61}

const rateOne = 10_000

// ledger knows of every order that was generated what must be there, by number: made by the generator once more, in this
// process, and converted by hand.
type ledger struct {
	orders []entry
	kept   int64 // orders that are not cancelled
	cents  int64 // the sum of what they come to in euros
}

// entry is what must be there of an order.
type entry struct {
	hash     uint64 // of the value
	customer uint64 // the hash of the key
	cents    int64  // in euros, -1 for a cancelled order
}

// newLedger makes the ledger of the orders 0 to n-1.
func newLedger(ctx context.Context, seed uint64, n int64) (*ledger, error) {
	src, err := generator.New(generator.Config{Name: "generator", Seed: seed})
	if err != nil {
		return nil, err
	}
	l := &ledger{orders: make([]entry, 0, n)}
	all, err := json.Marshal(map[string]int64{"from": 0, "to": n})
	if err != nil {
		return nil, fmt.Errorf("name the orders: %w", err)
	}
	return l, src.Read(ctx, source.Split{Name: "orders", Detail: all}, l)
}

// Write enters the next order.
func (l *ledger) Write(r *abi.Record) error {
	var o struct{ Amount, Currency, Status text }
	if err := json.Unmarshal(r.Value, &o); err != nil {
		return fmt.Errorf("order %d: %w", r.Offset, err)
	}
	e := entry{hash: xxh3.Hash(r.Value), customer: xxh3.Hash(r.Key), cents: -1}
	if o.Status != "cancelled" {
		amount, ok := cents(string(o.Amount))
		if !ok {
			return fmt.Errorf("order %d: an amount of %s", r.Offset, o.Amount)
		}
		e.cents = (amount*rates[string(o.Currency)] + rateOne/2) / rateOne
		l.kept++
		l.cents += e.cents
	}
	l.orders = append(l.orders, e)
	return nil
}

// Reject fails: the generator rejects nothing.
func (l *ledger) Reject(_ *abi.Record, word, reason string) error {
	return errors.New("the generator rejects an order: " + word + " " + reason)
}

// text is a JSON string or number as it is written.
type text string

// UnmarshalJSON takes the text of a string or number.
func (t *text) UnmarshalJSON(b []byte) error {
	*t = text(bytes.Trim(b, `"`))
	return nil
}

// cents reads a decimal with at most two digits behind the point.
func cents(s string) (int64, bool) {
	whole, part := s, ""
	for i := range len(s) {
		if s[i] == '.' {
			whole, part = s[:i], s[i+1:]
			break
		}
	}
	if len(part) > 2 || len(part) == 0 && len(whole) < len(s) {
		return 0, false
	}
	for len(part) < 2 {
		part += "0"
	}
	w, err := strconv.ParseUint(whole, 10, 40)
	if err != nil {
		return 0, false
	}
	p, err := strconv.ParseUint(part, 10, 8)
	return int64(w)*100 + int64(p), err == nil
}

// euros writes cents as euros.
func euros(cents int64) string {
	return thousands(cents/100) + fmt.Sprintf(".%02d", cents%100)
}

// thousands writes a count with separators.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
