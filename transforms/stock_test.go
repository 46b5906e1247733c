package transforms

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

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
			start := time.Now()
			g := stateless(b, c.module, c.config)
			b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms-load")
			benchGuest(b, g, bids(1000))
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
