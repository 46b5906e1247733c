package sandbox

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox/debuginfo"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

var update = flag.Bool("update", false, "write the golden files")

// debugGuests trap on demand and carry DWARF; the words are what they trap on, besides depth and fuel.
var debugGuests = map[string][]string{
	"trap-c":    {"unreachable", "divide", "inlined", "overflow", "conversion", "memory", "indirect", "emit"},
	"trap-rust": {"unreachable", "divide", "inlined", "index", "unwrap", "generic", "memory", "emit"},
}

// told is what a guest's traps say, a line for each line of a stack.
func told(t *testing.T, e Engine, guest string) string {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join("guests", "debug", guest+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	p := started(t, e, wasm, Options{})
	var b strings.Builder
	for _, word := range debugGuests[guest] {
		err := lane(t, p).Call(context.Background(), Call{Records: []abi.Record{{Value: []byte(word)}}}, func(*abi.Record) error {
			return &Failure{Trap: abi.TrapQuota, Text: "enough"}
		})
		var f *Failure
		if !errors.As(err, &f) {
			t.Fatalf("%s: %v", word, err)
		}
		fmt.Fprintf(&b, "%s: %s\n\t%s\n", word, f, strings.Join(f.Stack, "\n\t"))
	}
	return b.String()
}

// TestPlacesOfTraps compares what traps say with a golden file, on each engine, and with code out of the compile cache.
func TestPlacesOfTraps(t *testing.T) {
	onEach(t, func(t *testing.T, e Engine) { checkTold(t, e) })
	dir := filepath.Join(t.TempDir(), "code")
	for _, round := range []string{"into the cache", "out of the cache"} {
		t.Run(round, func(t *testing.T) {
			e, err := New(Config{CacheDir: dir})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := e.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
			checkTold(t, e)
		})
	}
}

func checkTold(t *testing.T, e Engine) {
	t.Helper()
	for _, guest := range slices.Sorted(maps.Keys(debugGuests)) {
		golden := filepath.Join("testdata", "places", guest+".txt")
		got := told(t, e, guest)
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s (-want +got):\n%s", guest, d)
		}
	}
}

// TestPlacesCostOthersNothing makes sure that only a module with line tables is compiled with places.
func TestPlacesCostOthersNothing(t *testing.T) {
	onEach(t, func(t *testing.T, e Engine) {
		plain := w.Transform(w.Const(0), w.Unreachable)
		if m := compiledModule(t, e, plain.Bytes()); len(m.withPlaces(nil)) != 0 || m.lines() != nil {
			t.Error("a module without line tables is compiled with places")
		}
		plain.Customs = [][2]string{{".debug_line", "\x05"}}
		m := compiledModule(t, e, plain.Bytes())
		if string(m.withPlaces([]byte("x"))) != "x"+placeSections {
			t.Error("a module with line tables is compiled without places")
		}
		err := call(t, lane(t, started(t, e, plain.Bytes(), Options{})), discard)
		var f *Failure
		if !errors.As(err, &f) || !slices.Equal(f.Stack, []string{"wasmill_batch"}) {
			t.Errorf("with broken line tables: %v, %v", err, f)
		}
	})
}

func compiledModule(t *testing.T, e Engine, wasm []byte) *module {
	t.Helper()
	m, err := e.Compile(context.Background(), Binary{Name: "test.wasm", Wasm: wasm})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m.(*module)
}

func TestFramesOf(t *testing.T) {
	const trap = "wasm error: unreachable" + traceMark
	tests := []struct {
		text string
		want []frame
	}{
		{"wasm error: unreachable", nil},
		{trap + ".$5(i32,i32) i32", []frame{{text: ".$5", index: 5, own: true}}},
		{trap + ".$5()\n\t\t0x1f: x:1\n\t.$7()", []frame{{text: ".$5", index: 5, own: true, offset: 31, hasPlace: true}, {text: ".$7", index: 7, own: true}}},
		{trap + ".emit(i32)\n\t.$7()\n\t\t0xffffffff: x:1", []frame{{text: ".emit"}, {text: ".$7", index: 7, own: true, offset: 1<<32 - 1, hasPlace: true}}},
		{trap + ".$99999999999()\n\t\t0x1ffffffff: x:1", []frame{{text: ".$99999999999", index: 1<<32 - 1}, {text: `\t0x1ffffffff: x:1`}}},
		{trap + ".$5()\n\t... maybe followed by omitted frames", []frame{{text: ".$5", index: 5, own: true}, {text: "... maybe followed by omitted frames"}}},
		{trap + "\t0x1: x:1\x1b[2J", []frame{{text: `\t0x1: x:1\u{1b}[2J`}}},
	}
	for _, tt := range tests {
		if d := cmp.Diff(tt.want, framesOf(tt.text), cmp.AllowUnexported(frame{})); d != "" {
			t.Errorf("%q (-want +got):\n%s", tt.text, d)
		}
	}
}

func TestWhereAFailureWas(t *testing.T) {
	tests := []struct {
		stack []string
		want  string
	}{
		{nil, ""},
		{[]string{"a"}, "in a"},
		{[]string{"main.(*T).f", "b", "c", "d", "e"}, "in main.(*T).f, called by b, called by c, called by d"},
		{[]string{"panic", "unwrap (option.rs:9)", "f (lib.rs:3)", "g"}, "in unwrap (option.rs:9), called by f (lib.rs:3)"},
	}
	for _, tt := range tests {
		f := &Failure{Trap: abi.TrapUnreachable, Stack: tt.stack}
		if got := f.Where(); got != tt.want || strings.Contains(f.Error(), "in a") {
			t.Errorf("%q: %q, want %q; %q", tt.stack, got, tt.want, f.Error())
		}
	}
}

func TestWhere(t *testing.T) {
	tests := []struct {
		place debuginfo.Place
		want  string
	}{
		{debuginfo.Place{File: "a.c", Line: 3}, " (a.c:3)"},
		{debuginfo.Place{File: "a.c"}, " (a.c)"},
		{debuginfo.Place{Line: 3}, ""},
	}
	for _, tt := range tests {
		if got := where(tt.place); got != tt.want {
			t.Errorf("%+v is %q, want %q", tt.place, got, tt.want)
		}
	}
}

// TestPlacesChangeNoCode compares compiled code in the cache: with places it is the same bytes with a table behind them.
func TestPlacesChangeNoCode(t *testing.T) {
	wasm, err := os.ReadFile(filepath.Join("guests", "debug", "trap-rust.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	with := cachedCode(t, wasm)
	without := cachedCode(t, []byte(strings.ReplaceAll(string(wasm), ".debug_line", ".other_line")))
	same := 0
	for same < len(without) && without[same] == with[same] {
		same++
	}
	const trailer = 5 // no table, or a table; and a checksum
	if len(without) < 10_000 || len(with) < len(without)+1000 || same < len(without)-trailer {
		t.Errorf("%d bytes without places, %d with, of which %d are the same", len(without), len(with), same)
	}
}

// cachedCode is what the compile cache keeps of a module: the largest file in it.
func cachedCode(t *testing.T, wasm []byte) []byte {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "code")
	e, err := New(Config{CacheDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	compiledModule(t, e, wasm)
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	var code []byte
	err = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if len(b) > len(code) {
			code = b
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return code
}
