package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/abi/kit"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// stockConfig says whether a module is a stock transform, which does not start without a config.
func stockConfig(file string) (bool, error) {
	source, err := filepath.Glob(filepath.Join(filepath.Dir(file), "rust", "Cargo.toml"))
	if err != nil || source == nil {
		return false, err
	}
	text, err := os.ReadFile(source[0])
	return bytes.Contains(text, []byte("../../stock")), err
}

// realModules are the modules of this repository that start without a config, by name.
func realModules(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	files, err := filepath.Glob("../../transforms/*/*.wasm")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if config, err := stockConfig(f); err != nil {
			t.Fatal(err)
		} else if config {
			continue
		}
		b := Binary{}
		if b.Wasm, err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
		if b.Sidecar, err = os.ReadFile(f + ".json"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		all[filepath.Base(f)] = b.Stored()
	}
	cases, err := kit.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if slices.Contains([]string{"big", "output-record-over-16m", "grow-until"}, c.Name) {
			continue // they only write a lot
		}
		if c.Refuse == nil && len(c.Needs) == 0 && len(c.Runs) > 0 && c.Sidecar == nil {
			all[c.Name] = c.Wasm
		}
	}
	return all
}

// trail runs frames on a new instance and returns all that can be seen of it: what it emits, how it fails, and the digest
// of its memory and globals before and after.
func trail(t *testing.T, p Program) string {
	t.Helper()
	ctx := context.Background()
	got, err := p.New(ctx, Lane{Seed: [2]uint64{1, 2}, Time: 1_700_000_000_000_000})
	if err != nil {
		t.Fatal(err)
	}
	in := got.(*instance)
	var b bytes.Buffer
	fmt.Fprintln(&b, digestOfImage(in))
	for i := range 3 {
		h := abi.FrameHeader{Chunk: uint32(i)}
		recs := records(200)
		for j := range recs {
			recs[j].Value = fmt.Appendf(nil, `{"dep_time":%d,"origin":"JFK","event":"purchase","amount":"%d.5"}`, j, i)
		}
		err = in.Call(ctx, Call{Header: h, Records: recs, NFields: len(p.Manifest().Inputs[0].Fields)}, func(r *abi.Record) error {
			_, err := fmt.Fprintf(&b, "%d %d %d %q %q\n", r.Index, r.Port, r.Kind, r.Key, r.Value)
			return err
		})
		var failed *Failure
		if errors.As(err, &failed) {
			fmt.Fprintf(&b, "%s %d %q %d\n", failed.Trap, failed.Status, failed.Text, failed.Progress)
		} else if err != nil {
			fmt.Fprintln(&b, err)
		}
		fmt.Fprintln(&b, digestOfImage(in))
		if err != nil {
			break
		}
	}
	if err := in.Close(ctx); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// again makes a program run the start-up for each instance, as it does for a module that cannot be captured.
func again(p Program) *program {
	from := p.(*program)
	return &program{
		module: from.module, options: from.options, resolve: from.resolve, digest: from.digest,
		regions: newRegions(uint64(from.options.Limits.Memory), backing{}),
	}
}

// TestImageIsTheStart shows for every module at hand that an instance from the image cannot be told from one that ran its
// start-up itself, the first one and the later ones that use its memory again; and that both engines agree.
func TestImageIsTheStart(t *testing.T) {
	modules := realModules(t)
	if !testing.Short() {
		modules["go"] = builtGoGuest(t)
	}
	captured := 0
	trails := map[string]string{}
	onEach(t, func(t *testing.T, e Engine) {
		for name, wasm := range modules {
			t.Run(name, func(t *testing.T) {
				if name == "go" && e.Kind() == "interpreter" {
					t.Skip("it takes long, and TestGoGuest compares the engines")
				}
				p := started(t, e, wasm, Options{})
				if p.(*program).captured {
					captured++
				}
				slow := again(p)
				defer slow.Close(t.Context())
				want := trail(t, slow)
				for i := range 3 {
					if got := trail(t, p); got != want {
						t.Fatalf("instance %d from the image differs:\n%.2000s\nwant:\n%.2000s", i, got, want)
					}
				}
				if other, ok := trails[name]; ok && other != want && name != "end-depth" {
					t.Errorf("the engines differ:\n%.2000s\n%.2000s", other, want)
				}
				trails[name] = want
			})
		}
	})
	if captured < len(modules) {
		t.Errorf("%d of %d modules were captured on two engines", captured, len(modules))
	}
}

// TestEachKindOfGlobal shows that globals of all numeric types begin as start-up left them, also those set by a start
// section, and data segments once changed stay so.
func TestEachKindOfGlobal(t *testing.T) {
	set := w.Const(77) + "\x24\x00" + "\x42\x7f\x24\x01" + "\x43\x00\x00\x20\x41\x24\x02" + "\x44\x00\x00\x00\x00\x00\x00\x28\x40\x24\x03" +
		w.Const(8) + w.Const(1) + w.Store(0)
	// status = g0 + wrap(g1) + trunc(g2) + trunc(g3) + what is at address 8 = 77 - 1 + 10 + 12 + 1
	sum := "\x23\x00\x23\x01\xa7\x6a\x23\x02\xa8\x6a\x23\x03\xaa\x6a" + w.Const(8) + w.Load(0) + w.Add
	m := w.Transform(w.Const(0), sum+w.Const(5)+"\x24\x00")
	m.Funcs = append(m.Funcs, w.Func{Code: set})
	m.Start, m.Data = 5, "\xff\xff\xff\xff"
	m.Globals = []string{
		"\x7f\x01" + w.Const(0) + "\x0b", "\x7e\x01\x42\x00\x0b", "\x7d\x01\x43\x00\x00\x00\x00\x0b",
		"\x7c\x01\x44\x00\x00\x00\x00\x00\x00\x00\x00\x0b",
	}
	onEach(t, func(t *testing.T, e Engine) {
		p := started(t, e, m.Bytes(), Options{})
		if !p.(*program).captured {
			t.Error("it was not captured")
		}
		for range 3 {
			var failed *Failure
			if err := call(t, lane(t, p), discard); !errors.As(err, &failed) || failed.Status != 77-1+10+12+1 {
				t.Errorf("got %v", err)
			}
		}
	})
}

// TestWhatCannotBeCaptured shows that a module that changes a table when it starts has it changed in each instance.
func TestWhatCannotBeCaptured(t *testing.T) {
	// init sets element 0 to function 6; batch calls element 0, which began as function 5.
	m := w.Transform(w.Const(0)+"\xd2\x06\x26\x00"+w.Const(0), w.Const(0)+"\x11\x05\x00")
	m.Funcs = append(m.Funcs, w.Func{Result: "\x7f", Code: w.Const(1)}, w.Func{Result: "\x7f", Code: w.Const(2), Export: "two"})
	m.Table, m.Funcs[3].Export = 1, "one"
	wasm := m.Bytes()
	onEach(t, func(t *testing.T, e Engine) {
		p := started(t, e, wasm, Options{})
		if p.(*program).captured {
			t.Error("it was captured")
		}
		for range 2 {
			var failed *Failure
			err := call(t, lane(t, p), discard)
			if !errors.As(err, &failed) || failed.Status != 2 {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestMeaning(t *testing.T) {
	memory := make([]byte, 4<<16)
	for _, tt := range []struct{ at, want int }{{-1, 0}, {0, 1 << 16}, {65535, 1 << 16}, {65536, 2 << 16}, {4<<16 - 1, 4 << 16}} {
		clear(memory)
		if tt.at >= 0 {
			memory[tt.at] = 1
		}
		if got := meaning(memory); got != tt.want {
			t.Errorf("a byte at %d: %d", tt.at, got)
		}
	}
}
