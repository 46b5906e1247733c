package abi

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"
)

func TestCanonicalJSON(t *testing.T) {
	for in, want := range map[string]string{
		` { "b" : [ 1 , 2.0 , { } , [ ] ] , "a" : "\u00e9\/" } `: `{"a":"é/","b":[1,2,{},[]]}`,
		`{"\ufb33":1,"\ud83d\ude00":2,"a":3}`:                    "{\"a\":3,\"\ufb33\":1,\"\U0001F600\":2}", // not the order of UTF-16
		`12345678901234567890123`:                                `12345678901234567890123`,
		`-0`:                                                     `0`,
		`-0.0`:                                                   `0`,
		`1e2`:                                                    `100`,
		`1E+21`:                                                  `1e+21`,
		`123456789012345678901.5`:                                `123456789012345680000`,
		`0.000001`:                                               `0.000001`,
		`0.0000001`:                                              `1e-7`,
		`-1.5e-10`:                                               `-1.5e-10`,
		`1e-400`:                                                 `0`,
		`5e-324`:                                                 `5e-324`,
		`1.7976931348623157e308`:                                 `1.7976931348623157e+308`,
		`"\u001f\u0008\t\n\f\r\"\\\u007f"`:                       "\"\\u001f\\b\\t\\n\\f\\r\\\"\\\\\u007f\"",
		`[true,false,null]`:                                      `[true,false,null]`,
	} {
		if got, err := CanonicalJSON([]byte(in)); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", in, got, err, want)
		}
	}
	for in, want := range map[string]error{
		``: ErrNotJSON, `{`: ErrNotJSON, `1 2`: ErrNotJSON, "\"\xff\"": ErrNotJSON, `"\ud800"`: ErrNotJSON,
		`{"a":1,"\u0061":2}`: ErrDuplicateKey, `[1e400]`: ErrNumberRange, `{"a":{"b":-1e999}}`: ErrNumberRange,
	} {
		if got, err := CanonicalJSON([]byte(in)); !errors.Is(err, want) {
			t.Errorf("%s: %s, %v; want %v", in, got, err, want)
		}
	}
}

// RFC 8785 differs only in the order of names beyond the basic plane and in integers that no float64 holds.
func TestCanonicalNumbersEqualRFC8785(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		if math.IsNaN(f) || math.IsInf(f, 0) {
			t.Skip("not JSON")
		}
		text := strconv.FormatFloat(f, 'e', -1, 64)
		want := jsontext.Value(text)
		if err := want.Canonicalize(); err != nil {
			t.Fatal(err)
		}
		if got, err := CanonicalJSON([]byte(text)); err != nil || string(got) != string(want) {
			t.Fatalf("%s: %s, %v; want %s", text, got, err, want)
		}
	})
}

func TestAppendCanonical(t *testing.T) {
	got, err := AppendCanonical([]byte("x"), struct {
		B map[string]int64 `json:"b"`
		A string           `json:"a"`
	}{map[string]int64{"z": math.MaxInt64, "y": 1}, "<&>"})
	if want := `x{"a":"<&>","b":{"y":1,"z":9223372036854775807}}`; err != nil || string(got) != want {
		t.Fatalf("%s, %v", got, err)
	}
	if _, err := AppendCanonical(nil, math.NaN()); err == nil {
		t.Fatal("NaN has canonical JSON")
	}
}

func FuzzCanonicalJSON(f *testing.F) {
	f.Add([]byte(`{"b":[1,2.50,"\u00e9"],"a":{"x":-1e-7}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := CanonicalJSON(text)
		if err != nil {
			return
		}
		again, err := CanonicalJSON(got)
		if err != nil || !bytes.Equal(got, again) {
			t.Fatalf("%q is not canonical: %q, %v", got, again, err)
		}
		var a, b any
		if json.Unmarshal(text, &a) != nil || json.Unmarshal(got, &b) != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("%q changed to %q", text, got)
		}
	})
}

func TestSeed(t *testing.T) {
	sum := xxh3.HashString128(`["q\"é",18446744073709551615,"s",3]`)
	if got := Seed(`q"é`, math.MaxUint64, "s", 3); got != [2]uint64{sum.Lo, sum.Hi} {
		t.Fatalf("%x", got)
	}
	if Seed("q", 1, "s", 0) == Seed("q", 1, "s", 1) {
		t.Fatal("lanes share a seed")
	}
}

// digestBytes is what RecordDigest hashes, written out the plain way.
func digestBytes(recs []Record) []byte {
	var b []byte
	length := func(v []byte) {
		n := -1
		if v != nil {
			n = len(v)
		}
		b = append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
		b = append(b, v...)
	}
	for _, r := range recs {
		b = append(b, byte(r.Port), byte(r.Port>>8), r.Flags)
		for i := range 8 {
			b = append(b, byte(r.EventTime>>(8*i)))
		}
		length(r.Key)
		length(r.Value)
		b = append(b, byte(len(r.Headers)), byte(len(r.Headers)>>8))
		for _, h := range r.Headers {
			length(append([]byte{}, h.Name...))
			length(h.Value)
		}
	}
	return b
}

func TestRecordDigest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Record { return drawRecord(t, 0) }), 0, 20).Draw(t, "records")
		for i := range recs {
			if rapid.IntRange(0, 9).Draw(t, "large") == 0 {
				recs[i].Value = bytes.Repeat([]byte("v"), rapid.IntRange(digestBuffer-64, digestBuffer+64).Draw(t, "size"))
			}
		}
		var d RecordDigest
		for i := range recs {
			d.Add(&recs[i])
			if rapid.IntRange(0, 9).Draw(t, "sum") == 0 {
				d.Sum()
			}
		}
		want := xxh3.Hash128(digestBytes(recs)).Bytes()
		first, again := d.Sum(), d.Sum()
		if first != want || again != want || d.Count() != int64(len(recs)) {
			t.Fatalf("%x, want %x", d.Sum(), want)
		}
		d.Reset()
		if d.Sum() != xxh3.Hash128(nil).Bytes() || d.Count() != 0 {
			t.Fatal("not as new after Reset")
		}
	})
}

func TestCombineLanes(t *testing.T) {
	lanes := []LaneDigest{{Lane: 3, Records: 2, Sum: [16]byte{1}}, {Lane: 1, Records: 0, Sum: [16]byte{9}}, {Lane: 0, Records: 5, Sum: [16]byte{2}}}
	digest, n := CombineLanes(lanes)
	slices.Reverse(lanes)
	if again, m := CombineLanes(lanes[:]); again != digest || m != n || n != 7 || len(digest) != 32 {
		t.Fatalf("%s %d, %s %d", digest, n, again, m)
	}
	if without, _ := CombineLanes(slices.Delete(slices.Clone(lanes), 1, 2)); without != digest {
		t.Fatal("a lane without records counts")
	}
	if none, n := CombineLanes(nil); n != 0 || none != "99aa06d3014798d86001c324468d497f" {
		t.Fatalf("no lanes: %s", none)
	}
}

func BenchmarkRecordDigest(b *testing.B) {
	values := orders(1024)
	recs := make([]Record, len(values))
	for i, v := range values {
		recs[i] = Record{Value: v, Key: v[30:41], Index: uint32(i)}
	}
	var d RecordDigest
	b.ReportAllocs()
	for b.Loop() {
		for i := range recs {
			d.Add(&recs[i])
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(recs)), "ns/record")
}
