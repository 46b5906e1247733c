package job

// Type says what a field of a job file holds.
type Type string

// The types of fields.
const (
	TypeString   Type = "string"
	TypeName     Type = "name"     // [a-z][a-z0-9_-]{0,62}
	TypeRef      Type = "ref"      // a name, or name.port
	TypeEnum     Type = "enum"     // one of Values
	TypeInt      Type = "integer"  // Min to Max
	TypeBool     Type = "boolean"  // true or false
	TypeDuration Type = "duration" // "1s"; Min to Max in milliseconds
	TypeSize     Type = "size"     // "64MiB"; Min to Max in bytes
	TypePath     Type = "path"     // relative to the job file
	TypeModule   Type = "module"   // a path, sha256:..., stock:name, name@version
	TypePointer  Type = "pointer"  // a JSON pointer, RFC 6901
	TypePointers Type = "pointers" // one JSON pointer, or a list of them
	TypeObject   Type = "object"   // Fields
	TypeList     Type = "list"     // of Elem
	TypeMap      Type = "map"      // any name to Elem
	TypeInput    Type = "input"    // a ref, or an object {input, keyBy}
	TypeColumns  Type = "columns"  // column name to column type
	TypeConfig   Type = "config"   // any object
)

// Field describes one field of the job file. The table of fields is what decoding, the JSON schema and the reference are
// made from.
type Field struct {
	Name     string
	Type     Type
	Doc      string // sentences
	Default  string // as it would be written; "" when there is none
	Example  string // as it would be written
	Values   []string
	Min, Max int64
	Why      string // what stands behind the range, for who is outside of it; "" when it is plain
	Fields   []Field
	Elem     *Field
	Since    string // the apiVersion that brought it
	Required bool
	// Component marks the kinds of a source, sink or connection: exactly one of them is given.
	Component bool
	// Later marks what the format knows but this version cannot do.
	Later bool
	// Interpolated fields may hold ${env:X}, ${env:X:-default} and ${file:X}.
	Interpolated bool
}

func (f *Field) field(name string) *Field {
	for i := range f.Fields {
		if f.Fields[i].Name == name {
			return &f.Fields[i]
		}
	}
	return nil
}

// names returns the names of all fields, or of the available components only.
func (f *Field) names(components bool) []string {
	var names []string
	for _, g := range f.Fields {
		if !components || g.Component && !g.Later {
			names = append(names, g.Name)
		}
	}
	return names
}

// because is the end of a message about a value out of range.
func (f *Field) because() string {
	if f.Why == "" {
		return ""
	}
	return ": " + f.Why
}
