package rows

import (
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/wasmill/wasmill/host/sink"
)

// failCode says why a value does not fit.
type failCode uint8

const (
	fits failCode = iota
	notObject
	notJSON
	tooDeep
	badEscape
	badString
	badType
	outOfRange
	tooPrecise
	tooLong
	badText
	emptyText
	zoned
	missing
	duplicate
	badRow
	otherColumns
	unfitting
	noKey
)

// failure is a failCode and the place in the input; unlike an error it costs nothing to pass around.
type failure struct {
	code failCode
	at   int
}

var failWords = [...]struct{ code, reason string }{
	notObject:    {"not_json", "the value is not one JSON object"},
	notJSON:      {"not_json", "the value is not well-formed JSON"},
	tooDeep:      {"not_json", "arrays and objects nest deeper than " + strconv.Itoa(MaxDepth) + " levels"},
	badEscape:    {"not_json", "a string has an escape that JSON does not know"},
	badString:    {"not_json", "a string is not valid Unicode"},
	badType:      {"type", "not a value for this type"},
	outOfRange:   {"range", "outside the type's range"},
	tooPrecise:   {"precision", "more digits than the type holds"},
	tooLong:      {"length", "too many bytes for one batch"},
	badText:      {"type", ""}, // textForms has the reason
	emptyText:    {"type", "an empty text is no value, only null is none"},
	zoned:        {"type", "the text has a time zone, and the type has none"},
	missing:      {"missing", "no value, and null does not fit"},
	duplicate:    {"duplicate", "a map has the key twice"},
	badRow:       {"row", "the binary row is cut short or not well formed"},
	otherColumns: {"columns", "the binary row was written for other columns than"},
	unfitting:    {"range", "the transform had a value outside the type's range"},
	noKey:        {"range", "the transform had a key that is null or outside the type's range"},
}

// misfit says what is wrong, and where if the input is no proper JSON.
func (f failure) misfit() *sink.Misfit {
	w := failWords[f.code]
	m := &sink.Misfit{Code: w.code, Reason: w.reason}
	if f.code <= badString {
		m.Reason += ", at byte " + strconv.Itoa(f.at)
	}
	return m
}

// misfit describes the failure of a row, whose place parse has left.
func (t *Table) misfit(b []byte, f failure) *sink.Misfit {
	m := f.misfit()
	if len(t.path) == 0 {
		return m
	}
	m.Column = string(appendPath(nil, t.path))
	typ := t.failed.Type
	if f.code == badText {
		m.Reason = textForms[typ.Kind]
	}
	switch {
	case f.code == missing:
		m.Reason += " into " + typ.brief()
	case f.code > badString && b != nil:
		m.Reason += ": " + excerpt(b, f.at) + " for " + typ.brief()
	}
	return m
}

// binaryMisfit describes the failure of a binary row.
func (t *Table) binaryMisfit(f failure) *sink.Misfit {
	m := t.misfit(nil, f)
	switch f.code {
	case otherColumns:
		m.Reason += " " + cutText(t.schema.ColumnsText(), 500)
	case badText:
		m.Reason = "the text is not valid UTF-8"
		fallthrough
	default:
		m.Reason += ", at byte " + strconv.Itoa(f.at)
	}
	return m
}

// cutText shortens a text for a message.
func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "..."
}

// textForms says what is wrong with a text, by the kind of its column.
var textForms = [...]string{
	Int8:         "the text is not a number",
	Int16:        "the text is not a number",
	Int32:        "the text is not a number",
	Int64:        "the text is not a number",
	Decimal:      "the text is not a number",
	Float:        "the text is not a number, NaN, Infinity or -Infinity",
	Double:       "the text is not a number, NaN, Infinity or -Infinity",
	Boolean:      "the text is neither true nor false",
	Timestamp:    "the text is not an RFC 3339 time with its offset, as in 2013-01-31T10:00:00Z",
	TimestampNTZ: "the text is not a date and a time without a zone, as in 2013-01-31T10:00:00",
	Date:         "the text is not a date, as in 2013-01-31",
	Binary:       "the text is not base64 with its padding",
}

// excerpt shows the JSON value at i in a message as it is written, at most 40 bytes of it. What cannot be shown so is
// quoted once more.
func excerpt(b []byte, i int) string {
	end, fail := skipValue(b, i)
	if fail.code != fits {
		end = len(b)
	}
	more := ""
	if end-i > 40 {
		for end = i + 40; end > i && !utf8.RuneStart(b[end]); end-- {
		}
		more = "..."
	}
	text := string(b[i:end])
	for _, r := range text {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return strconv.Quote(text) + more
		}
	}
	return text + more
}
