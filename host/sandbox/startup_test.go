package sandbox

import (
	"errors"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi/kit"
	"github.com/wasmill/wasmill/host/fault"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

func kitGuest(t *testing.T, name string) []byte {
	t.Helper()
	cases, err := kit.Load()
	if err != nil {
		t.Fatal(err)
	}
	for i := range cases {
		if cases[i].Name == name {
			return cases[i].Wasm
		}
	}
	t.Fatalf("the kit has no %s", name)
	return nil
}

func TestStartUpOf(t *testing.T) {
	e := engines(t)["interpreter"]
	s := StartUpOf(started(t, e, kitGuest(t, "echo"), Options{}))
	if s.Memory < 64<<10 || s.Memory%(64<<10) != 0 || s.Fuel == 0 || s.Fuel > 1_000_000 || s.MostFuel != 1_000_000_000 {
		t.Errorf("%+v", s)
	}
	if StartUpOf(nil) != nil {
		t.Error("the start-up of nothing")
	}
}

// TestStartWayOut has the way out fit what went wrong.
func TestStartWayOut(t *testing.T) {
	command := w.Transform("\x00"+w.Const(0), w.Echo())
	command.Imports = append(command.Imports, w.ImportFunc{Module: "wasi_snapshot_preview1", Name: "proc_exit", Params: "\x7f"})
	command.Exports = append(command.Exports, w.Name("_start")+"\x00\x03")
	for name, tt := range map[string]struct {
		wasm       []byte
		wrong, out string
	}{
		"misaligned":    {kitGuest(t, "start-alloc-misaligned"), "wasmill_alloc gave the address 65560, which is no multiple of 16", "mend the module's wasmill_alloc"},
		"outside":       {kitGuest(t, "start-alloc-outside"), "for 18 bytes, which do not lie inside memory: it has 393216 bytes", "mend the module's wasmill_alloc"},
		"no memory":     {kitGuest(t, "start-alloc-0"), "wasmill_alloc gave no memory", "raise limits.memory"},
		"without end":   {kitGuest(t, "start-init-loop"), "trap fuel: it has used its fuel, 1000000000 for a step of the start-up, which no limit of a job changes", "whatever the job's limits are"},
		"its own words": {kitGuest(t, "start-init-nonzero"), "status 3", "look at the transform's config"},
		"a command":     {command.Bytes(), "trap unreachable", "-buildmode=c-shared"},
	} {
		err := startError(t, engines(t)["compiler"], tt.wasm, Options{})
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.ErrCode != CodeStart || !strings.Contains(f.Error(), tt.wrong) || !strings.Contains(f.WayOut, tt.out) {
			t.Errorf("%s: %v\nway out: %v", name, err, f)
		}
	}
}
