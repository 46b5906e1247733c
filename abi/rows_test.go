package abi

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
)

// TestVectorsRows writes rows with what they stand for. host/rows reads them, and the SDKs write the same.
func TestVectorsRows(t *testing.T) {
	const flat = "id: int64, small: int8, short: int16, n: int32, ok: boolean, f: float, d: double, day: date, at: timestamp, s: string, b: binary, " +
		"p: decimal(9,2), q: decimal(18,4), w: decimal(38,10)"
	const nested = "tags: list<string>, by: map<string, int32>, place: struct<lat: double, names: list<struct<lang: string, text: string>>>"
	bits := math.Float64bits
	var vectors []object
	for _, c := range []struct {
		doc, columns string
		write        func(w *RowWriter)
		row          string // the same row as JSON; "" for a misfit
		code, column string
	}{
		{"every type", flat, func(w *RowWriter) {
			w.Bits64(math.MaxUint64) // -1
			w.Int8(-128)
			w.Int16(300)
			w.Bits32(1 << 31)
			w.Bool(true)
			w.Bits32(math.Float32bits(1.5))
			w.Bits64(bits(-0.25))
			w.Bits32(19000)
			w.Bits64(1_700_000_000_123_456)
			w.Bytes([]byte("é\n"))
			w.Bytes([]byte{0, 255})
			w.Bits32(12345)
			w.Bits64(5)
			w.Bits128(1, 0)
		}, `{"id":-1,"small":-128,"short":300,"n":-2147483648,"ok":true,"f":1.5,"d":-0.25,"day":"2022-01-08","at":"2023-11-14T22:13:20.123456Z","s":"é\u000a","b":"AP8=","p":123.45,"q":0.0005,"w":0.0000000001}`, "", ""},
		{"nulls", "a: int8, b: string", func(w *RowWriter) { w.Null(); w.Null() }, `{"a":null,"b":null}`, "", ""},
		{"nested", nested, func(w *RowWriter) {
			w.Length(3)
			w.Bytes([]byte("x"))
			w.Null()
			w.Bytes(nil)
			w.Length(2)
			w.Key(func(w *RowWriter) { w.Bytes([]byte("a")) })
			w.Bits32(1)
			w.Key(func(w *RowWriter) { w.Bytes([]byte("b")) })
			w.Null()
			w.Present()
			w.Bits64(bits(52.5))
			w.Length(2)
			w.Present()
			w.Bytes([]byte("de"))
			w.Bytes([]byte("Berlin"))
			w.Null()
		}, `{"tags":["x",null,""],"by":{"a":1,"b":null},"place":{"lat":52.5,"names":[{"lang":"de","text":"Berlin"},null]}}`, "", ""},
		{"empty ones", nested, func(w *RowWriter) { w.Length(0); w.Length(0); w.Null() }, `{"tags":[],"by":{},"place":null}`, "", ""},
		{"a value too few", "a: int8, b: string", func(w *RowWriter) { w.Int8(1) }, "", "row", "b"},
		{"a byte too many", "a: int8", func(w *RowWriter) { w.Int8(1); w.Null() }, "", "row", ""},
		{"neither null nor a value", "a: int8", func(w *RowWriter) { w.buf = append(w.buf, 4, 1) }, "", "row", "a"},
		{"does not fit", "a: int8, b: int32", func(w *RowWriter) { w.Int8(1); w.Unfit(); w.Null() }, "", "range", "b"},
		{"does not fit inside", "a: list<struct<b: map<string, decimal(9,2)>>>", func(w *RowWriter) {
			w.Length(2)
			w.Null()
			w.Present()
			w.Length(1)
			w.Key(func(w *RowWriter) { w.Bytes([]byte("k")) })
			w.Unfit()
		}, "", "range", `a[1].b{"k"}`},
		{"a length that does not fit", "a: list<int8>", func(w *RowWriter) { w.Length(-1) }, "", "range", "a"},
		{"a key that does not fit", "a: map<int16, int8>", func(w *RowWriter) {
			w.Length(2)
			w.Key(func(w *RowWriter) { w.Int16(0x303) })
			w.Null()
			w.Key((*RowWriter).Unfit)
			w.Int8(1)
		}, "", "range", "a[1]"},
		{"a key that is null", "a: map<decimal(38,0), int8>", func(w *RowWriter) { w.Length(1); w.Key((*RowWriter).Null); w.Int8(1) }, "", "range", "a[0]"},
		{"a text longer than its row", "a: string", func(w *RowWriter) { w.Length(5) }, "", "row", "a"},
		{"more elements than its row has bytes", "a: list<int8>", func(w *RowWriter) { w.Length(math.MaxUint32) }, "", "row", "a"},
		{"not UTF-8", "a: list<string>", func(w *RowWriter) { w.Length(1); w.Bytes([]byte{0xff}) }, "", "type", "a[0]"},
		{"a boolean of 2", "a: boolean", func(w *RowWriter) { w.buf = append(w.buf, 1, 2) }, "", "row", "a"},
		{"ten digits", "a: decimal(9,2)", func(w *RowWriter) { w.Bits32(1_000_000_000) }, "", "range", "a"},
		{"the year 10000", "a: timestamp", func(w *RowWriter) { w.Bits64(253_402_300_800_000_000) }, "", "range", "a"},
		{"a key twice", "a: map<int8, int8>", func(w *RowWriter) {
			w.Length(2)
			for range 2 {
				w.Key(func(w *RowWriter) { w.Int8(1) })
				w.Null()
			}
		}, "", "duplicate", "a[1]"},
		{"a time of a clock", "a: timestamp_ntz, b: map<timestamp_ntz, timestamp>", func(w *RowWriter) {
			w.Bits64(1_686_832_200_000_001)
			w.Length(1)
			w.Key(func(w *RowWriter) { w.Bits64(0) })
			w.Null()
		}, `{"a":"2023-06-15T12:30:00.000001","b":{"1970-01-01T00:00:00.000000":null}}`, "", ""},
		{"the year 10000 of a clock", "a: timestamp_ntz", func(w *RowWriter) { w.Bits64(253_402_300_800_000_000) }, "", "range", "a"},
		{"null where none is taken", "a: int8 not null", func(w *RowWriter) { w.Null() }, "", "missing", "a"},
	} {
		bare := c.columns
		if c.code == "missing" {
			bare = "a: int8"
		}
		w := NewRowWriter(bare)
		w.Begin()
		c.write(w)
		v := object{"doc": c.doc, "columns": c.columns, "hash": RowHash(bare), "hex": hex.EncodeToString(w.Row())}
		if c.row != "" {
			v["row"] = c.row
		} else {
			v["misfit"] = object{"code": c.code, "column": c.column}
		}
		vectors = append(vectors, v)
	}
	goldenJSON(t, "rows.json", vectors)
}

// TestVectorsCells are numbers at the edges of all widths as the SDKs write them, from any number of 64 bits: a number that
// does not fit is never cut.
func TestVectorsCells(t *testing.T) {
	var vectors []object
	for _, c := range []struct {
		typ  string
		size int
	}{{"int8", 1}, {"int16", 2}, {"int32", 4}, {"int64", 8}, {"int128", 16}, {"count", 4}} {
		for _, n := range edges() {
			least, end := new(big.Int), new(big.Int).Lsh(big.NewInt(1), uint(8*c.size))
			if c.typ != "count" {
				end.Rsh(end, 1)
				least.Neg(end)
			}
			cell := []byte{RowUnfit}
			if n.Cmp(least) >= 0 && n.Cmp(end) < 0 {
				b := new(big.Int).And(n, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(1))).FillBytes(make([]byte, 16))
				slices.Reverse(b)
				cell = append([]byte{1}, b[:c.size]...)
			}
			vectors = append(vectors, object{"type": c.typ, "text": n.String(), "hex": hex.EncodeToString(cell)})
		}
	}
	for text, f := range map[string]float64{"3.4028235e38": 3.4028235e38, "-3.5e38": -3.5e38, "0.3333333333333333": 1.0 / 3, "Infinity": math.Inf(1)} {
		cell := []byte{RowUnfit}
		if near := float32(f); !math.IsInf(float64(near), 0) || math.IsInf(f, 0) {
			cell = binary.LittleEndian.AppendUint32([]byte{1}, math.Float32bits(near))
		}
		vectors = append(vectors, object{"type": "float", "text": text, "hex": hex.EncodeToString(cell)})
	}
	slices.SortFunc(vectors, func(a, b object) int {
		return strings.Compare(fmt.Sprint(a["type"], " ", a["text"]), fmt.Sprint(b["type"], " ", b["text"]))
	})
	goldenJSON(t, "cells.json", vectors)
}

// edges are numbers of 64 bits about the powers of two at which the widths end, and those of ten at which decimals do.
func edges() []*big.Int {
	all := map[string]*big.Int{}
	about := func(n *big.Int) {
		for d := int64(-1); d <= 1; d++ {
			for _, x := range []*big.Int{new(big.Int).Add(n, big.NewInt(d)), new(big.Int).Sub(big.NewInt(d), n)} {
				if x.IsInt64() {
					all[x.String()] = x
				}
			}
		}
	}
	for _, bits := range []uint{0, 7, 8, 15, 16, 31, 32, 33, 62, 63} {
		about(new(big.Int).Lsh(big.NewInt(1), bits))
	}
	for _, digits := range []int64{9, 18} {
		about(new(big.Int).Exp(big.NewInt(10), big.NewInt(digits), nil))
	}
	return slices.Collect(maps.Values(all))
}

func TestRowHash(t *testing.T) {
	for text, want := range map[string]uint32{"": 0x811c9dc5, "a": 0xe40c292c, "foobar": 0xbf9cf968} { // of FNV-1a's own test vectors
		if got := RowHash(text); got != want {
			t.Errorf("%q: %#x, want %#x", text, got, want)
		}
	}
}
