package delta

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/partition"
	"github.com/wasmill/wasmill/host/sink"
)

// upsertLane takes rows and deletions, in their order.
type upsertLane struct {
	partition.Lane
	key     []int       // columns of the table
	deleted *rows.Table // keys alone
	ops     []op
	values  []rows.Value
}

// op tells which table the next change is a row of.
type op uint8

const (
	put op = iota
	remove
)

func (l *upsertLane) Append(r *abi.Record) error {
	if r.Value == nil {
		return l.delete(r.Key)
	}
	if err := l.Lane.Append(r); err != nil {
		return err
	}
	row := l.Table.Len() - 1
	for _, c := range l.key {
		if l.Table.Column(c).Valid[row] == 0 {
			l.Table.Truncate(row)
			return noKeyValue(l.Table.Schema().Column(c).Name)
		}
	}
	l.ops = append(l.ops, put)
	return nil
}

func noKeyValue(column string) *sink.Misfit {
	return &sink.Misfit{Code: "missing", Column: column, Reason: "the value is null, and the column is of the key, which tells rows apart"}
}

// delete takes a deletion, whose key is all there is.
func (l *upsertLane) delete(key []byte) error {
	if key == nil {
		return &sink.Misfit{Code: "missing", Column: "key", Reason: "a record with neither value nor key deletes nothing"}
	}
	if !utf8.Valid(key) {
		return &sink.Misfit{Code: "type", Column: "key", Reason: "the key of a deletion is not text in UTF-8"}
	}
	texts := []string{string(key)}
	if len(l.key) > 1 {
		var m *sink.Misfit
		if texts, m = keyTexts(key, len(l.key)); m != nil {
			return m
		}
	}
	l.values = l.values[:0]
	for i, text := range texts {
		c := l.deleted.Schema().Column(i)
		v, err := rows.ParseValue(c.Type, []byte(text))
		if m := (*sink.Misfit)(nil); errors.As(err, &m) {
			return &sink.Misfit{Code: m.Code, Column: c.Name, Reason: "in the key of a deletion: " + m.Reason}
		}
		if err != nil {
			return err
		}
		l.values = append(l.values, v)
	}
	if err := l.deleted.AppendValues(l.values); err != nil {
		return err
	}
	l.ops = append(l.ops, remove)
	return nil
}

// keyTexts reads a key of several columns: a JSON array of scalars, one for each.
func keyTexts(key []byte, columns int) ([]string, *sink.Misfit) {
	bad := &sink.Misfit{Code: "type", Column: "key", Reason: "the key of a deletion is no JSON array with one value for each column of the sink's key"}
	var parts []json.RawMessage
	if json.Unmarshal(key, &parts) != nil || len(parts) != columns {
		return nil, bad
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = string(p)
		if strings.HasPrefix(texts[i], `"`) {
			if err := json.Unmarshal(p, &texts[i]); err != nil {
				return nil, bad
			}
			continue
		}
		if texts[i] == "null" || strings.HasPrefix(texts[i], "[") || strings.HasPrefix(texts[i], "{") {
			return nil, bad
		}
	}
	return texts, nil
}

func (l *upsertLane) Reset() {
	l.Lane.Reset()
	l.deleted.Reset()
	l.ops = l.ops[:0]
}

func (l *upsertLane) Rows() int64  { return int64(len(l.ops)) }
func (l *upsertLane) Bytes() int64 { return l.Table.Bytes() + l.deleted.Bytes() + int64(len(l.ops)) }
