package guests_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	wasm "github.com/wasmill/wasmill/host/sandbox/binary"
	"github.com/wasmill/wasmill/host/sandbox/rewriter"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

var worst = flag.String("worst", "", "compile modules made to be dear: cases as name:n:k, separated by commas, or all")

// Codes of instructions that the cases use.
const (
	block, loop, ifs, end = "\x02\x40", "\x03\x40", "\x04\x40", "\x0b"
	brIf0                 = "\x0d\x00"
	globalGet             = "\x23\x00"
	globalSet             = "\x24\x00"
	drop                  = "\x1a"
	add                   = "\x6a"
)

func get(i int) string { return w.Get(uint32(i)) }
func set(i int) string { return "\x21" + w.U32(uint32(i)) }
func rep(s string, n int) string {
	return strings.Repeat(s, n)
}

func each(n int, f func(int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(f(i))
	}
	return b.String()
}

// dear is a module in the making: functions of type (i32) -> (), a global, a memory.
type dear struct {
	types  string
	nTypes int
	bodies []string
	kinds  []int
	tables string
	count  int
	elems  string
	nElems int
}

// fn adds a function with locals i32.
func (d *dear) fn(locals int, code string) {
	head := w.U32(0)
	if locals > 0 {
		head = w.U32(1) + w.U32(uint32(locals)) + "\x7f"
	}
	d.bodies = append(d.bodies, w.Name(head+code+end))
	d.kinds = append(d.kinds, 0)
}

func (d *dear) bytes() []byte {
	var out strings.Builder
	vec := func(id byte, n int, body string) {
		if n > 0 {
			out.WriteString(w.Section(id, w.U32(uint32(n))+body))
		}
	}
	out.WriteString(w.Header)
	vec(w.Type, 1+d.nTypes, w.FuncType("\x7f", "")+d.types)
	vec(w.Function, len(d.kinds), each(len(d.kinds), func(i int) string { return w.U32(uint32(d.kinds[i])) }))
	vec(w.Table, d.count, d.tables)
	vec(w.Memory, 1, "\x00\x01")
	vec(w.Global, 1, "\x7f\x01\x41\x00\x0b")
	vec(w.Export, 1, w.Name("f")+"\x00\x00")
	vec(w.Element, d.nElems, d.elems)
	vec(w.Code, len(d.bodies), strings.Join(d.bodies, ""))
	return []byte(out.String())
}

// labels is a br_table of n labels, in turn those of the depth open blocks.
func labels(n, depth int) string {
	return "\x0e" + w.U32(uint32(n)) + each(n, func(i int) string { return w.U32(uint32(i % depth)) }) + "\x00"
}

// cases make modules that cost a compiler much for their size. What n and k count is in the comment.
var cases map[string]func(d *dear, n, k int)

func init() {
	cases = map[string]func(d *dear, n, k int){
		// n nested blocks
		"nest": func(d *dear, n, _ int) { d.fn(0, rep(block, n)+rep(get(0)+brIf0+end, n)) },
		// n nested ifs with else
		"nest-if": func(d *dear, n, _ int) {
			d.fn(1, rep(get(0)+ifs, n)+each(n, func(int) string { return get(0) + set(1) + "\x05" + get(0) + set(1) + end }))
		},
		// n nested blocks, each with k locals written before it and read behind it
		"nest-locals": func(d *dear, n, k int) {
			d.fn(k, each(k, func(i int) string { return globalGet + set(i+1) })+
				each(n, func(i int) string { return block + get(0) + brIf0 + globalGet + set(i%k+1) })+rep(end, n)+each(k, func(i int) string { return get(i+1) + globalSet }))
		},
		// n ifs in a row over k locals, one written in each, all read at the end
		"ifs-locals": func(d *dear, n, k int) {
			d.fn(k, each(k, func(i int) string { return globalGet + set(i+1) })+
				each(n, func(i int) string { return get(0) + ifs + globalGet + set(i%k+1) + end })+each(k, func(i int) string { return get(i+1) + globalSet }))
		},
		// n nested loops, k locals written in the innermost
		"loops-locals": func(d *dear, n, k int) {
			d.fn(k, rep(loop, n)+each(k, func(i int) string { return get(i+1) + globalGet + add + set(i+1) })+rep(get(0)+brIf0+end, n)+each(k, func(i int) string { return get(i+1) + globalSet }))
		},
		// 100 functions with n nested loops over k locals each
		"loops-funcs": func(d *dear, n, k int) {
			for range 100 {
				cases["loops-locals"](d, n, k)
			}
		},
		// 100 functions with n ifs in a row over k locals
		"ifs-funcs": func(d *dear, n, k int) {
			for range 100 {
				cases["ifs-locals"](d, n, k)
			}
		},
		// n loops in a row, k locals, one written in each
		"row-loops": func(d *dear, n, k int) {
			d.fn(k, each(k, func(i int) string { return globalGet + set(i+1) })+
				each(n, func(i int) string { return loop + get(i%k+1) + globalGet + add + set(i%k+1) + get(0) + brIf0 + end })+each(k, func(i int) string { return get(i+1) + globalSet }))
		},
		// n br_tables of k labels in one function
		"tables": func(d *dear, n, k int) {
			depth := 100
			d.fn(0, each(n, func(int) string { return rep(block, depth) + get(0) + labels(k, depth) + rep(end, depth) }))
		},
		// n labels of a br_table over k locals that are written before it and read behind the block they name
		"ways-locals": func(d *dear, n, k int) {
			d.fn(k, block+get(0)+brIf0+each(k, func(i int) string { return globalGet + set(i+1) })+get(0)+labels(n, 1)+end+each(k, func(i int) string { return get(i+1) + globalSet }))
		},
		// n branches back to the head of a loop over k locals, of which one stays as it is
		"ways-back": func(d *dear, n, k int) {
			d.fn(k+1, loop+each(k, func(i int) string { return get(i+1) + globalGet + add + set(i+1) })+rep(get(0)+brIf0, n)+get(1)+set(k+1)+get(0)+brIf0+end+
				each(k+1, func(i int) string { return get(i+1) + globalSet }))
		},
		// n functions with a br_table of k labels
		"table-funcs": func(d *dear, n, k int) {
			one := rep(block, 10) + get(0) + labels(k, 10) + rep(end, 10)
			for range n {
				d.fn(0, one)
			}
		},
		// a br_table of n labels, each to a block of its own
		"table-wide": func(d *dear, n, _ int) { d.fn(0, rep(block, n)+get(0)+labels(n, n)+rep(globalGet+globalSet+end, n)) },
		// n functions of k bytes of arithmetic in one line
		"line": func(d *dear, n, k int) {
			code := globalGet + rep(globalGet+add, k/3) + globalSet
			for range n {
				d.fn(0, code)
			}
		},
		// n loads and stores in one line
		"memory": func(d *dear, n, _ int) { d.fn(0, rep(get(0)+get(0)+"\x28\x02\x04"+"\x36\x02\x08", n)) },
		// n calls in one line
		"calls": func(d *dear, n, _ int) { d.fn(0, rep(get(0)+"\x10\x00", n)) },
		// n calls of two bytes in one line
		"calls-short": func(d *dear, n, _ int) {
			d.types, d.nTypes = w.FuncType("", ""), 1
			d.fn(0, rep("\x10\x01", n))
			d.bodies, d.kinds = append(d.bodies, w.Name(w.U32(0)+end)), append(d.kinds, 1)
		},
		// n indirect calls in one line
		"indirect": func(d *dear, n, _ int) {
			d.tables, d.count = "\x70\x00\x01", 1
			d.fn(0, rep(get(0)+get(0)+"\x11\x00\x00", n))
		},
		// n bulk copies in one line: each has loops of its own once it is charged for
		"bulk": func(d *dear, n, _ int) { d.fn(0, rep(get(0)+get(0)+get(0)+"\xfc\x0a\x00\x00", n)) },
		// n float additions, each made canonical
		"floats": func(d *dear, n, _ int) {
			d.fn(0, rep("\x43\x00\x00\x00\x00", 1)+rep("\x43\x00\x00\x00\x00\x92", n)+drop)
		},
		// n calls of a function with k parameters
		"params": func(d *dear, n, k int) {
			d.types, d.nTypes = w.FuncType(rep("\x7f", k), ""), 1
			d.fn(0, each(n, func(int) string { return rep(get(0), k) + "\x10\x01" }))
			d.bodies, d.kinds = append(d.bodies, w.Name(w.U32(0)+end)), append(d.kinds, 1)
		},
		// n blocks with k results each
		"results": func(d *dear, n, k int) {
			d.types, d.nTypes = w.FuncType(rep("\x7f", k), rep("\x7f", k)), 1
			d.fn(0, rep(globalGet, k)+each(n, func(int) string { return "\x02\x01" + get(0) + brIf0 + end })+rep(drop, k))
		},
		// n empty functions
		"functions": func(d *dear, n, _ int) {
			for range n {
				d.fn(0, "")
			}
		},
		// n functions with k locals each, which they do not use
		"locals": func(d *dear, n, k int) {
			for range n {
				d.fn(k, "")
			}
		},
		// k locals, each written once, and n blocks in a row that use none of them
		"locals-blocks": func(d *dear, n, k int) {
			d.fn(k, each(k, func(i int) string { return globalGet + set(i+1) })+rep(block+get(0)+brIf0+end, n)+each(k, func(i int) string { return get(i+1) + globalSet }))
		},
		// k values on the stack over n blocks in a row
		"stack-blocks": func(d *dear, n, k int) {
			d.fn(0, rep(globalGet, k)+rep(block+get(0)+brIf0+end, n)+rep(globalSet, k))
		},
		// k values on the stack over n calls
		"stack-calls": func(d *dear, n, k int) {
			d.fn(0, rep(globalGet, k)+rep(get(0)+"\x10\x00", n)+rep(globalSet, k))
		},
		// n tables of k elements
		"many-tables": func(d *dear, n, k int) {
			d.fn(0, "")
			d.tables, d.count = rep("\x70\x00"+w.U32(uint32(k)), n), n
		},
		// n segments of k elements
		"elements": func(d *dear, n, k int) {
			d.fn(0, "")
			d.tables, d.count = "\x70\x00"+w.U32(uint32(k)), 1
			d.elems, d.nElems = rep("\x00\x41\x00\x0b"+w.U32(uint32(k))+rep("\x00", k), n), n
		},
		// n types
		"types": func(d *dear, n, k int) {
			d.types, d.nTypes = each(n, func(i int) string {
				return w.FuncType(each(k, func(j int) string { return "\x7f\x7e\x7d\x7c"[i>>(2*(j%8))&3:][:1] }), "")
			}), n
			d.fn(0, "")
		},
	}
}

// TestWorst prints what it costs to compile each case: as it is, and rewritten where the reader takes it.
func TestWorst(t *testing.T) {
	if *worst == "" {
		t.Skip("no -worst")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Print("| case | n | k | module | plain | rewritten |\n|---|---|---|---|---|---|\n")
	for _, c := range strings.Split(*worst, ",") {
		name, n, k := parse(t, c)
		var cells []string
		for _, how := range []string{"plain", "rewritten"} {
			cells = append(cells, compileInChild(exe, how, c))
		}
		fmt.Printf("| %s | %d | %d | %d | %s |\n", filepath.Base(name), n, k, len(made(name, n, k)), strings.Join(cells, " | "))
	}
}

func parse(t *testing.T, c string) (name string, n, k int) {
	t.Helper()
	parts := strings.Split(c+":1:1", ":")
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	if k, err = strconv.Atoi(parts[2]); err != nil {
		t.Fatal(err)
	}
	return parts[0], n, k
}

func made(name string, n, k int) []byte {
	if strings.HasSuffix(name, ".wasm") {
		code, err := os.ReadFile(name)
		if err != nil {
			panic(err)
		}
		return code
	}
	d := &dear{}
	cases[name](d, n, k)
	return d.bytes()
}

// compileInChild answers CPU-seconds and the peak of resident memory, less what a child that compiles nothing needs.
func compileInChild(exe, how, c string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, "-test.run", "^TestWorstChild$")
	cmd.Env = append(os.Environ(), "WASMILL_WORST="+how+"/"+c)
	text, err := cmd.CombinedOutput()
	usage := "-"
	if state := cmd.ProcessState; state != nil {
		cpu := state.UserTime() + state.SystemTime()
		usage = fmt.Sprintf("%.1f s, %d MB", cpu.Seconds(), state.SysUsage().(*syscall.Rusage).Maxrss/1024)
	}
	if err != nil {
		first, _, _ := strings.Cut(string(text), "\n")
		return fmt.Sprintf("%s (%v %.90s)", usage, err, first)
	}
	return usage
}

// TestWorstChild compiles one case; TestWorst runs it in a process of its own.
func TestWorstChild(t *testing.T) {
	how, c, ok := strings.Cut(os.Getenv("WASMILL_WORST"), "/")
	if !ok {
		t.Skip("not a child")
	}
	code := made(parse(t, c))
	if how == "rewritten" {
		m, err := wasm.Parse(code)
		if err != nil {
			fmt.Println("refused:", err)
			os.Exit(3)
		}
		out, err := rewriter.Rewrite(m, rewriter.Options{MaxPages: 1024, MaxTable: wasm.MaxTable})
		if err != nil {
			fmt.Println("refused:", err)
			os.Exit(3)
		}
		code = out.Wasm
	}
	rt := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false))
	if _, err := rt.CompileModule(t.Context(), code); err != nil {
		fmt.Printf("%.80s\n", err)
		os.Exit(4)
	}
	os.Exit(0)
}
