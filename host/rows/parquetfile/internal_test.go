package parquetfile

import (
	"bytes"
	"math/big"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

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

// TestNextValues: what stands for all values with a prefix is above them, short, and text where they are.
func TestNextValues(t *testing.T) {
	runes := rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune{'a', 0x7f, 0x7ff, 0xd7ff, 0xffff, utf8.MaxRune}))
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(string(rapid.SliceOfN(runes, maxBound, 3*maxBound).Draw(t, "text")))
		raw := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 'a', 0x80, 0xff}), maxBound+1, 3*maxBound).Draw(t, "bytes")
		text = append(text, text...)
		for _, c := range []struct {
			value []byte
			next  func([]byte) []byte
		}{{text, nextText}, {raw, nextBytes}} {
			lo := cutText(c.value)
			hi := c.next(lo)
			if len(lo) > maxBound || !bytes.HasPrefix(c.value, lo) || hi != nil && (len(hi) > maxBound || bytes.Compare(hi, c.value) <= 0) {
				t.Fatalf("%q is to lie between %q and %q", c.value, lo, hi)
			}
		}
		if lo := cutText(text); !utf8.Valid(lo) || !utf8.Valid(nextText(lo)) || len(lo) < maxBound-utf8.UTFMax {
			t.Fatalf("%q was cut to %q", text, lo)
		}
	})
	for _, top := range []string{strings.Repeat("\U0010ffff", 16), ""} {
		if got := nextText([]byte(top)); got != nil {
			t.Errorf("%q is above %q", got, top)
		}
	}
	if got := nextBytes(bytes.Repeat([]byte{0xff}, 9)); got != nil {
		t.Errorf("%x is above all", got)
	}
}

func TestWhichColumnsGetADictionary(t *testing.T) {
	schema, err := rows.NewSchema([]rows.Column{
		{Name: "few", Type: rows.Type{Kind: rows.String}},
		{Name: "many", Type: rows.Type{Kind: rows.String}},
		{Name: "half", Type: rows.Type{Kind: rows.String}},
		{Name: "long", Type: rows.Type{Kind: rows.String}},
		{Name: "raw", Type: rows.Type{Kind: rows.Binary}},
		{Name: "n", Type: rows.Type{Kind: rows.Int32}},
	})
	if err != nil {
		t.Fatal(err)
	}
	table := func(n int) *rows.Table {
		tab := rows.NewTable(schema)
		for i := range n {
			long := "x"
			if i == n-1 {
				long = strings.Repeat("x", maxBound+1)
			}
			row := `{"few":"a","many":"` + big.NewInt(int64(i)).String() + `","half":"` + big.NewInt(int64(i/2)).String() +
				`","long":"` + long + `","raw":"AAAA","n":1}`
			if err := tab.Append([]byte(row)); err != nil {
				t.Fatal(err)
			}
		}
		return tab
	}
	all := []int{0, 1, 2, 3, 4, 5}
	for name, c := range map[string]struct {
		from []Rows
		want []byte
	}{
		"none":      {nil, []byte{0, 0, 0, 0, 0, 0}},
		"too few":   {[]Rows{{Table: table(sampleLeast - 1)}}, []byte{0, 0, 0, 0, 0, 0}},
		"enough":    {[]Rows{{Table: table(sampleLeast)}}, []byte{1, 0, 1, 0, 0, 0}},
		"many":      {[]Rows{{Table: table(3 * sampleMost)}}, []byte{1, 0, 1, 0, 0, 0}},
		"some rows": {[]Rows{{Table: table(sampleLeast), Index: slices.Repeat([]uint32{0, 2, 4}, 40)}}, []byte{1, 1, 1, 1, 0, 0}},
		"two":       {[]Rows{{Table: table(sampleLeast / 2)}, {Table: table(sampleLeast / 2)}}, []byte{1, 1, 1, 0, 0, 0}},
	} {
		var s sample
		if got := s.dictionaries(c.from, newPlan(schema, all).leaves); !bytes.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestHybrid reads runs and packed groups, as the format's Encodings.md shows them.
func TestHybrid(t *testing.T) {
	read := func(src []byte, most, n int) (out []int) {
		h := newHybrid(src, most)
		for range n {
			x, ok := h.next()
			if !ok {
				break
			}
			out = append(out, x)
		}
		return out
	}
	for name, c := range map[string]struct {
		src     []byte
		most, n int
		want    []int
	}{
		"a run of true":     {[]byte{20, 1}, 1, 20, slices.Repeat([]int{1}, 10)},
		"runs":              {[]byte{4, 1, 6, 0, 2, 1}, 1, 6, []int{1, 1, 0, 0, 0, 1}},
		"packed":            {[]byte{3, 0x88, 0xC6, 0xFA}, 7, 8, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		"packed, then runs": {[]byte{3, 0b10110001, 4, 1}, 1, 10, []int{1, 0, 0, 0, 1, 1, 0, 1, 1, 1}},
		"no levels":         {nil, 0, 3, []int{0, 0, 0}},
		"nothing":           {nil, 1, 3, nil},
		"cut":               {[]byte{20}, 1, 3, nil},
		"cut varint":        {[]byte{0x80}, 1, 3, nil},
		"two bytes":         {[]byte{4, 0x2c, 1}, 300, 3, []int{300, 300}},
	} {
		if got := read(c.src, c.most, c.n); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
