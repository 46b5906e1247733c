package lint

import (
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Bounds on a hand-written file. Few may be longer than the rule, none longer than the limit.
const (
	fileRule  = 400
	fileLimit = 800
	longFiles = 0.10
)

func TestFilesAreShort(t *testing.T) {
	files, _ := goFiles(t)
	code, long := 0, 0
	for _, f := range files {
		if f.Lines > fileLimit {
			t.Errorf("%s has %d lines, the limit is %d", f.Name, f.Lines, fileLimit)
		}
		if f.Test {
			continue
		}
		code++
		if f.Lines > fileRule {
			long++
			t.Logf("%s has %d lines, the rule is %d", f.Name, f.Lines, fileRule)
		}
	}
	if share := float64(long) / float64(code); share > longFiles {
		t.Errorf("%d of %d files are longer than %d lines", long, code, fileRule)
	}
}

func TestFunctionsFitAScreen(t *testing.T) {
	files, fset := goFiles(t)
	for _, f := range files {
		if f.Test {
			continue
		}
		for _, d := range f.Syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			if n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; n > 100 {
				t.Errorf("%s: %s has %d lines, the limit is 100", f.Name, fn.Name.Name, n)
			}
		}
	}
}

func TestEveryExportedNameIsDocumented(t *testing.T) {
	files, fset := goFiles(t)
	documented := map[string]bool{}
	for _, f := range files {
		if f.Syntax.Doc != nil {
			documented[f.Dir] = true
		}
	}
	names := 0
	for _, f := range files {
		if f.Test {
			continue
		}
		if !documented[f.Dir] {
			t.Errorf("%s: no file of the package has a package comment", f.Dir)
			documented[f.Dir] = true
		}
		for _, d := range f.Syntax.Decls {
			for _, id := range undocumented(d, &names) {
				t.Errorf("%s: %s has no comment", fset.Position(id.Pos()), id.Name)
			}
		}
	}
	if names < 100 {
		t.Fatalf("only %d exported names found: the check is broken", names)
	}
}

// undocumented returns the exported names of a declaration without a comment of their own or of their group.
func undocumented(d ast.Decl, names *int) []*ast.Ident {
	var out []*ast.Ident
	check := func(id *ast.Ident, docs ...*ast.CommentGroup) {
		if !id.IsExported() {
			return
		}
		*names++
		for _, doc := range docs {
			if doc.Text() != "" {
				return
			}
		}
		out = append(out, id)
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		// Error and String are what fmt documents them to be.
		method := d.Recv != nil
		if method && (d.Name.Name == "Error" || d.Name.Name == "String") {
			return nil
		}
		if !method || exportedReceiver(d.Recv) {
			check(d.Name, d.Doc)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				check(s.Name, d.Doc, s.Doc)
			case *ast.ValueSpec:
				for _, id := range s.Names {
					check(id, d.Doc, s.Doc, s.Comment)
				}
			}
		}
	}
	return out
}

func exportedReceiver(recv *ast.FieldList) bool {
	typ := recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if ix, ok := typ.(*ast.IndexExpr); ok {
		typ = ix.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && id.IsExported()
}

// banned calls, and the only folders or files where they may stand. Tests are free, except for sleeping.
var banned = map[string][]string{
	"time.Now":      {"cli", "checkpoint/durable/os.go", "abi/sdk"},
	"time.Sleep":    {},
	"time.After":    {},
	"time.NewTimer": {"cli"},
	"os.WriteFile":  {"cli"},
	"os.Create":     {"checkpoint/durable"},
	"os.OpenFile":   {"checkpoint/durable", "cli/failpoints_on.go", "cli/demo"}, // a trace that a kill must not lose, logs of engines
	"os.Open":       {"checkpoint/durable"},
	"os.ReadFile":   {"cli"},
	"os.Rename":     {"checkpoint/durable"},
	"os.Remove":     {"checkpoint/durable"},
	"os.RemoveAll":  {"cli/demo", "cli/scratch.go"}, // their own temporary folders
	"os.Mkdir":      {"host/sandbox"},               // the private folder of compiled code
	"os.MkdirAll":   {"checkpoint/durable", "host/sandbox", "cli"},
	"os.Link":       {"checkpoint/durable"},
	"os.Exit":       {"cli/wasmill"},
	"panic":         {"host/sandbox", "abi/sdk"}, // the sandbox leaves a guest by unwinding it
	"fmt.Print":     {"cli"},
	"fmt.Println":   {"cli"},
	"fmt.Printf":    {"cli"},
	"rand.Int":      {},
	"rand.IntN":     {"checkpoint/durable/faulty"},
	"rand.Read":     {"cli", "checkpoint/durable/objects.go"}, // names of temporary files
}

func TestBannedCalls(t *testing.T) {
	files, fset := goFiles(t)
	for _, f := range files {
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := callName(call)
			places, isBanned := banned[name]
			if !isBanned || (f.Test && name != "time.Sleep") {
				return true
			}
			for _, p := range places {
				if within(f.Dir, p) || f.Name == p {
					return true
				}
			}
			t.Errorf("%s: %s is allowed only in %v", fset.Position(call.Pos()), name, places)
			return true
		})
	}
}

func callName(call *ast.CallExpr) string {
	switch fn := call.Fun.(type) {
	case *ast.Ident:
		return fn.Name
	case *ast.SelectorExpr:
		if x, ok := fn.X.(*ast.Ident); ok {
			return x.Name + "." + fn.Sel.Name
		}
	}
	return ""
}

func TestEveryFolderSaysWhatItIsFor(t *testing.T) {
	files, _ := goFiles(t)
	documented := map[string]bool{}
	for _, f := range files {
		if f.Syntax.Doc != nil {
			documented[f.Dir] = true
		}
	}
	for _, dir := range []string{"abi", "host", "transforms", "statestore", "checkpoint", "cli", "examples"} {
		if _, err := os.Stat(filepath.Join(root(t), dir, "README.md")); err != nil && !documented[dir] {
			t.Errorf("%s has neither a README.md nor a package comment", dir)
		}
	}
}

func TestTopOfTheRepository(t *testing.T) {
	want := map[string]bool{
		"go.mod": true, "go.sum": true, "host": true, "abi": true, "transforms": true, "statestore": true, "checkpoint": true,
		"cli": true, "examples": true, "README.md": true, "LICENSE": true, "CHANGELOG.md": true, "ARCHITECTURE.md": true,
	}
	entries, err := os.ReadDir(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !want[e.Name()] && !strings.HasPrefix(e.Name(), ".") {
			t.Errorf("%s does not belong at the top of the repository", e.Name())
		}
		delete(want, e.Name())
	}
	for name := range want {
		t.Errorf("%s is missing", name)
	}
}

func TestNoPackageWithoutANoun(t *testing.T) {
	bad := regexp.MustCompile(`(^|/)(utils?|common|helpers?|misc|old|poc)(/|$)`)
	walk(t, func(rel string, d fs.DirEntry) {
		if d.IsDir() && bad.MatchString(rel) {
			t.Errorf("%s: a folder is named after what it holds", rel)
		}
	})
}

// TestTextsStayAtHome looks for paths of one machine and for notes to ourselves.
func TestTextsStayAtHome(t *testing.T) {
	bad := regexp.MustCompile(`/work/(main|shared)|/root/|(?i)\b(TODO|FIXME|XXX):`)
	self := "cli/lint/style_test.go"
	walk(t, func(rel string, d fs.DirEntry) {
		if d.IsDir() || rel == self || !regexp.MustCompile(`\.(go|md|sh|rs|c|h|yaml|json|toml)$`).MatchString(rel) {
			return
		}
		text, err := os.ReadFile(filepath.Join(root(t), rel))
		if err != nil {
			t.Fatal(err)
		}
		if m := bad.Find(text); m != nil {
			t.Errorf("%s contains %q", rel, m)
		}
	})
}
