package sql

import (
	"context"
	"fmt"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
)

var _ sink.Neighbour = (*Target)(nil)

// lookAtPlaces finds out by which names the server itself knows the tables: two connections may call one by different ones.
func (t *Target) lookAtPlaces(ctx context.Context) (map[*route]string, error) {
	places := map[*route]string{}
	for _, r := range t.order {
		if r.sink.Table == "" {
			continue
		}
		place, err := t.conn.Place(ctx, r.sink.Table)
		if err != nil {
			return nil, t.fault(t.tablePlace(r.sink), err)
		}
		places[r] = place
	}
	return places, nil
}

// Clash implements sink.Neighbour: the transactions of two connections that change rows of one table wait for each other, and
// neither ends before the other has written.
func (t *Target) Clash(other sink.Target) error {
	o, ok := other.(*Target)
	if !ok {
		return nil
	}
	for _, r := range t.order {
		for _, q := range o.order {
			if place := t.places[r]; place == "" || place != o.places[q] || r.keys == nil && q.keys == nil {
				continue
			}
			return fault.New(CodeConfig, t.tablePlace(r.sink), fmt.Errorf("the connection %s leads to the same table, for sink %s, and each would wait for the other's locks", o.ID(), q.sink.Name),
				"let the sinks share one connection, then they also share a transaction")
		}
	}
	return nil
}
