// Command f1 drops views and adds the amount in cents: the work of the benchmark F1.
package main

import (
	_ "embed"

	wasmill "github.com/wasmill/wasmill/abi/sdk/go"
)

//go:embed manifest.json
var text string

var (
	manifest = wasmill.Manifest(text)
	event    = manifest.Field("/event")
	amount   = manifest.Field("/amount")
	output   = manifest.Port("out")
	notJSON  = wasmill.DeadLetter(1, "the value is not JSON")
)

func init() { wasmill.Register(wasmill.Transform{Record: f1}) }

func main() {}

func f1(r *wasmill.Record, out *wasmill.Out) error {
	if !r.IsJSON() {
		return notJSON
	}
	if e := r.Text(event); e.IsNull() || e.Is("view") {
		return nil
	}
	o := out.Extend(r)
	o.Int("cents", r.Scaled(amount, 2))
	return o.Emit(output)
}
