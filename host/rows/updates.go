package rows

import (
	"unicode/utf8"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sink"
)

// NoKey is the misfit of a record without a key where the key says what it takes the place of.
func NoKey() *sink.Misfit {
	return &sink.Misfit{Code: "missing", Column: "key", Reason: "the record has no key, and in mode upsert the key says what it takes the place of"}
}

// AppendKeyed appends an update as one JSON object: its key, and its value or null, which deletes. The value must be JSON.
func AppendKeyed(dst, key, value []byte) ([]byte, error) {
	if key == nil {
		return dst, NoKey()
	}
	return appendUpdate(dst, `{"key":`, key, `,"value":`, value)
}

// AppendDeletion appends the row that stands for a deletion in a list of updates.
func AppendDeletion(dst, key []byte) ([]byte, error) {
	if key == nil {
		return dst, &sink.Misfit{Code: "missing", Column: "key", Reason: "a record with neither value nor key deletes nothing"}
	}
	return appendUpdate(dst, `{"deleted":true,"key":`, key, "", nil)
}

func appendUpdate(dst []byte, head string, key []byte, between string, value []byte) ([]byte, error) {
	if !utf8.Valid(key) {
		return dst, &sink.Misfit{Code: "type", Column: "key", Reason: "the key is not text in UTF-8, as JSON needs it"}
	}
	dst = append(dst, head...)
	dst = abi.AppendJSONString(dst, key)
	dst = append(dst, between...)
	switch {
	case between == "":
	case value == nil:
		dst = append(dst, "null"...)
	default:
		dst = append(dst, value...)
	}
	return append(dst, '}'), nil
}
