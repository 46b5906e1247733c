package determinism

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmill/wasmill/host/sandbox/binary"
	"github.com/wasmill/wasmill/host/sandbox/rewriter"
)

var update = flag.Bool("update", false, "write the golden files")

// plenty is fuel and depth that no test uses up.
const (
	plenty = 1 << 40
	deep   = 1000
)

// guest is a module on one engine.
type guest struct {
	name  string
	mod   api.Module
	funcs map[string]api.Function
	stack [8]uint64
	// Of a module that is not plain:
	fuel, depth api.MutableGlobal
}

// onBoth puts a module on the compiler and on the interpreter, through the rewriter.
func onBoth(t *testing.T, wasm []byte, o rewriter.Options) (compiler, interpreter *guest) {
	t.Helper()
	form, err := binary.Parse(wasm)
	if err != nil {
		t.Fatal(err)
	}
	o.MaxPages, o.MaxTable, o.KeepData = 16, 100, true
	out, err := rewriter.Rewrite(form, o)
	if err != nil {
		t.Fatal(err)
	}
	features := func(c wazero.RuntimeConfig) wazero.RuntimeConfig { return c.WithCoreFeatures(api.CoreFeaturesV2) }
	compiler = start(t, "compiler", features(wazero.NewRuntimeConfigCompiler()), out.Wasm)
	return compiler, start(t, "interpreter", features(wazero.NewRuntimeConfigInterpreter()), out.Wasm)
}

func start(t *testing.T, name string, c wazero.RuntimeConfig, wasm []byte) *guest {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, c)
	t.Cleanup(func() {
		if err := rt.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	yield := func(context.Context, api.Module, []uint64) { panic("out of fuel or depth") }
	long := []api.ValueType{api.ValueTypeI64, api.ValueTypeI64}
	_, err := rt.NewHostModuleBuilder(rewriter.Module).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(yield), long, long[:1]).Export(rewriter.Yield).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := rt.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(err)
	}
	g := &guest{name: name, mod: mod, funcs: map[string]api.Function{}}
	g.fuel, _ = mod.ExportedGlobal(rewriter.Fuel).(api.MutableGlobal)
	g.depth, _ = mod.ExportedGlobal(rewriter.Depth).(api.MutableGlobal)
	return g
}

// call calls a function with up to eight parameters. Of a narrow result the upper half is not determined.
func (g *guest) call(t testing.TB, name string, params ...uint64) uint64 {
	t.Helper()
	f := g.funcs[name]
	if f == nil {
		f = g.mod.ExportedFunction(name)
		g.funcs[name] = f
		if f == nil {
			t.Fatalf("no function %s", name)
		}
	}
	if g.fuel != nil {
		g.fuel.Set(plenty)
		g.depth.Set(deep)
	}
	copy(g.stack[:], params)
	if err := f.CallWithStack(context.Background(), g.stack[:]); err != nil {
		t.Fatalf("%s on the %s: %v", name, g.name, err)
	}
	if r := f.Definition().ResultTypes(); len(r) > 0 && r[0] == api.ValueTypeI32 {
		return uint64(uint32(g.stack[0]))
	}
	return g.stack[0]
}

// golden collects lines, and compares them with a file of testdata.
type golden struct {
	name  string
	lines []string
	// partial says that lines of the file may be missing.
	partial bool
}

func (g *golden) add(format string, args ...any) {
	g.lines = append(g.lines, fmt.Sprintf(format, args...))
}

// check compares with the whole file, or when a part was run with what it has of it.
func (g *golden) check(t *testing.T) {
	t.Helper()
	file := filepath.Join("testdata", g.name)
	if *update && !testing.Short() {
		if err := os.WriteFile(file, []byte(strings.Join(g.lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(b)), "\n")
	if testing.Short() || g.partial {
		ran := map[string]bool{}
		for _, l := range g.lines {
			ran[keyOf(l)] = true
		}
		want = filter(want, func(l string) bool { return ran[keyOf(l)] })
	}
	if d := cmp.Diff(want, g.lines); d != "" {
		t.Errorf("%s (-want +got):\n%s", file, d)
	}
}

// keyOf is all of a line but its digest, which stands last.
func keyOf(line string) string { return line[:strings.LastIndexByte(line, ' ')+1] }

func filter(lines []string, keep func(string) bool) []string {
	var out []string
	for _, l := range lines {
		if keep(l) {
			out = append(out, l)
		}
	}
	return out
}

// digest is a short form of what was hashed.
func digest(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)[:12]) }

func newDigest() hash.Hash { return sha256.New() }
