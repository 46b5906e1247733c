package protobuf

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/wasmill/wasmill/host/rows/jsonvalue"
)

type goldenCase struct{ Name, Source, Message, Payload, JSON string }

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
	if len(cases) < 50 {
		t.Fatalf("only %d cases", len(cases))
	}
	return cases
}

// schemas compiles each source once.
type schemas map[string]*Schema

func (all schemas) message(t testing.TB, source, name string) Message {
	t.Helper()
	if all[source] == nil {
		s, err := Parse(source, nil)
		if err != nil {
			t.Fatal(err)
		}
		all[source] = s
	}
	m, _, err := all[source].Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func encode(m Message, text string) ([]byte, error) {
	var d jsonvalue.Doc
	v, err := d.Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	return m.Append(nil, v)
}

// TestPayloadsOfGoogle reads what another implementation has written, and writes the same bytes, but for the order of maps.
func TestPayloadsOfGoogle(t *testing.T) {
	all := schemas{}
	for _, c := range goldenCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			m := all.message(t, c.Source, c.Message)
			payload, err := hex.DecodeString(c.Payload)
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.AppendJSON([]byte("before"), payload)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != "before"+c.JSON {
				t.Fatalf("got  %s\nwant %s", got[6:], c.JSON)
			}
			back, err := encode(m, c.JSON)
			if err != nil {
				t.Fatal(err)
			}
			if hex.EncodeToString(back) != c.Payload {
				t.Errorf("written again: %x, want %s", back, c.Payload)
			}
		})
	}
}
