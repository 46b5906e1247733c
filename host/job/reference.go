package job

import (
	_ "embed"
	"fmt"
	"strings"
)

// data says what becomes of values and of records that are set aside.
//
//go:embed data.md
var data string

// Reference returns the job file's reference as Markdown: one table for each object, in the order of the file,
// and what the job's data look like.
func Reference() []byte {
	root := Describe()
	var b strings.Builder
	b.WriteString("# Job file reference\n\n" +
		"Made from the table in this package by `go test ./host/job -update`. A job file is one YAML document (1.2 core schema:\n" +
		"`yes` and `on` are texts) without anchors, aliases and tags. Durations are written `500ms`, `1s`, `5m`, `2h`, `1d` or\n" +
		"`1h30m`; sizes `64MiB` (powers of 1024) or `1GB` (powers of 1000). Names are a lower-case letter and up to 62 of `a-z`,\n" +
		"`0-9`, `_`, `-`. Paths are relative to the job file. `${env:X}`, `${env:X:-default}` and `${file:X}` can stand in\n" +
		"connections, paths and topic names; they are never stored.\n")
	b.WriteString("What fits which column, and what a dead letter looks like, stands at the end: [values and columns](#values-and-columns),\n" +
		"[dead letters](#dead-letters), [files that change](#files-that-change).\n")
	section(&b, &root, "")
	b.WriteString(data)
	return []byte(b.String())
}

// section writes the table of an object, then those of the objects inside it.
func section(b *strings.Builder, f *Field, path string) {
	title := path
	if path == "" {
		title = "the file"
	}
	fmt.Fprintf(b, "\n## %s\n\n", title)
	if f.Doc != "" {
		b.WriteString(f.Doc + "\n\n")
	}
	b.WriteString("| field | type | default | meaning |\n|---|---|---|---|\n")
	for i := range f.Fields {
		row(b, &f.Fields[i])
	}
	for i := range f.Fields {
		g := &f.Fields[i]
		p := join(path, g.Name)
		for g.Elem != nil {
			if g.Type == TypeList {
				p += "[]"
			} else {
				p += ".<name>"
			}
			g = g.Elem
		}
		if len(g.Fields) > 0 {
			section(b, g, p)
		}
	}
}

func row(b *strings.Builder, f *Field) {
	def := ""
	switch {
	case f.Required:
		def = "required"
	case f.Default != "":
		def = "`" + f.Default + "`"
	}
	doc := f.Doc
	if f.Later {
		doc = "Not available in this version. " + strings.TrimPrefix(doc, "Not in this version.")
	}
	if f.Example != "" && f.Example != f.Default {
		doc = strings.TrimSpace(doc) + " Example: `" + f.Example + "`."
	}
	fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", f.Name, cell(typeText(f)), def, cell(strings.TrimSpace(doc)))
}

// cell keeps a text inside its table cell.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// typeText names a type with its range.
func typeText(f *Field) string {
	switch f.Type {
	case TypeEnum:
		return "`" + strings.Join(f.Values, "`, `") + "`"
	case TypeInt:
		return fmt.Sprintf("integer, %d to %d", f.Min, f.Max)
	case TypeDuration:
		return "duration, " + formatDuration(f.Min) + " to " + formatDuration(f.Max)
	case TypeSize:
		return "size, " + formatSize(f.Min) + " to " + formatSize(f.Max)
	case TypeList:
		return "list of " + typeText(f.Elem)
	case TypeMap:
		return "map of " + typeText(f.Elem)
	case TypeString, TypeBool, TypePath, TypeName, TypeObject, TypeModule:
		return string(f.Type)
	case TypeRef:
		return "name or name.port"
	case TypeInput:
		return "name, name.port, or object"
	case TypePointer:
		return "JSON pointer"
	case TypePointers:
		return "JSON pointer, or list of them"
	case TypeColumns:
		return "columns, name: type"
	}
	return "any object"
}
