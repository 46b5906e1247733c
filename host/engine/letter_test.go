package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/engine/sim"
)

// TestLetterFitsItsSink: a record that is too large for the sink of the dead letters is cut until its letter goes in. A sink
// that takes no letter at all stops the job with words.
func TestLetterFitsItsSink(t *testing.T) {
	large := "fail" + strings.Repeat("x", 3<<20)
	for name, c := range map[string]struct {
		most, value int
		truncated   bool
		code        string
	}{
		"no limit":        {value: 1 << 20, truncated: true},
		"less than 1 MiB": {most: 1_000_012, value: 64 << 10, truncated: true},
		"much less":       {most: 10_000, value: 4 << 10, truncated: true},
		"room for none":   {most: 1000, value: 0, truncated: true},
		"no room":         {most: 10, code: engine.CodeLetterRefused},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.deadMost = c.most
			w.in.Append("a", large, "b")
			err := w.run(&sim.Process{})
			if c.code != "" {
				if !isCode(err, c.code) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			w.wantValues("main", "a", "b")
			letters := w.stores["dead"].Values("dead")
			if len(letters) != 1 {
				t.Fatalf("%d letters", len(letters))
			}
			var l struct {
				Value     string
				Truncated bool
			}
			if err := json.Unmarshal([]byte(letters[0]), &l); err != nil {
				t.Fatal(err)
			}
			if len(l.Value) != c.value || l.Truncated != c.truncated {
				t.Errorf("the letter has %d bytes of value, truncated %v; want %d, %v", len(l.Value), l.Truncated, c.value, c.truncated)
			}
		})
	}
}
