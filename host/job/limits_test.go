package job

import (
	"strings"
	"testing"
)

func TestParseLimits(t *testing.T) {
	for text, want := range map[string]Limits{
		"{}":             {Memory: 64 * mib, FuelCall: 50_000_000, FuelRecord: 2_000_000, Depth: 1000, Output: 64 * mib, Log: 64 * kib},
		"memory: 128MiB": {Memory: 128 * mib, FuelCall: 50_000_000, FuelRecord: 2_000_000, Depth: 1000, Output: 64 * mib, Log: 64 * kib},
		"{fuel: {call: 1000, record: 1}, depth: 16, output: 1MiB, log: 1KiB}": {
			Memory: 64 * mib, FuelCall: 1000, FuelRecord: 1, Depth: 16, Output: mib, Log: kib,
		},
	} {
		if got, err := ParseLimits("--limits", []byte(text), false); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func TestLimitsOfStockTransforms(t *testing.T) {
	for text, want := range map[string]uint64{"{}": StockFuel, "{fuel: {call: 1000}}": 1000, "{fuel: {record: 1}}": StockFuel} {
		if got, err := ParseLimits("--limits", []byte(text), true); err != nil || got.FuelCall != want {
			t.Errorf("%s: %d, %v", text, got.FuelCall, err)
		}
	}
}

func TestParseLimitsSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "--limits:1:1: the file is empty",
		"128MiB":               "--limits:1:1: limits: expected an object, got \"128MiB\"",
		"{memori: 1MiB}":       `limits: unknown field "memori"; did you mean "memory"?`,
		"{memory: 100KiB}":     "--limits:1:10: limits.memory: 100KiB is no multiple of 64KiB",
		"{memory: 4GiB}":       "4GiB is out of range; allowed is 64KiB to 2GiB",
		"{memory: 128}":        `limits.memory: "128" is not a size; write a number and a unit: 64MiB, 1GB, 512KiB, 100B; did you mean "128MiB"?`,
		"{depth: 5000}":        "limits.depth: 5000 is out of range; allowed is 16 to 1900",
		"{fuel: {call: 1e99}}": "limits.fuel.call: ",
		"[":                    "not YAML",
	} {
		_, err := ParseLimits("--limits", []byte(text), false)
		all := mistakesOf(t, err)
		if !strings.Contains(err.Error(), want) || !strings.Contains(all.Hint(), "such as '{memory: 64MiB") {
			t.Errorf("%s: %v (%s)", text, err, all.Hint())
		}
	}
}

// TestSuggestionsAreAllowed has no unit suggested that makes the value one that is refused.
func TestSuggestionsAreAllowed(t *testing.T) {
	for text, want := range map[string]string{
		"{memory: 67108864}": `"67108864B"`, "{memory: 2048}": `"2048MiB"`, "{memory: 2049}": "", "{memory: 64mb}": `"64MB"`, "{memory: 9gib}": "",
	} {
		_, err := ParseLimits("--limits", []byte(text), false)
		if got := mistakesOf(t, err).List[0].Suggestion; got != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}
