package transforms

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/wasmill/wasmill/abi"
)

// BenchmarkGuest times the guest's part alone: the call of wasmill_batch on chunks of 1,000 records that already lie in
// its memory, with a host that does not read what comes out. The number that counts is ns/record, the best of all rounds.
func BenchmarkGuest(b *testing.B) {
	inputs := map[string][]string{"f1": events(1000), "convert": orders(1000), "clean": benchFlights(1000)}
	for _, name := range []string{"f1", "convert", "clean"} {
		for _, lang := range []string{"rust", "go"} {
			module, ok := builds(name)[lang]
			if !ok {
				continue
			}
			b.Run(name+"/"+lang, func(b *testing.B) { benchGuest(b, start(b, name, module, ""), inputs[name]) })
		}
	}
}

func benchGuest(b *testing.B, g *guest, values []string) {
	recs := make([]abi.Record, len(values))
	for i, v := range values {
		recs[i] = abi.Record{Value: []byte(v), Key: []byte("user-012345"), Index: uint32(i)}
	}
	g.lane = uint32(len(recs))
	g.locate(recs)
	at, n := g.place(b, abi.FrameHeader{}, recs, g.locator.Len())
	out := 0
	g.visit = func(*abi.Record) { out++ }
	if status, err := g.call(at, n); status != 0 || err != nil || out == 0 {
		b.Fatal(status, err, out)
	}
	g.deaf = true
	best := int64(1 << 62)
	for b.Loop() {
		t := time.Now()
		if status, err := g.call(at, n); status != 0 || err != nil {
			b.Fatal(status, err)
		}
		best = min(best, time.Since(t).Nanoseconds())
	}
	b.ReportMetric(float64(best)/float64(len(recs)), "ns/record")
}

// events are n records of the benchmark F1, about 230 bytes each, the same on every machine.
func events(n int) []string {
	kinds := []string{"view", "click", "view", "add_to_cart", "purchase"}
	agents := []string{"Mozilla/5.0 (X11; Linux x86_64) Firefox/131.0", "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0) Safari/605", "okhttp/4.12.0 (Android 15; build 7781)"}
	x, lines := uint64(88172645463325252), []string(nil)
	for i := range n {
		x = x*6364136223846793005 + 1442695040888963407
		r := x >> 16
		lines = append(lines, fmt.Sprintf(`{"id":%d,"ts":"2026-01-02T00:00:%02d.%03dZ","user":"user-%06d","session":"%012x","event":"%s","page":"/products/%d?ref=%d","amount":%d.%02d,"qty":%d,"country":"DE","ua":"%s"}`,
			i, i%60, r%1000, r%50021, x&0xFFFFFFFFFFFF, kinds[r%5], r%9973, r%97, r%1000000/100, r%100, r%7, agents[r%3]))
	}
	return lines
}

func benchFlights(n int) []string {
	return slices.Repeat([]string{flight}, n)
}
