package delta

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
)

// The lengths of text bounds, in characters, and how many columns have statistics unless the table says otherwise.
const (
	boundChars     = 32
	maxBoundChars  = 64
	defaultIndexed = 32
)

// Stats writes the statistics of a data file as an add holds them, for as many columns as the table asks for. Readers skip
// files by them, so a bound that is not certain is left out:
//
//   - numbers are exact, a float as the double that it is; an infinite bound is left out; zero is -0.0 below and 0.0 above;
//   - texts are cut to 32 characters, upper bounds raised by one character, and left out where that needs more than 64;
//   - time stamps are rounded to milliseconds, down below and up above, because readers keep no more;
//   - booleans, binaries, lists and maps have no bounds, only their nulls counted.
func Stats(s *parquetfile.Stats, m *Metadata) string {
	columns := indexed(s.Columns, m)
	dst := strconv.AppendInt([]byte(`{"numRecords":`), s.Rows, 10)
	dst = appendNested(append(dst, `,"minValues":`...), columns, 0, appendMin)
	dst = appendNested(append(dst, `,"maxValues":`...), columns, 0, appendMax)
	dst = appendNested(append(dst, `,"nullCount":`...), columns, 0, appendNulls)
	return string(append(dst, '}'))
}

// indexed returns the columns that the table wants statistics of.
func indexed(columns []parquetfile.ColumnStats, m *Metadata) []parquetfile.ColumnStats {
	if named := m.Configuration[propStatsNamed]; named != "" {
		return slices.DeleteFunc(slices.Clone(columns), func(c parquetfile.ColumnStats) bool { return !isNamed(c.Path, named) })
	}
	limit := defaultIndexed
	if n, err := strconv.Atoi(m.Configuration[propStatsColumns]); err == nil {
		limit = n
	}
	if limit < 0 || limit > len(columns) {
		return columns
	}
	return columns[:limit]
}

// isNamed reports whether a list of names, with points between fields and perhaps backquotes, has the column or a struct around
// it.
func isNamed(path []string, list string) bool {
	full := strings.Join(path, ".") + "."
	for name := range strings.SplitSeq(list, ",") {
		name = strings.ReplaceAll(strings.TrimSpace(name), "`", "")
		if name != "" && strings.HasPrefix(full, name+".") {
			return true
		}
	}
	return false
}

// appendNested writes an object with what value says of each column, the fields of a struct in an object of their own. A column
// of which value says nothing is left out.
func appendNested(dst []byte, columns []parquetfile.ColumnStats, depth int, value func([]byte, *parquetfile.ColumnStats) []byte) []byte {
	dst = append(dst, '{')
	empty := len(dst)
	for i := 0; i < len(columns); {
		before := len(dst)
		if before > empty {
			dst = append(dst, ',')
		}
		dst = append(rows.AppendQuoted(dst, []byte(columns[i].Path[depth])), ':')
		from := len(dst)
		if len(columns[i].Path) > depth+1 {
			n := i + 1
			for n < len(columns) && len(columns[n].Path) > depth+1 && columns[n].Path[depth] == columns[i].Path[depth] {
				n++
			}
			dst = appendNested(dst, columns[i:n], depth+1, value)
			if len(dst) == from+len("{}") {
				dst = dst[:before]
			}
			i = n
			continue
		}
		if dst = value(dst, &columns[i]); len(dst) == from {
			dst = dst[:before]
		}
		i++
	}
	return append(dst, '}')
}

func appendNulls(dst []byte, c *parquetfile.ColumnStats) []byte {
	return strconv.AppendInt(dst, c.Nulls, 10)
}

func appendMin(dst []byte, c *parquetfile.ColumnStats) []byte {
	if !c.Bounded {
		return dst
	}
	switch v := c.Min; c.Type.Kind {
	case rows.String:
		if !utf8.Valid(v.Bytes) {
			return dst
		}
		return rows.AppendQuoted(dst, prefix(v.Bytes, boundChars))
	case rows.Timestamp, rows.TimestampNTZ:
		return appendMillis(dst, v.Int-mod(v.Int, 1000), c.Type.Kind)
	case rows.Float, rows.Double:
		if v.Float == 0 {
			return append(dst, "-0.0"...)
		}
	}
	return appendBound(dst, c.Type, c.Min)
}

func appendMax(dst []byte, c *parquetfile.ColumnStats) []byte {
	if !c.Bounded {
		return dst
	}
	switch v := c.Max; c.Type.Kind {
	case rows.String:
		if above, ok := textAbove(v.Bytes); ok {
			return rows.AppendQuoted(dst, above)
		}
		return dst
	case rows.Timestamp, rows.TimestampNTZ:
		return appendMillis(dst, v.Int+mod(-v.Int, 1000), c.Type.Kind)
	case rows.Float, rows.Double:
		if v.Float == 0 {
			return append(dst, "0.0"...)
		}
	}
	return appendBound(dst, c.Type, c.Max)
}

// appendBound appends a bound that needs no rounding, or nothing for a kind without bounds.
func appendBound(dst []byte, t rows.Type, v rows.Value) []byte {
	switch t.Kind {
	case rows.Float, rows.Double:
		if math.IsInf(v.Float, 0) || math.IsNaN(v.Float) {
			return dst
		}
		return v.AppendJSON(dst, rows.Type{Kind: rows.Double})
	case rows.Int8, rows.Int16, rows.Int32, rows.Int64, rows.Date, rows.Decimal:
		return v.AppendJSON(dst, t)
	}
	return dst
}

// lastMicro is the last microsecond of the year 9999.
const lastMicro = 253_402_300_799_999_999

// appendMillis appends a time stamp of whole milliseconds as ISO 8601, with Z if it is an instant; nothing when it has no text.
func appendMillis(dst []byte, micros int64, k rows.Kind) []byte {
	if micros > lastMicro {
		return dst
	}
	dst = rows.AppendLocal(append(dst, '"'), micros)
	dst = dst[:len(dst)-len("000")]
	if k == rows.Timestamp {
		dst = append(dst, 'Z')
	}
	return append(dst, '"')
}

func mod(a, b int64) int64 { return (a%b + b) % b }

// prefix cuts a valid text to so many characters.
func prefix(text []byte, chars int) []byte {
	for i := range string(text) {
		if chars == 0 {
			return text[:i]
		}
		chars--
	}
	return text
}

// textAbove returns a short text that is not below the given one: the text, or a prefix of it and a character above the one
// that follows. As Spark does it, that is U+007F for ASCII, and U+10FFFF otherwise.
func textAbove(text []byte) (above []byte, ok bool) {
	if !utf8.Valid(text) {
		return nil, false
	}
	for chars := boundChars; chars < maxBoundChars; chars++ {
		p := prefix(text, chars)
		if len(p) == len(text) {
			return text, true
		}
		switch next, _ := utf8.DecodeRune(text[len(p):]); {
		case next < '\x7f':
			return append(slices.Clone(p), '\x7f'), true
		case next < utf8.MaxRune:
			return utf8.AppendRune(slices.Clone(p), utf8.MaxRune), true
		}
	}
	return nil, false
}
