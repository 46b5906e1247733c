package job

import (
	"fmt"
)

// ParseLimits reads the limits of a transform, in the words of a job file: {memory: 128MiB, fuel: {call: 100000000}}. What
// is not given has its default, which for a transform that comes with the program (stock) is another one. name is where the text stands, for messages. The error is an *Errors.
func ParseLimits(name string, text []byte, stock bool) (Limits, error) {
	c := &checker{places: map[string]Pos{}}
	root := load(text, &c.mistakes)
	if root == nil {
		return Limits{}, c.limitErrors(name)
	}
	f := describeLimits()
	c.places[f.Name] = at(root)
	v := c.check(root, &f, f.Name)
	c.limits(v)
	if err := c.limitErrors(name); err != nil {
		return Limits{}, err
	}
	return buildLimits(v, stock), nil
}

func (c *checker) limitErrors(name string) error {
	err := c.errors(name)
	if err == nil {
		return nil
	}
	err.WayOut = "write them as in a job file, such as '" + describeLimits().Example + "'"
	return err
}

// limits checks what no field of the limits can say alone.
func (c *checker) limits(v *value) {
	if m := v.at("memory"); m.good() && m.num%(64*kib) != 0 {
		c.wrongAt(m.path, CodeRange, fmt.Sprintf("%s is no multiple of 64KiB, the size of a WebAssembly page", cut(m.text)), "")
	}
}

// StockFuel is what a call of a transform that comes with the program may use where the job file does not say: it is no
// stranger's code that might never end, and how much a window takes to close grows with what is in it.
const StockFuel = 1_000_000_000_000

func buildLimits(v *value, stock bool) Limits {
	l := Limits{
		Memory:     v.at("memory").num,
		FuelCall:   uint64(v.at("fuel").at("call").num),
		FuelRecord: uint64(v.at("fuel").at("record").num),
		Depth:      int(v.at("depth").num),
		Output:     v.at("output").num,
		Log:        v.at("log").num,
	}
	if stock && !v.at("fuel").at("call").set {
		l.FuelCall = StockFuel
	}
	return l
}
