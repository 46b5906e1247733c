package job

import (
	"strings"
	"testing"
)

const formatted = `apiVersion: wasmill/v1
kind: Job
metadata: {name: formats}
spec:
  checkpoint: c
  connections:
    main: {kafka: {brokers: ["a:9092"]}}
    schemas: {schemaRegistry: {urls: ["http://s:8081"]}}
    others: {schemaRegistry: {urls: ["http://t:8081"]}}
  sources: [{name: s, kafka: {connection: main, topics: [orders], format: avro, registry: schemas}}]
  sinks: [{name: out, from: [s], kafka: {connection: main, topic: clean, format: protobuf, registry: schemas, schema: {version: 1}}}]
`

// TestRevisionOfFormats: what shapes records is in it, where schemas come from is not.
func TestRevisionOfFormats(t *testing.T) {
	base, _ := revisionOf(t, formatted, RevisionInputs{})
	if s := string(base); strings.Contains(s, "clean-value") || !strings.Contains(s, `"decode":{"key":"raw","value":"avro"}`) {
		t.Errorf("%s", s)
	}
	same, _ := revisionOf(t, strings.ReplaceAll(formatted, "registry: schemas", "registry: others"), RevisionInputs{})
	if string(same) != string(base) {
		t.Errorf("another connection is another revision: %s", same)
	}
	for _, c := range []struct{ from, to, path, what string }{
		{"orders], format: avro", "orders], format: json-schema", "sources.s.decode", "avro becomes json-schema"},
		{"orders], format: avro", "orders], format: avro, keyFormat: avro", "sources.s.decode", "avro becomes avro with keys of avro"},
		{", format: avro, registry: schemas", "", "sources.s.decode", "avro becomes raw"},
		{"format: protobuf", "format: avro", "sinks.out.encode", "protobuf becomes avro"},
		{"version: 1", "version: 2", "sinks.out.encode", "another schema"},
		{"version: 1", "message: M", "sinks.out.encode", "another schema"},
		{"version: 1", "version: 1, subject: x", "sinks.out.encode", "another schema"},
		{"version: 1", "text: x", "sinks.out.encode", "another schema"},
		{"topic: clean", "topic: other", "sinks.out.encode", "another schema"}, // the subject hangs on its name
	} {
		changed, _ := revisionOf(t, strings.Replace(formatted, c.from, c.to, 1), RevisionInputs{})
		list, err := Compare(base, changed)
		if err != nil || len(list) != 1 || list[0].Path != c.path || !strings.Contains(list[0].What, c.what) || list[0].Severity != Compatible {
			t.Errorf("%q for %q: %v, %v", c.to, c.from, list, err)
		}
	}
}
