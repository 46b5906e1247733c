// Package guests holds real guests, built by the toolchains that people use, and what they must do. It is there for tests
// and measurements of a host: whether a module of any toolchain loads, behaves the same everywhere, and what it costs.
//
// Most guests do one and the same work, so that they can be compared with each other and with native Go. The package
// depends on no host, engine or SDK, and nothing but tests and benchmarks may import it.
package guests

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// Work is what a guest does.
type Work string

// The works. See README.md.
const (
	// Orders drops cancelled orders and adds an amount to the others: Scan does the same.
	Orders Work = "orders"
	// Floats runs a kernel of floats and gives the bits of what came out: Iterate does the same.
	Floats Work = "floats"
	// Chaos does what a language leaves undetermined. What comes out is nowhere written down; it must be the same always.
	Chaos Work = "chaos"
	// Traps does what the value of a record says; debug/trap.c and debug/rust have the words.
	Traps Work = "traps"
)

// Guest is one of the guests.
type Guest struct {
	Name     string
	Language string
	Work     Work
	// How it does the work.
	How string
	// Fields are the JSON pointers that the host must locate, in the order of the manifest.
	Fields []string
	// JSON says that it reads the whole value with the usual library of its language.
	JSON bool

	file string // committed
	pkg  string // or built by Go
}

var fields = []string{"/status", "/amount_usd"}

var all = []Guest{
	{Name: "c-scan", Language: "C", Work: Orders, How: "a byte at a time, clang-19", file: "wasm/c-scan.wasm"},
	{Name: "c-simd", Language: "C", Work: Orders, How: "SIMD, clang-19", file: "wasm/c-simd.wasm"},
	{Name: "zigcc-scan", Language: "C", Work: Orders, How: "a byte at a time, zig cc", file: "wasm/zigcc-scan.wasm"},
	{Name: "zigcc-simd", Language: "C", Work: Orders, How: "SIMD, zig cc", file: "wasm/zigcc-simd.wasm"},
	{Name: "rust-scan", Language: "Rust", Work: Orders, How: "a byte at a time", file: "wasm/rust-scan.wasm"},
	{Name: "rust-serde", Language: "Rust", Work: Orders, How: "serde_json", JSON: true, file: "wasm/rust-serde.wasm"},
	{Name: "zig-scan", Language: "Zig", Work: Orders, How: "a byte at a time, ReleaseFast", file: "wasm/zig-scan.wasm"},
	{Name: "zig-safe", Language: "Zig", Work: Orders, How: "a byte at a time, ReleaseSafe", file: "wasm/zig-safe.wasm"},
	{Name: "as-scan", Language: "AssemblyScript", Work: Orders, How: "a byte at a time", file: "wasm/as-scan.wasm"},
	{Name: "as-json", Language: "AssemblyScript", Work: Orders, How: "json-as", JSON: true, file: "wasm/as-json.wasm"},
	{Name: "go-scan", Language: "Go", Work: Orders, How: "a byte at a time, slices", pkg: "scan"},
	{Name: "go-swar", Language: "Go", Work: Orders, How: "8 bytes at a time, unsafe pointers", pkg: "swar"},
	{Name: "go-json", Language: "Go", Work: Orders, How: "encoding/json", JSON: true, pkg: "json"},
	{Name: "quickjs", Language: "JavaScript", Work: Orders, How: "QuickJS, JSON.parse and JSON.stringify", JSON: true, file: "wasm/quickjs.wasm"},

	{Name: "c-fields", Language: "C", Work: Orders, How: "located fields, SDK", Fields: fields, file: "wasm/c-fields.wasm"},
	{Name: "rust-fields", Language: "Rust", Work: Orders, How: "located fields, SDK", Fields: fields, file: "wasm/rust-fields.wasm"},
	{Name: "go-fields", Language: "Go", Work: Orders, How: "located fields, SDK", Fields: fields, pkg: "fields"},

	{Name: "c-floats", Language: "C", Work: Floats, How: "1,000 steps a record", file: "wasm/c-floats.wasm"},
	{Name: "rust-floats", Language: "Rust", Work: Floats, How: "1,000 steps a record", file: "wasm/rust-floats.wasm"},
	{Name: "as-floats", Language: "AssemblyScript", Work: Floats, How: "1,000 steps a record", file: "wasm/as-floats.wasm"},
	{Name: "go-floats", Language: "Go", Work: Floats, How: "1,000 steps a record", pkg: "floats"},

	{Name: "rust-hashmap", Language: "Rust", Work: Chaos, How: "HashMap, addresses, floats", file: "wasm/rust-hashmap.wasm"},
	{Name: "cpp-containers", Language: "C++", Work: Chaos, How: "unordered_map, malloc, qsort, printf, floats", file: "wasm/cpp-containers.wasm"},
	{Name: "go-chaos", Language: "Go", Work: Chaos, How: "maps, goroutines, collector, clock, random numbers, encoding/json", pkg: "chaos"},
	{Name: "go-net", Language: "Go", Work: Chaos, How: "net/http and files", pkg: "net"},

	{Name: "trap-c", Language: "C", Work: Traps, How: "DWARF 5 and names", file: "debug/trap-c.wasm"},
	{Name: "trap-rust", Language: "Rust", Work: Traps, How: "DWARF 4 and names", file: "debug/trap-rust.wasm"},
}

// All returns the guests, those of one work together.
func All() []Guest { return append([]Guest(nil), all...) }

// Named returns the guest of that name.
func Named(name string) (Guest, bool) {
	for _, g := range all {
		if g.Name == name {
			return g, true
		}
	}
	return Guest{}, false
}

//go:embed wasm/*.wasm debug/*.wasm
var modules embed.FS

// Built says that the guest is committed. Any other one is built by the Go that runs the program.
func (g Guest) Built() bool { return g.file != "" }

// Wasm returns the module. One that is not committed is built into dir, by the Go toolchain, from the sources of the Go
// module that the working directory lies in; what dir has already is used again.
func (g Guest) Wasm(dir string) ([]byte, error) {
	if g.Built() {
		return modules.ReadFile(g.file)
	}
	name := g.Name + ".wasm"
	if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
		if err := build(g.pkg, filepath.Join(dir, name)); err != nil {
			return nil, fmt.Errorf("build guest %s: %w", g.Name, err)
		}
	}
	return fs.ReadFile(os.DirFS(dir), name)
}

// build runs the compiler as the documentation of the Go SDK says.
func build(pkg, to string) error {
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	top, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/wasmill/wasmill").Output()
	if err != nil {
		return fmt.Errorf("find the sources: %w", err)
	}
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", to, "./"+pkg)
	cmd.Dir = filepath.Join(strings.TrimSpace(string(top)), filepath.FromSlash(path.Join("host/sandbox/guests", "src/go")))
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOOS=wasip1", "GOARCH=wasm", "GOWASM=", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	return nil
}

//go:embed src/rust/fields/manifest.json
var sidecar []byte

// Sidecar is the manifest that lies beside the module, nil for the guests that have none or have it in themselves.
func (g Guest) Sidecar() []byte {
	if g.Name == "go-fields" {
		return sidecar
	}
	return nil
}
