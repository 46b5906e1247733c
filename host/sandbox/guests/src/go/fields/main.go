// Command fields adds to orders what is reckoned from the fields that the host located, by the SDK.
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
	amount   = manifest.Field("/amount_usd")
	output   = manifest.Port("orders")
)

func init() { wasmill.Register(wasmill.Transform{Record: order}) }

func main() {}

func order(r *wasmill.Record, out *wasmill.Out) error {
	if r.Field(status).Is("cancelled") {
		return nil
	}
	cents := r.Scaled(amount, 2)
	o := out.Extend(r)
	o.Decimal("amount_eur", wasmill.IntOf((cents.N*92+50)/100), 2)
	return o.Emit(output)
}
