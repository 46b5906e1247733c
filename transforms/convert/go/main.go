// Command convert drops cancelled orders and adds the amount in euros: what examples/orders does between two topics.
package main

import (
	_ "embed"

	wasmill "github.com/wasmill/wasmill/abi/sdk/go"
)

//go:embed manifest.json
var text string

var (
	manifest = wasmill.Manifest(text)
	status   = manifest.Field("/status")
	amount   = manifest.Field("/amount")
	currency = manifest.Field("/currency")
	output   = manifest.Port("out")

	notJSON    = wasmill.DeadLetter(1, "the value is not JSON")
	noStatus   = wasmill.DeadLetter(2, "status is missing")
	noAmount   = wasmill.DeadLetter(3, "amount is missing")
	noCurrency = wasmill.DeadLetter(4, "currency is missing")
	outOfRange = wasmill.DeadLetter(5, "amount_eur is out of range")
)

// one is the unit of rates: they are euros times this.
const one = 10_000

func init() { wasmill.Register(wasmill.Transform{Record: convert}) }

func main() {}

func convert(r *wasmill.Record, out *wasmill.Out) error {
	if !r.IsJSON() {
		return notJSON
	}
	s := r.Text(status)
	if s.Is("cancelled") {
		return nil
	}
	if s.IsNull() {
		return noStatus
	}
	cents := r.Scaled(amount, 2)
	c := r.Text(currency)
	rate := rateOf(c)
	if !cents.Valid || rate == 0 {
		return unclear(r, cents, c)
	}
	eur := wasmill.IntOf(int64((uint32(cents.N)*rate + one/2) / one))
	if uint64(cents.N) >= 100_000 { // beyond 32 bits in between
		if eur = inEuros(cents.N, int64(rate)); !eur.Valid {
			return outOfRange
		}
	}
	o := out.Extend(r)
	o.Decimal("amount_eur", eur, 2)
	return o.Emit(output)
}

// inEuros is cents times a rate, rounded half up (a half goes away from zero); null when it does not fit.
func inEuros(cents, rate int64) wasmill.Int {
	p, fits := wasmill.Mul(cents, rate)
	n, ok := wasmill.DivRound(p, one)
	return wasmill.Int{N: n, Valid: fits && ok}
}

// rateOf is the rate of a currency, 0 when there is none.
func rateOf(c wasmill.Value) uint32 {
	if raw := c.Raw(); c.Kind() == wasmill.KindString && len(raw) == 3 {
		return rates(uint32(raw[0])<<16 | uint32(raw[1])<<8 | uint32(raw[2]))
	}
	if text := c.String(); len(text) == 3 { // with escapes
		return rates(uint32(text[0])<<16 | uint32(text[1])<<8 | uint32(text[2]))
	}
	return 0
}

// rates goes by the three letters of a currency as one number, which costs a Go module less than comparing texts.
func rates(letters uint32) uint32 {
	switch letters {
	case 'E'<<16 | 'U'<<8 | 'R':
		return one
	case 'U'<<16 | 'S'<<8 | 'D':
		return 9_200
	case 'G'<<16 | 'B'<<8 | 'P':
		return 11_700
	case 'J'<<16 | 'P'<<8 | 'Y':
		return 61
	}
	return 0
}

// unclear says what keeps an order from being converted. Fields of a wrong type come first.
func unclear(r *wasmill.Record, cents wasmill.Int, c wasmill.Value) error {
	if err := r.Err(); err != nil {
		return err
	}
	if !cents.Valid {
		return noAmount
	}
	if c.IsNull() {
		return noCurrency
	}
	raw := c.Raw()
	return wasmill.DeadLetter(4, "there is no rate for the currency "+string(raw[:min(len(raw), 64)]))
}
