package parquetfile

import (
	"bytes"
	"math/big"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/rows"
)

func TestWideSize(t *testing.T) {
	for p := 1; p <= 38; p++ {
		limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(p)), nil)
		limit.Sub(limit, big.NewInt(1))
		if got, want := wideSize(p), (limit.BitLen()+1+7)/8; got != want {
			t.Errorf("precision %d: %d bytes, want %d", p, got, want)
		}
	}
}

// TestHybridReadsBack lets another implementation decode runs and packed groups.
func TestHybridReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 17).Draw(t, "width")
		var values []uint32
		for range rapid.IntRange(1, 12).Draw(t, "runs") {
			v := uint32(rapid.IntRange(0, 1<<width-1).Draw(t, "value"))
			for range rapid.IntRange(1, 40).Draw(t, "length") {
				values = append(values, v)
			}
		}
		enc := rle.Encoding{BitWidth: width}
		got, err := enc.DecodeInt32(nil, appendHybrid(nil, values, width))
		if err != nil || len(got) < len(values) {
			t.Fatalf("%v, %d of %d values", err, len(got), len(values))
		}
		for i, v := range values {
			if got[i] != int32(v) {
				t.Fatalf("value %d is %d, want %d", i, got[i], v)
			}
		}
	})
}

func TestLiteralFramesReadBack(t *testing.T) {
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	c, err := newCompressor(Zstd)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "unit")
		page := bytes.Repeat(unit, rapid.IntRange(1, 9000).Draw(t, "times"))
		page = append(page, rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "tail")...)
		frame, err := c.appendLiterals(nil, page)
		if err != nil {
			t.Fatal(err)
		}
		got, err := dec.DecodeAll(frame, nil)
		if err != nil || !bytes.Equal(got, page) {
			t.Fatalf("%d bytes came back as %d: %v", len(page), len(got), err)
		}
	})
}

// TestByteBounds compares the shortcuts with plain comparisons.
func TestByteBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Map(rapid.StringMatching(`[ab\x00]{0,20}`), func(s string) []byte { return []byte(s) }), 1, 40).Draw(t, "values")
		var s stats
		s.reset(rows.Type{Kind: rows.Binary})
		for _, v := range values {
			s.bytes(v)
		}
		lo, hi := slices.MinFunc(values, bytes.Compare), slices.MaxFunc(values, bytes.Compare)
		if !bytes.Equal(s.minB, lo) || !bytes.Equal(s.maxB, hi) {
			t.Fatalf("%q to %q, want %q to %q", s.minB, s.maxB, lo, hi)
		}
	})
}
