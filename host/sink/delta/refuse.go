package delta

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/partition"
	"github.com/wasmill/wasmill/host/sink"
)

// textLimit is a column of the rows that the table has declared a length of.
type textLimit struct {
	column int
	delta.TextLimit
}

func textLimits(ours *rows.Schema, schemaString string) ([]textLimit, error) {
	declared, err := delta.TextLimits(schemaString)
	var limits []textLimit
	for _, d := range declared {
		if c := ours.Index(d.Column); c >= 0 {
			limits = append(limits, textLimit{c, d})
		}
	}
	return limits, err
}

// maxRefused bounds how many rows are named at once.
const maxRefused = 1000

// checkRows refuses rows by what only the table knows, as what a lane takes must not depend on what the table is at the moment:
// those that make no partition, where the job does not say the partition columns, and texts of another length than declared.
func (t *Target) checkRows(l *layout, lanes []sink.Lane) error {
	folders := t.cfg.PartitionBy == nil && len(l.by) > 0
	if !folders && len(l.texts) == 0 {
		return nil
	}
	check := partition.Checker{Columns: l.by, Room: t.room()}
	var refused sink.Refused
	for i, lane := range lanes {
		table, place, err := rowsIn(lane)
		if err != nil {
			return err
		}
		for row := range table.Len() {
			m := t.wrongText(l, table, row)
			if m == nil && folders {
				m = check.Check(table, row)
			}
			if m == nil {
				continue
			}
			if refused.More = len(refused.Rows) == maxRefused; refused.More {
				return &refused
			}
			refused.Rows = append(refused.Rows, sink.Refusal{Sink: t.cfg.Sink, Lane: i, Row: place(row), Misfit: m})
		}
	}
	if len(refused.Rows) > 0 {
		return &refused
	}
	return nil
}

// wrongText refuses a text that is longer than the table's column, as Spark does. As a key it must have the blanks that others
// fill it with, too: without them it would be another key than theirs.
func (t *Target) wrongText(l *layout, table *rows.Table, row int) *sink.Misfit {
	for _, limit := range l.texts {
		v := table.Column(limit.column)
		if v.Valid[row] == 0 {
			continue
		}
		n := utf8.RuneCount(v.Bytes(row))
		m := &sink.Misfit{Code: "length", Column: limit.Column, Reason: fmt.Sprintf("a text of %d characters, and the column is %s in the table", n, limit.Type)}
		if n > limit.Most {
			return m
		}
		if n < limit.Most && limit.Fixed && slices.Contains(t.key, limit.column) {
			m.Reason += ": a key needs the blanks that others fill it with"
			return m
		}
	}
	return nil
}

// rowsIn returns the rows of a lane, and where each stands among all that the lane took.
func rowsIn(lane sink.Lane) (table *rows.Table, place func(row int) int64, err error) {
	switch l := lane.(type) {
	case *partition.Lane:
		return l.Table, func(row int) int64 { return int64(row) }, nil
	case *upsertLane:
		places := make([]int64, 0, l.Table.Len())
		for i, o := range l.ops {
			if o == put {
				places = append(places, int64(i))
			}
		}
		return l.Table, func(row int) int64 { return places[row] }, nil
	}
	return nil, nil, fmt.Errorf("a lane of another target: %T", lane)
}
