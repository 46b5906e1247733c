package rows

import (
	"strconv"

	"github.com/wasmill/wasmill/host/sink"
)

// failCode says why a value does not fit.
type failCode uint8

const (
	fits failCode = iota
	notObject
	notJSON
	badString
	badType
	outOfRange
	tooPrecise
	tooLong
	badText
)

// failure is a failCode and the place in the input; unlike an error it costs nothing to pass around.
type failure struct {
	code failCode
	at   int
}

var failWords = [...]struct{ code, reason string }{
	notObject:  {"not_json", "the value is not one JSON object"},
	notJSON:    {"not_json", "the value is not well-formed JSON"},
	badString:  {"not_json", "a string is not valid Unicode"},
	badType:    {"type", "not a value for this type"},
	outOfRange: {"range", "outside the type's range"},
	tooPrecise: {"precision", "more digits than the type holds"},
	tooLong:    {"length", "too many bytes for one batch"},
	badText:    {"type", "the text is not in this type's form"},
}

func (t *Table) misfit(b []byte, col int, f failure) *sink.Misfit {
	w := failWords[f.code]
	m := &sink.Misfit{Code: w.code, Reason: w.reason}
	if f.code <= badString {
		m.Reason += ", at byte " + strconv.Itoa(f.at)
	}
	if col < 0 {
		return m
	}
	m.Column = t.schema.columns[col].Name
	if f.code > badString {
		m.Reason += ": " + excerpt(b, f.at) + " for " + t.cols[col].Type.String()
	}
	return m
}

// excerpt quotes the value at i for a message, at most 40 bytes of it.
func excerpt(b []byte, i int) string {
	end, fail := skipValue(b, i)
	if fail.code != fits {
		end = len(b)
	}
	if end-i > 40 {
		return strconv.Quote(string(b[i:i+40])) + "..."
	}
	return strconv.Quote(string(b[i:end]))
}
