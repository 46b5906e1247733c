package job

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"
)

func TestParseDuration(t *testing.T) {
	for _, tt := range []struct {
		text, suggestion, err string
		ms                    int64
	}{
		{text: "0s"},
		{text: "1s", ms: 1000},
		{text: "500ms", ms: 500},
		{text: "1.5h", ms: 5_400_000},
		{text: "1h30m", ms: 5_400_000},
		{text: "1d12h", ms: 36 * hour},
		{text: "10 s", ms: 10_000},
		{text: "999999999999999999d", ms: maxQuantity},
		{text: "10", suggestion: `"10s"`, err: "is not a duration"},
		{text: "10 seconds", suggestion: `"10s"`, err: "has no unit of time"},
		{text: "5S", suggestion: `"5s"`, err: "has no unit of time"},
		{text: "1h1h", err: "larger units first"},
		{text: "1ms1s", err: "larger units first"},
		{text: "0.0001s", err: "whole number of milliseconds"},
		{text: "-1s", err: "is not a duration"},
		{text: "", err: "is not a duration"},
		{text: "s", err: "is not a duration"},
		{text: "1s ", err: "is not a duration"},
		{text: "1e3s", err: "has no unit of time"},
	} {
		ms, suggestion, err := parseDuration(tt.text)
		if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%q: error %v, want %q", tt.text, err, tt.err)
		}
		if err == nil && ms != tt.ms || suggestion != tt.suggestion {
			t.Errorf("%q: %d ms, suggestion %s; want %d, %s", tt.text, ms, suggestion, tt.ms, tt.suggestion)
		}
	}
}

func TestParseSize(t *testing.T) {
	for _, tt := range []struct {
		text, suggestion, err string
		n                     int64
	}{
		{text: "100B", n: 100},
		{text: "64MiB", n: 64 << 20},
		{text: "1GB", n: 1_000_000_000},
		{text: "1.5KiB", n: 1536},
		{text: "2 TiB", n: 2 << 40},
		{text: "999999999999TiB", n: maxQuantity},
		{text: "64", suggestion: `"64MiB"`, err: "is not a size"},
		{text: "64mb", suggestion: `"64MB"`, err: "has no unit of size"},
		{text: "64M", suggestion: `"64MiB"`, err: "has no unit of size"},
		{text: "64Mi", suggestion: `"64MiB"`, err: "has no unit of size"},
		{text: "1.0001B", err: "whole number of bytes"},
		{text: "1MiB1B", err: "is not a size"},
		{text: "-1B", err: "is not a size"},
	} {
		n, suggestion, err := parseSize(tt.text)
		if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%q: error %v, want %q", tt.text, err, tt.err)
		}
		if err == nil && n != tt.n || suggestion != tt.suggestion {
			t.Errorf("%q: %d bytes, suggestion %s; want %d, %s", tt.text, n, suggestion, tt.n, tt.suggestion)
		}
	}
}

func TestQuantitiesAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, maxQuantity/2).Draw(t, "n")
		if got, _, err := parseDuration(formatDuration(n)); err != nil || got != n {
			t.Fatalf("%d ms is written %s and read as %d, %v", n, formatDuration(n), got, err)
		}
		if got, _, err := parseSize(formatSize(n)); err != nil || got != n {
			t.Fatalf("%d bytes is written %s and read as %d, %v", n, formatSize(n), got, err)
		}
	})
}

// TestScalarsFollowTheCoreSchema: the library still takes some YAML 1.1, job files do not.
func TestScalarsFollowTheCoreSchema(t *testing.T) {
	for text, want := range map[string]scalarKind{
		"~": scalarNull, "null": scalarNull, "NULL": scalarNull, "nUll": scalarText,
		"true": scalarBool, "False": scalarBool, "yes": scalarText, "on": scalarText, "n": scalarText,
		"12": scalarInt, "-3": scalarInt, "+3": scalarInt, "0777": scalarInt, "0o17": scalarInt, "0xfF": scalarInt,
		"1_000": scalarText, "0b11": scalarText, "1:30": scalarText, "-0x1": scalarText,
		"1.5": scalarFloat, ".5": scalarFloat, "1e3": scalarFloat, "-.inf": scalarFloat, ".NaN": scalarFloat, "1.": scalarFloat,
		"2026-01-01": scalarText, `"12"`: scalarText, "'true'": scalarText, "x": scalarText, ".": scalarText,
	} {
		var n yaml.Node
		if err := yaml.Load([]byte(text), &n); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := scalar(n.Content[0]); got != want {
			t.Errorf("%s is %d, want %d", text, got, want)
		}
	}
	for text, want := range map[string]string{"0777": "777", "0o17": "15", "0x1F": "31", "+3": "3", "-0": "0", "0xz": "0"} {
		if got := integer(text).String(); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

func TestClosest(t *testing.T) {
	names := []string{"interval", "availableNow", "lanes", "path", "format"}
	for word, want := range map[string]string{
		"intervall": `"interval"`, "available_now": `"availableNow"`, "AVAILABLENOW": `"availableNow"`, "fromat": `"format"`,
		"pth": `"path"`, "wallpaper": "", "": "", "x": "", strings.Repeat("path", 100): "",
	} {
		if got := closest(word, names); got != want {
			t.Errorf("closest to %q is %s, want %s", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "ab", 1}, {"abc", "xyz", 3}, {"kitten", "sitting", 3}} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("distance of %q and %q is %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z]{0,12}`)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if distance(a, b) != distance(b, a) || (distance(a, b) == 0) != (a == b) {
			t.Fatalf("%q to %q is %d, back %d", a, b, distance(a, b), distance(b, a))
		}
	})
}
