package lint

import (
	"strings"
	"testing"
)

// arrows says, for each part of the tree, which other parts its code may import. The longest matching prefix counts; a
// part may always import itself and what lies below it.
var arrows = map[string][]string{
	"abi":                 {},
	"abi/kit":             {"abi"},
	"abi/sdk":             {"abi/sdk/go"},
	"checkpoint":          {"checkpoint/durable"},
	"checkpoint/durable":  {},
	"statestore":          {"checkpoint/durable"},
	"transforms":          {"abi", "abi/sdk/go"},
	"host/fault":          {},
	"host/job":            {"abi", "host/fault", "host/rows"},
	"host/rows":           {"abi", "host/sink", "host/fault"},
	"host/rows/partition": {"abi", "checkpoint/durable", "host/rows", "host/sink"},
	"host/registry":       {"checkpoint/durable", "host/clienttls", "host/fault", "host/rows/confluent"},
	"host/kafkaconn":      {"host/clienttls", "host/fault"},
	"host/clienttls":      {},
	"host/delta":          {"checkpoint/durable", "host/fault", "host/rows"},
	"host/source":         {"abi", "checkpoint", "checkpoint/durable", "host/fault", "host/kafkaconn", "host/rows"},
	"host/source/delta":   {"abi", "checkpoint", "checkpoint/durable", "host/delta", "host/fault", "host/rows", "host/source"},
	"host/sink":           {"abi", "checkpoint", "checkpoint/durable", "host/fault", "host/kafkaconn", "host/rows"},
	"host/sink/delta":     {"abi", "checkpoint", "checkpoint/durable", "host/delta", "host/fault", "host/rows", "host/sink"},
	"host/sink/sql":       {"abi", "checkpoint", "host/fault", "host/rows", "host/sink"},
	"host/sandbox":        {"abi", "host/fault"},
	"host/sandbox/apart":  {"abi", "checkpoint/durable", "host/fault", "host/sandbox"},
	"host/engine":         {"abi", "checkpoint", "checkpoint/durable", "host/fault", "host/sandbox", "host/sink", "host/source", "statestore"},
	"host/pipeline":       {"abi", "checkpoint", "host", "statestore"},
	"cli":                 {"abi", "checkpoint", "host", "statestore", "transforms", "examples"},
	"examples":            {"abi", "checkpoint", "host", "cli"},
}

// drivers never import each other, and the engine knows none of them.
var drivers = []string{
	"host/source/delta", "host/source/files", "host/source/generator", "host/source/kafka", "host/sink/delta", "host/sink/files", "host/sink/kafka", "host/sink/sql", "host/sink/stdout",
}

// testOnly packages serve tests and are not linked into the program.
var testOnly = []string{
	"checkpoint/durable/faulty", "checkpoint/durable/durabletest", "host/source/sourcetest", "host/sink/sinktest", "host/engine/sim", "host/rows/rowstest", "abi/kit",
}

func TestImportsPointOneWay(t *testing.T) {
	files, _ := goFiles(t)
	for _, f := range files {
		part := longest(f.Dir)
		if part == "" {
			t.Errorf("%s: its folder is not in the list of arrows", f.Name)
			continue
		}
		for _, imp := range f.imports() {
			switch {
			case f.Test && !within(imp, "cli"):
				continue // a test may build what it needs, but nothing depends on the command line
			case contains(testOnly, imp) && !contains(testOnly, f.Dir):
				t.Errorf("%s imports %s, which is for tests", f.Name, imp)
			case within(imp, part) || allowed(arrows[part], imp):
			default:
				t.Errorf("%s imports %s: %s may import %s", f.Name, imp, part, strings.Join(arrows[part], ", "))
			}
		}
	}
}

func TestDriversStandAlone(t *testing.T) {
	files, _ := goFiles(t)
	for _, f := range files {
		for _, imp := range f.imports() {
			for _, d := range drivers {
				if !within(imp, d) || f.Test {
					continue
				}
				if within(f.Dir, "host/engine") {
					t.Errorf("%s: the engine imports the driver %s", f.Name, imp)
				}
				for _, other := range drivers {
					if other != d && within(f.Dir, other) {
						t.Errorf("%s: the driver imports the driver %s", f.Name, imp)
					}
				}
			}
		}
	}
}

func longest(dir string) string {
	best := ""
	for part := range arrows {
		if within(dir, part) && len(part) > len(best) {
			best = part
		}
	}
	return best
}

func allowed(list []string, imp string) bool {
	for _, a := range list {
		if within(imp, a) && !(a == "checkpoint" && within(imp, "checkpoint/durable") && !contains(list, "checkpoint/durable") && !contains(list, "host")) {
			return true
		}
	}
	return false
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
