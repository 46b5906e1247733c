package rows

import "math"

// quoted returns the text of the string at i as it stands between its quotes, and the index after it. An empty one is
// neither a number nor a boolean.
func quoted(b []byte, i int) (text []byte, end int, fail failure) {
	if end, fail = checkString(b, i); fail.code != fits {
		return nil, i, fail
	}
	if text = b[i+1 : end-1]; len(text) == 0 {
		return nil, i, failure{emptyText, i}
	}
	return text, end, failure{}
}

// quotedNumber returns the text of a string that holds one JSON number and nothing else.
func quotedNumber(b []byte, i int) (text []byte, end int, fail failure) {
	if text, end, fail = quoted(b, i); fail.code != fits {
		return nil, i, fail
	}
	if stop, ok := scanNumber(text, 0); !ok || stop != len(text) {
		return nil, i, failure{badText, i}
	}
	return text, end, failure{}
}

// quotedInt reads a string that holds a number, by the rules of a number.
func quotedInt(b []byte, i int, lo, hi int64) (int64, int, failure) {
	text, end, fail := quotedNumber(b, i)
	if fail.code != fits {
		return 0, i, fail
	}
	x, _, fail := parseInt(text, 0, lo, hi)
	if fail.code != fits {
		return 0, i, failure{fail.code, i}
	}
	return x, end, failure{}
}

// quotedFloat reads a string that holds a number, or what JSON has no number for.
func quotedFloat(b []byte, i, size int) (float64, int, failure) {
	text, end, fail := quoted(b, i)
	if fail.code != fits {
		return 0, i, fail
	}
	switch string(text) {
	case "NaN":
		return math.NaN(), end, failure{}
	case "Infinity":
		return math.Inf(1), end, failure{}
	case "-Infinity":
		return math.Inf(-1), end, failure{}
	}
	if stop, ok := scanNumber(text, 0); !ok || stop != len(text) {
		return 0, i, failure{badText, i}
	}
	f, _, fail := parseFloat(text, 0, size)
	if fail.code != fits {
		return 0, i, failure{fail.code, i}
	}
	return f, end, failure{}
}

// quotedBool reads a string that holds true or false.
func quotedBool(b []byte, i int) (uint8, int, failure) {
	text, end, fail := quoted(b, i)
	if fail.code != fits {
		return 0, i, fail
	}
	switch string(text) {
	case "true":
		return 1, end, failure{}
	case "false":
		return 0, end, failure{}
	}
	return 0, i, failure{badText, i}
}

// asText puts a number, true or false into slot n of a column of text, as it is written.
func (v *Vector) asText(b []byte, i, n int) (int, failure) {
	if b[i] == '{' || b[i] == '[' {
		return i, wrongType(b, i)
	}
	end, fail := skipScalar(b, i)
	if fail.code != fits {
		return i, fail
	}
	start := v.Ends[n]
	if int64(start)+int64(end-i) > maxData {
		return i, failure{tooLong, i}
	}
	v.Data = append(v.Data[:start], b[i:end]...)
	v.Ends[n+1] = uint32(len(v.Data))
	return end, failure{}
}
