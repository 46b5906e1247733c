package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/abi/statemap"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// Where the modules of these tests have what they point to: the operations come first, at 8.
const (
	stateOps   = 8
	stateWords = 48 << 10 // "keysubvalue"
	stateNeed  = 60 << 10
	stateBuf   = 128 << 10
	stateCap   = 256 << 10
)

// Indexes of the functions that a stateful module imports.
const (
	readIndex  = 2
	writeIndex = 3
)

// stateOp is an operation on the entry "key", "sub" of table 0 with the value "value".
func stateOp(op abi.OpCode, change func(b []byte)) string {
	b := make([]byte, abi.StateOpSize)
	le := binary.LittleEndian
	b[0] = byte(op)
	for at, v := range map[int]uint32{8: stateWords, 12: 3, 16: stateWords + 3, 20: 3, 24: stateWords + 6, 28: 5} {
		le.PutUint32(b[at:], v)
	}
	if change != nil {
		change(b)
	}
	return string(b)
}

// whole makes a scan or a delete-prefix of all subs.
func whole(b []byte) {
	binary.LittleEndian.PutUint32(b[20:], 0)
	binary.LittleEndian.PutUint32(b[28:], 0xffffffff)
}

// stateful is a module whose batch runs code with operations at stateOps. It has two tables.
func stateful(code string, ops ...string) *w.Module {
	m := w.Transform(w.Const(0), code)
	m.Imports = append(m.Imports,
		w.ImportFunc{Module: "wasmill_1", Name: "state_read", Params: "\x7f\x7f\x7f\x7f\x7f", Result: "\x7f"},
		w.ImportFunc{Module: "wasmill_1", Name: "state_write", Params: "\x7f\x7f"})
	all := strings.Join(ops, "")
	m.Data = all + strings.Repeat("\x00", stateWords-stateOps-len(all)) + "keysubvalue"
	m.Customs = [][2]string{{"wasmill", `{"abi": 1, "name": "stateful", "version": "1", "inputs": [{"name": "in"}], "outputs": [{"name": "out"}], "tables": [{"name": "a"}, {"name": "b", "type": "i64"}]}`}}
	return m
}

// reading calls state_read for n operations, and writing state_write.
func reading(n int32) string {
	return w.Const(stateOps) + w.Const(n) + w.Const(stateBuf) + w.Const(stateCap) + w.Const(stateNeed) + w.Call(readIndex)
}

func writing(at, n int32) string {
	return w.Const(stateOps+at*abi.StateOpSize) + w.Const(n) + w.Call(writeIndex)
}

// keyed makes an instance with state.
func keyed(t testing.TB, p Program, s State) Instance {
	t.Helper()
	in, err := p.New(context.Background(), Lane{State: s, Lanes: 1})
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

func wantTrap(t *testing.T, err error, trap abi.TrapName, says string) {
	t.Helper()
	var failed *Failure
	if !errors.As(err, &failed) || failed.Trap != trap || !strings.Contains(failed.Text, says) {
		t.Errorf("got %v, want the trap %s that says %q", err, trap, says)
	}
}

func TestStateReadAndWrite(t *testing.T) {
	put, get := stateOp(abi.OpPut, nil), stateOp(abi.OpGet, nil)
	// It writes, reads, and answers 100 and what the read came to, so that the answer is seen in the failure's status.
	code := writing(0, 1) + w.Const(stateOps+abi.StateOpSize) + w.Const(1) + w.Const(stateBuf) + w.Const(stateCap) + w.Const(stateNeed) + w.Call(readIndex) +
		w.Const(100) + "\x6a" + // add
		w.Const(stateOps+abi.StateOpSize) + w.Load(44) + "\x6a"
	onEach(t, func(t *testing.T, e Engine) {
		p := started(t, e, stateful(code, put, get).Bytes(), Options{})
		var m statemap.Map
		err := call(t, keyed(t, p, &m), discard)
		var failed *Failure
		if !errors.As(err, &failed) || failed.Status != 105 {
			t.Errorf("got %v, want the status 105", err)
		}
		want := []statemap.Entry{{Key: []byte("key"), Sub: []byte("sub"), Value: []byte("value")}}
		if got := m.Entries(); len(got) != 1 || string(got[0].Value) != "value" || string(got[0].Sub) != "sub" {
			t.Errorf("got %v, want %v", got, want)
		}
		wantTrap(t, call(t, lane(t, p), discard), abi.TrapState, "not keyed")
	})
}

// The fuel of a call is that of the code around it and what the README of the ABI says, to the last unit.
func TestStateFuel(t *testing.T) {
	entries := func(n int) *statemap.Map {
		var m statemap.Map
		for i := range n {
			if _, err := m.Write(&abi.StateOp{Op: abi.OpPut, Key: []byte("key"), Sub: fmt.Appendf(nil, "s%03d", i), Value: []byte("12345678")}); err != nil {
				t.Fatal(err)
			}
		}
		return &m
	}
	for _, tt := range []struct {
		name  string
		code  func(n int32) string // with n operations
		op    string
		extra uint64 // what one operation costs besides its struct, key and sub
	}{
		{"put", func(n int32) string { return writing(0, n) }, stateOp(abi.OpPut, nil), 5},
		{"delete", func(n int32) string { return writing(0, n) }, stateOp(abi.OpDelete, nil), 0},
		{"delete-prefix of 50", func(n int32) string { return writing(0, n) }, stateOp(abi.OpDeletePrefix, whole), 50*abi.StateEntryFuel - 3},
		{"timer", func(n int32) string { return writing(0, n) }, stateOp(abi.OpTimerSet, nil), 0},
		{"get", func(n int32) string { return reading(n) + "\x1a" }, stateOp(abi.OpGet, nil), 0},
		{"scan of 50", func(n int32) string { return reading(n) + "\x1a" }, stateOp(abi.OpScan, whole), 50*(abi.StateEntryFuel+12) - 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, e Engine) {
				used := func(n int32) uint64 {
					p := started(t, e, stateful(tt.code(n)+w.Const(0), tt.op).Bytes(), Options{})
					in := keyed(t, p, entries(50))
					if err := call(t, in, discard); err != nil {
						t.Fatal(err)
					}
					return in.Usage().Fuel
				}
				if got, want := used(1)-used(0), abi.StateOpSize+6+tt.extra; got != want {
					t.Errorf("an operation costs %d, want %d", got, want)
				}
			})
		})
	}
}

// broken is a State that fails in one way.
type broken struct {
	statemap.Map
	err error
}

func (b *broken) Get(*abi.StateOp) ([]byte, bool, error)                { return nil, false, b.err }
func (b *broken) Scan(*abi.StateOp, func(sub, value []byte) bool) error { return b.err }
func (b *broken) Write(*abi.StateOp) (int, error)                       { return 0, b.err }

func TestStateTrouble(t *testing.T) {
	disk := errors.New("disk on fire")
	quota := &abi.Violation{Trap: abi.TrapQuota, Detail: "state of the lane is over its limit"}
	ops := map[string]struct{ code, op string }{
		"state_read":  {reading(1) + "\x1a", stateOp(abi.OpGet, nil)},
		"state_read:": {reading(1) + "\x1a", stateOp(abi.OpScan, whole)},
		"state_write": {writing(0, 1), stateOp(abi.OpPut, nil)},
	}
	onEach(t, func(t *testing.T, e Engine) {
		for name, o := range ops {
			p := started(t, e, stateful(o.code+w.Const(0), o.op).Bytes(), Options{})
			err := call(t, keyed(t, p, &broken{err: disk}), discard)
			var failed *Failure
			if !errors.Is(err, disk) || errors.As(err, &failed) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: got %v, want trouble of the host", name, err)
			}
			wantTrap(t, call(t, keyed(t, p, &broken{err: fmt.Errorf("wrapped: %w", quota)}), discard), abi.TrapQuota, "over its limit")
		}
	})
}

func TestStateOnlyInBatch(t *testing.T) {
	onEach(t, func(t *testing.T, e Engine) {
		for name, code := range map[string]string{"state_read": reading(0) + "\x1a", "state_write": writing(0, 0)} {
			m := stateful(w.Const(0))
			m.Funcs[0].Code = w.Get(0) + w.Const(100) + "\x4a\x04\x40" + code + "\x0b" + w.Const(65536) // if len > 100, as for a frame
			p := started(t, e, m.Bytes(), Options{})
			err := call(t, keyed(t, p, &statemap.Map{}), discard)
			if !errors.Is(err, ErrAlloc) || !strings.Contains(err.Error(), name+" is called outside of wasmill_batch") {
				t.Errorf("got %v", err)
			}
		}
	})
}

// A lane's number decides which keys are its own.
func TestStateOfLanes(t *testing.T) {
	p := started(t, engines(t)["interpreter"], stateful(writing(0, 1)+w.Const(0), stateOp(abi.OpPut, nil)).Bytes(), Options{})
	const lanes = 4
	own := abi.LaneOfGroup(abi.KeyGroup([]byte("key")), lanes)
	for i := range lanes {
		in, err := p.New(t.Context(), Lane{State: &statemap.Map{}, Index: i, Lanes: lanes})
		if err != nil {
			t.Fatal(err)
		}
		if err = call(t, in, discard); i == own {
			if err != nil {
				t.Error(err)
			}
		} else {
			wantTrap(t, err, abi.TrapState, fmt.Sprintf("belongs to lane %d, not %d", own, i))
		}
		if err := in.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for _, l := range []Lane{{Lanes: 0}, {Lanes: 65}, {Index: 2, Lanes: 2}, {Index: -1, Lanes: 2}} {
		l.State = &statemap.Map{}
		if in, err := p.New(t.Context(), l); err == nil {
			t.Error("lane", l.Index, "of", l.Lanes, "was made", in.Close(t.Context()))
		}
	}
}

// endless is a State whose scans give small entries without end, and count what they pass over.
type endless struct {
	statemap.Map
	visited int
	passed  uint64
	pass    uint64
	halfway func()
}

func (s *endless) Scan(_ *abi.StateOp, visit func(sub, value []byte) bool) error {
	s.passed += s.pass
	for visit([]byte("s"), nil) {
		if s.visited++; s.visited == 1000 && s.halfway != nil {
			s.halfway()
		}
	}
	return nil
}

func (s *endless) Passed() uint64 { return s.passed }

func TestStateScansEnd(t *testing.T) {
	scan := stateOp(abi.OpScan, whole)
	limits := Options{Limits: Limits{FuelCall: 1_000_000, FuelRecord: 1}}
	onEach(t, func(t *testing.T, e Engine) {
		p := started(t, e, stateful(reading(1), scan).Bytes(), limits)
		s := &endless{}
		if err := call(t, keyed(t, p, s), discard); err != nil { // the buffer ends it
			t.Error(err)
		}
		if want := stateCap / 17; s.visited != want {
			t.Errorf("%d entries were visited, want %d", s.visited, want)
		}
		s = &endless{pass: 20_000}
		wantTrap(t, call(t, keyed(t, p, s), discard), abi.TrapFuel, "fuel")
		ctx, cancel := context.WithCancel(t.Context())
		s = &endless{halfway: cancel}
		err := keyed(t, p, s).Call(ctx, Call{Records: records(3)}, discard)
		if !errors.Is(err, context.Canceled) || s.visited > 2000 {
			t.Errorf("cancelled, it went on to %d entries: %v", s.visited, err)
		}
	})
}

func TestStateCallsDoNotAllocate(t *testing.T) {
	ops := []string{stateOp(abi.OpPut, nil), stateOp(abi.OpDelete, nil), stateOp(abi.OpGet, nil), stateOp(abi.OpScan, whole)}
	read := w.Const(stateOps+2*abi.StateOpSize) + w.Const(2) + w.Const(stateBuf) + w.Const(stateCap) + w.Const(stateNeed) + w.Call(readIndex)
	once := started(t, engines(t)["compiler"], stateful(writing(0, 2)+read, ops...).Bytes(), Options{})
	many := started(t, engines(t)["compiler"], stateful(strings.Repeat(writing(0, 2)+read+"\x1a", 50)+w.Const(0), ops...).Bytes(), Options{})
	allocations := func(p Program) float64 {
		in := keyed(t, p, blank{})
		return testing.AllocsPerRun(20, func() {
			if err := call(t, in, discard); err != nil {
				t.Fatal(err)
			}
		})
	}
	if one, fifty := allocations(once), allocations(many); fifty > one {
		t.Errorf("%v allocations with one call of each, %v with 50", one, fifty)
	}
}

// blank is a State that keeps nothing.
type blank struct{}

var blankValue = []byte("value")

func (blank) Get(*abi.StateOp) ([]byte, bool, error) { return blankValue, true, nil }
func (blank) Write(*abi.StateOp) (int, error)        { return 0, nil }
func (blank) Scan(_ *abi.StateOp, visit func(sub, value []byte) bool) error {
	visit(blankValue, blankValue)
	return nil
}

func TestStatefulIsSeen(t *testing.T) {
	for name, tt := range map[string]struct {
		wasm []byte
		want bool
	}{"with": {stateful(w.Const(0)).Bytes(), true}, "without": {good().Bytes(), false}} {
		m, err := engines(t)["interpreter"].Compile(t.Context(), Binary{Name: name, Wasm: tt.wasm})
		if err != nil {
			t.Fatal(err)
		}
		info := m.Info()
		if info.Stateful != tt.want || tt.want && !slices.Equal(info.Manifest.Tables, []abi.Table{{Name: "a", Type: abi.TableBytes}, {Name: "b", Type: abi.TableI64}}) {
			t.Errorf("%s: %v, %v", name, info.Stateful, info.Manifest.Tables)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkState is what an operation costs over the sandbox, in calls of so many, with a map behind it: values of 16
// bytes, each key with one entry.
func BenchmarkState(b *testing.B) {
	const n = 256
	key := func(i int) func([]byte) {
		return func(b []byte) {
			binary.LittleEndian.PutUint32(b[8:], uint32(stateWords+16+4*i))
			binary.LittleEndian.PutUint32(b[12:], 4)
			binary.LittleEndian.PutUint32(b[24:], stateWords)
			binary.LittleEndian.PutUint32(b[28:], 11)
		}
	}
	for _, c := range []struct {
		name string
		op   abi.OpCode
		code string
	}{
		{"get", abi.OpGet, reading(n)},
		{"scan", abi.OpScan, reading(n)},
		{"put", abi.OpPut, writing(0, n) + w.Const(0)},
		{"timer-set", abi.OpTimerSet, writing(0, n) + w.Const(0)},
	} {
		b.Run(c.name, func(b *testing.B) {
			ops := make([]string, n)
			var keys strings.Builder
			m := &statemap.Map{}
			for i := range ops {
				ops[i] = stateOp(c.op, func(b []byte) {
					key(i)(b)
					if c.op == abi.OpScan {
						whole(b)
					}
				})
				k := fmt.Appendf(nil, "%04d", i)
				keys.Write(k)
				if _, err := m.Write(&abi.StateOp{Op: abi.OpPut, Key: k, Sub: []byte("sub"), Value: []byte("0123456789abcdef")}); err != nil {
					b.Fatal(err)
				}
			}
			module := stateful(c.code, ops...)
			module.Data += strings.Repeat("\x00", 5) + keys.String()
			in := keyed(b, started(b, benchEngine(b), module.Bytes(), Options{Limits: Limits{FuelCall: 1 << 50}}), m)
			b.ReportAllocs()
			for b.Loop() {
				if err := in.Call(b.Context(), Call{}, discard); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/op-of-state")
		})
	}
}
