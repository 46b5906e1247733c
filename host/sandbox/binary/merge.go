package binary

// Where paths meet, a compiler has a value of its own for each local that has different ones before. What that costs it, and
// what of it a frame may have to keep, grows with the number of such places times that of the locals, whatever the size of
// the code. Only shared locals count: those that are used in more than one part of the code between branches and labels, or
// read in a part before they are written in it. Of the others, of which code that is not optimised has thousands, no value
// ever leaves its part.

// fewMerged is how many values of locals may meet without being counted exactly.
const fewMerged = 256

// many stands for more than one part.
const many = ^uint32(0)

// uses finds the shared locals of a function.
type uses struct {
	part   uint32   // number of the part
	first  []uint32 // in which part a local is used, 0 for none
	shared uint64
}

func (u *uses) begin(locals uint64, params int) {
	u.part, u.shared = 1, 0
	if uint64(cap(u.first)) < locals {
		u.first = make([]uint32, locals)
	}
	u.first = u.first[:locals]
	clear(u.first)
	for i := range params {
		u.first[i] = 1 // where they are written
	}
}

func (u *uses) see(local uint32, write bool) {
	switch first := &u.first[local]; {
	case *first == u.part, *first == many:
	case *first == 0 && write:
		*first = u.part
	default:
		*first = many
		u.shared++
	}
}

// merge is how many values of shared locals may meet in a function that was checked, and refuses too many.
func (c *checker) merge(b *Body) uint64 {
	if c.uses.shared*c.blocks <= fewMerged {
		return c.uses.shared * c.blocks
	}
	c.code = b.Read()
	c.open = append(c.open[:0], openBlock{op: OpBlock})
	loops, merged := uint64(0), uint64(0)
	for c.code.Next() {
		switch in := &c.code.In; in.Op {
		case OpBlock, OpLoop, OpIf:
			c.open = append(c.open, openBlock{op: in.Op})
			if in.Op != OpLoop {
				continue
			}
			if loops++; loops*c.uses.shared > MaxLoopLocals {
				c.fail(TooLarge, "%d nested loops over %d locals: their product may be at most %d", loops, c.uses.shared, MaxLoopLocals)
				return 0
			}
		case OpBr, OpBrIf:
			c.join(in.X)
		case OpBrTable:
			for _, label := range in.Targets {
				c.join(label)
			}
		case OpLocalSet, OpLocalTee:
			if c.uses.first[in.X] == many {
				c.open[len(c.open)-1].sets++
			}
		case OpEnd:
			n, op := c.leave()
			if op == OpLoop {
				loops--
			}
			if merged += n; merged > MaxMerged {
				c.fail(TooLarge, "more than %d values of locals meet at its loops and branches", MaxMerged)
				return 0
			}
		}
	}
	return merged
}

// join notes that a branch names a block.
func (c *checker) join(label uint32) { c.open[len(c.open)-1-int(label)].join = true }

// leave ends a block, and says how many values of locals meet at its end or at its head.
func (c *checker) leave() (merged uint64, op Op) {
	b := c.open[len(c.open)-1]
	c.open = c.open[:len(c.open)-1]
	if len(c.open) == 0 {
		return 0, b.op
	}
	c.open[len(c.open)-1].sets += b.sets
	if b.op == OpBlock && !b.join {
		return 0, b.op
	}
	return min(b.sets, c.uses.shared), b.op
}
