package kit

import (
	"os"
	"slices"
	"testing"

	"github.com/wasmill/wasmill/abi"
)

func load(t *testing.T) []Case {
	t.Helper()
	cases, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// TestReference runs the kit against the reference host: it shows that the kit asks for nothing impossible, and that its
// guests do what it says of them.
func TestReference(t *testing.T) {
	for _, c := range load(t) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			if len(c.Needs) > 0 {
				t.Skipf("the reference host has no %v", c.Needs)
			}
			if err := c.Check(reference{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFiles holds kit.json and wasm/ to each other: every module is used, every case has a name of its own.
func TestFiles(t *testing.T) {
	used, names := map[string]bool{}, map[string]bool{}
	for _, c := range load(t) {
		if names[c.Name] {
			t.Errorf("two cases are called %s", c.Name)
		}
		if c.About == "" || (c.Refuse == nil) == (c.Runs == nil) {
			t.Errorf("case %s: no about, or not exactly one of refuse and runs", c.Name)
		}
		names[c.Name], used[c.File] = true, true
	}
	entries, err := os.ReadDir("wasm")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !used[e.Name()] {
			t.Errorf("no case uses wasm/%s", e.Name())
		}
	}
}

// TestTraps holds the kit to the closed list: every trap is met in some case.
func TestTraps(t *testing.T) {
	met := map[abi.TrapName]bool{}
	for _, c := range load(t) {
		for _, r := range c.Runs {
			met[r.Expect.Trap] = true
		}
	}
	delete(met, "")
	all := []abi.TrapName{
		abi.TrapUnreachable, abi.TrapMemory, abi.TrapTable, abi.TrapIndirect, abi.TrapIntegerOverflow, abi.TrapDivide,
		abi.TrapConversion, abi.TrapDepth, abi.TrapFuel, abi.TrapExit, abi.TrapEmit, abi.TrapState, abi.TrapQuota, abi.TrapTooLarge, abi.TrapAbort,
	}
	for _, name := range all {
		if !met[name] {
			t.Errorf("no case ends in the trap %s", name)
		}
	}
	for name := range met {
		if !slices.Contains(all, name) {
			t.Errorf("the kit uses the trap %q, which is none", name)
		}
	}
}
