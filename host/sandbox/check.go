package sandbox

import (
	"slices"
	"strconv"
	"strings"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox/binary"
	"github.com/wasmill/wasmill/host/sandbox/wasi"
)

// Names of ABI 1 in a module.
const (
	importModule = "wasmill_1"
	importRead   = "state_read"
	importWrite  = "state_write"
	exportMemory = "memory"
	exportStart  = "_initialize"
	exportAlloc  = "wasmill_alloc"
	exportInit   = "wasmill_init"
	exportBatch  = "wasmill_batch"
)

func i32s(n int) []binary.ValueType {
	return slices.Repeat([]binary.ValueType{binary.I32}, n)
}

// check holds a module's imports and exports to ABI 1.
func check(name string, form *binary.Module, manifest *abi.Manifest) error {
	ours := false
	types := map[string]uint32{}
	for _, im := range form.Imports {
		ours = ours || im.Module == importModule
		if err := checkImport(name, form, im); err != nil {
			return err
		}
		full := im.Module + "\x00" + im.Name
		if t, twice := types[full]; twice && !form.Types[t].Equal(form.Types[im.Type]) {
			return refuse(CodeImport, name, "import a function once", "it imports %.80q.%.80q twice with two types", im.Module, im.Name)
		}
		types[full] = im.Type
	}
	if err := checkExports(name, form); err != nil {
		return err
	}
	if !ours && manifest.ABI == 0 {
		return refuse(CodeABI, name, `import a function of "wasmill_1", or say "abi": 1 in the manifest`,
			"it does not say which version of the ABI it was built for")
	}
	return nil
}

func checkImport(name string, form *binary.Module, im binary.Import) error {
	have := form.Types[im.Type]
	if n, ok := strings.CutPrefix(im.Module, "wasmill_"); ok && im.Module != importModule {
		if _, err := strconv.ParseUint(n, 10, 31); err == nil {
			return refuse(CodeABI, name, "build it for ABI 1, or run a version of Wasmill that has its ABI",
				"it imports %s: it was built for ABI %s, this version runs ABI 1", im.Module, n)
		}
	}
	if im.Module == wasi.Module {
		return checkWASI(name, im, have)
	}
	f, ok := hostFunctions(im.Module, im.Name)
	if !ok {
		return refuse(CodeImport, name, "a transform may import wasmill_1, wasi_snapshot_preview1 and env.abort",
			"it imports %.80q.%.80q, which is not offered", im.Module, im.Name)
	}
	if !f.kind.Equal(have) {
		return refuse(CodeImport, name, "build it with the SDK for ABI 1", "it imports %s.%s as %s, it is %s", im.Module, im.Name, have, f.kind)
	}
	return nil
}

// checkWASI takes any function of preview 1. One that is not implemented answers with an errno, so its result must be able
// to hold one.
func checkWASI(name string, im binary.Import, have binary.FuncType) error {
	f, ok := wasi.Lookup(im.Name)
	if !ok {
		if !slices.Equal(have.Results, i32s(1)) {
			return refuse(CodeImport, name, "build it without that function",
				"it imports %s.%.80q as %s, which is not offered", im.Module, im.Name, have)
		}
		return nil
	}
	if want := wasiType(f); !want.Equal(have) {
		return refuse(CodeImport, name, "build it with a current toolchain for WASI preview 1",
			"it imports %s.%s as %s, it is %s", im.Module, im.Name, have, want)
	}
	return nil
}

func wasiType(f wasi.Function) binary.FuncType {
	var t binary.FuncType
	for _, p := range f.Params {
		v := binary.I32
		if p == wasi.I64 {
			v = binary.I64
		}
		t.Params = append(t.Params, v)
	}
	if f.Call != nil {
		t.Results = i32s(1)
	}
	return t
}

func checkExports(name string, form *binary.Module) error {
	want := []struct {
		name     string
		kind     binary.FuncType
		optional bool
	}{
		{name: exportAlloc, kind: binary.FuncType{Params: i32s(1), Results: i32s(1)}},
		{name: exportInit, kind: binary.FuncType{Params: i32s(3), Results: i32s(1)}},
		{name: exportBatch, kind: binary.FuncType{Params: i32s(2), Results: i32s(1)}},
		{name: exportStart, optional: true},
	}
	exports := map[string]binary.Export{}
	for _, e := range form.Exports {
		exports[e.Name] = e
	}
	if e, ok := exports[exportMemory]; !ok || e.Kind != binary.KindMemory {
		return refuse(CodeMemory, name, `export the module's memory under the name "memory"`, "it does not export a memory named %q", exportMemory)
	}
	if least := form.Memories[0].Min; least > maxMemory {
		return refuse(CodeMemory, name, "declare a smaller memory", "its memory begins with %d pages, at most %d can be given", least, maxMemory)
	}
	for _, w := range want {
		e, ok := exports[w.name]
		if !ok && w.optional {
			continue
		}
		if !ok || e.Kind != binary.KindFunc {
			return refuse(CodeExport, name, "build it with an SDK, or export the functions of abi/README.md", "it does not export the function %s", w.name)
		}
		if have, _ := form.FuncType(e.Index); !have.Equal(w.kind) {
			return refuse(CodeExport, name, "build it with the SDK for ABI 1", "it exports %s as %s, it must be %s", w.name, have, w.kind)
		}
	}
	return nil
}
