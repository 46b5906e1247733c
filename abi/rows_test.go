package abi

import (
	"encoding/hex"
	"math"
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
		{"neither null nor a value", "a: int8", func(w *RowWriter) { w.buf = append(w.buf, 2, 1) }, "", "row", "a"},
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

func TestRowHash(t *testing.T) {
	for text, want := range map[string]uint32{"": 0x811c9dc5, "a": 0xe40c292c, "foobar": 0xbf9cf968} { // of FNV-1a's own test vectors
		if got := RowHash(text); got != want {
			t.Errorf("%q: %#x, want %#x", text, got, want)
		}
	}
}
