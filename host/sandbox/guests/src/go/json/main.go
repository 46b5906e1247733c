// Command json reads orders with encoding/json into structs, and writes them again with the new member behind.
package main

import (
	"bytes"
	"encoding/json"
	"math"

	"github.com/wasmill/wasmill/host/sandbox/guests/src/go/orders"
)

// Order is an order with what is added to it.
type Order struct {
	OrderID   int64       `json:"order_id"`
	Customer  string      `json:"customer"`
	Status    string      `json:"status"`
	AmountUSD float64     `json:"amount_usd"`
	Items     []Item      `json:"items"`
	Note      string      `json:"note"`
	Time      string      `json:"time"`
	AmountEUR json.Number `json:"amount_eur"`
}

// Item is a line of an order.
type Item struct {
	SKU   string  `json:"sku"`
	Qty   int     `json:"qty"`
	Price float64 `json:"price"`
}

var (
	text    bytes.Buffer
	encoder = json.NewEncoder(&text)
)

func init() {
	encoder.SetEscapeHTML(false)
	orders.Each = order
}

func main() {}

func order(out, v []byte, _ uint32) ([]byte, bool) {
	var o Order
	if json.Unmarshal(v, &o) != nil || o.Status == "cancelled" {
		return out, false
	}
	o.AmountEUR = json.Number(orders.AppendMoney(nil, uint64(math.Round(o.AmountUSD*100))))
	text.Reset()
	if encoder.Encode(&o) != nil {
		return out, false
	}
	return append(out, text.Bytes()[:text.Len()-1]...), true
}
