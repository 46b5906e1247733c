package generator

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/job"
)

// TestReferenceNamesFields: the reference of job files names every field of every kind of records.
func TestReferenceNamesFields(t *testing.T) {
	var said string
	for line := range strings.Lines(string(job.Reference())) {
		if strings.HasPrefix(line, "| `kind` |") {
			said = line
		}
	}
	words := map[string]bool{}
	for _, w := range strings.FieldsFunc(said, func(r rune) bool { return strings.ContainsRune(" ,;.():", r) }) {
		words[w] = true
	}
	for _, cfg := range []Config{{Kind: KindOrders}, {Kind: KindNexmark, Nexmark: Nexmark{Flat: true, EventRate: 100, BaseMS: 1, OutOfOrder: 1}}} {
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		events := s.stream.events()
		for n := range int64(200) {
			var r abi.Record
			events(n, &r)
			var fields map[string]any
			if err := json.Unmarshal(r.Value, &fields); err != nil || len(fields) < 7 {
				t.Fatalf("%s: %v", r.Value, err)
			}
			for name := range fields {
				if !words[name] {
					t.Fatalf("%s: the reference does not name %s: %s", cfg.Kind, name, said)
				}
			}
		}
	}
}
