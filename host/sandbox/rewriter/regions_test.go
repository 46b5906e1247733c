package rewriter

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/sandbox/binary"
)

// program draws structured code as cuts, each of some instructions.
type program struct {
	cuts []cut
	ends []int // of the cut that opens a block, the position of its end; of an else too
	alts []int // of an if, the position of its else, or of its end
	next int32
}

func (p *program) add(t *rapid.T, c cut) int {
	n := rapid.Int32Range(1, 40).Draw(t, "instructions")
	c.start, c.cost = p.next, n
	if c.op == binary.OpEnd || c.op == binary.OpBlock || c.op == binary.OpElse {
		c.cost-- // these cost nothing
	}
	p.next += n
	p.cuts = append(p.cuts, c)
	p.ends, p.alts = append(p.ends, 0), append(p.alts, 0)
	return len(p.cuts) - 1
}

// draw adds statements in so many open blocks.
func (p *program) draw(t *rapid.T, open, depth int) {
	for range rapid.IntRange(0, 4).Draw(t, "statements") {
		kind := rapid.IntRange(0, 7).Draw(t, "kind")
		label := uint32(rapid.IntRange(0, open-1).Draw(t, "label"))
		switch {
		case kind == 0:
			p.add(t, cut{op: binary.OpBrIf, label: label})
		case kind == 1:
			p.add(t, cut{op: binary.OpBr, label: label})
		case kind == 2:
			p.add(t, cut{op: binary.OpBrTable, targets: []uint32{label, 0, uint32(open - 1)}})
		case kind == 3:
			p.add(t, cut{op: binary.OpReturn})
		case depth > 4:
		case kind == 4:
			p.block(t, binary.OpBlock, open, depth)
		case kind == 5:
			p.block(t, binary.OpLoop, open, depth)
		default:
			p.block(t, binary.OpIf, open, depth)
		}
	}
}

func (p *program) block(t *rapid.T, op binary.Op, open, depth int) {
	at := p.add(t, cut{op: op})
	p.draw(t, open+1, depth+1)
	alt := -1
	if op == binary.OpIf && rapid.Bool().Draw(t, "else") {
		alt = p.add(t, cut{op: binary.OpElse})
		p.draw(t, open+1, depth+1)
	}
	end := p.add(t, cut{op: binary.OpEnd})
	p.ends[at], p.alts[at] = end, end
	if alt >= 0 {
		p.alts[at], p.ends[alt] = alt, end
	}
}

// walk runs the program with drawn branches, and calls step before each cut's piece.
func (p *program) walk(t *rapid.T, turns int, step func(at int)) {
	type block struct {
		at   int
		loop bool
	}
	var open []block
	// leave goes to a label: it returns where the program goes on.
	leave := func(label uint32) int {
		target := len(open) - 1 - int(label)
		if target < 0 {
			return len(p.cuts)
		}
		b := open[target]
		if b.loop {
			open = open[:target+1]
			return b.at + 1
		}
		open = open[:target]
		return p.ends[b.at] + 1
	}
	for at := 0; at < len(p.cuts) && turns > 0; turns-- {
		step(at)
		c := &p.cuts[at]
		switch c.op {
		case binary.OpBlock, binary.OpLoop:
			open = append(open, block{at, c.op == binary.OpLoop})
			at++
		case binary.OpIf:
			open = append(open, block{at, false})
			if rapid.Bool().Draw(t, "then") {
				at++
				continue
			}
			if alt := p.alts[at]; p.cuts[alt].op == binary.OpElse {
				at = alt + 1
			} else {
				open = open[:len(open)-1]
				at = alt + 1
			}
		case binary.OpElse:
			open = open[:len(open)-1]
			at = p.ends[at] + 1
		case binary.OpEnd:
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
			at++
		case binary.OpBr:
			at = leave(c.label)
		case binary.OpBrIf:
			if rapid.Bool().Draw(t, "taken") {
				at = leave(c.label)
			} else {
				at++
			}
		case binary.OpBrTable:
			at = leave(c.targets[rapid.IntRange(0, len(c.targets)-1).Draw(t, "target")])
		default:
			return
		}
	}
}

// behindBlocks is the most that pieces cost which follow each other behind the beginnings of blocks.
func (p *program) behindBlocks() int {
	most, sum := 0, 0
	for i := 1; i < len(p.cuts); i++ {
		if p.cuts[i-1].op != binary.OpBlock {
			sum = 0
			continue
		}
		sum += int(p.cuts[i].cost)
		most = max(most, sum)
	}
	return most
}

// TestRegionsNeverChargeTooLittle walks random code along random branches: what has run by any moment was charged before.
func TestRegionsNeverChargeTooLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &program{}
		p.draw(t, 1, 0)
		p.add(t, cut{op: binary.OpEnd})
		var g regions
		g.find(p.cuts)
		heads := map[int32]head{}
		for _, h := range g.heads {
			if _, twice := heads[h.at]; twice {
				t.Fatalf("two heads at %d", h.at)
			}
			heads[h.at] = h
		}
		charged, ran, loops := 0, 0, 0
		p.walk(t, 300, func(at int) {
			h, ok := heads[p.cuts[at].start]
			if ok {
				charged += int(h.cost)
			}
			if at > 0 && p.cuts[at-1].op == binary.OpLoop && !(ok && h.loop) {
				t.Fatalf("no check at the loop before %d", at)
			}
			ran += int(p.cuts[at].cost)
			if charged < ran {
				t.Fatalf("at %d: %d ran, %d was charged", at, ran, charged)
			}
			loops++
		})
		// A region is entered again for every fork at the earliest, and costs at most regionMax more than its first piece, and
		// the pieces that a fork leads to where blocks begin between them: what begins one is neither fork nor join.
		if most := ran + loops*(regionMax+p.behindBlocks()); charged > most {
			t.Errorf("%d was charged for %d in %d pieces", charged, ran, loops)
		}
	})
}

func TestRegions(t *testing.T) {
	piece := func(op binary.Op, cost int32, label ...uint32) cut {
		c := cut{op: op, cost: cost}
		if len(label) > 0 {
			c.label = label[0]
		}
		return c
	}
	tests := []struct {
		name string
		cuts []cut
		want []int32 // costs of the heads
	}{
		{"straight", []cut{piece(binary.OpEnd, 500)}, []int32{500}},
		{"a short fork is paid for as a whole", []cut{piece(binary.OpIf, 5), piece(binary.OpElse, 10), piece(binary.OpEnd, 20), piece(binary.OpEnd, 3)}, []int32{28}},
		{"a long arm pays for itself", []cut{piece(binary.OpIf, 5), piece(binary.OpElse, 10), piece(binary.OpEnd, 100), piece(binary.OpEnd, 3)}, []int32{15, 100, 3}},
		{"a loop pays by the turn", []cut{piece(binary.OpLoop, 5), piece(binary.OpBrIf, 7, 0), piece(binary.OpEnd, 0), piece(binary.OpEnd, 9)}, []int32{5, 7, 0, 9}},
		{"dead code is free", []cut{piece(binary.OpReturn, 5), piece(binary.OpLoop, 7), piece(binary.OpEnd, 8), piece(binary.OpEnd, 9)}, []int32{5}},
		{"code behind a taken branch", []cut{piece(binary.OpBlock, 1), piece(binary.OpBr, 2, 0), piece(binary.OpEnd, 50), piece(binary.OpEnd, 9)}, []int32{12}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for i := range tt.cuts {
				tt.cuts[i].start = int32(i)
			}
			var g regions
			g.find(tt.cuts)
			var got []int32
			for _, h := range g.heads {
				got = append(got, h.cost)
			}
			if len(got) != len(tt.want) {
				t.Fatalf("heads cost %v, want %v", got, tt.want)
			}
			for i := range got {
				if got[i] != tt.want[i] {
					t.Errorf("heads cost %v, want %v", got, tt.want)
				}
			}
		})
	}
}
