package determinism

import (
	"encoding/binary"
	"math"

	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// Value types besides those of wasmtest.
const (
	f32  = 0x7d
	v128 = 0x7b
)

// operands32 are floats of every kind: zeros, numbers, subnormal and largest ones, infinities, and NaNs, quiet and
// signalling, with payloads, of both signs.
var operands32 = []uint32{
	0x00000000, 0x80000000, // 0
	0x3f800000, 0xbf800000, // 1
	0x00000001, 0x807fffff, // subnormal
	0x00800000, 0x7f7fffff, 0xff7fffff, // least and largest
	0x40490fdb, 0xc2f6e979, 0x4b7fffff, // pi, -123.456, 2^24-1
	0x3f000000, 0xbfc00000, // 0.5, -1.5: to be rounded
	0x7f800000, 0xff800000, // infinity
	0x7fc00000, 0xffc00000, // canonical NaN
	0x7fc00001, 0xffeaaaaa, 0x7fffffff, // quiet
	0x7f800001, 0xffaaaaaa, 0x7fbfffff, // signalling
}

// operands64 are the same for the other type.
var operands64 = []uint64{
	0x0000000000000000, 0x8000000000000000,
	0x3ff0000000000000, 0xbff0000000000000,
	0x0000000000000001, 0x800fffffffffffff,
	0x0010000000000000, 0x7fefffffffffffff, 0xffefffffffffffff,
	0x400921fb54442d18, 0xc05edd2f1a9fbe77, 0x433fffffffffffff,
	0x3fe0000000000000, 0xbff8000000000000,
	0x7ff0000000000000, 0xfff0000000000000,
	0x7ff8000000000000, 0xfff8000000000000,
	0x7ff8000000000001, 0xfffd555555555555, 0x7fffffffffffffff,
	0x7ff0000000000001, 0xfff5555555555555, 0x7ff7ffffffffffff,
}

// few are positions of operands that make NaNs of most kinds.
var few = []int{0, 2, 4, 14, 15, 17, 19, 21, 22}

// floatType is one of the two types: its instructions have the same order behind a first one.
type floatType struct {
	name                        string
	value, bits                 byte // value types of the float and of its bits
	load, store                 string
	bitsLoad                    string
	fromBits, toBits, constant  string
	first                       byte   // opcode of abs
	vector                      string // in names of vector instructions
	lanes                       int
	splat, extract, replaceLane string // vector instructions
}

var (
	single = &floatType{
		name: "f32", value: f32, bits: w.I32, load: "\x2a\x02", store: "\x38\x02", bitsLoad: "\x28\x02",
		fromBits: "\xbe", toBits: "\xbc", constant: "\x43", first: 0x8b,
		vector: "f32x4", lanes: 4, splat: "\xfd\x13", extract: "\xfd\x1f", replaceLane: "\xfd\x20",
	}
	double = &floatType{
		name: "f64", value: w.F64, bits: w.I64, load: "\x2b\x03", store: "\x39\x03", bitsLoad: "\x29\x03",
		fromBits: "\xbf", toBits: "\xbd", constant: "\x44", first: 0x99,
		vector: "f64x2", lanes: 2, splat: "\xfd\x14", extract: "\xfd\x21", replaceLane: "\xfd\x22",
	}
)

// operand is the bits of an operand by its position.
func (f *floatType) operand(i int) uint64 {
	if f == single {
		return uint64(operands32[i])
	}
	return operands64[i]
}

// size is bytes of a value.
func (f *floatType) size() int { return 16 / f.lanes }

// literal is the bytes of a constant.
func (f *floatType) literal(bits uint64) string {
	return string(binary.LittleEndian.AppendUint64(nil, bits)[:f.size()])
}

// isNaN says whether bits are a NaN.
func (f *floatType) isNaN(bits uint64) bool {
	if f == single {
		return math.IsNaN(float64(math.Float32frombits(uint32(bits))))
	}
	return math.IsNaN(math.Float64frombits(bits))
}

// op is an instruction on floats.
type op struct {
	name     string
	code     string
	from, to *floatType
	arity    int
	exact    bool // the bits of a result are determined, also of a NaN
}

// scalarOps are all instructions that take floats and give one.
func scalarOps() []op {
	names := []string{"abs", "neg", "ceil", "floor", "trunc", "nearest", "sqrt", "add", "sub", "mul", "div", "min", "max", "copysign"}
	var ops []op
	for _, f := range []*floatType{single, double} {
		for i, name := range names {
			o := op{name: f.name + "." + name, code: string([]byte{f.first + byte(i)}), from: f, to: f, arity: 1}
			if i >= 7 {
				o.arity = 2
			}
			o.exact = name == "abs" || name == "neg" || name == "copysign"
			ops = append(ops, o)
		}
	}
	return append(ops,
		op{name: "f32.demote_f64", code: "\xb6", from: double, to: single, arity: 1},
		op{name: "f64.promote_f32", code: "\xbb", from: single, to: double, arity: 1})
}

// vectorOps are the same on vectors.
func vectorOps() []op {
	var ops []op
	for _, f := range []*floatType{single, double} {
		unary := map[string]uint32{"ceil": 0x67, "floor": 0x68, "trunc": 0x69, "nearest": 0x6a, "abs": 0xe0, "neg": 0xe1, "sqrt": 0xe3}
		first := uint32(0xe4)
		if f == double {
			unary = map[string]uint32{"ceil": 0x74, "floor": 0x75, "trunc": 0x7a, "nearest": 0x94, "abs": 0xec, "neg": 0xed, "sqrt": 0xef}
			first = 0xf0
		}
		for _, name := range []string{"ceil", "floor", "trunc", "nearest", "sqrt", "abs", "neg"} {
			ops = append(ops, op{name: f.vector + "." + name, code: "\xfd" + w.U32(unary[name]), from: f, to: f, arity: 1, exact: name == "abs" || name == "neg"})
		}
		for i, name := range []string{"add", "sub", "mul", "div", "min", "max", "pmin", "pmax"} {
			ops = append(ops, op{name: f.vector + "." + name, code: "\xfd" + w.U32(first+uint32(i)), from: f, to: f, arity: 2, exact: i >= 6})
		}
	}
	return append(ops,
		op{name: "f32x4.demote_f64x2_zero", code: "\xfd\x5e", from: double, to: single, arity: 1},
		op{name: "f64x2.promote_low_f32x4", code: "\xfd\x5f", from: single, to: double, arity: 1})
}
