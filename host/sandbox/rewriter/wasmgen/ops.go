package wasmgen

// Value types, as bytes of the format.
const (
	i32       = 0x7f
	i64       = 0x7e
	f32       = 0x7d
	f64       = 0x7c
	v128      = 0x7b
	funcref   = 0x70
	externref = 0x6f
)

var allTypes = []byte{i32, i64, f32, f64, v128, funcref, externref}

func isRef(t byte) bool { return t == funcref || t == externref }

// How the bits of a float, or its NaN, matter to an instruction.
const (
	nan32  = 1 << iota // its result may be a NaN of f32, in a scalar or in lanes
	nan64              // of f64
	sees               // it shows the bits of float operands
	divide             // it traps when its second operand is 0
	trunc              // it traps for most floats
)

// op is an instruction without immediates, besides a lane. code is the prefix, if any, and the number.
type op struct {
	code   uint16
	params []byte
	result byte
	lanes  byte // 0: no lane is named
	flags  uint8
}

// letters of signatures below.
var letters = map[rune]byte{'i': i32, 'I': i64, 'f': f32, 'F': f64, 'v': v128}

// span adds the instructions from code to last, which have one signature: parameters, then the result.
func span(ops []op, code, last uint16, signature string, lanes byte, flags uint8) []op {
	var types []byte
	for _, l := range signature {
		types = append(types, letters[l])
	}
	for c := code; c <= last; c++ {
		ops = append(ops, op{c, types[:len(types)-1], types[len(types)-1], lanes, flags})
	}
	return ops
}

// spans are all instructions that have neither immediates nor effects, but for the naming of a lane.
var spans = []struct {
	code, last uint16
	signature  string
	lanes      byte
	flags      uint8
}{
	{0x45, 0x45, "ii", 0, 0},
	{0x46, 0x4f, "iii", 0, 0},
	{0x50, 0x50, "Ii", 0, 0},
	{0x51, 0x5a, "IIi", 0, 0},
	{0x5b, 0x60, "ffi", 0, 0},
	{0x61, 0x66, "FFi", 0, 0},
	{0x67, 0x69, "ii", 0, 0},
	{0x6a, 0x6c, "iii", 0, 0},
	{0x6d, 0x70, "iii", 0, divide},
	{0x71, 0x78, "iii", 0, 0},
	{0x79, 0x7b, "II", 0, 0},
	{0x7c, 0x7e, "III", 0, 0},
	{0x7f, 0x82, "III", 0, divide},
	{0x83, 0x8a, "III", 0, 0},
	{0x8b, 0x91, "ff", 0, nan32},
	{0x92, 0x97, "fff", 0, nan32},
	{0x98, 0x98, "fff", 0, sees},
	{0x99, 0x9f, "FF", 0, nan64},
	{0xa0, 0xa5, "FFF", 0, nan64},
	{0xa6, 0xa6, "FFF", 0, sees},
	{0xa7, 0xa7, "Ii", 0, 0},
	{0xa8, 0xa9, "fi", 0, trunc},
	{0xaa, 0xab, "Fi", 0, trunc},
	{0xac, 0xad, "iI", 0, 0},
	{0xae, 0xaf, "fI", 0, trunc},
	{0xb0, 0xb1, "FI", 0, trunc},
	{0xb2, 0xb3, "if", 0, 0},
	{0xb4, 0xb5, "If", 0, 0},
	{0xb6, 0xb6, "Ff", 0, nan32},
	{0xb7, 0xb8, "iF", 0, 0},
	{0xb9, 0xba, "IF", 0, 0},
	{0xbb, 0xbb, "fF", 0, nan64},
	{0xbc, 0xbc, "fi", 0, sees},
	{0xbd, 0xbd, "FI", 0, sees},
	{0xbe, 0xbe, "if", 0, 0},
	{0xbf, 0xbf, "IF", 0, 0},
	{0xc0, 0xc1, "ii", 0, 0},
	{0xc2, 0xc4, "II", 0, 0},
	{0xfc00, 0xfc01, "fi", 0, 0},
	{0xfc02, 0xfc03, "Fi", 0, 0},
	{0xfc04, 0xfc05, "fI", 0, 0},
	{0xfc06, 0xfc07, "FI", 0, 0},
	{0xfd0e, 0xfd0e, "vvv", 0, 0},
	{0xfd0f, 0xfd11, "iv", 0, 0},
	{0xfd12, 0xfd12, "Iv", 0, 0},
	{0xfd13, 0xfd13, "fv", 0, sees},
	{0xfd14, 0xfd14, "Fv", 0, sees},
	{0xfd15, 0xfd16, "vi", 16, 0},
	{0xfd17, 0xfd17, "viv", 16, 0},
	{0xfd18, 0xfd19, "vi", 8, 0},
	{0xfd1a, 0xfd1a, "viv", 8, 0},
	{0xfd1b, 0xfd1b, "vi", 4, 0},
	{0xfd1c, 0xfd1c, "viv", 4, 0},
	{0xfd1d, 0xfd1d, "vI", 2, 0},
	{0xfd1e, 0xfd1e, "vIv", 2, 0},
	{0xfd1f, 0xfd1f, "vf", 4, 0},
	{0xfd20, 0xfd20, "vfv", 4, sees},
	{0xfd21, 0xfd21, "vF", 2, 0},
	{0xfd22, 0xfd22, "vFv", 2, sees},
	{0xfd23, 0xfd4c, "vvv", 0, 0},
	{0xfd4d, 0xfd4d, "vv", 0, 0},
	{0xfd4e, 0xfd51, "vvv", 0, 0},
	{0xfd52, 0xfd52, "vvvv", 0, 0},
	{0xfd53, 0xfd53, "vi", 0, 0},
	{0xfd5e, 0xfd5e, "vv", 0, nan32},
	{0xfd5f, 0xfd5f, "vv", 0, nan64},
	{0xfd60, 0xfd62, "vv", 0, 0},
	{0xfd63, 0xfd64, "vi", 0, 0},
	{0xfd65, 0xfd66, "vvv", 0, 0},
	{0xfd67, 0xfd6a, "vv", 0, nan32},
	{0xfd6b, 0xfd6d, "viv", 0, 0},
	{0xfd6e, 0xfd73, "vvv", 0, 0},
	{0xfd74, 0xfd75, "vv", 0, nan64},
	{0xfd76, 0xfd79, "vvv", 0, 0},
	{0xfd7a, 0xfd7a, "vv", 0, nan64},
	{0xfd7b, 0xfd7b, "vvv", 0, 0},
	{0xfd7c, 0xfd81, "vv", 0, 0},
	{0xfd82, 0xfd82, "vvv", 0, 0},
	{0xfd83, 0xfd84, "vi", 0, 0},
	{0xfd85, 0xfd86, "vvv", 0, 0},
	{0xfd87, 0xfd8a, "vv", 0, 0},
	{0xfd8b, 0xfd8d, "viv", 0, 0},
	{0xfd8e, 0xfd93, "vvv", 0, 0},
	{0xfd94, 0xfd94, "vv", 0, nan64},
	{0xfd95, 0xfd99, "vvv", 0, 0},
	{0xfd9b, 0xfd9f, "vvv", 0, 0},
	{0xfda0, 0xfda1, "vv", 0, 0},
	{0xfda3, 0xfda4, "vi", 0, 0},
	{0xfda7, 0xfdaa, "vv", 0, 0},
	{0xfdab, 0xfdad, "viv", 0, 0},
	{0xfdae, 0xfdae, "vvv", 0, 0},
	{0xfdb1, 0xfdb1, "vvv", 0, 0},
	{0xfdb5, 0xfdba, "vvv", 0, 0},
	{0xfdbc, 0xfdbf, "vvv", 0, 0},
	{0xfdc0, 0xfdc1, "vv", 0, 0},
	{0xfdc3, 0xfdc4, "vi", 0, 0},
	{0xfdc7, 0xfdca, "vv", 0, 0},
	{0xfdcb, 0xfdcd, "viv", 0, 0},
	{0xfdce, 0xfdce, "vvv", 0, 0},
	{0xfdd1, 0xfdd1, "vvv", 0, 0},
	{0xfdd5, 0xfddf, "vvv", 0, 0},
	{0xfde0, 0xfde1, "vv", 0, 0},
	{0xfde3, 0xfde3, "vv", 0, nan32},
	{0xfde4, 0xfde9, "vvv", 0, nan32},
	{0xfdea, 0xfdeb, "vvv", 0, 0},
	{0xfdec, 0xfded, "vv", 0, 0},
	{0xfdef, 0xfdef, "vv", 0, nan64},
	{0xfdf0, 0xfdf5, "vvv", 0, nan64},
	{0xfdf6, 0xfdf7, "vvv", 0, 0},
	{0xfdf8, 0xfdff, "vv", 0, 0},
}

// mistaken are instructions that a compiler of wazero 1.12 gets wrong under pressure, or in a branch: and, copysign,
// conversions of unsigned 64-bit integers, bitselect, popcnt, and some of the lanes' arithmetic.
var mistaken = []uint16{
	0x71, 0x83, 0x98, 0xa6, 0xb5, 0xba, 0xfd20, 0xfd22, 0xfd52, 0xfd62, 0xfdd5, 0xfde8, 0xfde9, 0xfdf4, 0xfdf5,
}

// operations returns all of them by the type they leave.
func operations() map[byte][]op {
	byResult := map[byte][]op{}
	for _, s := range spans {
		t := letters[rune(s.signature[len(s.signature)-1])]
		byResult[t] = span(byResult[t], s.code, s.last, s.signature, s.lanes, s.flags)
	}
	return byResult
}

// access is a load or a store: its alignment may be up to 2^align; lanes, if it names one.
type access struct {
	code  uint16
	t     byte
	align byte
	lanes byte
}

var loads = []access{
	{0x28, i32, 2, 0},
	{0x29, i64, 3, 0},
	{0x2a, f32, 2, 0},
	{0x2b, f64, 3, 0},
	{0x2c, i32, 0, 0},
	{0x2d, i32, 0, 0},
	{0x2e, i32, 1, 0},
	{0x2f, i32, 1, 0},
	{0x30, i64, 0, 0},
	{0x31, i64, 0, 0},
	{0x32, i64, 1, 0},
	{0x33, i64, 1, 0},
	{0x34, i64, 2, 0},
	{0x35, i64, 2, 0},
	{0xfd00, v128, 4, 0},
	{0xfd01, v128, 3, 0},
	{0xfd02, v128, 3, 0},
	{0xfd03, v128, 3, 0},
	{0xfd04, v128, 3, 0},
	{0xfd05, v128, 3, 0},
	{0xfd06, v128, 3, 0},
	{0xfd07, v128, 0, 0},
	{0xfd08, v128, 1, 0},
	{0xfd09, v128, 2, 0},
	{0xfd0a, v128, 3, 0},
	{0xfd5c, v128, 2, 0},
	{0xfd5d, v128, 3, 0},
	{0xfd54, v128, 0, 16},
	{0xfd55, v128, 1, 8},
	{0xfd56, v128, 2, 4},
	{0xfd57, v128, 3, 2},
}

var stores = []access{
	{0x36, i32, 2, 0},
	{0x37, i64, 3, 0},
	{0x38, f32, 2, 0},
	{0x39, f64, 3, 0},
	{0x3a, i32, 0, 0},
	{0x3b, i32, 1, 0},
	{0x3c, i64, 0, 0},
	{0x3d, i64, 1, 0},
	{0x3e, i64, 2, 0},
	{0xfd0b, v128, 4, 0},
	{0xfd58, v128, 0, 16},
	{0xfd59, v128, 1, 8},
	{0xfd5a, v128, 2, 4},
	{0xfd5b, v128, 3, 2},
}
