package spectest

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// value is an argument or an expected result. Value is a text, or a list of texts for the lanes of a vector; where it is
// missing or null, any reference, or the null reference, is meant.
type value struct {
	Type  string          `json:"type"`
	Lane  string          `json:"lane_type"`
	Value json.RawMessage `json:"value"`
}

// lanes returns the texts of the value and how many bits each has.
func (v value) lanes() (texts []string, bits int, err error) {
	kind := v.Type
	if kind == "v128" {
		kind = v.Lane
		err = json.Unmarshal(v.Value, &texts)
	} else {
		var one string
		err = json.Unmarshal(v.Value, &one)
		texts = []string{one}
	}
	switch kind {
	case "i8":
		bits = 8
	case "i16":
		bits = 16
	case "i32", "f32":
		bits = 32
	case "i64", "f64", "externref", "funcref":
		bits = 64
	default:
		err = fmt.Errorf("a value of type %q, lanes %q", v.Type, v.Lane)
	}
	return texts, bits, err
}

// slots are the value as the engine takes it: one number, two for a vector. A reference is its number plus one, because the
// engine takes 0 for null.
func (v value) slots() ([]uint64, error) {
	texts, bits, err := v.lanes()
	if err != nil {
		return nil, err
	}
	if v.Type == "externref" || v.Type == "funcref" {
		if texts[0] == "null" {
			return []uint64{0}, nil
		}
		n, err := strconv.ParseUint(texts[0], 10, 64)
		return []uint64{n + 1}, err
	}
	out := make([]uint64, max(1, len(texts)*bits/64))
	for i, text := range texts {
		n, err := parseBits(text, bits)
		if err != nil {
			return nil, err
		}
		out[i*bits/64] |= n << (i * bits % 64)
	}
	return out, nil
}

// parseBits reads a decimal number, which may be signed, as a bit pattern.
func parseBits(text string, bits int) (uint64, error) {
	if n, err := strconv.ParseUint(text, 10, bits); err == nil {
		return n, nil
	}
	n, err := strconv.ParseInt(text, 10, bits)
	return uint64(n) & (1<<(bits-1)<<1 - 1), err
}

// Parts of the two float formats.
const (
	quiet32, quiet64 = uint64(0x7fc00000), uint64(0x7ff8000000000000)
	sign32, sign64   = uint64(1) << 31, uint64(1) << 63
)

// laneMatches compares one number with what is expected. A canonical NaN may have either sign; an arithmetic one has the top
// bit of its payload set.
func laneMatches(text string, bits int, have uint64) (bool, error) {
	quiet, sign := quiet64, sign64
	if bits == 32 {
		quiet, sign = quiet32, sign32
	}
	switch text {
	case "nan:canonical":
		return have&^sign == quiet, nil
	case "nan:arithmetic":
		return have&quiet == quiet, nil
	}
	want, err := parseBits(text, bits)
	return have == want, err
}

// matches compares a result, as slots, with what is expected.
func (v value) matches(have []uint64) (bool, error) {
	if v.Type == "externref" || v.Type == "funcref" {
		if len(v.Value) == 0 {
			return true, nil
		}
		want, err := v.slots()
		return err == nil && want[0] == have[0], err
	}
	texts, bits, err := v.lanes()
	if err != nil {
		return false, err
	}
	for i, text := range texts {
		lane := have[i*bits/64] >> (i * bits % 64) & (1<<(bits-1)<<1 - 1)
		if ok, err := laneMatches(text, bits, lane); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// width is how many slots a value of the type takes.
func (v value) width() int {
	if v.Type == "v128" {
		return 2
	}
	return 1
}
