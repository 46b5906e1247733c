package guests_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/sandbox/binary"
	"github.com/wasmill/wasmill/host/sandbox/guests"
)

var calibrate = flag.String("calibrate", "", "measure these modules too (files, separated by commas), and print the table of all")

// measure is one property of a module that a limit may bound: the largest of a function where it speaks of a function.
type measure struct {
	name  string
	have  int64
	limit int64 // of package binary, 0 for none
}

// Measures that the test treats one by one; their places in the list.
const (
	mBytes        = 0
	mDataSegments = 8
)

// measured reads a module. The reader itself refuses what is over a limit, so what it takes is below all of them.
func measured(t testing.TB, name string, wasm []byte) []measure {
	t.Helper()
	m, err := binary.Profile{Any: true}.Parse(wasm)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		m = &binary.Module{}
	}
	table, elements, longest, params, results, instructions, slots := 0, 0, 0, 0, 0, 0, 0
	for _, t := range m.Tables {
		table = max(table, int(t.Min))
	}
	for _, e := range m.Elements {
		elements += max(len(e.Funcs), len(e.Exprs))
	}
	for _, e := range m.Exports {
		longest = max(longest, len(e.Name))
	}
	for _, im := range m.Imports {
		longest = max(longest, len(im.Name), len(im.Module))
	}
	for _, t := range m.Types {
		params, results = max(params, len(t.Params)), max(results, len(t.Results))
	}
	for i := range m.Bodies {
		instructions, slots = max(instructions, m.Bodies[i].Instructions), max(slots, m.Bodies[i].Slots)
	}
	c := &m.Counts
	of := func(name string, have, limit int) measure { return measure{name, int64(have), int64(limit)} }
	return []measure{
		of("bytes", len(wasm), binary.MaxModule),
		of("functions", len(m.Funcs)+len(m.Imports), binary.MaxFuncs),
		of("types", len(m.Types), binary.MaxTypes),
		of("imports", len(m.Imports), binary.MaxImports),
		of("exports", len(m.Exports), binary.MaxExports),
		of("globals", len(m.Globals), binary.MaxGlobals),
		of("tables", len(m.Tables), binary.MaxTables),
		of("elements of a table", table, binary.MaxTable),
		of("data segments", len(m.Data), binary.MaxSegments),
		of("element segments", len(m.Elements), binary.MaxSegments),
		of("elements in segments", elements, binary.MaxElements),
		of("bytes of a name", longest, binary.MaxName),
		of("params", params, binary.MaxParams),
		of("results", results, binary.MaxParams),
		of("instructions", instructions, 0),
		of("slots of a frame", slots, 0),
		{"bytes of a function", c.Bytes, binary.MaxBody},
		{"calls of a function", c.Calls, binary.MaxCalls},
		{"locals of a function", c.Locals, binary.MaxLocals},
		{"locals in the module", c.ModuleLocals, binary.MaxModuleLocals},
		{"nested blocks", c.Nesting, binary.MaxNesting},
		{"labels of a br_table", c.Targets, binary.MaxTargets},
		{"labels in a function", c.AllTargets, binary.MaxAllTargets},
		{"labels in the module", c.ModuleTargets, binary.MaxModuleTargets},
		{"nested loops x their shared locals", c.LoopLocals, binary.MaxLoopLocals},
		{"shared locals of loops, in the module", c.ModuleLoops, binary.MaxModuleLoops},
		{"spans of locals", c.Spans, binary.MaxSpans},
		{"values of shared locals that meet", c.Merged, binary.MaxMerged},
		{"values of shared locals that are passed on", c.Passed, binary.MaxPassed},
		{"shared locals of loops x ways back squared", c.WaysBack, binary.MaxWaysBack},
		{"values on the stack of blocks", c.Held, binary.MaxHeld},
	}
}

// corpus is every real module at hand: the guests, what the repository ships, and what the flag names.
func corpus(t *testing.T) (names []string, all map[string][]byte) {
	t.Helper()
	all = map[string][]byte{}
	add := func(name string, wasm []byte) {
		names = append(names, name)
		all[name] = wasm
	}
	for _, g := range guests.All() {
		if g.Built() || !testing.Short() {
			add(g.Name, module(t, g))
		}
	}
	files := []string{}
	for _, pattern := range []string{"transforms/*/*.wasm", "abi/sdk/*/*/*.wasm"} {
		found, err := filepath.Glob(filepath.Join("../../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if *calibrate != "-" {
		files = append(files, strings.FieldsFunc(*calibrate, func(r rune) bool { return r == 44 })...)
	}
	for _, file := range files {
		wasm, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		add(strings.TrimSuffix(filepath.Base(file), ".wasm"), wasm)
	}
	return names, all
}

// TestCalibration shows how far real modules stay below each limit of the reader: at least by a factor of 2.5, but for the
// size, and for data segments, of which Go's linker makes 100,000 and never more. With the flag -calibrate it prints all
// figures.
func TestCalibration(t *testing.T) {
	names, all := corpus(t)
	rows := map[string][]measure{}
	for _, name := range names {
		rows[name] = measured(t, name, all[name])
		for i, m := range rows[name] {
			if m.limit > 0 && m.have*5 > m.limit*2 && i != mBytes && i != mDataSegments {
				t.Errorf("%s: %s has %d, the limit is %d", m.name, name, m.have, m.limit)
			}
		}
	}
	if *calibrate != "" {
		fmt.Print(table(names, rows))
	}
}

// table is the figures as Markdown, one line a measure, with the three largest modules.
func table(names []string, rows map[string][]measure) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d modules.\n\n| measure | largest | the three largest |\n|---|---|---|\n", len(names))
	for i, m := range rows[names[0]] {
		sorted := slices.Clone(names)
		slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(rows[b][i].have, rows[a][i].have) })
		var top []string
		for _, name := range sorted[:3] {
			top = append(top, fmt.Sprintf("%s %d", name, rows[name][i].have))
		}
		fmt.Fprintf(&b, "| %s | %d | %s |\n", m.name, rows[sorted[0]][i].have, strings.Join(top, ", "))
	}
	return b.String()
}
