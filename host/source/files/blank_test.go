package files

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

// TestEmptyLinesAreNotCounted: a batch takes as many lines that are not empty as it may, whatever lies between them.
func TestEmptyLinesAreNotCounted(t *testing.T) {
	runs := strings.Repeat("\n", blockSize+3)
	for name, c := range map[string]struct {
		content string
		records int64
		batches []int // records of each
	}{
		"nothing else":        {strings.Repeat(runs, 3), 10, []int{0}},
		"before and between":  {runs + "1\n" + runs + "2\n\n3\n\n\n4\n", 2, []int{2, 2}},
		"behind":              {"1\n2\n3\n" + runs, 3, []int{3, 0}},
		"no last end of line": {"\n\n1\n\n2\n\n3", 2, []int{2, 1}},
		"over a block's end":  {strings.Repeat("x", blockSize-1) + "\n\n\n1\n2\n3\n", 2, []int{2, 2}},
		"line over an end":    {strings.Repeat("x", blockSize) + "\n\n\n1\n2\n3\n", 2, []int{2, 2}},
		"one by one":          {"\n1\n\n\n2\n\n", 1, []int{1, 1, 0}},
		"no limit":            {"\n\n1\n\n2\n\n", 0, []int{2}},
	} {
		for _, format := range []Format{Lines, JSONL} {
			r := newRig(t, format)
			r.put("a", c.content)
			batches, _ := r.drain(c.records)
			var sizes []int
			for _, b := range batches {
				sizes = append(sizes, len(b))
			}
			if !slices.Equal(sizes, c.batches) {
				t.Errorf("%s as %s: batches of %v records, want %v", name, format, sizes, c.batches)
			}
			var numbered []string
			for i, line := range strings.Split(c.content, "\n") {
				if line != "" {
					numbered = append(numbered, fmt.Sprintf("%d:%s", i, line))
				}
			}
			if !slices.Equal(slices.Concat(batches...), numbered) {
				t.Errorf("%s as %s: other records than the file's lines", name, format)
			}
		}
	}
}

// TestEmptyLinesAcrossFiles: files of empty lines use up no batch.
func TestEmptyLinesAcrossFiles(t *testing.T) {
	r := newRig(t, JSONL)
	for i := range 20 {
		r.put(fmt.Sprintf("in-%02d", i), "\n\n\n")
	}
	r.put("last", "1\n2\n3\n")
	to := r.latest(checkpoint.Position{}, 2)
	same(t, "records", r.read(checkpoint.Position{}, to), []string{"0:1", "1:2"})
}

// TestEmptyLinesInPieces: a large file with empty lines is cut into the same splits by another process.
func TestEmptyLinesInPieces(t *testing.T) {
	r := newRig(t, JSONL)
	r.put("a", string(bytes.ReplaceAll(orders(30_000), []byte("\n"), []byte("\n\n\n"))))
	mid := r.latest(checkpoint.Position{}, 20_000)
	end := r.latest(mid, 0)
	for _, c := range []struct {
		rng  source.Range
		want int
	}{{source.Range{To: mid}, 20_000}, {source.Range{From: mid, To: end}, 10_000}} {
		warm, err := r.src.Splits(context.Background(), c.rng)
		if err != nil {
			t.Fatal(err)
		}
		records := r.read(c.rng.From, c.rng.To)
		same(t, "records", len(records), c.want)
		r.open()
		cold, err := r.src.Splits(context.Background(), c.rng)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "splits", cold, warm)
		if len(warm) < 2 || !slices.Equal(r.read(c.rng.From, c.rng.To), records) {
			t.Errorf("%d splits, or other records cold than warm", len(warm))
		}
	}
}

// TestEmptyLinesCounted compares the fast count with the plain one.
func TestEmptyLinesCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[\nx]{0,40}`).Draw(t, "text")
		start := rapid.Bool().Draw(t, "start")
		want, at, prev := int64(0), 0, start
		var ends []int64 // of the lines that count
		for i, c := range []byte(text) {
			if c == '\n' {
				if at == i && prev {
					want++
				} else {
					ends = append(ends, int64(i+1))
				}
				at, prev = i+1, true
			}
		}
		if got := emptyLines([]byte(text), start); got != want {
			t.Fatalf("%q: %d empty lines, want %d", text, got, want)
		}
		for k, end := range ends {
			off, lines := nth([]byte(text), int64(k+1), start, false)
			if off != end || lines != int64(strings.Count(text[:end], "\n")) {
				t.Fatalf("%q: line %d ends at %d with %d lines, want %d", text, k+1, off, lines, end)
			}
		}
	})
}
