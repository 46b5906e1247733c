package job

import (
	"encoding/json"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/wasmill/wasmill/host/rows"
)

// object is a JSON object whose members are sorted when it is written.
type object = map[string]any

// Schema returns the JSON schema (draft 2020-12) of job files. What this version cannot do is left out, so that an editor
// marks it. It ends with a newline.
func Schema() []byte {
	root := Describe()
	s := schemaOf(&root)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Wasmill job, " + APIVersion
	s["$defs"] = object{
		"name":     object{"type": "string", "pattern": nameForm.String()},
		"ref":      object{"type": "string", "pattern": refForm.String()},
		"pointer":  object{"type": "string", "pattern": "^(?:/(?:[^~/]|~[01])*)+$"},
		"duration": object{"type": "string", "pattern": `^(?:[0-9]+(?:\.[0-9]+)? ?(?:d|h|ms|m|s))+$`, "examples": []string{"500ms", "1s", "2h"}},
		"size":     object{"type": "string", "pattern": `^[0-9]+(?:\.[0-9]+)? ?(?:[KMGT]i?)?B$`, "examples": []string{"64MiB", "1GB"}},
		"columnType": object{"anyOf": []object{
			{"enum": plainKinds},
			{"type": "string", "pattern": columnForm},
			{"type": "object", "additionalProperties": ref("columnType"), "minProperties": 1},
		}},
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		// Only texts, numbers and lists of them are in it.
		return nil
	}
	return append(b, '\n')
}

func ref(name string) object { return object{"$ref": "#/$defs/" + name} }

// schemaOf returns the schema of a field with its documentation.
func schemaOf(f *Field) object {
	s := schemaForm(f)
	if f.Doc != "" {
		s["description"] = f.Doc
	}
	if f.Default != "" && f.Type != TypeObject {
		s["default"] = schemaValue(f, f.Default)
	}
	if f.Example != "" && !reference.MatchString(f.Example) {
		s["examples"] = []any{schemaValue(f, f.Example)}
	}
	return s
}

func schemaForm(f *Field) object {
	switch f.Type {
	case TypeName, TypeRef, TypePointer, TypeDuration, TypeSize:
		return ref(string(f.Type))
	case TypeEnum:
		return object{"enum": f.Values}
	case TypeInt:
		return object{"type": "integer", "minimum": f.Min, "maximum": f.Max}
	case TypeBool:
		return object{"type": "boolean"}
	case TypePointers:
		return object{"anyOf": []object{
			ref("pointer"),
			{"type": "array", "items": ref("pointer"), "minItems": 1, "maxItems": 64},
		}}
	case TypeConfig:
		return object{"type": "object"}
	case TypeColumns:
		return object{
			"type": "object", "minProperties": 1, "maxProperties": rows.MaxColumns, "propertyNames": object{"minLength": 1, "maxLength": 255},
			"additionalProperties": ref("columnType"),
		}
	case TypeList:
		s := object{"type": "array", "items": schemaOf(f.Elem), "minItems": f.Min}
		if f.Max > 0 {
			s["maxItems"] = f.Max
		}
		return s
	case TypeMap:
		s := object{"type": "object", "additionalProperties": schemaOf(f.Elem)}
		if f.Elem.Type == TypeObject {
			s["propertyNames"] = ref("name")
		}
		return s
	case TypeInput:
		return object{"anyOf": []object{ref("ref"), schemaObject(f)}}
	case TypeObject:
		return schemaObject(f)
	}
	return object{"type": "string", "minLength": 1}
}

func schemaObject(f *Field) object {
	properties := object{}
	var required []string
	var kinds []object
	for i := range f.Fields {
		g := &f.Fields[i]
		if g.Later {
			continue
		}
		properties[g.Name] = schemaOf(g)
		if g.Required {
			required = append(required, g.Name)
		}
		if g.Component {
			kinds = append(kinds, object{"required": []string{g.Name}})
		}
	}
	s := object{"type": "object", "properties": properties, "additionalProperties": false}
	if required != nil {
		s["required"] = required
	}
	if kinds != nil {
		s["oneOf"] = kinds
	}
	return s
}

// schemaValue returns a default or an example, which are written as in a job file, as a JSON value.
func schemaValue(f *Field, text string) any {
	switch f.Type {
	case TypeInt:
		n, _ := strconv.ParseInt(text, 10, 64)
		return n
	case TypeBool:
		return text == "true"
	case TypeObject, TypeList, TypeMap, TypeColumns, TypeConfig, TypePointers, TypeString:
		var n yaml.Node
		c := &checker{places: map[string]Pos{}}
		if err := yaml.Load([]byte(text), &n); err != nil || len(n.Content) != 1 {
			return text
		}
		b, _ := c.json(nil, n.Content[0], &Field{}, "")
		return json.RawMessage(b)
	}
	return text
}
