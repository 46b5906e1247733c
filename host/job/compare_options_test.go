package job

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// TestEveryOptionIsNamed changes each option of jobs one by one: taken out, put in, with another value, its members in another
// order. A change that makes another revision must be named.
func TestEveryOptionIsNamed(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.good.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal("no jobs", err)
	}
	m := &optionChanger{t: t, changed: map[string]bool{}}
	for _, file := range files {
		if testing.Short() && !strings.Contains(file, "table") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m.job(file, text)
	}
	m.job("tables", []byte(everyTable))
	root := Describe()
	each(&root, "", func(path string, f *Field) {
		if optionsOfOutput(path) && !f.Later && !m.changed[strings.TrimPrefix(path, ".")] {
			t.Errorf("%s was not changed into another good job", path)
		}
	})
}

// optionsOfOutput tells the options whose change a job cannot be without: those of tables.
func optionsOfOutput(path string) bool {
	if strings.HasSuffix(path, "[]") {
		return false // an element: the list is changed
	}
	for _, of := range []string{"delta.", "postgres.", "sqlite."} {
		if strings.Contains(path, "sinks[]."+of) {
			return true
		}
	}
	return strings.Contains(path, "sources[].delta.")
}

const everyTable = `apiVersion: wasmill/v1
kind: Job
metadata: {name: every}
spec:
  checkpoint: ck
  connections: {db: {postgres: {url: "postgres://u@h/d"}}, db2: {postgres: {url: "postgres://u@h/e"}}, file: {sqlite: {path: x.db}}, file2: {sqlite: {path: y.db}}}
  sources: [{name: s, delta: {path: in}}, {name: g, files: {path: more, format: jsonl}}]
  sinks:
    - {name: a, from: [s], delta: {path: a, schema: {id: int64, n: string, m: string}}}
    - {name: b, from: [s], mode: upsert, delta: {path: b, schema: {id: int64, n: string}, key: [id]}}
    - {name: c, from: [s], postgres: {connection: db, table: c, schema: {id: int64, n: string}}}
    - {name: d, from: [s], mode: upsert, postgres: {connection: db, table: d, schema: {id: int64, n: string}, key: [id, n]}}
    - {name: e, from: [s], sqlite: {connection: file, table: e, schema: {id: int64, n: string}}}
    - {name: f, from: [s], mode: upsert, sqlite: {connection: file, table: f, schema: {id: int64, n: string}, key: [id, n]}}
    - {name: h, from: [g], sqlite: {connection: file, schema: {id: int64}, statement: "insert into h values (:id)"}}
    - {name: i, from: [g], postgres: {connection: db2, schema: {id: int64}, statement: "insert into i values (:id)"}}
    - {name: j, from: [g], files: {path: j, format: csv, schema: {id: int64, n: string}}}
`

// optionChanger changes options of jobs.
type optionChanger struct {
	t       *testing.T
	file    string
	before  []byte
	doc     *yaml.Node
	changed map[string]bool // options, by path, that were changed into another good job
}

func (m *optionChanger) job(file string, text []byte) {
	m.t.Helper()
	var doc yaml.Node
	if err := yaml.Load(text, &doc); err != nil {
		m.t.Fatal(file, err)
	}
	m.file, m.doc = file, &doc
	var ok bool
	if m.before, ok = m.revision(); !ok {
		m.t.Fatalf("%s is no good job", file)
	}
	root := Describe()
	m.visit(doc.Content[0], &root, "")
}

// revision is that of the document as it is now, false when it is no good job.
func (m *optionChanger) revision() ([]byte, bool) {
	text, err := yaml.Dump(m.doc)
	if err != nil {
		m.t.Fatal(m.file, err)
	}
	j, err := Parse("job.yaml", text, testEnv())
	if err != nil || j == nil {
		return nil, false
	}
	in := RevisionInputs{ABI: 1, Semantics: 1, Groups: 64, Modules: map[string]ModuleInputs{}}
	for i := range j.Transforms {
		in.Modules[j.Transforms[i].Name] = ModuleInputs{SHA256: fmt.Sprint(j.Transforms[i].Module)}
	}
	b, _, err := j.Revision(in)
	if err != nil {
		m.t.Fatal(m.file, err)
	}
	return b, true
}

// check compares what the document is now with what it was.
func (m *optionChanger) check(path, how string) {
	after, ok := m.revision()
	if !ok {
		return
	}
	m.changed[path] = true
	changes, err := Compare(m.before, after)
	if err != nil || len(changes) == 0 && !bytes.Equal(m.before, after) {
		m.t.Errorf("%s: %s %s: %v, %v", m.file, path, how, changes, err)
	}
	for _, c := range changes {
		if c.Path == "" {
			m.t.Errorf("%s: %s %s: %s", m.file, path, how, c.What)
		}
	}
}

// visit changes a value in all ways, and then what is in it.
func (m *optionChanger) visit(n *yaml.Node, f *Field, path string) {
	if n.Kind == yaml.ScalarNode {
		was := *n
		for _, text := range otherValues(f, n.Value) {
			n.Value, n.Tag, n.Style = text, "", 0
			m.check(path, "as "+text)
		}
		*n = was
		return
	}
	all := n.Content
	step := 1
	if n.Kind == yaml.MappingNode {
		step = 2
	}
	n.Content = turned(all, step)
	m.check(path, "in another order")
	for i := 0; i < len(all); i += step {
		n.Content = slices.Concat(all[:i:i], all[i+step:])
		m.check(member(f, path, all[i].Value), "taken out")
	}
	n.Content = all
	m.add(n, f, path)
	for i := 0; i < len(n.Content); i += step {
		value := n.Content[i+step-1]
		if next, at := within(f, path, n.Content[i].Value); next != nil {
			m.visit(value, next, at)
		}
	}
}

// add puts in each member that is not there, as its example or its values say.
func (m *optionChanger) add(n *yaml.Node, f *Field, path string) {
	all := n.Content
	for i := range f.Fields {
		g := &f.Fields[i]
		if n.Kind != yaml.MappingNode || slices.ContainsFunc(all, func(k *yaml.Node) bool { return k.Value == g.Name }) {
			continue
		}
		for _, text := range append(otherValues(g, g.Default), g.Example) {
			var v yaml.Node
			if text == "" || yaml.Load([]byte(text), &v) != nil || len(v.Content) == 0 {
				continue
			}
			n.Content = slices.Concat(all, []*yaml.Node{{Kind: yaml.ScalarNode, Value: g.Name}, v.Content[0]})
			m.check(member(f, path, g.Name), "put in as "+text)
		}
	}
	n.Content = all
}

// within is the field of a member or an element, and its path as each gives it.
func within(f *Field, path, name string) (*Field, string) {
	switch {
	case f.Type == TypeColumns:
		return &Field{Type: TypeColumns}, path
	case f.Elem != nil && f.Type == TypeList:
		return f.Elem, path + "[]"
	case f.Elem != nil:
		return f.Elem, path + ".<name>"
	}
	return f.field(name), join(path, name)
}

func member(f *Field, path, name string) string {
	if g := f.field(name); g != nil {
		return join(path, name)
	}
	return path
}

func turned(all []*yaml.Node, step int) []*yaml.Node {
	var out []*yaml.Node
	for i := len(all) - step; i >= 0; i -= step {
		out = append(out, all[i:i+step]...)
	}
	return out
}

// otherValues are values of a field other than the one that it has.
func otherValues(f *Field, now string) []string {
	var out []string
	switch f.Type {
	case TypeBool:
		out = []string{"true", "false"}
	case TypeEnum:
		out = f.Values
	case TypeInt:
		out = []string{fmt.Sprint(f.Min + 1), "7"}
	case TypeDuration:
		out = []string{"1s", "2h"}
	case TypeSize:
		out = []string{"1MiB", "128MiB"}
	case TypeColumns:
		out = []string{"string", "int64 not null"}
	case TypePointer, TypePointers:
		out = []string{"/other"}
	case TypePath, TypeModule:
		out = []string{"./other"}
	case TypeRef, TypeInput, TypeName:
		out = []string{"s", "g", "other", "db2", "file2"}
	case TypeString:
		out = []string{"other", "n", "db2", "file2", "insert into o values (:id)"}
	}
	return slices.DeleteFunc(slices.Clone(out), func(text string) bool { return text == now })
}
