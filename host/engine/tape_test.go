package engine

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/abi"
)

func drawBytes(t *rapid.T, name string) []byte {
	if rapid.IntRange(0, 3).Draw(t, name+" null") == 0 {
		return nil
	}
	b := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, name)
	if b == nil {
		b = []byte{}
	}
	return b
}

func TestTapeGivesBackWhatItTook(t *testing.T) {
	var tp tape
	rapid.Check(t, func(t *rapid.T) {
		tp.reset() // memory of the round before
		var want []abi.Record
		for i := range rapid.IntRange(0, 12).Draw(t, "records") {
			r := abi.Record{Key: drawBytes(t, "key"), Value: drawBytes(t, "value"), Index: abi.NoIndex}
			if rapid.Bool().Draw(t, "large") && i%7 == 0 {
				r.Value = make([]byte, blockSize+i)
			}
			if rapid.Bool().Draw(t, "timed") {
				r.Flags, r.EventTime = abi.FlagEventTime, rapid.Int64().Draw(t, "time")
			}
			r.Port = rapid.Uint16().Draw(t, "port")
			for range rapid.IntRange(0, 3).Draw(t, "headers") {
				r.Headers = append(r.Headers, abi.Header{Name: append([]byte{}, drawBytes(t, "name")...), Value: drawBytes(t, "header")})
			}
			tp.add(&r)
			want = append(want, r)
		}
		n := 0
		err := tp.each(func(i int, r *abi.Record) error {
			if i != n || !reflect.DeepEqual(want[i], *r) { // cmp looks at each byte of large values, for half a minute
				return fmt.Errorf("record %d at %d: %s", i, n, cmp.Diff(want[i], *r))
			}
			n++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n != len(want) || tp.count != n {
			t.Fatalf("%d records, want %d", n, len(want))
		}
	})
}

func TestTapeStopsWithTheReader(t *testing.T) {
	var tp tape
	for range 3 {
		tp.add(&abi.Record{Value: []byte("v")})
	}
	stop := fmt.Errorf("enough")
	if err := tp.each(func(i int, _ *abi.Record) error {
		if i == 1 {
			return stop
		}
		return nil
	}); err != stop {
		t.Errorf("got %v", err)
	}
}

func BenchmarkTape(b *testing.B) {
	var tp tape
	r := abi.Record{Value: make([]byte, 232), Key: make([]byte, 11)}
	b.ReportAllocs()
	for b.Loop() {
		tp.reset()
		for range 1000 {
			tp.add(&r)
		}
		if err := tp.each(func(int, *abi.Record) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/record")
}
