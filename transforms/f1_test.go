package transforms

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/abi"
)

func TestF1(t *testing.T) {
	tests := []struct {
		name, in string
		want     []out
	}{
		{"kept", `{"event":"click","amount":12.34,"q":1}`, []out{{Value: `{"event":"click","amount":12.34,"q":1,"cents":1234}`}}},
		{"half up", `{"amount":1.005,"event":"c"} `, []out{{Value: `{"amount":1.005,"event":"c","cents":101}`}}},
		{"large", `{"amount":123456789012.3,"event":"c"}`, []out{{Value: `{"amount":123456789012.3,"event":"c","cents":12345678901230}`}}},
		{"minus", `{"amount":-0.5e1,"event":"c"}`, []out{{Value: `{"amount":-0.5e1,"event":"c","cents":-500}`}}},
		{"no amount", `{"event":"c"}`, []out{{Value: `{"event":"c","cents":null}`}}},
		{"a view", `{"event":"view","amount":1}`, nil},
		{"a view with escapes", `{"event":"v\u0069ew","amount":1}`, nil},
		{"no event", `{"amount":1}`, nil},
		{"event is null", `{"event":null,"amount":1}`, nil},
		{"event is a number", `{"event":1,"amount":1}`, []out{dead(0, "/event is not a string: 1")}},
		{"amount is a string", `{"event":"c","amount":"1"}`, []out{dead(0, "/amount is not a number in range: 1")}},
		{"amount is too large", `{"event":"c","amount":1e40}`, []out{dead(0, "/amount is not a number in range: 1e40")}},
		{"not JSON", `{"event":"c"`, []out{dead(1, "the value is not JSON")}},
	}
	for lang, module := range builds("f1") {
		t.Run(lang, func(t *testing.T) {
			var in []string
			var want []out
			for i, tt := range tests {
				in = append(in, tt.in)
				for _, o := range tt.want {
					o.Index = uint32(i)
					want = append(want, o)
				}
			}
			if diff := cmp.Diff(want, start(t, "f1", module, "").run(t, in)); diff != "" {
				t.Errorf("outputs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestF1Cents compares with exact rational arithmetic over the records of the benchmark.
func TestF1Cents(t *testing.T) {
	lines := events(5000)
	for lang, module := range builds("f1") {
		t.Run(lang, func(t *testing.T) {
			got := start(t, "f1", module, "").run(t, lines)
			kept := 0
			for i, line := range lines {
				if strings.Contains(line, `"event":"view"`) {
					continue
				}
				_, amount, _ := strings.Cut(line, `"amount":`)
				amount, _, _ = strings.Cut(amount, ",")
				cents, _ := new(big.Rat).SetString(amount)
				cents.Mul(cents, big.NewRat(100, 1))
				want := fmt.Sprintf(`%s,"cents":%s}`, strings.TrimSuffix(line, "}"), cents.RatString())
				if kept >= len(got) || got[kept].Value != want || got[kept].Index != uint32(i) {
					t.Fatalf("record %d: output %d is not %s", i, kept, want)
				}
				kept++
			}
			if kept != len(got) {
				t.Errorf("%d outputs, want %d", len(got), kept)
			}
		})
	}
}

// TestLanguagesAgree hands the same random records to the modules of both languages.
func TestLanguagesAgree(t *testing.T) {
	for name, keys := range map[string][]string{
		"f1":      {"event", "amount"},
		"convert": {"status", "amount", "currency", "other"},
		"clean":   {"dep_time", "origin", "dep_delay", "arr_delay", "distance", "air_time", "carrier", "flight", "tailnum", "dest", "time_hour", "other"},
	} {
		t.Run(name, func(t *testing.T) {
			guests := map[string]*guest{}
			for lang, module := range builds(name) {
				guests[lang] = start(t, name, module, "")
			}
			values := rapid.SliceOfN(record(keys), 1, 20)
			rapid.Check(t, func(rt *rapid.T) {
				in := values.Draw(rt, "values")
				got := map[string][]out{}
				for lang, g := range guests {
					g.lane = 0
					got[lang] = g.run(t, in)
				}
				if diff := cmp.Diff(got["rust"], got["go"]); diff != "" {
					rt.Fatalf("outputs (-rust +go):\n%s", diff)
				}
			})
		})
	}
}

// record draws an object of some of these members, with values that the transforms take or refuse, or no object.
func record(keys []string) *rapid.Generator[string] {
	value := rapid.OneOf(
		rapid.SampledFrom([]string{"null", "true", "{}", "[1]", `""`, `"view"`, `"vi\u0065w"`, `"cancelled"`, `"EUR"`, `"GB\u0050"`, `"JPY"`, `"\ud83d\ude00\""`, `"a string of more than sixteen, in fact of more than 64 bytes, for the slow ways"`}),
		rapid.StringMatching(`"[a-zA-Z0-9 ,}]{0,40}"`),
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,3})`),
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})`),
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,8})\.[0-9]{1,10}`),
		rapid.StringMatching(`-?[1-9](\.[0-9]{1,3})?[eE][+-]?[0-9]{1,2}`),
		rapid.SampledFrom([]string{"9223372036854775807", "-9223372036854775808", "9223372036854775808", "-0", "0.005", "92233720368547758.07"}),
	)
	return rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 30).Draw(t, "broken") == 0 {
			return rapid.SampledFrom([]string{"", "{", "7", "[]", `"x"`, "{} {}", " { } ", "\xff"}).Draw(t, "text")
		}
		var b strings.Builder
		b.WriteString("{")
		for i, key := range keys {
			if rapid.IntRange(0, 9).Draw(t, "left out") == 0 && i < len(keys)-1 {
				continue
			}
			fmt.Fprintf(&b, "%q:%s,", key, value.Draw(t, key))
		}
		return strings.TrimSuffix(b.String(), ",") + rapid.SampledFrom([]string{"}", " }\n"}).Draw(t, "end")
	})
}

// TestLargeRecords: a lone record may be far larger than the arenas made at the start.
func TestLargeRecords(t *testing.T) {
	long := strings.Repeat("x", 5<<20)
	in := []string{
		`{"event":"click","amount":1,"blob":"` + long + `"}`,
		`{"event":"click","amount":2}`,
		`{"event":"` + long + `","amount":3}`,
	}
	for lang, module := range builds("f1") {
		t.Run(lang, func(t *testing.T) {
			got := start(t, "f1", module, "").run(t, in)
			if len(got) != len(in) {
				t.Fatalf("%d outputs, want %d", len(got), len(in))
			}
			for i, o := range got {
				if want := strings.TrimSuffix(in[i], "}") + fmt.Sprintf(`,"cents":%d}`, 100*(i+1)); o.Value != want || o.Kind != abi.KindRecord {
					t.Errorf("output %d: %d bytes, want %d", i, len(o.Value), len(want))
				}
			}
		})
	}
}
