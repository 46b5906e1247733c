package generator

import (
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

func TestMeasure(t *testing.T) {
	s := newSource(t, Config{Seed: 1, Total: 50})
	got, err := s.Measure(t.Context(), source.Range{From: checkpoint.Position{Line: "8"}, To: checkpoint.Position{Line: "50"}})
	if err != nil || got != (source.Extent{Records: 42}) {
		t.Errorf("measured %+v, %v", got, err)
	}
	if _, err := s.Measure(t.Context(), source.Range{To: checkpoint.Position{Line: "x"}}); err == nil {
		t.Error("a range that ends nowhere is measured")
	}
}
