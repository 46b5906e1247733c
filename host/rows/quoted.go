package rows

import (
	"math"
	"unicode/utf8"
)

// stringText returns the text of the string at i, in memory of its own if it is written with escapes, and the index after it.
func stringText(b []byte, i int) (text []byte, end int, fail failure) {
	end, flags := scanString(b, i+1)
	if end < 0 {
		return nil, i, failure{notJSON, i}
	}
	raw := b[i+1 : end]
	switch {
	case flags&hasEscape != 0:
		var ok bool
		if text, ok = unescape(nil, raw); !ok {
			return nil, i, unfit(raw, i)
		}
		return text, end + 1, failure{}
	case flags&hasHigh != 0 && !utf8.Valid(raw):
		return nil, i, failure{badString, i}
	}
	return raw, end + 1, failure{}
}

// quoted returns the text of the string at i, and the index after it. An empty one is neither a number nor a boolean.
func quoted(b []byte, i int) (text []byte, end int, fail failure) {
	if text, end, fail = stringText(b, i); fail.code == fits && len(text) == 0 {
		return nil, i, failure{emptyText, i}
	}
	return text, end, fail
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
		return quiet(math.NaN()), end, failure{}
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
