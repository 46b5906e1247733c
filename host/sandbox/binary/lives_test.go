package binary

import (
	"testing"

	"pgregory.net/rapid"

	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

func write(local uint32) string { return w.Const(1) + "\x21" + w.U32(local) }
func read(local uint32) string  { return w.Get(local) + w.Drop }

const (
	anIf    = "\x41\x01\x04\x40"
	aBlock  = "\x02\x40"
	brIf0   = "\x41\x01\x0d\x00"
	sixteen = "\x01\x10\x7f" // locals
)

// TestCounts shows what counts of locals mean.
func TestCounts(t *testing.T) {
	for _, tt := range []struct {
		name, code string
		want       Counts
	}{
		{"in one part", aBlock + write(1) + read(1) + w.End, Counts{Nesting: 1}},
		{"in one part of a loop", w.Loop + write(1) + read(1) + w.End, Counts{Nesting: 1}},
		{"read before it is written", w.Loop + read(1) + write(1) + w.End, Counts{Nesting: 1, LoopLocals: 1, ModuleLoops: 1, Spans: 2, Merged: 1, Passed: 1}},
		{"from loop to loop", w.Loop + w.Loop + w.Loop + read(1) + write(1) + brIf0 + w.End + w.End + w.End, Counts{Nesting: 3, LoopLocals: 3, ModuleLoops: 3, Spans: 4, Merged: 3, Passed: 4, WaysBack: 1}},
		{"an if", anIf + write(1) + "\x05" + write(1) + w.End + read(1), Counts{Nesting: 1, Merged: 1, Passed: 1, Spans: 4}},
		{"a block that nothing leaves", aBlock + write(1) + w.End + read(1), Counts{Nesting: 1, Spans: 3}},
		{"a block that is left", aBlock + brIf0 + write(1) + brIf0 + w.End + read(1), Counts{Nesting: 1, Merged: 1, Passed: 3, Spans: 5}},
		{"written before all that reads it", write(1) + aBlock + read(1) + w.End + read(1), Counts{Nesting: 1, Spans: 2}},
		{"a bulk instruction ends a part", write(1) + w.Const(0) + w.Const(0) + w.Const(0) + "\xfc\x0b\x00" + read(1), Counts{Spans: 1}},
		{"values on the stack", w.Const(1) + w.Const(1) + aBlock + w.End + anIf + w.End + w.Drop + w.Drop, Counts{Nesting: 1, Held: 4}},
		{"calls", w.Call(0) + w.Call(0), Counts{Calls: 2}},
		{"labels", aBlock + w.Const(0) + "\x0e\x02\x00\x00\x01" + w.End, Counts{Nesting: 1, Targets: 2, AllTargets: 3, ModuleTargets: 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := sixteen + tt.code + w.End
			m, err := Parse([]byte(w.Header + w.Section(w.Type, w.Vec(w.FuncType("", ""))) + w.Section(w.Function, w.Vec(w.U32(0))) +
				w.Section(w.Memory, w.Vec("\x00\x01")) + w.Section(w.Code, w.Vec(w.Name(body)))))
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Bytes, tt.want.Locals, tt.want.ModuleLocals = int64(len(tt.code)+1), 16, 16
			if m.Counts != tt.want {
				t.Errorf("got  %+v\nwant %+v", m.Counts, tt.want)
			}
		})
	}
}

// plainNode is a block with all that lies in it.
type plainNode struct {
	op            Op
	reads, writes map[uint32]bool
}

// TestLivesCountEachLocalOnce compares the counts of blocks with sets of what lies inside of each.
func TestLivesCountEachLocalOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l lives
		var c checker
		c.open = []openBlock{{op: OpBlock, node: -1}}
		l.begin(4)
		var open, closed []*plainNode
		used := map[uint32]bool{}
		for _, step := range rapid.SliceOfN(rapid.IntRange(0, 9), 0, 200).Draw(t, "steps") {
			switch {
			case step < 2 && len(open) > 0:
				closed = append(closed, open[len(open)-1])
				open, c.open = open[:len(open)-1], c.open[:len(c.open)-1]
				l.part++
				l.leave()
			case step < 5:
				op := []Op{OpBlock, OpLoop, OpIf}[step%3]
				l.part++
				c.serial++
				c.open = append(c.open, openBlock{op: op, node: l.enter(node{op: op}), serial: c.serial})
				open = append(open, &plainNode{op: op, reads: map[uint32]bool{}, writes: map[uint32]bool{}})
			default:
				local, set := uint32(step)%4, rapid.Bool().Draw(t, "set")
				used[local] = true
				l.use(local, set, c.open)
				for _, n := range open {
					n.reads[local] = true
					if set {
						n.writes[local] = true
					}
				}
			}
		}
		shared := func(of map[uint32]bool) (n int) {
			for local := range of {
				if l.locals[local].shared() {
					n++
				}
			}
			return n
		}
		for range open {
			l.leave()
		}
		for i := range open {
			closed = append(closed, open[len(open)-1-i])
		}
		at := 0
		l.each(func(n *node, _, used, sets int) bool {
			if want := closed[at]; n.op != want.op || used != shared(want.reads) || sets != shared(want.writes) {
				t.Fatalf("node %d: %d used and %d written, not %d and %d", at, used, sets, shared(want.reads), shared(want.writes))
			}
			at++
			return true
		})
		if at != len(closed) || len(l.touched) != len(used) {
			t.Fatalf("%d of %d nodes, %d of %d locals", at, len(closed), len(l.touched), len(used))
		}
	})
}
