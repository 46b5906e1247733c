// Command floats is a kernel of floats: two logistic maps in a row, eight operations a step; the bits of the result are the
// record.
package main

import (
	"math"

	"github.com/wasmill/wasmill/host/sandbox/guests/src/go/orders"
)

const steps = 1000

func init() { orders.Each = record }

func main() {}

func iterate(x float64) float64 {
	for range steps {
		a := 3.99 * x * (1 - x)
		b := 3.98 * a * (1 - a)
		x = float64(b*0.96) + 0.01
	}
	return x
}

func record(out, _ []byte, index uint32) ([]byte, bool) {
	bits := math.Float64bits(iterate(float64(index%1000+1) / 1001))
	for d := 60; d >= 0; d -= 4 {
		out = append(out, "0123456789abcdef"[bits>>d&15])
	}
	return out, true
}
