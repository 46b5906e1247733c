package guests

import (
	"bytes"
	"encoding/json"
	"math"
)

// order is an order with what is added to it.
type order struct {
	OrderID   int64       `json:"order_id"`
	Customer  string      `json:"customer"`
	Status    string      `json:"status"`
	AmountUSD float64     `json:"amount_usd"`
	Items     []item      `json:"items"`
	Note      string      `json:"note"`
	Time      string      `json:"time"`
	AmountEUR json.Number `json:"amount_eur"`
}

// item is a line of an order.
type item struct {
	SKU   string  `json:"sku"`
	Qty   int     `json:"qty"`
	Price float64 `json:"price"`
}

// Codec does the work of Scan with encoding/json, as one that must not be used twice at a time.
type Codec struct {
	text    bytes.Buffer
	encoder *json.Encoder
}

// NewCodec returns a codec.
func NewCodec() *Codec {
	c := &Codec{}
	c.encoder = json.NewEncoder(&c.text)
	c.encoder.SetEscapeHTML(false)
	return c
}

// Transform is as Scan; an order that it cannot read is dropped.
func (c *Codec) Transform(out, v []byte) ([]byte, bool) {
	var o order
	if json.Unmarshal(v, &o) != nil || o.Status == "cancelled" {
		return out, false
	}
	o.AmountEUR = json.Number(appendEUR(nil, uint64(math.Round(o.AmountUSD*100))))
	c.text.Reset()
	if c.encoder.Encode(&o) != nil {
		return out, false
	}
	return append(out, c.text.Bytes()[:c.text.Len()-1]...), true
}
