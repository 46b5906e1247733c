package binary

import "sort"

// lives follows the locals of one function after the other. What a local costs a compiler depends on how far its values
// go: one that is always written before it is read, in one part of the code between two branches or labels, costs nothing,
// however many blocks stand around it, and code that was not optimised has thousands of those. The others are shared.
//
// The code is gone over once. What was met is noted, for which blocks are branched to, and which locals are shared, is known
// only at its end. All work is linear in the code, but for a search among the open blocks.
type lives struct {
	locals  []life
	turn    uint32 // of the function: what is noted of locals for another one is void
	touched []uint32
	part    uint32
	events  []event
	nodes   []node // blocks, loops and ifs in the order of the code
	open    []openNode
}

// life is what is known of one local.
type life struct {
	turn        uint32
	first, last uint32 // parts it is used in
	exposed     bool   // its value from the function's start may be read
	written     bool
	scope       scope // where it was written: what follows inside reads no older value
	used, set   int32 // event of the last use, and of the last write, that was counted
}

// scope is an open block, or the arm of an if that it is in.
type scope struct {
	depth  int
	serial uint32
}

// shared says whether its values go from one part of the code to another.
func (l *life) shared() bool { return l.exposed || l.first != l.last }

// event is a use of a local, or the begin or end of a block: a local's number and two bits.
type event uint32

const (
	eventRead  = 0
	eventWrite = 1
	eventOpen  = 2
	eventClose = 3
)

// node is a block, loop or if.
type node struct {
	op    Op
	start int // its offset in the module
	ways  int // branches that name it
	// values that each of them takes along
	arity int
}

// openNode is a node that is open while the events are gone over.
type openNode struct {
	node       int
	from       int32 // its event
	used, sets int   // shared locals inside, each counted once at the end of the node
	loops      int   // it is nested in, itself included
}

func (l *lives) begin(locals int) {
	if locals > len(l.locals) {
		l.locals, l.turn = make([]life, locals), 0
	}
	l.turn++
	l.part, l.touched, l.events, l.nodes = 1, l.touched[:0], l.events[:0], l.nodes[:0]
}

// use notes that a local is read or written, inside the open blocks.
func (l *lives) use(local uint32, set bool, open []openBlock) {
	s := &l.locals[local]
	if s.turn != l.turn {
		*s = life{turn: l.turn, first: l.part, used: -1, set: -1}
		l.touched = append(l.touched, local)
	}
	s.last = l.part
	covered := s.written && s.scope.depth < len(open) && open[s.scope.depth].serial == s.scope.serial
	kind := event(eventRead)
	switch {
	case set:
		kind = eventWrite
		if !covered {
			s.written, s.scope = true, scope{len(open) - 1, open[len(open)-1].serial}
		}
	case !covered:
		s.exposed = true
	}
	l.events = append(l.events, event(local)<<2|kind)
}

// enter notes the begin of a block and answers its node.
func (l *lives) enter(n node) int {
	l.nodes = append(l.nodes, n)
	l.events = append(l.events, eventOpen)
	return len(l.nodes) - 1
}

func (l *lives) leave() { l.events = append(l.events, eventClose) }

// spans are the parts of the code from the first to the last that a local's values may be alive in, of all locals.
func (l *lives) spans() (sum int64) {
	for _, local := range l.touched {
		s := &l.locals[local]
		if s.exposed {
			s.first = 0
		}
		sum += int64(s.last - s.first)
	}
	return sum
}

// each goes over the blocks, inner ones first, with the number of shared locals that are used and that are written inside.
func (l *lives) each(visit func(n *node, loops, used, sets int) bool) {
	if len(l.nodes) == 0 {
		return
	}
	l.open = append(l.open[:0], openNode{node: -1, from: -1})
	next := 0
	for i, e := range l.events {
		switch e & 3 {
		case eventOpen:
			o := openNode{node: next, from: int32(i), loops: l.open[len(l.open)-1].loops}
			if l.nodes[next].op == OpLoop {
				o.loops++
			}
			l.open = append(l.open, o)
			next++
		case eventClose:
			o := l.open[len(l.open)-1]
			l.open = l.open[:len(l.open)-1]
			if !visit(&l.nodes[o.node], o.loops, o.used, o.sets) {
				return
			}
			parent := &l.open[len(l.open)-1]
			parent.used += o.used
			parent.sets += o.sets
		default:
			l.count(&l.locals[e>>2], int32(i), e&3 == eventWrite)
		}
	}
}

// count adds a use to the innermost block, and takes one from the innermost that has the local's last use as well: so each
// block has it once when the counts of what is inside are added up.
func (l *lives) count(s *life, at int32, set bool) {
	if !s.shared() {
		return
	}
	top := &l.open[len(l.open)-1]
	if s.used < top.from {
		top.used++
		if s.used >= 0 {
			l.around(s.used).used--
		}
	} else if s.used < 0 {
		top.used++
	}
	s.used = at
	if !set {
		return
	}
	if s.set < top.from {
		top.sets++
		if s.set >= 0 {
			l.around(s.set).sets--
		}
	} else if s.set < 0 {
		top.sets++
	}
	s.set = at
}

// around is the innermost open block that has an event.
func (l *lives) around(at int32) *openNode {
	n := sort.Search(len(l.open), func(i int) bool { return l.open[i].from > at })
	return &l.open[n-1]
}
