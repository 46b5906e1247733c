package main

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

func TestRefusal(t *testing.T) {
	if why := refusal(64); why != "" {
		t.Errorf("64 bits are refused: %s", why)
	}
	if why := refusal(32); !strings.Contains(why, "needs a 64-bit platform") {
		t.Errorf("32 bits are refused with %q", why)
	}
}

// TestBuildFor32BitsFailsInWords: the package of a 32-bit platform is one file, which does not compile.
func TestBuildFor32BitsFailsInWords(t *testing.T) {
	for _, arch := range []string{"386", "arm", "mips", "mipsle"} {
		c := build.Default
		c.GOOS, c.GOARCH, c.CgoEnabled = "linux", arch, false
		p, err := c.ImportDir(".", 0)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(p.GoFiles, []string{"words32.go"}) || len(p.Imports) > 0 {
			t.Errorf("%s builds %v with %v", arch, p.GoFiles, p.Imports)
		}
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "words32.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = new(types.Config).Check("main", fset, []*ast.File{f}, nil)
	if err == nil || !strings.Contains(err.Error(), "undefined: wasmill_needs_a_64_bit_platform") {
		t.Errorf("the message is %v", err)
	}
}
