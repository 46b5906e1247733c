package kit

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmill/wasmill/abi"
)

// BenchmarkCExample is the guest's part of the example alone: frames of 1,000 records of 232 bytes, compiled.
func BenchmarkCExample(b *testing.B) {
	for _, file := range []string{"example/f1.wasm", "test/f1-swar.wasm"} {
		b.Run(filepath.Base(file), func(b *testing.B) {
			wasm, err := os.ReadFile(filepath.Join("..", "sdk", "c", file))
			if err != nil {
				b.Fatal(err)
			}
			p, err := reference{compiled: true}.Start(&Case{Wasm: wasm, Config: json.RawMessage("{}")}, func(Log) {})
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close()
			in, err := p.Lane(LaneOptions{})
			if err != nil {
				b.Fatal(err)
			}
			benchmarkFrames(b, p.Manifest(), in.(*refLane))
		})
	}
}

func benchmarkFrames(b *testing.B, m *abi.Manifest, l *refLane) {
	locator, err := abi.NewLocator(m.Inputs[0].Fields)
	if err != nil {
		b.Fatal(err)
	}
	recs := make([]abi.Record, 1000)
	for i := range recs {
		recs[i] = abi.Record{Index: uint32(i), Fields: make([]abi.Field, locator.Len()), Value: fmt.Appendf(nil,
			`{"id":%d,"ts":"2026-01-02T00:00:00.083Z","user":"user-%06d","session":"0123456789ab","event":"%s","page":"/products/%d?ref=7",`+
				`"amount":%d.%02d,"qty":3,"country":"DE","ua":"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0) Safari/605"}`,
			i, i, []string{"view", "click", "view", "add_to_cart", "purchase"}[i%5], i, i, i%100)}
		if !locator.Locate(recs[i].Value, recs[i].Fields) {
			b.Fatal("not JSON")
		}
	}
	frame := make([]byte, abi.FrameSize(recs, locator.Len()))
	ptr, err := l.put(b.Context(), frame)
	if err != nil {
		b.Fatal(err)
	}
	if err := abi.PutFrame(frame, ptr, abi.FrameHeader{}, recs, locator.Len()); err != nil {
		b.Fatal(err)
	}
	batch := l.mod.ExportedFunction("wasmill_batch")
	l.visit = func(*abi.Record) error { return nil }
	l.rules.MaxBytes = 1 << 60
	for b.Loop() {
		l.mod.Memory().Write(ptr, frame)
		if res, err := batch.Call(b.Context(), uint64(ptr), uint64(len(frame))); err != nil || res[0] != 0 {
			b.Fatal(res, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(recs)), "ns/record")
}
