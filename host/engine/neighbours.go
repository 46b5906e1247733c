package engine

import "github.com/wasmill/wasmill/host/sink"

// CheckNeighbours says which of the others, that have been looked at like it, a target stands in the way of.
func CheckNeighbours(t sink.Target, others []sink.Target) error {
	n, ok := t.(sink.Neighbour)
	if !ok {
		return nil
	}
	for _, other := range others {
		if err := n.Clash(other); err != nil {
			return err
		}
	}
	return nil
}
