package guests_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sandbox/binary"
	"github.com/wasmill/wasmill/host/sandbox/guests"
	"github.com/wasmill/wasmill/host/sandbox/rewriter"
)

var (
	costRounds = flag.Int("cost", 0, "rounds of the comparison with plain wazero and native Go, 0 for none")
	costOnly   = flag.String("only", "", "guests to compare, separated by commas")
)

// Targets that the comparison is held against.
const (
	targetMean   = 1.20 // of the orders
	targetMost   = 1.30
	targetFields = 1.20
	targetFloats = 1.60
	targetCall   = 60 * time.Nanosecond
)

// least keeps the shortest of many times.
type least time.Duration

func (l *least) time(f func() error) error {
	start := time.Now()
	err := f()
	if d := least(time.Since(start)); *l == 0 || d < *l {
		*l = d
	}
	return err
}

func (l least) over(m least) float64 { return float64(l) / float64(m) }

// contest is one guest on plain wazero, in the sandbox, and its work in native Go, all on the same records.
type contest struct {
	guest   guests.Guest
	recs    []abi.Record
	plain   *plainGuest
	program sandbox.Program
	in      sandbox.Instance
	native  func()

	plainTime, boxed, nativeTime            least
	plainEmpty, boxedEmpty, fresh, beginner least
	fuel                                    uint64
	allocs                                  float64
}

const costRecords = 1000

func newContest(t *testing.T, e sandbox.Engine, g guests.Guest) *contest {
	t.Helper()
	c := &contest{guest: g, recs: records(t, g, costRecords), plain: plain(t, module(t, g)), program: started(t, e, g)}
	c.in = instance(t, c.program)
	var out []byte
	codec := guests.NewCodec()
	c.native = func() {
		out = out[:0]
		for i := range c.recs {
			switch r := &c.recs[i]; {
			case g.Work == guests.Floats:
				out = strconv.AppendUint(out, math.Float64bits(guests.Iterate(r.Index)), 16)
			case g.JSON:
				out, _ = codec.Transform(out, r.Value)
			default:
				out, _ = guests.Scan(out, r.Value)
			}
		}
	}
	return c
}

func ignore(*abi.Record) error { return nil }

func (c *contest) boxedCall(recs []abi.Record) error {
	return c.in.Call(context.Background(), sandbox.Call{Records: recs, NFields: len(c.guest.Fields)}, ignore)
}

// round runs each of the three once.
func (c *contest) round(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", c.guest.Name, err)
		}
	}
	check(c.plainTime.time(func() error { return c.plain.call(ctx, c.recs, len(c.guest.Fields)) }))
	check(c.boxed.time(func() error { return c.boxedCall(c.recs) }))
	check(c.nativeTime.time(func() error { c.native(); return nil }))
	var in sandbox.Instance
	check(c.fresh.time(func() (err error) {
		if in, err = c.program.New(ctx, sandbox.Lane{}); err != nil {
			return err
		}
		return in.Close(ctx)
	}))
	in, err := c.program.New(ctx, sandbox.Lane{})
	check(err)
	check(c.beginner.time(func() error {
		return in.Call(ctx, sandbox.Call{Records: c.recs, NFields: len(c.guest.Fields)}, ignore)
	}))
	check(in.Close(ctx))
}

// calls of nothing: many at a time, for one is shorter than the clock's steps.
const emptyCalls = 1000

func (c *contest) rest(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	fail := func(err error) {
		if err != nil {
			t.Fatalf("%s: %v", c.guest.Name, err)
		}
	}
	for range 10 {
		fail(c.plainEmpty.time(func() error {
			for range emptyCalls {
				if err := c.plain.call(ctx, nil, 0); err != nil {
					return err
				}
			}
			return nil
		}))
		fail(c.boxedEmpty.time(func() error {
			for range emptyCalls {
				if err := c.boxedCall(nil); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	before := c.in.Usage().Fuel
	fail(c.boxedCall(c.recs))
	c.fuel = c.in.Usage().Fuel - before
	c.allocs = testing.AllocsPerRun(3, func() { fail(c.boxedCall(c.recs)) })
}

// TestCost compares every guest in the sandbox with itself on plain wazero and with native Go, in turn, and prints the least
// times of all rounds. Only with the flag -cost.
func TestCost(t *testing.T) {
	if *costRounds == 0 {
		t.Skip("no -cost")
	}
	e := engine(t)
	var all []*contest
	for _, g := range guests.All() {
		wanted := *costOnly == "" || strings.Contains(","+*costOnly+",", ","+g.Name+",")
		if wanted && (g.Work == guests.Orders || g.Work == guests.Floats) {
			all = append(all, newContest(t, e, g))
		}
	}
	for range *costRounds {
		for _, c := range all {
			c.round(t)
		}
	}
	for _, c := range all {
		c.rest(t)
	}
	fmt.Print("| guest | plain ns | sandbox ns | **/ plain** | native ns | / native | fuel | fresh us | first call us | empty call, over plain ns | allocs a call |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, c := range all {
		fmt.Printf("| %s | %d | %d | **%.2f** | %d | %.2f | %d | %.1f | %.0f | %d, %+d | %.0f |\n", c.guest.Name,
			c.plainTime/costRecords, c.boxed/costRecords, c.boxed.over(c.plainTime), c.nativeTime/costRecords, c.boxed.over(c.nativeTime),
			c.fuel/costRecords, float64(c.fresh)/1000, float64(c.beginner)/1000,
			c.boxedEmpty/emptyCalls, (c.boxedEmpty-c.plainEmpty)/emptyCalls, c.allocs)
	}
	verdicts(all)
	rewriteTime(t)
}

// verdicts says which targets are met.
func verdicts(all []*contest) {
	fmt.Println()
	say := func(what string, got, target float64) {
		word := "met"
		if got > target {
			word = "MISSED"
		}
		fmt.Printf("- %s: %.2f, at most %.2f: %s\n", what, got, target, word)
	}
	sum, n, most, worst := 0.0, 0, 0.0, ""
	for _, c := range all {
		ratio := c.boxed.over(c.plainTime)
		switch {
		case c.guest.Work == guests.Floats:
			say(c.guest.Name, ratio, targetFloats)
		case c.guest.Fields != nil:
			say(c.guest.Name, ratio, targetFields)
		default:
			sum += math.Log(ratio)
			n++
			if ratio > most {
				most, worst = ratio, c.guest.Name
			}
		}
	}
	if n > 0 {
		say(fmt.Sprintf("geometric mean of %d orders guests", n), math.Exp(sum/float64(n)), targetMean)
		say("the dearest of them, "+worst, most, targetMost)
	}
	for _, c := range all {
		if fresh := map[string]float64{"C": 20, "Rust": 20, "JavaScript": 60, "Go": 150}[c.guest.Language]; fresh > 0 && float64(c.fresh)/1000 > fresh {
			say("fresh instance of "+c.guest.Name+" in us", float64(c.fresh)/1000, fresh)
		}
		if over := time.Duration(c.boxedEmpty-c.plainEmpty) / emptyCalls; over > targetCall {
			say("an empty call of "+c.guest.Name+" over plain in ns", float64(over), float64(targetCall))
		}
	}
}

// rewriteTime reads and rewrites the largest orders guest.
func rewriteTime(t *testing.T) {
	t.Helper()
	g, ok := guests.Named("go-json")
	if !ok {
		t.Fatal("no go-json")
	}
	wasm := module(t, g)
	var read, write least
	var m *binary.Module
	for range 10 {
		err := read.time(func() (err error) { m, err = binary.Parse(wasm); return err })
		if err != nil {
			t.Fatal(err)
		}
		err = write.time(func() error {
			_, err := rewriter.Rewrite(m, rewriter.Options{MaxPages: 1024, MaxTable: binary.MaxTable})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	fmt.Printf("- %d bytes of Go: read in %.0f ms, rewritten in %.0f ms, together at most 200\n", len(wasm), float64(read)/1e6, float64(write)/1e6)
}
