package postgres

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// Rules implements sql.Database: a text has no zero byte, whatever the column.
func (d *Database) Rules(schema *rows.Schema) []sql.Rule {
	var out []sql.Rule
	for i, c := range schema.Columns() {
		switch c.Type.Kind {
		case rows.String:
			out = append(out, sql.Rule{Column: i, Check: checkText})
		case rows.List, rows.Map, rows.Struct:
			out = append(out, sql.Rule{Column: i, Check: checkNested})
		}
	}
	return out
}

// rulesOf are what a column asks of values beyond their type.
func rulesOf(c *column, f form, at int) []sql.Rule {
	var out []sql.Rule
	rule := func(check func(v *rows.Vector, row int) *sink.Misfit) {
		out = append(out, sql.Rule{Column: at, Check: check})
	}
	if f == asUUID {
		rule(checkUUID)
	}
	if n := c.length(); n > 0 && f == asText {
		rule(func(v *rows.Vector, row int) *sink.Misfit { return checkLength(v.Bytes(row), n) })
	}
	if c.typ == "json" && f == asText || f == asTextJSONB {
		rule(checkJSONText)
	}
	if c.kind == "e" {
		rule(func(v *rows.Vector, row int) *sink.Misfit {
			if slices.Contains(c.labels, string(v.Bytes(row))) {
				return nil
			}
			return &sink.Misfit{Code: "range", Reason: fmt.Sprintf("%.80q is none of the values of %s", v.Bytes(row), c.name)}
		})
	}
	return out
}

func checkText(v *rows.Vector, row int) *sink.Misfit {
	if bytes.IndexByte(v.Bytes(row), 0) >= 0 {
		return &sink.Misfit{Code: "range", Reason: "the text has a zero byte, which PostgreSQL does not take"}
	}
	return nil
}

func checkNested(v *rows.Vector, row int) *sink.Misfit {
	if zeroWithin(v, row) {
		return &sink.Misfit{Code: "range", Reason: "a text in it has a zero byte, which PostgreSQL does not take"}
	}
	return nil
}

// zeroWithin looks for a text with a zero byte in a value, at any level.
func zeroWithin(v *rows.Vector, slot int) bool {
	if v.Valid[slot] == 0 {
		return false
	}
	from, to := slot, slot+1
	switch v.Type.Kind {
	case rows.String:
		return bytes.IndexByte(v.Bytes(slot), 0) >= 0
	case rows.List, rows.Map:
		from, to = v.Span(slot)
	}
	for _, c := range v.Children {
		for i := from; i < to; i++ {
			if zeroWithin(c, i) {
				return true
			}
		}
	}
	return false
}

func checkJSONText(v *rows.Vector, row int) *sink.Misfit {
	b := v.Bytes(row)
	if !json.Valid(b) {
		return &sink.Misfit{Code: "type", Reason: fmt.Sprintf("the text is no JSON, as the column asks for: %.80q", b)}
	}
	if escapedZero(b) {
		return &sink.Misfit{Code: "range", Reason: "a text in it has a zero byte, which PostgreSQL does not take"}
	}
	return nil
}

// escapedZero looks for \u0000 in JSON.
func escapedZero(b []byte) bool {
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		if bytes.HasPrefix(b[i+1:], []byte("u0000")) {
			return true
		}
		i++
	}
	return false
}

func checkLength(b []byte, most int) *sink.Misfit {
	if len(b) <= most {
		return nil
	}
	n := 0
	for _, c := range b {
		if c&0xc0 != 0x80 {
			n++
		}
	}
	if n <= most {
		return nil
	}
	return &sink.Misfit{Code: "length", Reason: fmt.Sprintf("a text of %d characters, and the column takes %d", n, most)}
}

func checkUUID(v *rows.Vector, row int) *sink.Misfit {
	if _, ok := parseUUID(v.Bytes(row)); !ok {
		return &sink.Misfit{Code: "type", Reason: fmt.Sprintf("the text is no UUID: %.80q", v.Bytes(row))}
	}
	return nil
}

func checkCanonicalUUID(v *rows.Vector, row int) *sink.Misfit {
	b := v.Bytes(row)
	if _, ok := parseUUID(b); ok && len(b) == 36 && !bytes.ContainsAny(b, "ABCDEF") {
		return nil
	}
	return &sink.Misfit{Code: "type", Reason: fmt.Sprintf("a UUID in a key is written in lower case with hyphens: %.80q", b)}
}

// parseUUID reads 32 hexadecimal digits with or without the four hyphens.
func parseUUID(b []byte) (u [16]byte, ok bool) {
	n := 0
	for i, c := range b {
		if c == '-' && len(b) == 36 && (i == 8 || i == 13 || i == 18 || i == 23) {
			continue
		}
		var d byte
		switch {
		case c >= '0' && c <= '9':
			d = c - '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			d = c | 0x20 - 'a' + 10
		default:
			return u, false
		}
		if n == 32 {
			return u, false
		}
		u[n/2] = u[n/2]<<4 | d
		n++
	}
	return u, n == 32
}
