package delta_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/host/delta"
)

// nested are the places where a table may hold times without a zone.
var nested = []string{
	"timestamp_ntz", "list<timestamp_ntz>", "map<timestamp_ntz, int32>", "map<string, timestamp_ntz not null>", "struct<a: int32, b: list<struct<c: timestamp_ntz>>>",
}

func TestNewProtocol(t *testing.T) {
	old := delta.Protocol{MinReader: 1, MinWriter: 2}
	if diff := cmp.Diff(old, delta.NewProtocol(schemaOf(t, "timestamp_ntz", "timestamp", "b", "struct<timestamp_ntz: list<date>>"))); diff != "" {
		t.Error(diff)
	}
	want := delta.Protocol{MinReader: 3, MinWriter: 7, ReaderFeatures: []string{"timestampNtz"}, WriterFeatures: []string{"appendOnly", "invariants", "timestampNtz"}}
	for _, typ := range nested {
		if diff := cmp.Diff(want, delta.NewProtocol(schemaOf(t, "a", "string", "b", typ))); diff != "" {
			t.Errorf("%s: %s", typ, diff)
		}
	}
}

// A protocol that is raised keeps what the old one stood for.
func TestProtocolForColumns(t *testing.T) {
	columns := schemaOf(t, "b", "timestamp_ntz").Columns()
	for _, c := range []struct {
		name      string
		old, want delta.Protocol
	}{
		{"old versions", delta.Protocol{MinReader: 2, MinWriter: 5}, delta.Protocol{
			MinReader: 3, MinWriter: 7, ReaderFeatures: []string{"columnMapping", "timestampNtz"},
			WriterFeatures: []string{"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping", "timestampNtz"},
		}},
		{"a mapping for writers alone", delta.Protocol{MinReader: 1, MinWriter: 6}, delta.Protocol{
			MinReader: 3, MinWriter: 7, ReaderFeatures: []string{"timestampNtz"},
			WriterFeatures: []string{"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "identityColumns", "timestampNtz"},
		}},
		{"a mapping for readers alone", delta.Protocol{MinReader: 2, MinWriter: 2}, delta.Protocol{
			MinReader: 3, MinWriter: 7, ReaderFeatures: []string{"timestampNtz"}, WriterFeatures: []string{"appendOnly", "invariants", "timestampNtz"},
		}},
		{"features of writers", delta.Protocol{MinReader: 1, MinWriter: 7, WriterFeatures: []string{"inCommitTimestamp"}}, delta.Protocol{
			MinReader: 3, MinWriter: 7, ReaderFeatures: []string{"timestampNtz"}, WriterFeatures: []string{"inCommitTimestamp", "timestampNtz"},
		}},
		{"features of both", delta.Protocol{MinReader: 3, MinWriter: 7, ReaderFeatures: []string{"deletionVectors"}, WriterFeatures: []string{"deletionVectors"}}, delta.Protocol{
			MinReader: 3, MinWriter: 7, ReaderFeatures: []string{"deletionVectors", "timestampNtz"}, WriterFeatures: []string{"deletionVectors", "timestampNtz"},
		}},
		{"listed for writers alone", delta.Protocol{MinReader: 1, MinWriter: 7, WriterFeatures: []string{"timestampNtz"}}, delta.Protocol{
			MinReader: 3, MinWriter: 7, ReaderFeatures: []string{"timestampNtz"}, WriterFeatures: []string{"timestampNtz"},
		}},
	} {
		got, raised := c.old.For(columns)
		if diff := cmp.Diff(c.want, got); diff != "" || !raised {
			t.Errorf("%s: raised %v, %s", c.name, raised, diff)
		}
		if again, raised := got.For(columns); raised || cmp.Diff(got, again) != "" {
			t.Errorf("%s: raised twice", c.name)
		}
		if same, raised := c.old.For(schemaOf(t, "b", "timestamp").Columns()); raised || cmp.Diff(c.old, same) != "" {
			t.Errorf("%s: raised for an instant", c.name)
		}
		must(t, delta.CheckWrite(got, *metadata()))
	}
	unknown := delta.Protocol{MinReader: 4, MinWriter: 8}
	if got, raised := unknown.For(columns); raised || cmp.Diff(unknown, got) != "" {
		t.Errorf("a protocol that is not known became %+v", got)
	}
}

// A table that has such a column and does not list the feature can be read and not be written.
func TestColumnsWithoutTheirFeature(t *testing.T) {
	m := metadata()
	for _, typ := range nested {
		m.SchemaString = delta.SchemaString(schemaOf(t, "a", "string", "b", typ))
		for _, p := range []delta.Protocol{
			{MinReader: 1, MinWriter: 2},
			{MinReader: 1, MinWriter: 7, WriterFeatures: []string{"timestampNtz"}},
			{MinReader: 3, MinWriter: 7, ReaderFeatures: []string{}, WriterFeatures: []string{"appendOnly"}},
		} {
			must(t, delta.CheckRead(p, *m))
			wantFault(t, delta.CheckWrite(p, *m), delta.CodeFeature, "timestampNtz", "delta.feature.timestampNtz", m.ID)
			wantFault(t, delta.CheckRewrite(p, *m), delta.CodeFeature, "timestampNtz")
		}
		must(t, delta.CheckWrite(delta.NewProtocol(schemaOf(t, "b", typ)), *m))
	}
	m.SchemaString = delta.SchemaString(schemaOf(t, "timestamp_ntz", "string"))
	must(t, delta.CheckWrite(delta.Protocol{MinReader: 1, MinWriter: 2}, *m))
}
