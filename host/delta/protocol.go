package delta

import (
	"errors"
	"slices"
	"strings"

	"github.com/wasmill/wasmill/host/rows"
)

// featureNTZ is what a table has to list for columns that hold times without a zone, at any level.
const featureNTZ = "timestampNtz"

// featureMapping is the one among what versions stand for that both readers and writers have to know.
const featureMapping = "columnMapping"

// NewProtocol is the protocol of a new table: the oldest that holds the schema, so that every engine can write there.
func NewProtocol(s *rows.Schema) Protocol {
	p, _ := Protocol{MinReader: 1, MinWriter: 2}.For(s.Columns())
	return p
}

// For returns the protocol that a table needs to get such columns: itself, or one raised to the lists of features. These keep
// what the protocol stood for before.
func (p Protocol) For(columns []rows.Column) (needed Protocol, raised bool) {
	if !needNTZ(columns) || p.lists(featureNTZ) {
		return p, false
	}
	reading, err := readFeatures(p)
	writing, err2 := writeFeatures(p)
	if errors.Join(err, err2) != nil {
		return p, false // the gate refuses it
	}
	if slices.Contains(reading, featureMapping) != slices.Contains(writing, featureMapping) {
		// Versions of readers and writers come to it apart, as 1 and 6 do; lists have it both or are refused.
		reading, writing = without(reading, featureMapping), without(writing, featureMapping)
	}
	return Protocol{MinReader: 3, MinWriter: 7, ReaderFeatures: with(reading, featureNTZ), WriterFeatures: with(writing, featureNTZ)}, true
}

func with(features []string, f string) []string {
	if slices.Contains(features, f) {
		return features
	}
	return append(slices.Clone(features), f)
}

func without(features []string, f string) []string {
	return slices.DeleteFunc(slices.Clone(features), func(g string) bool { return g == f })
}

// lists reports whether readers and writers have to know a feature.
func (p Protocol) lists(feature string) bool {
	return p.MinReader >= 3 && p.MinWriter >= 7 && slices.Contains(p.ReaderFeatures, feature) && slices.Contains(p.WriterFeatures, feature)
}

func needNTZ(columns []rows.Column) bool {
	return slices.ContainsFunc(columns, func(c rows.Column) bool { return holdsNTZ(&c.Type) })
}

func holdsNTZ(t *rows.Type) bool {
	return t != nil && (t.Kind == rows.TimestampNTZ || needNTZ(t.Fields) || holdsNTZ(t.Key) || holdsNTZ(t.Elem))
}

// unlisted refuses to write into a table whose protocol does not say what its schema needs: other engines would take it for
// one that they can read.
func unlisted(p Protocol, m *Metadata) error {
	if !strings.Contains(m.SchemaString, `"timestamp_ntz"`) || p.lists(featureNTZ) {
		return nil
	}
	s, err := ParseSchema(m.SchemaString)
	if err != nil || !needNTZ(s.Columns()) {
		return nil // what is wrong with a schema is said where it is used
	}
	return errors.New("timestampNtz: the table has such a column, and its protocol does not list the feature; " +
		"ALTER TABLE .. SET TBLPROPERTIES ('delta.feature.timestampNtz' = 'supported') makes it")
}
