package abi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Errors of CanonicalJSON.
var (
	ErrNotJSON      = errors.New("not one JSON text in UTF-8")
	ErrDuplicateKey = errors.New("a name comes twice in one JSON object")
	ErrNumberRange  = errors.New("a JSON number is too large for a float64")
)

// CanonicalJSON rewrites a JSON text so that equal values have equal bytes: members in byte order of their UTF-8 names, no
// blanks, the shortest escapes of AppendJSONString, numbers without fraction and exponent as they are (-0 is 0), other
// numbers as the shortest text that gives the same float64, in the form of RFC 8785. Duplicate names are an error.
func CanonicalJSON(text []byte) ([]byte, error) {
	if !ValidJSON(text) {
		return nil, ErrNotJSON
	}
	out, _, err := canonical(make([]byte, 0, len(text)), text, skipSpace(text, 0))
	return out, err
}

// AppendCanonical appends the canonical JSON of v, as encoding/json marshals it, to dst.
func AppendCanonical(dst []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return dst, fmt.Errorf("canonical JSON: %w", err)
	}
	text, err = CanonicalJSON(text)
	return append(dst, text...), err
}

// canonical appends the canonical form of the value at pos of valid text v and returns the position after it.
func canonical(dst, v []byte, pos int) ([]byte, int, error) {
	switch v[pos] {
	case '{':
		return canonicalObject(dst, v, pos)
	case '[':
		return canonicalArray(dst, v, pos)
	case '"':
		end, _ := skipString(v, pos+1)
		text, err := UnescapeString(v[pos+1:end-1], nil)
		return AppendJSONString(dst, text), end, err
	}
	kind, end := skipScalar(v, pos)
	if kind != FieldNumber {
		return append(dst, v[pos:end]...), end, nil
	}
	dst, err := appendNumber(dst, v[pos:end])
	return dst, end, err
}

func canonicalArray(dst, v []byte, pos int) ([]byte, int, error) {
	dst = append(dst, '[')
	pos = skipSpace(v, pos+1)
	for v[pos] != ']' {
		if v[pos] == ',' {
			dst = append(dst, ',')
			pos = skipSpace(v, pos+1)
		}
		var err error
		if dst, pos, err = canonical(dst, v, pos); err != nil {
			return dst, pos, err
		}
		pos = skipSpace(v, pos)
	}
	return append(dst, ']'), pos + 1, nil
}

type member struct{ name, value []byte }

func canonicalObject(dst, v []byte, pos int) ([]byte, int, error) {
	var members []member
	pos = skipSpace(v, pos+1)
	for v[pos] != '}' {
		if v[pos] == ',' {
			pos = skipSpace(v, pos+1)
		}
		end, _ := skipString(v, pos+1)
		m := member{}
		var err error
		if m.name, err = UnescapeString(v[pos+1:end-1], nil); err != nil {
			return dst, pos, err
		}
		if m.value, pos, err = canonical(nil, v, skipColon(v, end)); err != nil {
			return dst, pos, err
		}
		members = append(members, m)
		pos = skipSpace(v, pos)
	}
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare(a.name, b.name) })
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			if bytes.Equal(members[i-1].name, m.name) {
				return dst, pos, fmt.Errorf("%w: %q", ErrDuplicateKey, m.name)
			}
			dst = append(dst, ',')
		}
		dst = append(AppendJSONString(dst, m.name), ':')
		dst = append(dst, m.value...)
	}
	return append(dst, '}'), pos + 1, nil
}

// appendNumber appends a number: integers as written, others by the rules of ECMAScript's Number.toString.
func appendNumber(dst, text []byte) ([]byte, error) {
	if !bytes.ContainsAny(text, ".eE") {
		if string(text) == "-0" {
			text = text[1:]
		}
		return append(dst, text...), nil
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return dst, fmt.Errorf("%w: %s", ErrNumberRange, text)
	}
	if f == 0 {
		return append(dst, '0'), nil
	}
	if size := max(f, -f); size >= 1e-6 && size < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64), nil
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// Go writes at least two digits of exponent, ECMAScript one.
	if n := len(dst); dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') && n-start > 3 {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst, nil
}
