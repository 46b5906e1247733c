package lint

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	faultHead = regexp.MustCompile(`^# (\d+) faults of others\n`)
	faultLine = regexp.MustCompile(`^\| (\d+) \| [^|]+ \| [^|]+ \| ([^|]+) \|$`)
	named     = regexp.MustCompile("`([a-z0-9/_]+):((?:Test|Fuzz)\\w+)`")
	scripted  = regexp.MustCompile("`([a-z0-9/_.-]+\\.(?:txtar|sh|py))`")
)

// TestFaultsOfOthers: each FAULTS.md has every number once, in order, and each test and script that it names exists.
func TestFaultsOfOthers(t *testing.T) {
	top, lists := root(t), 0
	hasTest := testFinder(t)
	hasScript := func(name string) bool {
		_, err := os.Stat(filepath.Join(top, filepath.FromSlash(name)))
		return err == nil
	}
	walk(t, func(rel string, d fs.DirEntry) {
		if d.IsDir() || path.Base(rel) != "FAULTS.md" {
			return
		}
		lists++
		text, err := os.ReadFile(filepath.Join(top, rel))
		if err != nil {
			t.Fatal(err)
		}
		for _, complaint := range checkFaults(string(text), hasTest, hasScript) {
			t.Errorf("%s: %s", rel, complaint)
		}
	})
	if lists < 2 {
		t.Errorf("%d lists of faults were found", lists)
	}
}

// checkFaults says what is wrong with a list of faults. Its title tells how many there are.
func checkFaults(text string, hasTest func(folder, name string) bool, hasScript func(name string) bool) (wrong []string) {
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	next := 1
	for line := range strings.Lines(text) {
		m := faultLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			if strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "| #") && !strings.HasPrefix(line, "|-") {
				complain("not a line of the table: %.60s", line)
			}
			continue
		}
		if m[1] != fmt.Sprint(next) {
			complain("number %s where %d is next", m[1], next)
		}
		next++
		tests, scripts := named.FindAllStringSubmatch(m[2], -1), scripted.FindAllStringSubmatch(m[2], -1)
		if len(tests)+len(scripts) == 0 {
			complain("fault %s names no test", m[1])
		}
		for _, one := range tests {
			if !hasTest(one[1], one[2]) {
				complain("fault %s: there is no %s in %s", m[1], one[2], one[1])
			}
		}
		for _, one := range scripts {
			if !hasScript(one[1]) {
				complain("fault %s: there is no %s", m[1], one[1])
			}
		}
		if n := strings.Count(m[2], "`"); n != 2*(len(tests)+len(scripts)) {
			complain("fault %s: something in quotes is neither a test nor a script", m[1])
		}
	}
	if head := faultHead.FindStringSubmatch(text); head == nil || head[1] != fmt.Sprint(next-1) {
		complain("the title does not tell of %d faults", next-1)
	}
	return wrong
}

// testFinder returns a function that reports whether a folder has a test of a name.
func testFinder(t *testing.T) func(folder, name string) bool {
	texts := map[string]string{} // of all the tests of a folder
	return func(folder, name string) bool {
		if _, read := texts[folder]; !read {
			files, err := filepath.Glob(filepath.Join(root(t), filepath.FromSlash(folder), "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				texts[folder] += "\n" + string(text)
			}
		}
		return strings.Contains(texts[folder], "\nfunc "+name+"(t *testing.T) {") || strings.Contains(texts[folder], "\nfunc "+name+"(f *testing.F) {")
	}
}

// TestFaultsAreChecked holds the check against lists that are wrong in one place each.
func TestFaultsAreChecked(t *testing.T) {
	const good = "# 2 faults of others\n\nWords.\n\n| # | report | what happened | here |\n|---|---|---|---|\n" +
		"| 1 | A 1 | Lost. | `a/b:TestOne`, `a:FuzzTwo`. |\n| 2 | B 2 | Twice. | Cannot happen: `.ci/x/y.sh` sees to it. |\n"
	hasTest := func(folder, name string) bool {
		return folder+":"+name == "a/b:TestOne" || folder+":"+name == "a:FuzzTwo"
	}
	hasScript := func(name string) bool { return name == ".ci/x/y.sh" }
	if wrong := checkFaults(good, hasTest, hasScript); len(wrong) > 0 {
		t.Errorf("a good list: %v", wrong)
	}
	for _, c := range []struct{ old, new, says string }{
		{"# 2 faults", "# 3 faults", "the title does not tell of 2 faults"},
		{"# 2 faults", "2 faults", "the title does not tell of 2 faults"},
		{"| 2 | B", "| 3 | B", "number 3 where 2 is next"},
		{"| 2 | B", "| 1 | B", "number 1 where 2 is next"},
		{"| B 2 |", "| B 2", "not a line of the table: | 2 | B 2 Twice"},
		{"TestOne", "TestNone", "fault 1: there is no TestNone in a/b"},
		{"y.sh", "z.sh", "fault 2: there is no .ci/x/z.sh"},
		{"`.ci/x/y.sh` sees", "nobody sees", "fault 2 names no test"},
		{"Lost. | ", "Lost. | `nothing`, ", "fault 1: something in quotes is neither a test nor a script"},
	} {
		bad := strings.Replace(good, c.old, c.new, 1)
		wrong := checkFaults(bad, hasTest, hasScript)
		if !slices.ContainsFunc(wrong, func(w string) bool { return strings.HasPrefix(w, c.says) }) {
			t.Errorf("%q for %q: %q, want %q", c.new, c.old, wrong, c.says)
		}
	}
	find := testFinder(t)
	if !find("cli/lint", "TestFaultsAreChecked") || find("cli/lint", "TestFaultsAre") || find("cli/lint/nowhere", "TestFaultsAreChecked") {
		t.Error("tests are not told apart")
	}
}
