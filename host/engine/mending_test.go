package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/source"
)

type mendable struct{ source.Source }

func (mendable) Mend() string { return "the line" }

type fixed struct{ source.Source }

// TestStoppedNamesWhatCanBeMended: how a record is mended is said where its source is known and says so.
func TestStoppedNamesWhatCanBeMended(t *testing.T) {
	nodes := func(all ...source.Source) *Graph {
		g := &Graph{Stages: []StageNode{{Name: "s"}}}
		for _, s := range all {
			g.Sources = append(g.Sources, SourceNode{Name: "in", Source: s})
		}
		return g
	}
	for name, c := range map[string]struct {
		g    *Graph
		from Edge
		want bool
	}{
		"of a source that can":          {nodes(fixed{}, mendable{}), FromSource(1), true},
		"of a source that cannot":       {nodes(fixed{}, mendable{}), FromSource(0), false},
		"of a transform behind one":     {nodes(mendable{}), FromPort(0, 0), true},
		"of a transform behind several": {nodes(mendable{}, mendable{}), FromPort(0, 0), false},
		"of a transform behind no such": {nodes(fixed{}), FromPort(0, 0), false},
	} {
		err := stopped(c.g, letter{word: "type", reason: "no", origin: origin{edge: c.from, offset: 1}})
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || !strings.Contains(f.WayOut, "policy: dead-letter") || strings.HasSuffix(f.WayOut, "; or mend the line") != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
