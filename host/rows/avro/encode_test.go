package avro

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/sink"
)

func TestValuesThatDoNotFit(t *testing.T) {
	dec := `{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}`
	for _, c := range []struct{ schema, value, code string }{
		{`"int"`, `2147483648`, "range"},
		{`"int"`, `-2147483649`, "range"},
		{`"long"`, `9223372036854775808`, "range"},
		{`"long"`, `1.5`, "precision"},
		{`"long"`, `1e19`, "range"},
		{`"long"`, `1e-1`, "precision"},
		{`"long"`, `1e999999999999999999999`, "range"},
		{`"long"`, `1e-999999999999999999999`, "precision"},
		{`"long"`, `"x"`, "type"},
		{`"long"`, `""`, "type"},
		{`"long"`, `" 1"`, "type"},
		{`"long"`, `null`, "type"},
		{`"long"`, `true`, "type"},
		{`"float"`, `1e39`, "range"},
		{`"double"`, `1e999`, "range"},
		{`"double"`, `"nan"`, "type"},
		{`"boolean"`, `1`, "type"},
		{`"boolean"`, `null`, "type"},
		{`"string"`, `{}`, "type"},
		{`"string"`, `null`, "type"},
		{`"null"`, `0`, "type"},
		{`"bytes"`, `"%"`, "type"},
		{`"bytes"`, `"QQ"`, "type"},
		{`"bytes"`, `"QQ\n=="`, "type"},
		{`"bytes"`, `1`, "type"},
		{`{"type":"fixed","name":"F","size":2}`, `"QQ=="`, "length"},
		{`{"type":"enum","name":"E","symbols":["A"]}`, `"B"`, "range"},
		{`{"type":"enum","name":"E","symbols":["A"]}`, `0`, "range"},
		{`{"type":"array","items":"int"}`, `{}`, "type"},
		{`{"type":"array","items":"int"}`, `[1,"x"]`, "type"},
		{`{"type":"map","values":"int"}`, `[]`, "type"},
		{`{"type":"record","name":"A","fields":[]}`, `[]`, "type"},
		{`{"type":"record","name":"A","fields":[{"name":"a","type":"int"}]}`, `{}`, "missing"},
		{`{"type":"record","name":"A","fields":[{"name":"a","type":["int","string"]}]}`, `{}`, "missing"},
		{`{"type":"record","name":"A","fields":[{"name":"a","type":"int"}]}`, `{"a":null}`, "type"},
		{`["null","int","string"]`, `5`, "type"},
		{`["null","int","string"]`, `{"long":5}`, "type"},
		{`["null","int","string"]`, `{"int":5,"string":"x"}`, "type"},
		{`["int","string"]`, `null`, "type"},
		{dec, `100`, "range"},
		{dec, `1.234`, "precision"},
		{dec, `"x"`, "type"},
		{`{"type":"fixed","name":"F","size":1,"logicalType":"decimal","precision":4}`, `128`, "range"},
		{`{"type":"int","logicalType":"date"}`, `"2023-02-29"`, "type"},
		{`{"type":"int","logicalType":"date"}`, `5`, "type"},
		{`{"type":"int","logicalType":"time-millis"}`, `"10:00:00.0001"`, "precision"},
		{`{"type":"int","logicalType":"time-millis"}`, `"24:00:00"`, "type"},
		{`{"type":"long","logicalType":"timestamp-millis"}`, `"2013-01-31T10:00:00.0001Z"`, "precision"},
		{`{"type":"long","logicalType":"timestamp-nanos"}`, `"2013-01-31T10:00:00.0000000001Z"`, "precision"},
		{`{"type":"long","logicalType":"timestamp-nanos"}`, `"2300-01-01T00:00:00Z"`, "range"},
		{`{"type":"long","logicalType":"timestamp-millis"}`, `"2013-01-31T10:00:00"`, "type"},
		{`{"type":"long","logicalType":"timestamp-millis"}`, `"2013-01-31T10:00:60Z"`, "type"},
		{`{"type":"long","logicalType":"timestamp-millis"}`, `"2013-01-31T10:00:00,5Z"`, "type"},
		{`{"type":"long","logicalType":"timestamp-millis"}`, `"0000-12-31T10:00:00Z"`, "range"},
		{`{"type":"long","logicalType":"local-timestamp-millis"}`, `"2013-01-31T10:00:00Z"`, "type"},
		{`{"type":"fixed","name":"U","size":16,"logicalType":"uuid"}`, `"f81d4fae7dec-11d0-a765-00a0c91e6bf6-"`, "type"},
		{`{"type":"fixed","name":"P","size":12,"logicalType":"duration"}`, `{"months":1,"days":-1,"millis":0}`, "range"},
		{`{"type":"fixed","name":"P","size":12,"logicalType":"duration"}`, `{"months":1}`, "type"},
		{`"int"`, `{"a":}`, "not_json"},
		{`"int"`, `1 2`, "not_json"},
		{`"int"`, strings.Repeat("[", 200), "not_json"},
		{`"string"`, "\"\xff\"", "not_json"},
	} {
		got, err := encode(parsed(t, c.schema), c.value)
		m := (*sink.Misfit)(nil)
		if !errors.As(err, &m) || m.Code != c.code || len(got) != 0 {
			t.Errorf("%s for %s: %x, %v; want a misfit %s", c.value, c.schema, got, err, c.code)
		}
	}
}

func TestMisfitsNameTheirField(t *testing.T) {
	s := parsed(t, `{"type":"record","name":"A","fields":[{"name":"a","type":{"type":"map","values":{"type":"record","name":"B","fields":[{"name":"b","type":"int"}]}}}]}`)
	_, err := encode(s, `{"a":{"x":{"b":"y"}}}`)
	if m := (*sink.Misfit)(nil); !errors.As(err, &m) || m.Column != "a.b" || !strings.Contains(m.Reason, `"y" for int`) {
		t.Errorf("%v", err)
	}
}

func TestValuesInOtherForms(t *testing.T) {
	for _, c := range []struct{ schema, value, want string }{
		{`"long"`, `1e2`, "100"},
		{`"long"`, `1.0`, "1"},
		{`"long"`, `"-9223372036854775808"`, "-9223372036854775808"},
		{`"long"`, `0e99999999999`, "0"},
		{`"int"`, `-0`, "0"},
		{`"double"`, `"1.5"`, "1.5"},
		{`"boolean"`, `"true"`, "true"},
		{`"string"`, `1.50`, `"1.50"`},
		{`{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}`, `"1.5"`, "1.50"},
		{`{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}`, `99.99e0`, "99.99"},
		{`{"type":"long","logicalType":"timestamp-millis"}`, `"2013-01-31T12:00:00+02:00"`, `"2013-01-31T10:00:00.000000Z"`},
		{`{"type":"long","logicalType":"timestamp-millis"}`, `"2013-01-31t10:00:00.1230000000000z"`, `"2013-01-31T10:00:00.123000Z"`},
		{`["null","long"]`, `1`, "1"},
		{`["long"]`, `1`, "1"},
		{`{"type":"record","name":"A","fields":[{"name":"a","type":["null","int"]},{"name":"b","type":"int"}]}`, `{"c":{},"b":1,"b":2}`, `{"a":null,"b":2}`},
	} {
		s := parsed(t, c.schema)
		b, err := encode(s, c.value)
		if err != nil {
			t.Errorf("%s for %s: %v", c.value, c.schema, err)
			continue
		}
		if got, err := s.AppendJSON(nil, b); err != nil || string(got) != c.want {
			t.Errorf("%s for %s: %s, %v; want %s", c.value, c.schema, got, err, c.want)
		}
	}
}

func TestDefaults(t *testing.T) {
	for _, c := range []struct{ typ, deflt, want string }{
		{`"int"`, `7`, "7"},
		{`"string"`, `"x"`, `"x"`},
		{`"bytes"`, `"\u00ff\u0000"`, `"/wA="`},
		{`{"type":"fixed","name":"F","size":1}`, `"\u0001"`, `"AQ=="`},
		{`["null","int"]`, `null`, "null"},
		{`["int","null"]`, `5`, "5"},
		{`["string","long","null"]`, `"x"`, `{"string":"x"}`},
		{`{"type":"array","items":"int"}`, `[1,2]`, "[1,2]"},
		{`{"type":"map","values":"int"}`, `{"a":1}`, `{"a":1}`},
		{`{"type":"enum","name":"E","symbols":["A","B"]}`, `"B"`, `"B"`},
		{`{"type":"record","name":"B","fields":[{"name":"x","type":"int"},{"name":"y","type":"int","default":9}]}`, `{"x":1}`, `{"x":1,"y":9}`},
		{`{"type":"long","logicalType":"timestamp-millis"}`, `0`, `"1970-01-01T00:00:00.000000Z"`},
		{`{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}`, `"\u0001"`, "0.01"},
	} {
		s := parsed(t, fmt.Sprintf(`{"type":"record","name":"A","fields":[{"name":"v","type":%s,"default":%s}]}`, c.typ, c.deflt))
		b, err := encode(s, "{}")
		if err != nil {
			t.Errorf("%s: %v", c.typ, err)
			continue
		}
		if got, err := s.AppendJSON(nil, b); err != nil || string(got) != `{"v":`+c.want+`}` {
			t.Errorf("%s: %s, %v", c.typ, got, err)
		}
	}
	for _, bad := range []string{`"int","default":"x"`, `"bytes","default":"\u0100"`, `["null","int"],"default":"x"`, `{"type":"array","items":"int"},"default":{}`} {
		s := parsed(t, `{"type":"record","name":"A","fields":[{"name":"v","type":`+bad+`}]}`)
		_, err := encode(s, "{}")
		if m := (*sink.Misfit)(nil); !errors.As(err, &m) || m.Code != "missing" {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestDefaultsThatMultiply: a schema whose defaults stand for a tree of 2^60 records ends.
func TestDefaultsThatMultiply(t *testing.T) {
	text := `{"type":"record","name":"R0","fields":[]}`
	for n := 1; n < 60; n++ {
		text = fmt.Sprintf(`{"type":"record","name":"R%d","fields":[{"name":"a","type":%s,"default":{}},{"name":"b","type":"R%d","default":{}}]}`, n, text, n-1)
	}
	_, err := encode(parsed(t, text), "{}")
	if m := (*sink.Misfit)(nil); !errors.As(err, &m) || m.Code != "length" {
		t.Errorf("%v", err)
	}
}
