package delta

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/wasmill/wasmill/host/fault"
)

// rule says whether a table that lists a feature may be read or written; an error says what of the feature it uses.
type rule func(m *Metadata) error

func free(*Metadata) error { return nil }

// readRules are the features of readers that a table may list. All others are refused.
var readRules = map[string]rule{
	featureMapping:        noColumnMapping,
	"deletionVectors":     free, // Add.File refuses a file that has one
	featureNTZ:            free,
	"v2Checkpoint":        free, // the log is read as far as entries and classic checkpoints go
	"vacuumProtocolCheck": free,
}

// writeRules are the features of writers that a table may list. All others are refused.
var writeRules = map[string]rule{
	"appendOnly":          free,
	"invariants":          unused("delta.invariants"),
	"checkConstraints":    noConstraints,
	"generatedColumns":    unused("delta.generationExpression"),
	"identityColumns":     unused("delta.identity."),
	"allowColumnDefaults": unused("CURRENT_DEFAULT", "EXISTS_DEFAULT"),
	"changeDataFeed":      free, // CheckRewrite refuses more than inserts
	featureMapping:        noColumnMapping,
	"deletionVectors":     free,
	"domainMetadata":      free,
	"inCommitTimestamp":   free,
	featureNTZ:            free,
	"vacuumProtocolCheck": free,
}

// legacy are the features that a writer version before 7 stands for, each with those before it.
var legacy = [...][]string{
	2: {"appendOnly", "invariants"},
	3: {"checkConstraints"},
	4: {"changeDataFeed", "generatedColumns"},
	5: {featureMapping},
	6: {"identityColumns"},
}

// CheckRead refuses, by the names of its features, a table that cannot be read right.
func CheckRead(p Protocol, m Metadata) error {
	features, err := readFeatures(p)
	return refuse(&m, "read", errors.Join(err, apply(&m, features, readRules)))
}

// CheckWrite refuses, by the names of its features, a table into which rows cannot be written right. What can be written can
// be read.
func CheckWrite(p Protocol, m Metadata) error { return refuse(&m, "write into", checkWrite(p, &m)) }

// CheckRewrite refuses, beyond CheckWrite, a table in which rows may not be replaced or deleted by writing files anew.
func CheckRewrite(p Protocol, m Metadata) error {
	err := checkWrite(p, &m)
	if isTrue(m.Configuration[propAppendOnly]) {
		err = errors.Join(err, errors.New("appendOnly: rows may only be added"))
	}
	if isTrue(m.Configuration[propChangeDataFeed]) {
		err = errors.Join(err, errors.New("changeDataFeed: a change feed of replaced rows cannot be written"))
	}
	return refuse(&m, "replace rows in", err)
}

func checkWrite(p Protocol, m *Metadata) error {
	reading, err := readFeatures(p)
	writing, err2 := writeFeatures(p)
	for _, f := range writing {
		reading = without(reading, f)
	}
	return errors.Join(err, err2, apply(m, reading, readRules), apply(m, writing, writeRules), unlisted(p, m))
}

func readFeatures(p Protocol) ([]string, error) {
	switch {
	case p.MinReader > 3:
		return nil, fmt.Errorf("reader version %d; known are 1 to 3", p.MinReader)
	case p.MinReader == 3:
		return p.ReaderFeatures, nil
	case p.MinReader == 2:
		return []string{featureMapping}, nil
	}
	return nil, nil
}

func writeFeatures(p Protocol) (features []string, err error) {
	switch {
	case p.MinWriter > 7:
		return nil, fmt.Errorf("writer version %d; known are 1 to 7", p.MinWriter)
	case p.MinWriter == 7:
		return p.WriterFeatures, nil
	}
	for v := 2; v <= int(p.MinWriter); v++ {
		features = append(features, legacy[v]...)
	}
	return features, nil
}

func apply(m *Metadata, features []string, rules map[string]rule) error {
	var errs []error
	for _, f := range slices.Sorted(slices.Values(features)) {
		r, known := rules[f]
		if !known {
			errs = append(errs, errors.New(f))
			continue
		}
		if err := r(m); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f, err))
		}
	}
	return errors.Join(errs...)
}

func refuse(m *Metadata, what string, err error) error {
	if err == nil {
		return nil
	}
	reasons := strings.ReplaceAll(err.Error(), "\n", "; ")
	place := "table " + m.ID
	if m.Name != "" {
		place += " (" + m.Name + ")"
	}
	return fault.New(CodeFeature, place, fmt.Errorf("cannot %s a table with these features: %s", what, reasons), otherTable)
}

func noColumnMapping(m *Metadata) error {
	if mode := m.Configuration[propColumnMapping]; mode != "" && !strings.EqualFold(mode, "none") {
		return fmt.Errorf("%s=%s", propColumnMapping, mode)
	}
	return nil
}

func noConstraints(m *Metadata) error {
	var names []string
	for k := range m.Configuration {
		if name, ok := strings.CutPrefix(strings.ToLower(k), prefixConstraint); ok {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("the table has constraints (%s)", strings.Join(names, ", "))
}

// unused makes a rule: no column, nested ones included, has metadata with such a key. A key that ends with a point stands for
// all that begin with it.
func unused(keys ...string) rule {
	return func(m *Metadata) error {
		var tree any
		if err := json.Unmarshal([]byte(m.SchemaString), &tree); err != nil {
			return fmt.Errorf("the schema cannot be read: %w", err)
		}
		return walkMetadata(tree, "", keys)
	}
}

// walkMetadata looks for keys in every metadata object of a schema.
func walkMetadata(node any, column string, keys []string) error {
	switch n := node.(type) {
	case []any:
		for _, e := range n {
			if err := walkMetadata(e, column, keys); err != nil {
				return err
			}
		}
	case map[string]any:
		if name, ok := n["name"].(string); ok {
			column = name
		}
		if meta, ok := n["metadata"].(map[string]any); ok {
			for _, k := range slices.Sorted(maps.Keys(meta)) {
				for _, key := range keys {
					if k == key || strings.HasSuffix(key, ".") && strings.HasPrefix(k, key) {
						return fmt.Errorf("column %q has %s", column, k)
					}
				}
			}
		}
		for _, inner := range []string{"fields", "type", "elementType", "keyType", "valueType"} {
			if err := walkMetadata(n[inner], column, keys); err != nil {
				return err
			}
		}
	}
	return nil
}
