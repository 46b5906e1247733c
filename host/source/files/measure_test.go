package files

import (
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

// TestMeasure counts what ranges hold, cut files included, without reading them.
func TestMeasure(t *testing.T) {
	r := newRig(t, JSONL)
	r.put("a.jsonl", "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n")
	r.put("b.jsonl", "{\"n\":4}\n")
	var zero checkpoint.Position
	first := r.latest(zero, 2)
	second := r.latest(first, 10)
	for _, tt := range []struct {
		from, to checkpoint.Position
		want     source.Extent
	}{
		{zero, first, source.Extent{Parts: 1, Records: 2, Lines: true, Bytes: 16}},
		{first, second, source.Extent{Parts: 2, Records: 2, Lines: true, Bytes: 16}},
		{second, second, source.Extent{Lines: true}},
	} {
		got, err := r.src.Measure(t.Context(), source.Range{From: tt.from, To: tt.to})
		if err != nil || got != tt.want {
			t.Errorf("from %s to %s: %+v, %v, want %+v", tt.from.Line, tt.to.Line, got, err, tt.want)
		}
	}
	if _, err := r.src.Measure(t.Context(), source.Range{From: second, To: checkpoint.Position{Line: "nonsense"}}); err == nil {
		t.Error("a range that ends nowhere is measured")
	}
}
