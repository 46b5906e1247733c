package spectest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
)

// least is how many commands of each kind a run must at least have checked, on each engine.
var least = counts{
	"module": 1_590, "register": 22, "action": 150, "assert_return": 45_700, "assert_trap": 2_400, "assert_exhaustion": 15,
	"assert_invalid": 2_100, "assert_malformed": 1_800, "assert_malformed by decoder": 719, "assert_unlinkable": 75, "assert_uninstantiable": 25,
}

// variant is a way to run the suite.
type variant struct {
	name   string
	plain  bool // encoded anew, but with no other change
	config func() wazero.RuntimeConfig
}

var variants = []variant{
	{"rewritten, compiler", false, wazero.NewRuntimeConfigCompiler},
	{"rewritten, interpreter", false, wazero.NewRuntimeConfigInterpreter},
	{"plain, compiler", true, wazero.NewRuntimeConfigCompiler},
	{"plain, interpreter", true, wazero.NewRuntimeConfigInterpreter},
}

// TestSuite runs each script in every way. All must give the specification's answers; rewritten, both engines must also give
// the same bits and use the same fuel.
func TestSuite(t *testing.T) {
	dir := suiteDir(t)
	var mu sync.Mutex
	total := make([]counts, len(variants))
	t.Run("scripts", func(t *testing.T) {
		for _, s := range loadScripts(t, dir) {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				var runs []*run
				for _, v := range variants {
					runs = append(runs, check(t, s, dir, v))
				}
				sameResults(t, runs[0].results, runs[1].results)
				mu.Lock()
				defer mu.Unlock()
				for i, r := range runs {
					total[i] = add(total[i], r.counts)
				}
			})
		}
	})
	for i, have := range total {
		t.Logf("%s:\n%s", variants[i].name, have)
		for kind, want := range least {
			if n := have.sum(kind); n < want {
				t.Errorf("%s: %d of %s were checked, at least %d are expected", variants[i].name, n, kind, want)
			}
		}
	}
}

// check runs a script on one engine. A command that is excluded must fail: an exclusion that is not needed hides something.
func check(t *testing.T, s script, dir string, v variant) *run {
	t.Helper()
	unused := map[int]string{}
	for _, x := range exclusions {
		if x.script == s.name {
			for _, line := range x.lines {
				unused[line] = x.reason
			}
		}
	}
	excluded := 0
	r, err := runScript(context.Background(), s, dir, v, func(c command, err error) {
		if _, ok := unused[c.Line]; !ok {
			t.Errorf("%s: %s.wast:%d %s %s%s: %v", v.name, s.name, c.Line, c.Type, c.Filename, c.Action.Field, err)
			return
		}
		delete(unused, c.Line)
		excluded++
	})
	if err != nil {
		t.Fatal(err)
	}
	r.counts["excluded"] = excluded
	for line, reason := range unused {
		t.Errorf("%s: %s.wast:%d is excluded (%s), but gives the right answer", v.name, s.name, line, reason)
	}
	return r
}

func sameResults(t *testing.T, compiler, interpreter []string) {
	t.Helper()
	for i := range min(len(compiler), len(interpreter)) {
		if compiler[i] != interpreter[i] {
			t.Errorf("line, function, results and fuel are %s on the compiler, %s on the interpreter", compiler[i], interpreter[i])
		}
	}
	if len(compiler) != len(interpreter) {
		t.Errorf("%d results on the compiler, %d on the interpreter", len(compiler), len(interpreter))
	}
}

func add(to, from counts) counts {
	if to == nil {
		to = counts{}
	}
	for kind, n := range from {
		to[kind] += n
	}
	return to
}

// sum is the count of a kind of command, whoever judged it.
func (c counts) sum(kind string) int {
	n := 0
	for k, v := range c {
		if k == kind || strings.HasPrefix(k, kind+" ") {
			n += v
		}
	}
	return n
}

func (c counts) String() string {
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&b, "%7d %s\n", c[kind], kind)
	}
	return b.String()
}
