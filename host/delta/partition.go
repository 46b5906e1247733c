package delta

import (
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows"
)

// ErrEmptyPartition says that a value is an empty text, which a table cannot tell from null in a partition column.
var ErrEmptyPartition = errors.New("an empty text cannot be told from null in a partition column")

// PartitionText appends the value of a row as partitionValues holds it; time stamps are ISO 8601 in UTC with microseconds,
// those without a zone as Spark writes them, `2026-01-02 03:04:05.678`. A null has no text and is not for it.
func PartitionText(dst []byte, v *rows.Vector, row int) ([]byte, error) {
	if v.Type.Kind == rows.TimestampNTZ {
		return rows.AppendTimestamp(dst, v.I64[row], ' ', false), nil
	}
	from := len(dst)
	dst = v.AppendText(dst, row)
	if len(dst) == from {
		return dst, ErrEmptyPartition
	}
	return dst, nil
}

// PartitionValue reads a text of partitionValues. No text and the empty text are null. Time stamps are read in both forms, as
// ISO 8601 and, taken for UTC, with a blank and no zone.
func PartitionValue(t rows.Type, text *string) (rows.Value, error) {
	if text == nil || *text == "" {
		return rows.Value{Null: true}, nil
	}
	s := *text
	if t.Kind == rows.Timestamp && len(s) > 10 && s[10] == ' ' {
		s = s[:10] + "T" + s[11:] + "Z"
	}
	v, err := rows.ParseValue(t, []byte(s))
	if err != nil {
		return rows.Value{}, fault.New(CodeValue, "partition value", fmt.Errorf("%.100q for %s: %w", *text, t, err),
			"have the engine that wrote the table correct the partition's values")
	}
	return v, nil
}
