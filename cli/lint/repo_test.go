package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/wasmill/wasmill"

// goFile is one parsed Go file of the main module. Dir and Name are slash-separated and relative to the repository.
type goFile struct {
	Dir, Name string
	Test      bool
	Lines     int
	Syntax    *ast.File
}

// root is the top of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatalf("not at the repository's top: %v", err)
	}
	return dir
}

// walk calls f for every file below the repository's top, other than in dot folders and build output.
func walk(t *testing.T, f func(rel string, d fs.DirEntry)) {
	t.Helper()
	top := root(t)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		if d.IsDir() && rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "target" || d.Name() == "checkpoints" || d.Name() == "out") {
			return fs.SkipDir
		}
		f(filepath.ToSlash(rel), d)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// goFiles parses all Go files of the repository, those of nested modules (the guest SDK and its users) included.
func goFiles(t *testing.T) (files []goFile, fset *token.FileSet) {
	t.Helper()
	fset = token.NewFileSet()
	top := root(t)
	walk(t, func(rel string, d fs.DirEntry) {
		if d.IsDir() || !strings.HasSuffix(rel, ".go") {
			return
		}
		text, err := os.ReadFile(filepath.Join(top, rel))
		if err != nil {
			t.Fatal(err)
		}
		syntax, err := parser.ParseFile(fset, rel, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, goFile{
			Dir: filepath.ToSlash(filepath.Dir(rel)), Name: rel, Test: strings.HasSuffix(rel, "_test.go"),
			Lines: strings.Count(string(text), "\n"), Syntax: syntax,
		})
	})
	if len(files) < 50 {
		t.Fatalf("only %d Go files found: the walk is broken", len(files))
	}
	return files, fset
}

// imports lists a file's imports of our own module, relative to its top.
func (f *goFile) imports() []string {
	var out []string
	for _, spec := range f.Syntax.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err == nil && (path == module || strings.HasPrefix(path, module+"/")) {
			out = append(out, strings.TrimPrefix(strings.TrimPrefix(path, module), "/"))
		}
	}
	return out
}

// within reports whether a folder is dir or lies below it.
func within(folder, dir string) bool { return folder == dir || strings.HasPrefix(folder, dir+"/") }
