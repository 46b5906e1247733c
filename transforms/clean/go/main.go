// Command clean turns a raw flight into what is asked of it: on time or late, how much was gained in the air, how fast.
package main

import (
	_ "embed"

	wasmill "github.com/wasmill/wasmill/abi/sdk/go"
)

//go:embed manifest.json
var text string

var (
	manifest = wasmill.Manifest(text)

	depTime, depDelay, arrDelay = manifest.Field("/dep_time"), manifest.Field("/dep_delay"), manifest.Field("/arr_delay")
	distance, airTime           = manifest.Field("/distance"), manifest.Field("/air_time")
	carrier, flight, tailnum    = manifest.Field("/carrier"), manifest.Field("/flight"), manifest.Field("/tailnum")
	origin, dest, timeHour      = manifest.Field("/origin"), manifest.Field("/dest"), manifest.Field("/time_hour")

	flights, cancelled = manifest.Port("flights"), manifest.Port("cancelled")

	notJSON  = wasmill.DeadLetter(1, "the value is not JSON")
	noOrigin = wasmill.DeadLetter(2, "origin is missing")
	badGain  = wasmill.DeadLetter(3, "gain is out of range")
	badSpeed = wasmill.DeadLetter(4, "mph is out of range")
)

func init() { wasmill.Register(wasmill.Transform{Record: clean}) }

func main() {}

func clean(r *wasmill.Record, out *wasmill.Out) error {
	if !r.IsJSON() {
		return notJSON
	}
	if r.Field(origin).IsNull() {
		return noOrigin
	}
	if r.Field(depTime).IsNull() {
		return out.Pass(r, cancelled)
	}
	dep, arr := r.Int(depDelay), r.Int(arrDelay)
	gain, ok := difference(dep, arr)
	if !ok {
		return badGain
	}
	mph, ok := speed(r.Int(distance), r.Int(airTime))
	if !ok {
		return badSpeed
	}
	o := out.Object(r)
	o.Value("carrier", r.Text(carrier))
	o.Int("flight", r.Int(flight))
	o.Value("tailnum", r.Text(tailnum))
	o.Value("origin", r.Text(origin))
	o.Value("dest", r.Text(dest))
	o.Value("time_hour", r.Text(timeHour))
	o.Int("dep_delay", dep)
	o.Int("arr_delay", arr)
	o.Int("gain", gain)
	o.Decimal("mph", mph, 1)
	o.Bool("late", wasmill.Bool{B: arr.N >= 15, Valid: arr.Valid})
	return o.Emit(flights)
}

// difference is a - b; null when either is, false when it is too large.
func difference(a, b wasmill.Int) (wasmill.Int, bool) {
	if !a.Valid || !b.Valid {
		return wasmill.Int{}, true
	}
	n, ok := wasmill.Sub(a.N, b.N)
	return wasmill.IntOf(n), ok
}

// speed is miles an hour in tenths; null when it cannot be known, false when it is too large.
func speed(miles, minutes wasmill.Int) (wasmill.Int, bool) {
	if !miles.Valid || !minutes.Valid || minutes.N == 0 {
		return wasmill.Int{}, true
	}
	n, ok := wasmill.Mul(miles.N, 600)
	if !ok {
		return wasmill.Int{}, false
	}
	n, ok = wasmill.DivRound(n, minutes.N)
	return wasmill.IntOf(n), ok
}
