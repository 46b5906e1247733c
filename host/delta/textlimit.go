package delta

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
)

// TextLimit is the length of a column that is declared as varchar(n), or as char(n), whose texts engines fill with blanks.
type TextLimit struct {
	Column string
	Type   string // as it is declared
	Most   int    // characters
	Fixed  bool   // char
}

// TextLimits returns the limits of a schema's columns. To Delta such a column is a string; Spark, which refuses longer texts,
// keeps its own type in the metadata. What is declared within structs, lists and maps is left out.
func TextLimits(schemaString string) ([]TextLimit, error) {
	const key = "__CHAR_VARCHAR_TYPE_STRING"
	if !strings.Contains(schemaString, key) {
		return nil, nil
	}
	var s struct {
		Fields []struct {
			Name     string         `json:"name"`
			Metadata map[string]any `json:"metadata"`
		} `json:"fields"`
	}
	if err := json.Unmarshal([]byte(schemaString), &s); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	var limits []TextLimit
	for _, f := range s.Fields {
		declared, _ := f.Metadata[key].(string)
		name, rest, _ := strings.Cut(declared, "(")
		most, err := strconv.Atoi(strings.TrimSuffix(rest, ")"))
		if err == nil && (name == "varchar" || name == "char") {
			limits = append(limits, TextLimit{Column: f.Name, Type: declared, Most: most, Fixed: name == "char"})
		}
	}
	return limits, nil
}
