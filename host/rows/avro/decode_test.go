package avro

import (
	"errors"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/rows/jsonvalue"
)

func TestPayloadsThatAreNone(t *testing.T) {
	for _, c := range []struct{ name, schema, payload, want string }{
		{"no bytes", `"int"`, "", "ends in the middle"},
		{"an int of 33 bits", `"int"`, "\x80\x80\x80\x80\x20", "more bits"},
		{"a long of 65 bits", `"long"`, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x03", "more bits"},
		{"a long without end", `"long"`, strings.Repeat("\x80", 20), "more bits"},
		{"a boolean of 2", `"boolean"`, "\x02", "boolean"},
		{"text that is not UTF-8", `"string"`, "\x02\xff", "UTF-8"},
		{"text of a negative length", `"string"`, "\x01", "length"},
		{"text of a huge length", `"string"`, "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "ends in the middle"},
		{"bytes beyond the payload", `"bytes"`, "\x0aab", "ends in the middle"},
		{"a symbol too many", `{"type":"enum","name":"E","symbols":["A"]}`, "\x02", "no symbol 1"},
		{"a symbol below none", `{"type":"enum","name":"E","symbols":["A"]}`, "\x01", "no symbol -1"},
		{"a branch too many", `["null","int"]`, "\x04", "no branch 2"},
		{"a branch below none", `["null","int"]`, "\x01", "no branch -1"},
		{"a block of a negative size", `{"type":"array","items":"int"}`, "\x01\x01", "length"},
		{"a block of the least count", `{"type":"array","items":"null"}`, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", "length"},
		{"a time after the day", `{"type":"int","logicalType":"time-millis"}`, "\x80\xf0\xb2\x52", "outside"},
		{"a time before the day", `{"type":"long","logicalType":"time-micros"}`, "\x01", "outside"},
		{"a date after the years", `{"type":"int","logicalType":"date"}`, "\xfe\xff\xff\xff\x0f", "outside"},
		{"a time stamp before the years", `{"type":"long","logicalType":"timestamp-millis"}`, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "outside"},
		{"a decimal without digits", `{"type":"bytes","logicalType":"decimal","precision":4}`, "\x00", "decimal of 0"},
		{"a decimal of too many", `{"type":"bytes","logicalType":"decimal","precision":4}`, "\xd2\x0f" + strings.Repeat("\x01", 1001), "decimal of 1001"},
		{"a field deep in it", `{"type":"record","name":"A","fields":[{"name":"a","type":{"type":"array","items":{"type":"record","name":"B","fields":[{"name":"b","type":"int"}]}}}]}`, "\x02", "a.b: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parsed(t, c.schema).AppendJSON([]byte("kept"), []byte(c.payload))
			if err == nil || !strings.Contains(err.Error(), c.want) || string(got) != "kept" {
				t.Errorf("%s, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestBlocks(t *testing.T) {
	for _, c := range []struct{ name, schema, payload, want string }{
		{"with sizes", `{"type":"array","items":"int"}`, "\x03\x04\x02\x04\x02\x06\x00", "[1,2,3]"},
		{"many of them", `{"type":"map","values":"int"}`, "\x02\x02a\x02\x02\x02b\x04\x00", `{"a":1,"b":2}`},
	} {
		got, err := parsed(t, c.schema).AppendJSON(nil, []byte(c.payload))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v", c.name, got, err)
		}
	}
}

// TestPayloadsThatGrow: what claims to hold very much in few bytes ends at the limit, and what nests without end at the
// depth.
func TestPayloadsThatGrow(t *testing.T) {
	huge := "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
	for _, c := range []struct {
		name, schema, payload string
		want                  error
	}{
		{"elements without bytes", `{"type":"array","items":"null"}`, huge, jsonvalue.ErrTooLarge},
		{"records without bytes", `{"type":"array","items":{"type":"record","name":"E","fields":[]}}`, huge, jsonvalue.ErrTooLarge},
		{"arrays of arrays", `{"type":"array","items":{"type":"array","items":"null"}}`, "\x02" + huge, jsonvalue.ErrTooLarge},
		{"a record in itself", `{"type":"record","name":"A","fields":[{"name":"a","type":"A"}]}`, "", errDeep},
		{"a list without end", `{"type":"record","name":"A","fields":[{"name":"a","type":["null","A"]}]}`, strings.Repeat("\x02", 1<<20), errDeep},
		{"two records in itself", `{"type":"record","name":"A","fields":[{"name":"a","type":"A"},{"name":"b","type":"A"}]}`, "", errDeep},
		{"an array of itself", `{"type":"record","name":"A","fields":[{"name":"a","type":{"type":"array","items":"A"}}]}`, strings.Repeat("\x02", 1<<20), errDeep},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := parsed(t, c.schema).AppendJSON(nil, []byte(c.payload)); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}
