package sandbox

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/wasmill/wasmill/abi"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// modules to measure: the smallest one there is, and real ones in Rust and Go.
func benchModules(b *testing.B) map[string][]byte {
	b.Helper()
	rust, err := os.ReadFile("../../transforms/clean/clean.wasm")
	if err != nil {
		b.Fatal(err)
	}
	return map[string][]byte{"smallest": w.Transform(w.Const(0), w.Echo()).Bytes(), "rust": rust, "go": builtGoGuest(b)}
}

func benchEngine(b *testing.B) Engine {
	b.Helper()
	e, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return e
}

// BenchmarkInstance is what a lane of a batch costs before its first record: a fresh instance, its start-up, its end.
func BenchmarkInstance(b *testing.B) {
	for name, wasm := range benchModules(b) {
		b.Run(name, func(b *testing.B) {
			p := started(b, benchEngine(b), wasm, Options{})
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				in, err := p.New(ctx, Lane{})
				if err != nil {
					b.Fatal(err)
				}
				if err := in.Close(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCall is what the boundary costs: records of 223 bytes that a guest emits as they lie.
func BenchmarkCall(b *testing.B) {
	for _, n := range []int{0, 1, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := started(b, benchEngine(b), w.Transform(w.Const(0), w.Echo()).Bytes(), Options{Limits: Limits{Output: 1 << 60}})
			in := lane(b, p)
			recs := make([]abi.Record, n)
			for i := range recs {
				recs[i] = abi.Record{Value: make([]byte, 223), Index: uint32(i)}
			}
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				if err := in.Call(ctx, Call{Records: recs}, discard); err != nil {
					b.Fatal(err)
				}
			}
			if n > 0 {
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/record")
			}
		})
	}
}

// BenchmarkCompile is what a module costs before it can run, without a cache.
func BenchmarkCompile(b *testing.B) {
	for name, wasm := range benchModules(b) {
		b.Run(name, func(b *testing.B) {
			e := benchEngine(b)
			ctx := context.Background()
			for b.Loop() {
				m, err := e.Compile(ctx, Binary{Name: name, Wasm: wasm})
				if err != nil {
					b.Fatal(err)
				}
				if err := m.Close(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
