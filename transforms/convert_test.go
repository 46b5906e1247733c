package transforms

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConvert(t *testing.T) {
	order := func(status, amount, currency string) string {
		return fmt.Sprintf(`{"order_id":7,"customer":"c-000001","amount":%s,"currency":%s,"status":%s,"note":"a, \"b\" }"}`, amount, currency, status)
	}
	converted := func(status, amount, currency, eur string) out {
		return out{Value: strings.TrimSuffix(order(status, amount, currency), "}") + `,"amount_eur":` + eur + "}"}
	}
	tests := []struct {
		name, status, amount, currency string
		eur                            string // what is added; "" when the order does not come out
		dead                           *out
	}{
		{"euros", `"new"`, "12.34", `"EUR"`, "12.34", nil},
		{"dollars, half up", `"paid"`, "0.25", `"USD"`, "0.23", nil},
		{"dollars, half up at a half", `"paid"`, "6.25", `"USD"`, "5.75", nil},
		{"dollars, just above a half", `"paid"`, "0.07", `"USD"`, "0.06", nil},
		{"pounds", `"new"`, "999.99", `"GBP"`, "1169.99", nil},
		{"pounds, at a half", `"new"`, "0.50", `"GBP"`, "0.59", nil},
		{"yen", `"new"`, "999.99", `"JPY"`, "6.10", nil},
		{"yen, less than half a cent", `"new"`, "0.81", `"JPY"`, "0.00", nil},
		{"yen, more than half a cent", `"new"`, "0.82", `"JPY"`, "0.01", nil},
		{"nothing", `"new"`, "0.00", `"GBP"`, "0.00", nil},
		{"a whole number", `"new"`, "7", `"EUR"`, "7.00", nil},
		{"an exponent", `"new"`, "1e3", `"USD"`, "920.00", nil},
		{"the last one that is short", `"new"`, "999.99", `"EUR"`, "999.99", nil},
		{"the first one that is long", `"new"`, "1000.00", `"GBP"`, "1170.00", nil},
		{"large", `"new"`, "9223372036854.77", `"EUR"`, "9223372036854.77", nil},
		{"a refund, away from zero", `"new"`, "-0.50", `"GBP"`, "-0.59", nil},
		{"parts of a cent", `"new"`, "1.005", `"EUR"`, "1.01", nil},
		{"a status nobody knows", `"shipped"`, "1.00", `"EUR"`, "1.00", nil},
		{"escapes", `"p\u0061id"`, "1.00", `"\u0045UR"`, "1.00", nil},

		{"cancelled", `"cancelled"`, "1.00", `"EUR"`, "", nil},
		{"cancelled, with escapes", `"c\u0061ncelled"`, "1.00", `"EUR"`, "", nil},
		{"cancelled, whatever it holds", `"cancelled"`, `"?"`, "7", "", nil},

		{"status null", "null", "1.00", `"EUR"`, "", letter(2, "status is missing")},
		{"status a number", "7", "1.00", `"EUR"`, "", letter(0, "/status is not a string: 7")},
		{"amount null", `"new"`, "null", `"EUR"`, "", letter(3, "amount is missing")},
		{"amount a string", `"new"`, `"1.00"`, `"EUR"`, "", letter(0, "/amount is not a number in range: 1.00")},
		{"amount too large", `"new"`, "1e40", `"EUR"`, "", letter(0, "/amount is not a number in range: 1e40")},
		{"currency null", `"new"`, "1.00", "null", "", letter(4, "currency is missing")},
		{"currency a number", `"new"`, "1.00", "7", "", letter(0, "/currency is not a string: 7")},
		{"no rate", `"new"`, "1.00", `"CHF"`, "", letter(4, "there is no rate for the currency CHF")},
		{"no rate for small letters", `"new"`, "1.00", `"eur"`, "", letter(4, "there is no rate for the currency eur")},
		{"no rate for much text", `"new"`, "1.00", `"` + strings.Repeat("x", 99) + `"`, "", letter(4, "there is no rate for the currency "+strings.Repeat("x", 64))},
		{"no room for cents times the rate", `"new"`, "92233720368547758.07", `"USD"`, "", letter(5, "amount_eur is out of range")},
	}
	var in []string
	var want []out
	for i, tt := range tests {
		in = append(in, order(tt.status, tt.amount, tt.currency))
		o := converted(tt.status, tt.amount, tt.currency, tt.eur)
		if tt.dead != nil {
			o = *tt.dead
		}
		if o.Index = uint32(i); tt.eur != "" || tt.dead != nil {
			want = append(want, o)
		}
	}
	for lang, module := range builds("convert") {
		t.Run(lang, func(t *testing.T) {
			if diff := cmp.Diff(want, start(t, "convert", module, "").run(t, in)); diff != "" {
				t.Errorf("outputs (-want +got):\n%s", diff)
			}
		})
	}
}

func letter(code int32, reason string) *out {
	o := dead(code, reason)
	return &o
}

// TestConvertShapes: what is no order at all, and what stands around one.
func TestConvertShapes(t *testing.T) {
	const order = `{"status":"new","amount":1.00,"currency":"USD"`
	tests := []struct {
		in   string
		want out
	}{
		{order + `}`, out{Value: order + `,"amount_eur":0.92}`}},
		{"\n " + order + " }\r\n", out{Value: order + `,"amount_eur":0.92}`}},
		{order + `,"status":"paid","amount":2}`, out{Value: order + `,"status":"paid","amount":2,"amount_eur":1.84}`}},
		{order, dead(1, "the value is not JSON")},
		{``, dead(1, "the value is not JSON")},
		{`{"status":"new","amount":01.00,"currency":"USD"}`, dead(1, "the value is not JSON")},
		{`{}`, dead(2, "status is missing")},
		{`["new"]`, dead(2, "status is missing")},
		{`{"status":"new"}`, dead(3, "amount is missing")},
		{`{"status":"new","amount":1}`, dead(4, "currency is missing")},
		{`{"order":{"status":"new","amount":1.00,"currency":"USD"}}`, dead(2, "status is missing")},
	}
	var in []string
	var want []out
	for i, tt := range tests {
		in = append(in, tt.in)
		tt.want.Index = uint32(i)
		want = append(want, tt.want)
	}
	for lang, module := range builds("convert") {
		t.Run(lang, func(t *testing.T) {
			if diff := cmp.Diff(want, start(t, "convert", module, "").run(t, in)); diff != "" {
				t.Errorf("outputs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestConvertEveryAmount compares with exact rational arithmetic: every small amount, and ever larger ones, in every
// currency.
func TestConvertEveryAmount(t *testing.T) {
	rates := map[string]*big.Rat{"EUR": big.NewRat(1, 1), "USD": big.NewRat(92, 100), "GBP": big.NewRat(117, 100), "JPY": big.NewRat(61, 10000)}
	half := big.NewRat(1, 2)
	var in, want []string
	for currency, rate := range rates {
		for cents := int64(0); cents < 1<<56; cents += 1 + cents/1000*7 {
			line := fmt.Sprintf(`{"amount":%d.%02d,"currency":"%s","status":"paid"`, cents/100, cents%100, currency)
			in = append(in, line+"}")
			x := new(big.Rat).Mul(big.NewRat(cents, 1), rate)
			x.Add(x, half)
			eur := new(big.Int).Div(x.Num(), x.Denom())
			if p := new(big.Int).Mul(big.NewInt(cents), new(big.Rat).Mul(rate, big.NewRat(10000, 1)).Num()); !p.IsInt64() {
				want = append(want, "amount_eur is out of range")
				continue
			}
			c := eur.Int64()
			want = append(want, fmt.Sprintf(`%s,"amount_eur":%d.%02d}`, line, c/100, c%100))
		}
	}
	for lang, module := range builds("convert") {
		t.Run(lang, func(t *testing.T) {
			got := start(t, "convert", module, "").run(t, in)
			if len(got) != len(want) {
				t.Fatalf("%d outputs, want %d", len(got), len(want))
			}
			for i := range got {
				if got[i].Value != want[i] {
					t.Fatalf("%s: got %s, want %s", in[i], got[i].Value, want[i])
				}
			}
		})
	}
}

// orders are n orders like those of a shop, about 225 bytes each, the same on every machine.
func orders(n int) []string {
	currencies, states := []string{"EUR", "USD", "GBP", "JPY"}, []string{"new", "new", "paid", "paid", "new", "paid", "cancelled", "new", "paid", "new"}
	x, lines := uint64(88172645463325252), []string(nil)
	for i := range n {
		x = x*6364136223846793005 + 1442695040888963407
		r := x >> 16
		lines = append(lines, fmt.Sprintf(`{"order_id":%d,"customer":"c-%06d","amount":%d.%02d,"currency":"%s","status":"%s","created_at":"2026-01-02T00:00:%02d.%03dZ","note":"%s"}`,
			i, r%10000, r%1000, r%99, currencies[x>>40%4], states[r%10], i%60, r%1000, strings.Repeat("note it ", 12)[:60+r%36]))
	}
	return lines
}
