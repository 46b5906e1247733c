package rows_test

import (
	"bytes"
	"fmt"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/rowstest"
)

// escaped writes a JSON text again, in which characters of strings stand as escapes.
func escaped(t *rapid.T, text []byte) []byte {
	var out []byte
	inside := false
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case r == '"':
			inside = !inside
		case inside && r == '\\' && text[i+1] == 'u':
			size = len(`\u0000`)
		case inside && r == '\\':
			size++
		case inside && r == '/' && rapid.Bool().Draw(t, "solidus"):
			out = append(out, '\\')
		case inside && rapid.IntRange(0, 3).Draw(t, "escape") == 0:
			for _, unit := range utf16.Encode([]rune{r}) {
				out = fmt.Appendf(out, rapid.SampledFrom([]string{`\u%04x`, `\u%04X`}).Draw(t, "form"), unit)
			}
			i += size
			continue
		}
		out = append(out, text[i:i+size]...)
		i += size
	}
	return out
}

// TestEscapesAreOnlyAWayToWrite a string: whatever its column is of, keys of maps included.
func TestEscapesAreOnlyAWayToWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rowstest.Schema(t, 3)
		object := rowstest.Object(t, s)
		other := escaped(t, object)
		table := rows.NewTable(s)
		if err := table.Append(other); err != nil {
			t.Fatalf("%s does not take %s: %v", rowstest.Describe(s), other, err)
		}
		if got := rowstest.JSON(table, 0); !bytes.Equal(got, object) {
			t.Fatalf("%s became %s, want %s", other, got, object)
		}
	})
}
