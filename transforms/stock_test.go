package transforms

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
)

// stateless loads a stock module that needs no state on plain wazero.
func stateless(tb testing.TB, name, config string) *guest {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(name, "rust", "manifest.json"))
	if err != nil {
		tb.Fatal(err)
	}
	m, err := abi.ParseManifest(text)
	if err != nil {
		tb.Fatal(err)
	}
	wasm, _, ok := Stock(name)
	if !ok {
		tb.Fatalf("there is no stock transform %s", name)
	}
	return load(tb, wasm, m, config)
}

// TestStockModules: each has its manifest in its section, under its own name, a schema of its configuration, a summary, a
// reference and a configuration that it is tried out with; and none is large.
func TestStockModules(t *testing.T) {
	total := 0
	for _, name := range StockNames() {
		wasm, sidecar, ok := Stock(name)
		if !ok || sidecar != nil {
			t.Fatalf("%s: %v, sidecar %q", name, ok, sidecar)
		}
		total += len(wasm)
		text, err := os.ReadFile(filepath.Join(name, "rust", "manifest.json"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(wasm, append([]byte("\x07wasmill"), text...)) {
			t.Errorf("%s has no section with its manifest: run transforms/build.sh rust", name)
		}
		m, err := abi.ParseManifest(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m.Name != name || !json.Valid(m.Config) || m.Outputs[0].Name != "out" {
			t.Errorf("%s: name %s, schema %s, first output %s", name, m.Name, m.Config, m.Outputs[0].Name)
		}
		reference := StockReference(name)
		for _, o := range m.Outputs[1:] {
			if !strings.Contains(reference, "`"+o.Name+"`") {
				t.Errorf("%s/README.md says nothing of the output %s", name, o.Name)
			}
		}
		if StockSummary(name) == "" || !strings.HasPrefix(reference, "# "+name+"\n") || stockConfigs[name] == "" {
			t.Errorf("%s: summary %q, reference %.20q, configuration %q", name, StockSummary(name), reference, stockConfigs[name])
		}
	}
	if total > 2<<20 {
		t.Errorf("the stock modules have %d bytes: they are part of the program", total)
	}
	if _, _, ok := Stock("stock"); ok || StockReference("clean") != "" || !strings.HasPrefix(ExpressionReference(), "# Expressions\n") {
		t.Error("other names are known, or the expressions are not described")
	}
}

// TestStockSchemas: what the schema of a configuration names is what the reference describes, and the other way round.
func TestStockSchemas(t *testing.T) {
	for _, name := range StockNames() {
		text, err := os.ReadFile(filepath.Join(name, "rust", "manifest.json"))
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			Config struct {
				Type                 string
				AdditionalProperties *bool
				Properties           map[string]struct{ Description string }
			}
		}
		fromJSON(t, string(text), &m)
		if m.Config.Type != "object" || m.Config.AdditionalProperties == nil || *m.Config.AdditionalProperties {
			t.Errorf("%s: the schema takes any setting", name)
		}
		for setting, s := range m.Config.Properties {
			if s.Description == "" || !strings.Contains(StockReference(name), "`"+setting+"`") {
				t.Errorf("%s: setting %s: description %q, or not in its README.md", name, setting, s.Description)
			}
		}
	}
}

// BenchmarkStock times the guest's part alone of expressions over bids of 250 bytes.
func BenchmarkStock(b *testing.B) {
	for _, c := range []struct{ name, module, config string }{
		{"filter", "filter", `{"where":"/event_type = 2"}`},
		{"q1", "map", `{"where":"/event_type = 2","fields":["/auction","/bidder",{"price":"0.908 * /price"},"/dateTime","/extra"]}`},
		{"q2", "map", `{"where":"/event_type = 2 and /auction % 2 = 0","fields":["/auction","/price"]}`},
		{"q14", "map", `{"where":"/event_type = 2 and 0.908 * /price > 1000 and 0.908 * /price < 50000000","fields":["/auction",{"t":"case when hour(/dateTime) between 8 and 18 then 'dayTime' when hour(/dateTime) <= 6 or hour(/dateTime) >= 20 then 'nightTime' else 'otherTime' end"},"/dateTime","/extra",{"c":"count(/extra, 'c')"}]}`},
		{"q22", "map", `{"fields":[{"dir1":"split(/url, '/', 3)"},{"dir2":"split(/url, '/', 4)"},{"dir3":"split(/url, '/', 5)"}]}`},
		{"set", "map", `{"set":{"/price_eur":"/price * 0.92"},"drop":["/extra"]}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			benchGuest(b, stateless(b, c.module, c.config), bids(1000))
		})
	}
}

// bids are n bids of the Nexmark benchmark, about 250 bytes each, the same on every machine.
func bids(n int) []string {
	x, lines := uint64(88172645463325252), []string(nil)
	for i := range n {
		x = x*6364136223846793005 + 1442695040888963407
		r := x >> 16
		lines = append(lines, fmt.Sprintf(`{"event_type":2,"auction":%d,"bidder":%d,"price":%d,"channel":"channel-%d","url":"https://www.nexmark.com/abc/defg/hij/item.htm?query=1&channel_id=%d","dateTime":%d,"extra":"%032x"}`,
			1000+r%5000, 1000+r%997, 100+r%100000000, r%10000, r%10000, 1700000000000+i, x))
	}
	return lines
}
