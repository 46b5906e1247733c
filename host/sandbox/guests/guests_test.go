package guests_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sandbox/guests"
)

// built is where the Go guests of this run lie.
var built string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "guests")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	built = dir
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// module is a guest's module; in a short run one that must be built is left out.
func module(t testing.TB, g guests.Guest) []byte {
	t.Helper()
	if testing.Short() && !g.Built() {
		t.Skip("it builds a guest")
	}
	wasm, err := g.Wasm(built)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

func engine(t testing.TB) sandbox.Engine {
	t.Helper()
	e, err := sandbox.New(sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

func started(t testing.TB, e sandbox.Engine, g guests.Guest) sandbox.Program {
	t.Helper()
	ctx := context.Background()
	m, err := e.Compile(ctx, sandbox.Binary{Name: g.Name, Wasm: module(t, g), Sidecar: g.Sidecar()})
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Start(ctx, sandbox.Options{Limits: sandbox.Limits{Output: math.MaxInt64, FuelCall: 1e11}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return p
}

func instance(t testing.TB, p sandbox.Program) sandbox.Instance {
	t.Helper()
	in, err := p.New(context.Background(), sandbox.Lane{Seed: [2]uint64{1, 2}, Time: 1_700_000_000_000_000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return in
}

// records are n orders as a call takes them, with the guest's fields located.
func records(t testing.TB, g guests.Guest, n int) []abi.Record {
	t.Helper()
	recs := make([]abi.Record, n)
	var locator *abi.Locator
	if g.Fields != nil {
		var err error
		if locator, err = abi.NewLocator(g.Fields); err != nil {
			t.Fatal(err)
		}
	}
	for i, v := range guests.Values(n) {
		recs[i] = abi.Record{Key: fmt.Appendf(nil, "c-%09d", i), Value: v, Index: uint32(i)}
		if locator != nil {
			recs[i].Fields = make([]abi.Field, locator.Len())
			if !locator.Locate(v, recs[i].Fields) {
				t.Fatalf("order %d is not JSON", i)
			}
		}
	}
	return recs
}

// output is a record that a guest emitted.
type output struct {
	index uint32
	value string
}

func run(t testing.TB, in sandbox.Instance, g guests.Guest, recs []abi.Record) []output {
	t.Helper()
	var outs []output
	err := in.Call(context.Background(), sandbox.Call{Records: recs, NFields: len(g.Fields)}, func(r *abi.Record) error {
		outs = append(outs, output{r.Index, string(r.Value)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return outs
}

// want is what the work makes of a record, by native Go.
func want(g guests.Guest, r *abi.Record) (string, bool) {
	if g.Work == guests.Floats {
		return fmt.Sprintf("%016x", math.Float64bits(guests.Iterate(r.Index))), true
	}
	out, ok := guests.Scan(nil, r.Value)
	return string(out), ok
}

// TestGuestsDoTheirWork compares what every guest makes of 1,000 records with what native Go makes of them.
func TestGuestsDoTheirWork(t *testing.T) {
	e := engine(t)
	for _, g := range guests.All() {
		if g.Work != guests.Orders && g.Work != guests.Floats {
			continue
		}
		t.Run(g.Name, func(t *testing.T) {
			in := instance(t, started(t, e, g))
			recs := records(t, g, 1000)
			for round := range 2 {
				outs := run(t, in, g, recs)
				for i := range recs {
					value, ok := want(g, &recs[i])
					if !ok {
						continue
					}
					if len(outs) == 0 || outs[0] != (output{uint32(i), value}) {
						t.Fatalf("round %d, record %d: got %v, want %s", round, i, first(outs), value)
					}
					outs = outs[1:]
				}
				if len(outs) > 0 {
					t.Fatalf("round %d: %d records too many, first %v", round, len(outs), outs[0])
				}
			}
		})
	}
}

func first(outs []output) any {
	if len(outs) == 0 {
		return "nothing"
	}
	return outs[0]
}

// TestChaosIsDetermined runs each guest that does what its language leaves open twice, in fresh instances of two engines.
func TestChaosIsDetermined(t *testing.T) {
	for _, g := range guests.All() {
		if g.Work != guests.Chaos {
			continue
		}
		t.Run(g.Name, func(t *testing.T) {
			recs := records(t, g, 100)
			var before []output
			for range 2 {
				p := started(t, engine(t), g)
				for range 2 {
					outs := run(t, instance(t, p), g, recs)
					if len(outs) != len(recs) {
						t.Fatalf("%d records of %d", len(outs), len(recs))
					}
					for i := range before {
						if outs[i] != before[i] {
							t.Fatalf("record %d differs:\n%v\n%v", i, before[i], outs[i])
						}
					}
					before = outs
				}
			}
		})
	}
}

// TestTrapsTrap gives the guests with debug information their words.
func TestTrapsTrap(t *testing.T) {
	e := engine(t)
	words := map[string]map[string]abi.TrapName{
		"trap-c": {
			"unreachable": abi.TrapUnreachable, "divide": abi.TrapDivide, "inlined": abi.TrapDivide, "overflow": abi.TrapIntegerOverflow,
			"conversion": abi.TrapIntegerOverflow, "memory": abi.TrapMemory, "indirect": abi.TrapTable, "depth": abi.TrapDepth,
		},
		"trap-rust": {
			"unreachable": abi.TrapUnreachable, "index": abi.TrapUnreachable, "inlined": abi.TrapUnreachable, "divide": abi.TrapUnreachable,
			"unwrap": abi.TrapUnreachable, "memory": abi.TrapMemory, "generic": abi.TrapUnreachable, "depth": abi.TrapDepth,
		},
	}
	for name, words := range words {
		g, ok := guests.Named(name)
		if !ok {
			t.Fatal(name)
		}
		p := started(t, e, g)
		for word, trap := range words {
			t.Run(name+"/"+word, func(t *testing.T) {
				recs := []abi.Record{{Value: []byte("fine"), Index: 0}, {Value: []byte(word), Index: 1}}
				err := instance(t, p).Call(context.Background(), sandbox.Call{Records: recs}, func(*abi.Record) error { return nil })
				var failed *sandbox.Failure
				if !errors.As(err, &failed) || failed.Trap != trap || failed.Progress != 1 {
					t.Fatalf("got %v, want trap %s at record 1", err, trap)
				}
			})
		}
	}
}

// TestOrders checks the orders themselves: their mean size, and that the two native transforms agree.
func TestOrders(t *testing.T) {
	values, codec, size, dropped := guests.Values(1000), guests.NewCodec(), 0, 0
	for i, v := range values {
		size += len(v)
		a, keep := guests.Scan(nil, v)
		b, keepToo := codec.Transform(nil, v)
		if keep != keepToo || keep && !bytes.Equal(a, b) {
			t.Fatalf("order %d: %s, %s", i, a, b)
		}
		if !keep {
			dropped++
		}
	}
	if mean := size / len(values); mean != 223 || dropped != 100 {
		t.Errorf("mean size %d, %d dropped", mean, dropped)
	}
}

// TestDigests compares the committed modules with SHA256SUMS.
func TestDigests(t *testing.T) {
	sums, err := os.ReadFile("SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for line := range bytes.Lines(sums) {
		sum, name, ok := bytes.Cut(bytes.TrimSpace(line), []byte("  "))
		if !ok {
			t.Fatalf("line %q", line)
		}
		known[string(name)] = string(sum)
	}
	for _, dir := range []string{"wasm", "debug"} {
		files, err := filepath.Glob(dir + "/*.wasm")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			wasm, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%x", sha256.Sum256(wasm)); known[filepath.ToSlash(f)] != got {
				t.Errorf("%s has the digest %s, SHA256SUMS says %s", f, got, strconv.Quote(known[filepath.ToSlash(f)]))
			}
			delete(known, filepath.ToSlash(f))
		}
	}
	if len(known) > 0 {
		t.Errorf("files that are not there: %v", known)
	}
}
