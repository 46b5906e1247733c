package avro

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/wasmill/wasmill/host/rows/jsonvalue"
)

type goldenCase struct{ Name, Schema, Payload, JSON string }

func goldenCases(t testing.TB) []goldenCase {
	t.Helper()
	b, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []goldenCase
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 60 {
		t.Fatalf("only %d cases", len(cases))
	}
	return cases
}

func (c *goldenCase) payload(t testing.TB) []byte {
	t.Helper()
	b, err := hex.DecodeString(c.Payload)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parsed(t testing.TB, text string, refs ...string) *Schema {
	t.Helper()
	s, err := Parse(text, refs)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

func encode(s *Schema, text string) ([]byte, error) {
	var d jsonvalue.Doc
	v, err := d.Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	return s.NewEncoder().Append(nil, v)
}

// TestPayloadsOfFastavro reads what another implementation has written, and writes the same bytes.
func TestPayloadsOfFastavro(t *testing.T) {
	for _, c := range goldenCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			s := parsed(t, c.Schema)
			got, err := s.AppendJSON([]byte("before"), c.payload(t))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != "before"+c.JSON {
				t.Fatalf("got %s, want %s", got[6:], c.JSON)
			}
			back, err := encode(s, c.JSON)
			if err != nil {
				t.Fatal(err)
			}
			if c.Name == "decimal -0.0128" { // in the fewest bytes, as Java does; fastavro takes one more
				c.Payload = "0280"
			}
			if hex.EncodeToString(back) != c.Payload {
				t.Errorf("written again: %x, want %s", back, c.Payload)
			}
		})
	}
}

// TestCutPayloads: no prefix of a payload reads as one, and none makes a panic.
func TestCutPayloads(t *testing.T) {
	for _, c := range goldenCases(t) {
		b := c.payload(t)
		s := parsed(t, c.Schema)
		for n := range b {
			if got, err := s.AppendJSON(nil, b[:n]); err == nil {
				t.Errorf("%s: %d of %d bytes read as %s", c.Name, n, len(b), got)
			}
		}
		if got, err := s.AppendJSON(nil, append(b, 0)); err == nil {
			t.Errorf("%s: with one byte more it reads as %s", c.Name, got)
		}
	}
}
