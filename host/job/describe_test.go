package job

import (
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// each visits every field of the table.
func each(f *Field, path string, visit func(path string, f *Field)) {
	visit(path, f)
	for i := range f.Fields {
		each(&f.Fields[i], join(path, f.Fields[i].Name), visit)
	}
	if f.Elem != nil {
		each(f.Elem, path+"[]", visit)
	}
}

func TestEveryFieldIsDescribed(t *testing.T) {
	root := Describe()
	n := 0
	each(&root, "", func(path string, f *Field) {
		n++
		if f.Name == "" {
			return
		}
		if f.Doc == "" || !strings.HasSuffix(f.Doc, ".") {
			t.Errorf("%s: the doc %q is not sentences", path, f.Doc)
		}
		if f.Type == TypeEnum && len(f.Values) == 0 {
			t.Errorf("%s has no values", path)
		}
		if f.Type == TypeInt && f.Max <= f.Min {
			t.Errorf("%s has no range", path)
		}
		if f.Required && f.Default != "" {
			t.Errorf("%s is required and has a default", path)
		}
	})
	if n < 60 {
		t.Errorf("the table has only %d fields", n)
	}
}

// TestExamplesAndDefaultsAreRight reads each as the file would.
func TestExamplesAndDefaultsAreRight(t *testing.T) {
	root := Describe()
	each(&root, "", func(path string, f *Field) {
		for _, text := range []string{f.Example, f.Default} {
			if text == "" {
				continue
			}
			if text == "," {
				text = `","`
			}
			var n yaml.Node
			if err := yaml.Load([]byte(text), &n); err != nil {
				t.Errorf("%s: %s: %v", path, text, err)
				continue
			}
			c := &checker{env: testEnv(), places: map[string]Pos{}}
			c.check(n.Content[0], f, path)
			for _, m := range c.found {
				if m.Code != CodeUnsupported && m.Code != CodeMissing {
					t.Errorf("%s: %s: %s", path, text, m.Text())
				}
			}
		}
	})
}

// TestAbsentEqualsDefault: leaving a field out and writing its default are the same.
func TestAbsentEqualsDefault(t *testing.T) {
	root := Describe()
	each(&root, "", func(path string, f *Field) {
		if f.Default == "" || f.Type == TypeConfig || f.Default == "," {
			return
		}
		var n yaml.Node
		if err := yaml.Load([]byte(f.Default), &n); err != nil {
			t.Fatal(err)
		}
		c := &checker{env: testEnv(), places: map[string]Pos{}}
		got, want := absent(f, path), c.check(n.Content[0], f, path)
		if f.Type == TypeDuration || f.Type == TypeSize || f.Type == TypeInt {
			got.text, want.text = "", ""
		}
		if g, w := fmt.Sprint(got.text, got.num), fmt.Sprint(want.text, want.num); g != w && f.Type != TypeBool {
			t.Errorf("%s: absent is %s, the default is %s", path, g, w)
		}
		if f.Type == TypeBool && got.num != want.num {
			t.Errorf("%s: absent is %d, the default is %d", path, got.num, want.num)
		}
	})
}
