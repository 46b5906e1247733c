package delta_test

import (
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/delta"
)

func TestGate(t *testing.T) {
	with := func(reader, writer int32, read, write []string) delta.Protocol {
		return delta.Protocol{MinReader: reader, MinWriter: writer, ReaderFeatures: read, WriterFeatures: write}
	}
	schemaWith := func(meta string) *delta.Metadata {
		m := metadata()
		m.SchemaString = `{"type":"struct","fields":[{"name":"l","type":{"type":"array","elementType":{"type":"struct","fields":[` +
			`{"name":"deep","type":"long","nullable":true,"metadata":{` + meta + `}}]},"containsNull":true},"nullable":true,"metadata":{}}]}`
		return m
	}
	for _, c := range []struct {
		name        string
		protocol    delta.Protocol
		metadata    *delta.Metadata
		read, write string // what the refusals say; empty: none. What is not read is not written either
	}{
		{"old", with(1, 1, nil, nil), metadata(), "", ""},
		{"legacy versions with nothing used", with(2, 6, nil, nil), metadata("delta.columnMapping.mode", "none"), "", ""},
		{"every feature that is known, unused", with(3, 7,
			[]string{"columnMapping", "deletionVectors", "timestampNtz", "vacuumProtocolCheck"},
			[]string{
				"appendOnly", "invariants", "checkConstraints", "generatedColumns", "identityColumns", "allowColumnDefaults", "changeDataFeed",
				"columnMapping", "deletionVectors", "domainMetadata", "inCommitTimestamp", "timestampNtz", "vacuumProtocolCheck",
			}), metadata(), "", ""},
		{"reader 4", with(4, 7, nil, []string{}), metadata(), "reader version 4", "reader version 4"},
		{"writer 8", with(1, 8, nil, nil), metadata(), "", "writer version 8"},
		{"unknown features", with(3, 7, []string{"b", "a"}, []string{"a", "b", "c"}), metadata(), "a; b", "a; b; c"},
		{"catalogs", with(3, 7, []string{"catalogManaged"}, []string{"catalogManaged", "appendOnly"}), metadata(), "catalogManaged", "catalogManaged"},
		{"a mapping by a legacy version", with(2, 5, nil, nil), metadata("delta.columnMapping.mode", "name"), "columnMapping", "columnMapping"},
		{"a constraint by a legacy version", with(1, 3, nil, nil), metadata("delta.constraints.b", "x", "delta.constraints.A", "y"), "", "checkConstraints: the table has constraints (a, b)"},
		{"an invariant, nested", with(1, 2, nil, nil), schemaWith(`"delta.invariants":"{}"`), "", `invariants: column "deep"`},
		{"a default, nested", with(1, 7, nil, []string{"allowColumnDefaults"}), schemaWith(`"CURRENT_DEFAULT":"1"`), "", `allowColumnDefaults: column "deep"`},
		{"an identity, nested", with(1, 6, nil, nil), schemaWith(`"delta.identity.start":1`), "", `identityColumns: column "deep"`},
		{"a generated column, nested", with(1, 4, nil, nil), schemaWith(`"delta.generationExpression":"1"`), "", `generatedColumns: column "deep"`},
		{"a generated column of a version without them", with(1, 2, nil, nil), schemaWith(`"delta.generationExpression":"1"`), "", ""},
		{"a comment", with(1, 6, nil, nil), schemaWith(`"comment":"delta.invariants"`), "", ""},
		{"a schema that cannot be read", with(1, 2, nil, nil), &delta.Metadata{ID: "x", SchemaString: "{"}, "", "schema cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, check := range []struct {
				err  error
				says string
			}{
				{delta.CheckRead(c.protocol, *c.metadata), c.read},
				{delta.CheckWrite(c.protocol, *c.metadata), c.write},
				{delta.CheckRewrite(c.protocol, *c.metadata), c.write},
			} {
				if check.says == "" {
					must(t, check.err)
					continue
				}
				wantFault(t, check.err, delta.CodeFeature, check.says, c.metadata.ID)
			}
		})
	}
	m := metadata("delta.appendOnly", "TRUE", "delta.enableChangeDataFeed", "true")
	m.Name = "orders"
	must(t, delta.CheckWrite(*protocol(), *m))
	err := delta.CheckRewrite(*protocol(), *m)
	wantFault(t, err, delta.CodeFeature, "appendOnly", "changeDataFeed", "orders")
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
}
