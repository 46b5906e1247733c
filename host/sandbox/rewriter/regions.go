package rewriter

import (
	"slices"

	"github.com/wasmill/wasmill/host/sandbox/binary"
)

// Fuel is charged by regions. A region begins at a head, and is all that can run from there without passing another head;
// it costs what the dearest path through it costs, and that is charged at the head, before any of it runs. Regions may
// overlap where their paths meet. Heads stand at a function's beginning and at each loop's, where a loop has been left or
// may be repeated, where paths out of more than maxMeet regions meet, and wherever a fork or a join would make the path
// through a region longer than regionMax. So what runs is never charged too little; what is charged and does not run is at
// most the rest of a region for each branch taken.

// head is where a region begins.
type head struct {
	at    int32 // number of the instruction that is charged for before it runs
	cost  int32
	loops int32 // how many loops it stands in
	loop  bool  // it stands at the beginning of one
}

// cut is the end of a straight piece of code: an instruction of control and the cost of all since the cut before it, its
// own included.
type cut struct {
	op      binary.Op
	label   uint32 // of a branch
	start   int32  // number of the piece's first instruction
	cost    int32
	targets []uint32
}

// maxMeet is how many regions may overlap.
const maxMeet = 4

// place is a point in the code: the regions that it lies in, none if no path comes there, and the longest path from the
// head of each.
type place struct {
	n     int
	in    [maxMeet]way
	mixed bool // paths out of more regions meet here
}

// way is a path from a head.
type way struct {
	head, path int32
}

// frame is an open block.
type frame struct {
	op    binary.Op
	loops int32 // how many loops it lies in
	join  place // of what branches to its end
	start place // where the branch around an if begins
	dead  bool  // of the code before it
}

// regions finds the regions of one function.
type regions struct {
	heads []head
	open  []frame
	at    place
	dead  bool
	// must asks for a head at the next piece, may allows one.
	must, may, loop bool
	loops           int32
}

// find sets heads to those of the code that the cuts describe.
func (g *regions) find(cuts []cut) {
	g.heads, g.open = g.heads[:0], append(g.open[:0], frame{op: binary.OpBlock})
	g.dead, g.must, g.may, g.loop, g.loops = false, true, false, false, 0
	for i := range cuts {
		g.piece(&cuts[i])
		g.control(&cuts[i])
	}
}

// piece charges for a straight piece of code.
func (g *regions) piece(c *cut) {
	if g.dead {
		return
	}
	if g.must || g.may && g.at.longest()+c.cost > regionMax {
		g.heads = append(g.heads, head{at: c.start, loop: g.loop, loops: g.loops})
		g.at = place{n: 1, in: [maxMeet]way{{head: int32(len(g.heads) - 1)}}}
	}
	g.must, g.may, g.loop = false, false, false
	for i := range g.at.in[:g.at.n] {
		w := &g.at.in[i]
		w.path += c.cost
		h := &g.heads[w.head]
		h.cost = max(h.cost, w.path)
	}
}

// longest is the longest path to a place.
func (p *place) longest() int32 {
	longest := int32(0)
	for _, w := range p.in[:p.n] {
		longest = max(longest, w.path)
	}
	return longest
}

// control goes where an instruction of control goes.
func (g *regions) control(c *cut) {
	switch c.op {
	case binary.OpBlock, binary.OpLoop, binary.OpIf:
		g.enter(c.op)
	case binary.OpElse:
		f := &g.open[len(g.open)-1]
		g.meet(f)
		f.op = binary.OpElse
		g.resume(f.start, f.dead)
	case binary.OpEnd:
		g.leave()
	case binary.OpBrIf:
		g.branch(c.label)
		g.may = true
	case binary.OpBr:
		g.branch(c.label)
		g.dead = true
	case binary.OpBrTable:
		for _, label := range c.targets {
			g.branch(label)
		}
		g.dead = true
	default: // return, unreachable
		g.dead = true
	}
}

func (g *regions) enter(op binary.Op) {
	if op == binary.OpLoop {
		g.loops++
		g.must, g.loop = !g.dead, !g.dead
	}
	g.open = append(g.open, frame{op: op, loops: g.loops, start: g.at, dead: g.dead})
	g.may = op == binary.OpIf
}

// resume goes on from a place that a fork led to.
func (g *regions) resume(p place, dead bool) {
	g.at, g.dead, g.may = p, dead, true
}

func (g *regions) leave() {
	f := &g.open[len(g.open)-1]
	if f.op == binary.OpLoop {
		g.loops--
		g.open = g.open[:len(g.open)-1]
		g.must = !g.dead // what comes behind a loop is not part of each turn
		return
	}
	g.meet(f)
	if f.op == binary.OpIf && !f.dead {
		f.join = joined(f.join, f.start)
	}
	join := f.join
	g.open = g.open[:len(g.open)-1]
	if join.n == 0 && !join.mixed {
		g.dead = true
		return
	}
	g.must = join.mixed
	g.resume(join, false)
}

// meet lets the code before an end or an else go on at the end.
func (g *regions) meet(f *frame) {
	if !g.dead {
		f.join = joined(f.join, g.at)
	}
}

func (g *regions) branch(label uint32) {
	if g.dead {
		return
	}
	f := &g.open[len(g.open)-1-int(label)]
	switch {
	case f.op == binary.OpLoop:
		g.must = true // the turns of a loop do not pay for what comes after the last
	case f.loops != g.loops:
		f.join = place{mixed: true}
	default:
		f.join = joined(f.join, g.at)
	}
}

// joined is where the paths to two places meet.
func joined(a, b place) place {
	if a.mixed || b.mixed {
		return place{mixed: true}
	}
	for _, w := range b.in[:b.n] {
		at := slices.IndexFunc(a.in[:a.n], func(have way) bool { return have.head == w.head })
		switch {
		case at >= 0:
			a.in[at].path = max(a.in[at].path, w.path)
		case a.n == maxMeet:
			return place{mixed: true}
		default:
			a.in[a.n] = w
			a.n++
		}
	}
	return a
}
