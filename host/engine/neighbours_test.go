package engine_test

import (
	"errors"
	"testing"

	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/sink"
)

type neighbour struct {
	sink.Target
	name, hates string
}

func (n *neighbour) ID() string { return n.name }

func (n *neighbour) Clash(other sink.Target) error {
	if other.ID() == n.hates {
		return errors.New(n.name + " waits for " + n.hates)
	}
	return nil
}

// TestCheckNeighbours: each target that can tell is asked about the others.
func TestCheckNeighbours(t *testing.T) {
	a, b := &neighbour{name: "a"}, &neighbour{name: "b"}
	c := &neighbour{name: "c", hates: "b"}
	for _, ok := range []sink.Target{a, b, struct{ sink.Target }{}} {
		if err := engine.CheckNeighbours(ok, []sink.Target{a, b, c}); err != nil {
			t.Error(err)
		}
	}
	if err := engine.CheckNeighbours(c, []sink.Target{a, b}); err == nil || err.Error() != "c waits for b" {
		t.Errorf("%v", err)
	}
}
