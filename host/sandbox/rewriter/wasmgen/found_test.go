package wasmgen

import (
	"fmt"
	"testing"

	"github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// TestOtherLanes holds what random modules found: a NaN of 64 bits whose halves are compared as floats of 32 bits, and the
// other way round. Arithmetic that kept the payload would give the constant's own halves back.
func TestOtherLanes(t *testing.T) {
	const (
		payload64 = "\xfd\x0c" + "\x00\x00\x80\x3f\x00\x00\xf8\x7f" + "\x00\x00\x80\x3f\x00\x00\xf8\x7f" // f32x4 1 nan 1 nan
		payload32 = "\xfd\x0c" + "\x01\x00\x00\x00\x02\x00\xf0\x7f" + "\x01\x00\x00\x00\x02\x00\xf0\x7f" // f64x2 nan nan
		ones      = "\xfd\x0c" + "\x00\x00\x80\x3f\x00\x00\x80\x3f" + "\x00\x00\x80\x3f\x00\x00\x80\x3f"
		mask      = "\xfd\xa4\x01" // i32x4.bitmask
	)
	for name, code := range map[string]string{
		"f64x2.max, f32x4.eq":  payload64 + payload64 + "\xfd\xf5\x01" + ones + "\xfd\x41" + mask,
		"f64x2.add, f32x4.add": payload64 + payload64 + "\xfd\xf0\x01" + ones + "\xfd\xe4\x01" + mask,
		"f64x2.sub, demote":    payload64 + payload64 + "\xfd\xf1\x01" + "\xfd\x5e" + mask,
		"f64x2.sub, promote":   payload64 + payload64 + "\xfd\xf1\x01" + "\xfd\x5f" + mask,
		"f64x2.mul, truncate":  payload64 + payload64 + "\xfd\xf2\x01" + "\xfd\xf8\x01" + mask,
		"f32x4.mul, f64x2.lt":  payload32 + payload32 + "\xfd\xe6\x01" + ones + "\xfd\x49" + mask,
		"f32x4.mul, truncate":  payload32 + payload32 + "\xfd\xe6\x01" + "\xfd\xfd\x01" + mask,
	} {
		module := wasmtest.Module{Funcs: []wasmtest.Func{{Export: "f", Result: "\x7f", Code: code}}}
		if _, err := newMachines(t).check(module.Bytes(), 0, Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBranchOnAnd holds a branch on an ordered comparison of an and with the constant 0, on either side and out of locals,
// which wazero's compilers get wrong: on amd64 where the 0 is on the left, on arm64 also among numbers without a sign.
func TestBranchOnAnd(t *testing.T) {
	operands := map[string]string{
		"0, and":              "\x41\x00\x20\x00\x41\x3f\x71",
		"and, 0":              "\x20\x00\x41\x3f\x71\x41\x00",
		"zero local, and":     "\x20\x01\x20\x00\x41\x3f\x71",
		"and, zero local":     "\x20\x00\x41\x3f\x71\x20\x01",
		"0, local of an and":  "\x20\x00\x41\x3f\x71\x21\x02\x41\x00\x20\x02",
		"local of an and, 0":  "\x20\x00\x41\x3f\x71\x21\x02\x20\x02\x41\x00",
		"0, tee of an and":    "\x41\x00\x20\x00\x41\x3f\x71\x22\x02",
		"0, copy of an and":   "\x20\x00\x41\x3f\x71\x21\x02\x20\x02\x21\x03\x41\x00\x20\x03",
		"0, and, local.set":   "\x41\x00\x20\x00\x41\x3f\x71\x41\x07\x21\x02",
		"and, 0, dropped":     "\x20\x00\x41\x3f\x71\x41\x00\x41\x07\x1a",
		"0 in a block, and":   "\x02\x7f\x41\x00\x0b\x20\x00\x41\x3f\x71",
		"and, 0 in a block":   "\x20\x00\x41\x3f\x71\x02\x7f\x41\x00\x0b",
		"and 64, 0, narrowed": "\x20\x00\x41\x7f\x71\x41\x00",
	}
	ms := newMachines(t)
	for name, code := range operands {
		for compare := byte(0x46); compare <= 0x4f; compare++ {
			var funcs []wasmtest.Func
			for i, value := range []int32{0, 1, 63, -1, -64} {
				get := code + string([]byte{compare})
				funcs = append(funcs, wasmtest.Func{
					Export: fmt.Sprint("f", i), Result: "\x7f", Locals: "\x7f\x7f\x7f\x7f",
					Code: wasmtest.Const(value) + "\x21\x00" + get + "\x04\x7f" + wasmtest.Const(1) + "\x05" + wasmtest.Const(2) + "\x0b",
				}, wasmtest.Func{
					Export: fmt.Sprint("b", i), Params: "\x7f", Result: "\x7f", Locals: "\x7f\x7f\x7f",
					Code: "\x02\x7f" + wasmtest.Const(1) + get + "\x0d\x00" + "\x1a" + wasmtest.Const(2) + "\x0b",
				})
			}
			module := wasmtest.Module{Funcs: funcs}
			if _, err := ms.check(module.Bytes(), uint64(compare), Options{Quiet: true}); err != nil {
				t.Errorf("%s, comparison 0x%x: %v", name, compare, err)
			}
		}
	}
}
