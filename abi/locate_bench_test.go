package abi

import (
	"encoding/json"
	"testing"
)

var (
	twoOrderFields = []string{"/status", "/amount"}
	allOrderFields = []string{"/order_id", "/customer", "/amount", "/currency", "/status", "/created_at", "/note"}
	flightFields   = []string{"/dep_time", "/dep_delay", "/arr_delay", "/carrier", "/flight", "/tailnum", "/origin", "/dest", "/air_time", "/distance", "/time_hour"}
)

func benchmarkLocate(b *testing.B, values [][]byte, pointers []string) {
	l, err := NewLocator(pointers)
	if err != nil {
		b.Fatal(err)
	}
	out := make([]Field, l.Len())
	b.ReportAllocs()
	b.SetBytes(int64(totalBytes(values) / len(values)))
	for i := 0; b.Loop(); i++ {
		if !l.Locate(values[i&(len(values)-1)], out) {
			b.Fatal("not JSON")
		}
	}
}

func totalBytes(values [][]byte) int {
	n := 0
	for _, v := range values {
		n += len(v)
	}
	return n
}

func BenchmarkLocate(b *testing.B) {
	b.Run("order/2", func(b *testing.B) { benchmarkLocate(b, orders(1024), twoOrderFields) })
	b.Run("order/7", func(b *testing.B) { benchmarkLocate(b, orders(1024), allOrderFields) })
	b.Run("flight/11", func(b *testing.B) { benchmarkLocate(b, flights(1024), flightFields) })
	b.Run("order/valid", func(b *testing.B) {
		values := orders(1024)
		for i := 0; b.Loop(); i++ {
			if !ValidJSON(values[i&1023]) {
				b.Fatal("not JSON")
			}
		}
	})
	b.Run("order/encoding-json-valid", func(b *testing.B) {
		values := orders(1024)
		for i := 0; b.Loop(); i++ {
			if !json.Valid(values[i&1023]) {
				b.Fatal("not JSON")
			}
		}
	})
}
